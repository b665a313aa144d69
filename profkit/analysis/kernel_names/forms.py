"""One name with ever less detail: what tells most first, what is the same in every instance not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from profkit.analysis.kernel_names.signature import NamePart, TypeArgument, plain_name, read_signature

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
)  # more than a report has kernels: asked in turn, a smaller cache would hold none of them
def fitting_form(name: str, width: int) -> tuple[str, bool]:
    """The first form of the name of at most `width` characters, and True; the last, and False, where none is so short.

    Forms are made one by one: of 10,000 names with ten forms each most would be made for nothing.
    """
    last = ""
    for last in name_forms(name):
        if len(last) <= width:
            return last, True
    return last, False


def name_forms(name: str) -> Iterator[str]:
    """The short name with ever less detail; at least one, none of them empty."""
    parts = read_signature(name)
    yielded: set[str] = set()
    for form in _by_detail(parts) if parts is not None else ():
        if form and form not in yielded:
            yielded.add(form)
            yield form
    if not yielded:
        yield plain_name(name) or "?"


def _by_detail(parts: list[NamePart]) -> Iterator[str]:
    """What is worth most stands first: names before numbers, what is launched before what launches it."""
    for depth in (DETAIL, DETAIL - 1):
        yield _told(parts, depth)
    core = _core(parts)
    args = core.args or []
    worth = [argument for argument in args if not (_plumbing(argument) or _plain_number(argument))]
    if worth:
        named = [f"{_named(parts)}<{_without_numbers(args, depth - 1)}>" for depth in _DEPTHS]
        yield from named[:-1]
        if _LAUNCHER.search(core.text):
            yield from (f"…<{_type(worth[0], depth - 1)}>" for depth in _DEPTHS)
            yield f"…<{_type(worth[0], 0).removesuffix('<…>')}>"
        yield named[-1]
    yield _told(parts, 1)
    first = [_type(argument, 0) for argument in args if not _plumbing(argument)]
    for count in range(min(len(first) - 1, 8), 0, -1):
        yield f"{_named(parts)}<{', '.join(first[:count])}, …>"
    yield _told(parts, 0)
    yield _named(parts)


def _core(parts: list[NamePart]) -> NamePart:
    """The part that names the kernel, out of the shells that launch it."""
    named = _steps(parts)
    last = named[-1] if named else parts[-1]
    if last.args and (last.text in _SHELLS or last.text.startswith("enable_")):
        inner = next((item for item in last.args[0].items if isinstance(item, list)), None)
        if inner is not None:
            return _core(inner)
    return last


def _steps(parts: list[NamePart]) -> list[NamePart]:
    return [part for part in parts if not part.text.startswith(("operator()", "operator ()", "lambda"))]


def _without_numbers(args: list[TypeArgument], depth: int) -> str:
    """The arguments with one `…` for every row of numbers."""
    texts = [
        "…" if _plain_number(argument) else _type(argument, depth)
        for argument in args
        if not _plumbing(argument)
    ]
    return ", ".join(
        argument for n, argument in enumerate(texts) if argument != "…" or n == 0 or texts[n - 1] != "…"
    )


def _named(parts: list[NamePart]) -> str:
    """The name without arguments, as `_told` begins it."""
    return _told(parts, 0).removesuffix("<…>")


def _plain_number(argument: TypeArgument) -> bool:
    texts = [
        item[-1].text if isinstance(item, list) and len(item) == 1 else str(item) for item in argument.items
    ]
    bare = all(not isinstance(item, list) or item[-1].args is None for item in argument.items)
    return bare and all(re.fullmatch(r"-|…|-?\d+[uUlL]*|true|false", text) for text in texts)


def _told(parts: list[NamePart], depth: int) -> str:
    """The qualified name with `depth` levels of template arguments."""
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
    if inner is not None:  # a function's own lambda: its type is what tells instances apart
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
        word = _told(item, depth) if isinstance(item, list) else item
        word = _NUMBER.sub(r"\1", word)
        glue = " " if text and isinstance(item, list) and text[-1] not in "&-" else ""
        text += glue + word
    return text
