"""Kernel names as people say them: of a C++ signature of a thousand characters the few that tell one from another.

Names come from files of anybody: any text gives a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from profkit.kernel_names.signature import Part, Type, plain, read_signature
from profkit.words import shortened

WIDTH = 60
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
_BEHIND = re.compile(r"(?: \(\d[\dx]* of \d[\dx]*\))?(?: #\d+)?$")
_NUMBER = re.compile(r"^(-?\d+)[uUlL]+$")


def short_name(name: str, width: int = WIDTH) -> str:
    """The name without return type, namespaces, parameters and plumbing, in at most `width` characters.

    >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, char*>(int)")
    'vectorized_elementwise_kernel<4, AddFunctor<float>, char*>'
    """
    forms = _forms(name)
    return next((form for form in forms if len(form) <= width), None) or shortened(forms[-1], max(1, width))


def same_name(name: str) -> str:
    """The name as it is compared between tools, which demangle the same symbol with other spaces, casts and brackets.

    Parameters are left out: one tool prints `T2`, the other the type that it stands for.
    """
    return re.sub(r"\bconst\b|\s+", "", _forms(name)[0]) or name


def labels(names: Iterable[tuple[str, str]], width: int = WIDTH) -> Mapping[tuple[str, str], str]:
    """For every (name, launch configuration) a label of at most `width` characters, no two the same.

    Where the short name is not enough, grid and block stand behind it, without their ones: `silu (16384 of 128)`.
    """
    pairs = list(dict.fromkeys(names))
    plain = {pair: short_name(pair[0], width) for pair in pairs}
    twins = _several(plain)
    told = {pair: _with_shape(pair, width) if plain[pair] in twins else plain[pair] for pair in pairs}
    twins = _several(told)
    seen: dict[str, int] = {}
    for pair in pairs:  # other instances of one template in one shape, told apart only by what was left out
        label = told[pair]
        if label in twins:
            seen[label] = seen.get(label, 0) + 1
            number = f" #{seen[label]}"
            told[pair] = shortened(label, max(1, width - len(number))) + number
    return told


def narrower(label: str, width: int) -> str:
    """A label of `labels` in less room: the signature shortened as one, grid and block behind it kept."""
    found = _BEHIND.search(label)
    behind = found[0] if found is not None else ""
    if len(behind) > width - 8:
        return shortened(label, width)
    head = label.removesuffix(behind)
    room = width - len(behind)
    inner = (
        head[2:-1] if head.startswith("…<") and head.endswith(">") else None
    )  # a functor without its launcher
    told = f"…<{short_name(inner, room - 3)}>" if inner is not None and room > 8 else short_name(head, room)
    return told + behind


def shape(configuration: str) -> str:
    """`132 of 384` for `132x1x1 of 384x1x1`: grid and block without their trailing ones."""
    return " of ".join(re.sub(r"(x1)+$", "", part) for part in configuration.split(" of "))


def _several(told: Mapping[tuple[str, str], str]) -> set[str]:
    seen: set[str] = set()
    return {label for label in told.values() if label in seen or seen.add(label)}  # type: ignore[func-returns-value]


def _with_shape(pair: tuple[str, str], width: int) -> str:
    name, configuration = pair
    behind = f" ({shape(configuration)})"
    if len(behind) > width - 8:
        return shortened(short_name(name, width) + behind, width)
    return short_name(name, width - len(behind)) + behind


# ---------------------------------------------------------------- telling it


@lru_cache(maxsize=4096)
def _forms(name: str) -> tuple[str, ...]:
    """The short name with ever less detail; at least one, none of them empty."""
    parts = read_signature(name)
    told = [form for form in _by_detail(parts) if form] if parts is not None else []
    return tuple(dict.fromkeys(told)) or (plain(name) or "?",)


def _by_detail(parts: list[Part]) -> Iterator[str]:
    """What is worth most stands first: names before numbers, what is launched before what launches it."""
    for depth in (DETAIL, DETAIL - 1):
        yield _told(parts, depth)
    core = _core(parts)
    args = core.args or []
    worth = [one for one in args if not (_plumbing(one) or _plain_number(one))]
    if worth:
        named = [f"{_named(parts)}<{_without_numbers(args, depth - 1)}>" for depth in _DEPTHS]
        yield from named[:-1]
        if _LAUNCHER.search(core.text):
            yield from (f"…<{_type(worth[0], depth - 1)}>" for depth in _DEPTHS)
            yield f"…<{_type(worth[0], 0).removesuffix('<…>')}>"
        yield named[-1]
    yield _told(parts, 1)
    first = [_type(one, 0) for one in args if not _plumbing(one)]
    for count in range(min(len(first) - 1, 8), 0, -1):
        yield f"{_named(parts)}<{', '.join(first[:count])}, …>"
    yield _told(parts, 0)
    yield _named(parts)


def _core(parts: list[Part]) -> Part:
    """The part that names the kernel, out of the shells that launch it."""
    named = _steps(parts)
    last = named[-1] if named else parts[-1]
    if last.args and (last.text in _SHELLS or last.text.startswith("enable_")):
        inner = next((item for item in last.args[0].items if isinstance(item, list)), None)
        if inner is not None:
            return _core(inner)
    return last


def _steps(parts: list[Part]) -> list[Part]:
    return [part for part in parts if not part.text.startswith(("operator()", "operator ()", "lambda"))]


def _without_numbers(args: list[Type], depth: int) -> str:
    """The arguments with one `…` for every row of numbers."""
    told = ["…" if _plain_number(one) else _type(one, depth) for one in args if not _plumbing(one)]
    return ", ".join(one for n, one in enumerate(told) if one != "…" or n == 0 or told[n - 1] != "…")


def _named(parts: list[Part]) -> str:
    """The name without arguments, as `_told` begins it."""
    return _told(parts, 0).removesuffix("<…>")


def _plain_number(one: Type) -> bool:
    texts = [item[-1].text if isinstance(item, list) and len(item) == 1 else str(item) for item in one.items]
    bare = all(not isinstance(item, list) or item[-1].args is None for item in one.items)
    return bare and all(re.fullmatch(r"-|…|-?\d+[uUlL]*|true|false", text) for text in texts)


def _told(parts: list[Part], depth: int) -> str:
    """The qualified name with `depth` levels of template arguments."""
    named = _steps(parts)
    inner = next((part for part in reversed(parts) if part.text == "lambda"), None)
    if not named:
        return "lambda" + (_listed(inner.params, 0, "()") if inner is not None and inner.params else "")
    last = named[-1]
    if last.args:
        kept = [one for one in last.args if not _plumbing(one)] or last.args
        shell = last.text in _SHELLS or last.text.startswith("enable_")
        which = 0 if shell else _WRAPPERS.get(last.text)
        if which is not None and -len(kept) <= which < len(kept):
            return _type(kept[which], depth) or last.text
    text = last.text
    if text in _GENERIC and len(named) > 1:
        text = f"{named[-2].text}::{text}"
    if inner is not None:  # a function's own lambda: its type is what tells instances apart
        return text + (_listed(inner.params, depth, "()") if inner.params else "()")
    if last.args is None:
        return text
    if depth <= 0:
        return f"{text}<…>"
    kept = [one for one in last.args if not _plumbing(one)]
    return text + _listed(kept, depth - 1, "<>") if kept else text


def _listed(types: list[Type] | None, depth: int, brackets: str) -> str:
    return f"{brackets[0]}{', '.join(_type(one, depth) for one in types or [])}{brackets[1]}"


def _plumbing(one: Type) -> bool:
    names = [item for item in one.items if isinstance(item, list)]
    return bool(names) and _PLUMBING.match(names[-1][-1].text) is not None


def _type(one: Type, depth: int) -> str:
    text = ""
    items = [item for item in one.items if item != [Part("void")] or len(one.items) == 1]
    for item in items:
        told = _told(item, depth) if isinstance(item, list) else item
        told = _NUMBER.sub(r"\1", told)
        glue = " " if text and isinstance(item, list) and text[-1] not in "&-" else ""
        text += glue + told
    return text
