"""One name with ever less detail: the most distinctive part first, what is the same in every instance not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

DETAIL = 3  # brackets in brackets that are shown where there is room
_DEPTHS = range(DETAIL, 0, -1)

# A template that only launches what its argument names.
_SHELLS = {"Kernel", "Kernel2", "device_kernel", "kernel_agent", "gpu_kernel_impl", "gpu_kernel_impl_nocast"}
# A functor around a functor: which of its arguments says what is done.
_WRAPPERS = {
    "BinaryFunctor": -1,
    "AUnaryFunctor": -1,
    "BUnaryFunctor": -1,
    "func_wrapper_t": -1,
    "ReduceOp": 1,
}
# Kernels of ATen that apply a functor: which one is what they do.
_LAUNCHER = re.compile(r"elementwise_kernel$|^reduce_kernel$|^multi_tensor_apply_kernel$")
# Names that say nothing without the place they stand in.
_GENERIC = {"kernel", "Kernel", "_kernel", "main_kernel", "run", "launch", "operator()", "static_kernel"}
# Arguments that are the same in every instance, or follow from the others.
_PLUMBING = re.compile(
    r"^(array|Array|TrivialOffsetCalculator|OffsetCalculator|LoadWithoutCast|StoreWithoutCast|LoadWithCast"
    r"|StoreWithCast|integral_constant|identity_decomposer_t)$"
)
_NUMBER = re.compile(r"^(-?\d+)[uUlL]+$")


@lru_cache(
    maxsize=32768
)  # more than a report has kernels: used in turn, a smaller cache would hold none of them
def fitting_form(name: str, width: int) -> tuple[str, bool]:
    """Return the first form of the name of at most `width` characters, and True; the last, and False, where none
    is so short.

    Forms are made one by one: of 10,000 names with ten forms each most would be made for nothing.
    """
    last = ""
    for last in name_forms(name):
        if len(last) <= width:
            return last, True
    return last, False


def name_forms(name: str) -> Iterator[str]:
    """Yield the short name with ever less detail; at least one, none of them empty."""
    plain = plain_name(name)
    parts = _parts(plain) if re.match(r"[A-Za-z_]", plain) else None
    yielded: set[str] = set()
    for form in _by_detail(parts) if parts is not None else ():
        if form and form not in yielded:
            yielded.add(form)
            yield form
    if not yielded:
        yield plain or "?"


# Behind a function: qualifiers, what a compiler did with it, and the hash of Rust.
_BEHIND = re.compile(
    r"(?:\s+(?:const|volatile|noexcept)|\s*&{1,2}|\s*\[(?:clone|abi)\b[^\]]*\]|::h[0-9a-f]{16}|\.(?:constprop|isra|part|cold)(?:\.\d+)?)+$"
)
_IMPLEMENTED = re.compile(r"^<.*>::(?=\w)")  # of Rust: `<Type as Trait>::`


@lru_cache(maxsize=32768)
def bare_name(name: str) -> str:
    """Return the name of a C++ function alone: no return type, namespaces, template arguments, parameters, qualifiers.

    Of a kernel of a library that applies a functor it is the functor's: all of them have the name of their launcher.

    >>> bare_name("bool grid::Field<int>::has(std::pair<int, int>) const")
    'has'
    """
    plain = _IMPLEMENTED.sub("", _BEHIND.sub("", plain_name(name)))
    if plain.startswith("operator "):
        return plain.partition("(")[0]
    parts = _parts(plain) if re.match(r"[A-Za-z_]", plain) else None
    if parts is None:
        return plain or "?"
    core = _core(parts)
    worth = [argument for argument in core.args or [] if not (_plumbing(argument) or _plain_number(argument))]
    if worth and _LAUNCHER.search(core.text):
        return _type(worth[0], 0).removesuffix("<…>")
    name, lambda_, _ = _named(parts).partition("(")
    return f"{name}()" if lambda_ else name


def _by_detail(parts: list[NamePart]) -> Iterator[str]:
    """Yield what is worth most stands first: names before numbers, what is launched before what launches it."""
    for depth in (DETAIL, DETAIL - 1):
        yield _short_text(parts, depth)
    core = _core(parts)
    args = core.args or []
    worth = [argument for argument in args if not (_plumbing(argument) or _plain_number(argument))]
    if worth and _LAUNCHER.search(core.text):
        yield from (f"…<{_type(worth[0], depth - 1)}>" for depth in _DEPTHS)
        yield f"…<{_type(worth[0], 0).removesuffix('<…>')}>"
    yield _short_text(parts, 1)
    first = [_type(argument, 0) for argument in args if not _plumbing(argument)]
    for count in range(min(len(first) - 1, 8), 0, -1):
        yield f"{_named(parts)}<{', '.join(first[:count])}, …>"
    yield _short_text(parts, 0)
    yield _named(parts)


def _core(parts: list[NamePart]) -> NamePart:
    """Return the part that names the kernel, out of the shells that launch it."""
    named = _steps(parts)
    last = named[-1] if named else parts[-1]
    if last.args and (last.text in _SHELLS or last.text.startswith("enable_")):
        inner = next((item for item in last.args[0].items if isinstance(item, list)), None)
        if inner is not None:
            return _core(inner)
    return last


def _steps(parts: list[NamePart]) -> list[NamePart]:
    return [part for part in parts if not part.text.startswith(("operator()", "operator ()", "lambda"))]


def _named(parts: list[NamePart]) -> str:
    """Return the name without arguments, as `_short_text` begins it."""
    return _short_text(parts, 0).removesuffix("<…>")


def _plain_number(argument: TypeArgument) -> bool:
    texts = [
        item[-1].text if isinstance(item, list) and len(item) == 1 else str(item) for item in argument.items
    ]
    bare = all(not isinstance(item, list) or item[-1].args is None for item in argument.items)
    return bare and all(re.fullmatch(r"-|…|-?\d+[uUlL]*|true|false", text) for text in texts)


def _short_text(parts: list[NamePart], depth: int) -> str:
    """Return the qualified name with `depth` levels of template arguments."""
    named = _steps(parts)
    inner = next((part for part in reversed(parts) if part.text == "lambda"), None)
    if not named:
        return "lambda" + (_listed(inner.params, 0, "()") if inner is not None and inner.params else "")
    last = named[-1]
    if last.args:
        shown = [argument for argument in last.args if not _plumbing(argument)] or last.args
        shell = last.text in _SHELLS or last.text.startswith("enable_")
        which = 0 if shell else _WRAPPERS.get(last.text)
        if which is not None and -len(shown) <= which < len(shown):
            return _type(shown[which], depth) or last.text
    text = last.text
    if text in _GENERIC and len(named) > 1:
        text = f"{named[-2].text}::{text}"
    if inner is not None:  # a function's own lambda: its type is what distinguishes instances
        return text + (_listed(inner.params, depth, "()") if inner.params else "()")
    if last.args is None:
        return text
    if depth <= 0:
        return f"{text}<…>"
    shown = [argument for argument in last.args if not _plumbing(argument)]
    return text + _listed(shown, depth - 1, "<>") if shown else text


def _listed(types: list[TypeArgument] | None, depth: int, brackets: str) -> str:
    return f"{brackets[0]}{', '.join(_type(argument, depth) for argument in types or [])}{brackets[1]}"


def _plumbing(argument: TypeArgument) -> bool:
    names = [item for item in argument.items if isinstance(item, list)]
    return bool(names) and _PLUMBING.match(names[-1][-1].text) is not None


def _type(argument: TypeArgument, depth: int) -> str:
    text = ""
    items = [item for item in argument.items if item != [NamePart("void")] or len(argument.items) == 1]
    for item in items:
        word = _short_text(item, depth) if isinstance(item, list) else item
        word = _NUMBER.sub(r"\1", word)
        glue = " " if text and isinstance(item, list) and text[-1] not in "&-" else ""
        text += glue + word
    return text


LONGEST = 20_000  # characters that are looked at: the longest real names have some 10,000
DEEPEST = 24  # brackets in brackets that are read; what lies deeper is left out

_RETURN_TYPE = re.compile(
    r"^(?:(?:static|inline|const|unsigned|signed|void|int|long|short|char|float|double|bool|auto|__global__) )*$"
)
_ANONYMOUS = re.compile(
    r"\(anonymous namespace\)::|<unnamed>::|\{anonymous\}::|_GLOBAL__N_\w*::|`anonymous[^']*'::"
)
_CAST = re.compile(r"\((?:[A-Za-z_][\w:]*(?: \w+)*)\)(?=-?\d)")
_TOKEN = re.compile(
    r"operator ?(?:\(\)|\[\]|<=>|<<=?|>>=?|<=?|>=?|->\*?|[-+*/%^&|~!=]{1,3})"  # brackets that are none
    r"|[\[{](?=lambda\()|'lambda\d*'|::|->|\w[\w$@.]*|\s+|."
)


@dataclass
class NamePart:
    """One step of a qualified name. `args` are its template's, `params` a function's or a lambda's."""

    text: str
    args: list[TypeArgument] | None = None
    params: list[TypeArgument] | None = None


