"""Functions as people call them: none that is private to a library, and C++ by its bare name."""

from __future__ import annotations

import re
from functools import lru_cache

from profkit.analysis.kernel_names.forms import bare_name
from profkit.analysis.stacks.python_code import MODULE, is_users_code, module_name
from profkit.analysis.standard_library import standard_name
from profkit.core.types import Beneath, Place

_METHOD = re.compile(r"<method '(\w+)' of '([\w.]+)' objects>")
_BUILT_IN = re.compile(r"<built-in method ([\w.]+)>")
_CPP = re.compile(r"::|[(<{]|\[clone")
_PYTHON = re.compile(r"<(?:locals|module|lambda|listcomp|genexpr|dictcomp|setcomp)>")
_PRIVATE = re.compile(r"_.*|<.*>")  # also `__next__`, which an operator or a statement calls


def brief_name(function: str) -> str:
    """Return a function as its users write it: `list.pop`, `json.loads`, `time.sleep`."""
    if method := _METHOD.fullmatch(function):
        return f"{method[2].rpartition('.')[2]}.{method[1]}"
    if built_in := _BUILT_IN.fullmatch(function):
        return built_in[1].removeprefix("builtins.")
    return function


def function_name(name: str) -> str:
    """Return the name of the program's own function, without what surrounds it in C++.

    >>> function_name("bool grid::Field<int>::has(std::pair<int, int>) const")
    'has'
    >>> function_name("train.<locals>.step")
    'train.step'
    >>> function_name("_ZN3app4work17h0123456789abcdefE"), function_name("memcmp@plt")
    ('work', 'memcmp')
    """
    plain = _readable(brief_name(name).removesuffix("@plt")).replace("<locals>.", "")
    if "std::" in plain and (standard := standard_name(plain)) is not None:
        return standard
    return bare_name(plain) if _CPP.search(_PYTHON.sub("", plain)) else plain


# Their lengths say where its names end: a pattern for these would try each way to divide a long symbol of C++.
_OF_RUST = re.compile(r"_ZN([\w.$]+)17h[0-9a-f]{16}E\b.*")


def _readable(symbol: str) -> str:
    """Return `app::work` of a symbol of Rust with its hash, where perf left it as it is; any other name unchanged."""
    match = _OF_RUST.fullmatch(symbol)
    rest, parts = match[1] if match is not None else "", []
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    named = [
        part for part in parts if "$closure$" not in part
    ]  # a closure is a part of the function it stands in
    return "::".join(named) if named and not rest else symbol


def library_name(name: str, owner: str = "") -> str:
    """Return the last public name of a function in a library of Python; `owner`, its module, where it has none.

    >>> library_name("Module._call_impl", "torch"), library_name("_wrapped_call_impl", "torch.nn.modules.module")
    ('Module', 'torch.nn.modules.module')
    >>> library_name("<lambda>", "jax._src.lax")
    'jax'
    """
    parts = function_name(name).split(".")
    while parts and _PRIVATE.fullmatch(parts[-1]):
        parts.pop()
    private = [at for at, part in enumerate(parts) if _PRIVATE.fullmatch(part)]
    if parts:
        return ".".join(parts[private[-1] + 1 if private else 0 :])
    return public_module(owner)


_SUFFIX = re.compile(r"@.*|\.(constprop|isra|part|cold|localalias)\b.*")
_AS = re.compile(r"^<(?:&(?:mut )?|dyn )*(.+?) as .+>(?=::)")
_OF = re.compile(r"^<([\w:]+)(?:<.*>)?>(?=::)")
_ANSWER = re.compile(r"^(?!.*\boperator ).* ")  # what a function template returns
_HIDDEN = re.compile(r"_.*|\[.*|.*[{}$].*|impl.*|functions|std|core|alloc|call(_once|_mut)?|do_call")


