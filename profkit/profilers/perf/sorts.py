"""Finds what of a sort's time is in the program's own function that it calls for each comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from profkit.analysis.function_names import plain_symbol
from profkit.core.types import Place

# Keys that are computed once before the sort (`sort_by_cached_key`) are no part of it.
_SORTS = re.compile(
    r"std::(__1::)?(__\w*sort\w*|(stable_|partial_)?sort|list::sort)"
    r"|(core|alloc)::slice::(?!.*cached).*(sort|quicksort).*"
)
_OF_C = re.compile(r"(__GI_)?_*qsort(_r)?|msort_with_tmp\w*")


def sorts(symbol: str) -> bool:
    """Return whether a function of a library sorts, by its symbol.

    >>> sorts("alloc::slice::<impl [T]>::sort_by_key::{{closure}}"), sorts("std::vector<int>::push_back(int&&)")
    (True, False)
    """
    return _SORTS.fullmatch(plain_symbol(symbol)) is not None


def sorts_in_c(function: str) -> bool:
    """Return whether a function of the C library sorts: `qsort` and what it is made of."""
    return _OF_C.fullmatch(function.partition("@")[0]) is not None


def sorting_frame(
    frames: Sequence[tuple[str, Place | None, Sequence[str]]], after: int | None
) -> Iterator[tuple[int, int | None]]:
    """Yield the frame that calls the innermost sort of a stack, and the outermost frame that the sort calls.

    `frames` of the program, innermost first: symbol, line and what a library inlined there. `after`: so many of them
    are below a sort of the C library. A line within the sort is that of a comparison or of a key.
    """
    inside: int | None = None
    sorting = False
    for n, (symbol, place, inlined) in enumerate(frames):
        sorting = sorting or (after is not None and n >= after) or any(sorts(name) for name in inlined)
        if place is not None and sorting:
            yield n, inside
            return
        if place is not None:
            inside = n
        sorting = sorting or sorts(symbol)