@dataclass
class TypeArgument:
    """What stands between two commas: words, and qualified names as lists of parts."""

    items: list[str | list[NamePart]] = field(default_factory=list)


def plain_name(name: str) -> str:
    """Return the name on one line without anonymous namespaces and casts, mangled symbols by their last plain name."""
    text = _ANONYMOUS.sub("", " ".join(name[:LONGEST].split()))
    if text.startswith("_Z"):
        text = _of_mangled(text)
    text = re.sub(r"\(bool\)1(?!\d)", "true", re.sub(r"\(bool\)0(?!\d)", "false", text))
    return _CAST.sub("", text)


def _of_mangled(text: str) -> str:
    """Return the last plain name of an Itanium symbol that was not demangled: enough to be known by."""
    rest, last = re.sub(r"^_ZN?K?", "", text), ""
    while part := re.match(r"(?:S[t_a]|L)?(\d{1,4})(?=[A-Za-z_])", rest):
        begin, length = part.end(), int(part[1])
        if begin + length > len(rest):
            break
        last, rest = rest[begin : begin + length], rest[begin + length :]
    return last or text


def _parts(text: str) -> list[NamePart] | None:
    """Return the qualified name of a signature without what stands before and behind it; None where it is no
    signature.
    """
    reader = _Reader(_TOKEN.findall(text))
    words = reader.type(DEEPEST)
    places = [number for number, item in enumerate(words.items) if isinstance(item, list)]
    if not places:
        return None
    last = places[-1] if not _plain_words(words) else None
    if last is None or not reader.done:
        return None
    return words.items[last]  # type: ignore[return-value]