@lru_cache(maxsize=4096)  # samples ask for a few long symbols of C++ tens of thousands of times
def plain_symbol(symbol: str) -> str:
    """Return a symbol of C++ or Rust without arguments of templates, parameters and the version of a library.

    >>> plain_symbol("void std::__detail::_Executor<char const*, true>::_M_dfs(std::_Match_mode, long)")
    'std::__detail::_Executor::_M_dfs'
    >>> plain_symbol("<alloc::vec::Vec<T,A> as core::clone::Clone>::clone")
    'alloc::vec::Vec::clone'
    >>> plain_symbol("pow@@GLIBC_2.29"), plain_symbol("std::istream::operator>>(double&)")
    ('pow', 'std::istream::operator>>')
    >>> plain_symbol("<hashbrown::raw::RawTable<T>>::find"), plain_symbol("[unknown]")
    ('hashbrown::raw::RawTable::find', '[unknown]')
    """
    plain = _OF.sub(r"\1", _AS.sub(r"\1", _SUFFIX.sub("", symbol.removeprefix("__GI_"))))
    last = ""
    while plain != last:  # the innermost first; `operator<<` and `operator->` keep theirs
        plain, last = re.sub(r"(?<!operator)(?<!operator<)(::)?<[^<>]*(?<!-)>", "", plain), plain
    return _ANSWER.sub("", re.sub(r"(?<!operator)\(.*|(?<=\w)\[[^\]]+\]$", "", plain))


def called_in_library(symbol: str) -> str:
    """Return a function of a library of C++ or Rust as its users know it; empty where it is private to the library.

    >>> called_in_library("std::__cxx11::basic_regex<char, X<char> >::basic_regex(char const*, int)")
    'basic_regex'
    >>> called_in_library("std::collections::hash::map::HashMap<K,V,S,A>::entry")
    'HashMap::entry'
    >>> called_in_library("std::thread::functions::sleep")
    'thread::sleep'
    """
    names = plain_symbol(symbol).split("::")
    if _HIDDEN.fullmatch(names[-1]):
        return ""
    known = [name for name in names[:-1] if not _HIDDEN.fullmatch(name)]
    return "::".join((*(name for name in known[-1:] if name != names[-1]), names[-1]))


# What glibc adds to a name: the kind of processor that a version is for, the step of the work that is its own.
_VERSION = re.compile(
    r"_(?:avx\w*|evex\w*|sse\w*|fma4?|erms|ssse3\w*|movbe|unaligned\w*|internal|common|usercnt|nocancel|time64)$"
)


def public_symbol(symbol: str) -> str:
    """Return a function of a library of C as its users call it, without what the library's own versions add.

    >>> public_symbol("__memcmp_evex_movbe"), public_symbol("_int_malloc"), public_symbol("__ieee754_log_fma")
    ('memcmp', 'malloc', 'log')
    >>> public_symbol("__vfprintf_internal"), public_symbol("__GI___pthread_mutex_unlock_usercnt")
    ('vfprintf', 'pthread_mutex_unlock')
    >>> public_symbol("_ZN3foo3barEv"), public_symbol("dgemm_kernel_HASWELL")
    ('_ZN3foo3barEv', 'dgemm_kernel_HASWELL')
    """
    if not symbol.startswith("_") or re.match(r"_[A-Z]", symbol.removeprefix("__GI_")):
        return symbol
    name = re.sub(r"^(?:IO_|int_|libc_|ieee754_)", "", symbol.removeprefix("__GI_").lstrip("_"))
    while (shorter := _VERSION.sub("", name)) != name:
        name = shorter
    return name


def public_module(module: str) -> str:
    """Return a module up to its first step that is private: `jax` of `jax._src.lax`."""
    steps = module.split(".")
    return ".".join(
        steps[: next((at for at, step in enumerate(steps) if _PRIVATE.fullmatch(step)), len(steps))]
    )


def name_in_file(name: str, file: str | None, library: str | None = None) -> str:
    """Return the name of a function by whose it is: unchanged if no file or library of Python owns it.

    A symbol of machine code has no other name than its own.
    """
    if file is not None and file.endswith(".py") and not is_users_code(file, name):
        return library_name(name, module_name(file))
    if file is None and library is not None and not _is_machine_code(library):
        return library_name(name, library) or function_name(name)
    return function_name(name)