def _plain_words(argument: TypeArgument) -> bool:
    """Return whether this is text with blanks in it, and not a return type before a name."""
    words = [item for item in argument.items if isinstance(item, list)]
    head, last = words[:-1], words[-1]
    if not head or (len(last) > 1 and not any(part.params is not None for part in last)):
        return False
    before = "".join(f"{part.text} " for item in head for part in item)
    typed = any(part.args is not None for item in head for part in item) or any(
        len(item) > 1 for item in head
    )
    return not (typed or _RETURN_TYPE.match(before))


class _Reader:
    """Reads tokens once, from left to right."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens, self._at = tokens, 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._tokens)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def type(self, depth: int) -> TypeArgument:
        """Read a type up to a comma or a closing bracket that is not its own."""
        argument, joined = TypeArgument(), False
        while (token := self._peek()) and token not in (",", ">", ")", "]", "}"):
            self._at += 1
            if token == "::":
                joined = bool(argument.items) and isinstance(argument.items[-1], list)
            elif token.isspace() or (token in ("const", "volatile", "noexcept") and self._peek() == "::"):
                continue
            elif token[0].isalnum() or token[0] in "_~'" or token.startswith("operator"):
                self._add(argument, NamePart("lambda" if token.startswith("'lambda") else token), joined)
                joined = False
            elif token in "[{" and self._peek().startswith("lambda"):
                self._at += 1
                part = NamePart("lambda")
                self._opened("(", part, depth)
                self._skip("]" if token == "[" else "}")
                self._add(argument, part, joined)
                joined = False
            elif token in "<(" and argument.items and isinstance(argument.items[-1], list):
                self._at -= 1
                self._opened(token, argument.items[-1][-1], depth)
            elif token in "<([{":
                self._skip({"<": ">", "(": ")", "[": "]", "{": "}"}[token])
            else:
                argument.items.append(token)
        return argument

    def _add(self, argument: TypeArgument, part: NamePart, joined: bool) -> None:
        if joined and isinstance(argument.items[-1], list):
            argument.items[-1].append(part)
        else:
            argument.items.append([part])

    def _opened(self, bracket: str, part: NamePart, depth: int) -> None:
        """Add the contents of the bracket that begins here to `part`, if one does."""
        if self._peek() != bracket:
            return
        self._at += 1
        close = ">" if bracket == "<" else ")"
        inside: list[TypeArgument] = []
        if depth <= 0:
            self._skip(close)
        else:
            while not self.done:
                argument = self.type(depth - 1)
                if argument.items:
                    inside.append(argument)
                token = self._peek()
                self._at += 1
                if token == close or token == "":
                    break
        if bracket == "<":
            part.args = inside
        else:
            part.params = inside

    def _skip(self, close: str) -> None:
        """Skip everything up to and including the closing bracket."""
        open_, level = {">": "<", ")": "(", "]": "[", "}": "{"}[close], 1
        while not self.done and level:
            token = self._peek()
            self._at += 1
            level += (token == open_) - (token == close)