def _is_machine_code(library: str) -> bool:
    """Return whether it is a file that a linker made, or the kernel: `libc.so.6`, `[kernel.kallsyms]`."""
    return re.search(r"\.so\b|\.dylib\b|\.dll\b|^\[|/", library) is not None


def place_name(where: Place) -> str:
    """Return the function of a place, `top level` outside of any; empty if none is known."""
    name = where.function or ""
    return "top level" if name == MODULE else name_in_file(name, where.file)


_OPERATORS = {
    "__gt__": ">", "__ge__": ">=", "__lt__": "<", "__le__": "<=", "__eq__": "==", "__ne__": "!=",
    "__add__": "+", "__radd__": "+", "__iadd__": "+=", "__sub__": "-", "__rsub__": "-", "__isub__": "-=",
    "__mul__": "*", "__rmul__": "*", "__imul__": "*=", "__truediv__": "/", "__rtruediv__": "/", "__floordiv__": "//",
    "__mod__": "%", "__pow__": "**", "__matmul__": "@", "__and__": "&", "__or__": "|", "__xor__": "^",
    "__invert__": "~",
}  # fmt: skip
_FORWARD = ("_wrapped_call_impl", "_call_impl")  # of a module of torch


def _as_written(name: str, public: str, library: str | None) -> str:
    """Return how a program writes the call of a method of a class `public` that has a name for Python alone."""
    if not re.fullmatch(r"[A-Z]\w*", public):
        return public
    if name in _OPERATORS and library:
        return f"{library} {_OPERATORS[name]}"
    if name in ("__iter__", "__next__", "__len__"):
        return f"{'len' if name == '__len__' else 'iter'}({public})"
    if name == "__contains__":
        return f"in {public}"
    if name == "__get__":  # of a class that only the library names, below an attribute of an object
        return f"{library} attribute" if library else public
    if name in _FORWARD and public == "Module":
        return f"{public}.forward"
    return public


# Modules of libraries without an underscore whose classes and functions no user calls.
_INTERNAL = re.compile(
    r"/pandas/core/(apply|algorithms|common|construction|missing|nanops|sorting|groupby/ops|groupby/grouper|internals/|"
    r"ops/|array_algos/|computation/|dtypes/|indexers/)|"
    r"/sqlalchemy/(orm/(attributes|context|identity|instrumentation|loading|persistence|state|strategies)|"
    r"sql/compiler|engine/(cursor|default))\b|/django/db/models/(fields/related_descriptors|sql/)"
)


def is_internal(file: str | None) -> bool:
    """Return whether a file of a library is a module that its users do not know, though its name is public."""
    return _INTERNAL.search((file or "").replace("\\", "/")) is not None


_TEXTS = re.compile(r"\"[^\"]*\"|'[^']*'")
_ATTRIBUTE = re.compile(r"(?<![\w.\])])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![\w.(\[])")


def read_attribute(text: str) -> str | None:
    """Return the only attribute that a line reads and does not call; None for several.

    >>> read_attribute("for line in order.lines:"), read_attribute("rows += order.lines.all()")
    ('order.lines', None)
    >>> read_attribute("total += line.price * line.count")
    """
    found = set(_ATTRIBUTE.findall(_TEXTS.sub("", text)))
    return found.pop() if len(found) == 1 else None


def called_name(under: Beneath) -> str:
    """Return what a place calls: of a library its last public name, else the library; empty where nothing is known.

    What a statement or an operator calls is named as it is written.

    >>> called_name(Beneath("__gt__", "pandas", public="OpsMixin"))
    'pandas >'
    >>> called_name(Beneath("__iter__", "django", public="QuerySet"))
    'iter(QuerySet)'
    >>> called_name(Beneath("_wrapped_call_impl", "torch", public="Module"))
    'Module.forward'
    """
    if under.public or not under.name:
        return _as_written(under.name, under.public or "", under.library)
    if under.library is not None and _is_machine_code(under.library):
        return public_symbol(function_name(under.name))
    return name_in_file(under.name, None, under.library)
