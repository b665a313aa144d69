"""Machine code: sorts that make the same keys again for each comparison, by what is below them."""

from __future__ import annotations

import re

from profkit.analysis.function_names import function_name
from profkit.analysis.judge.rules.spots import Find, say
from profkit.analysis.judge.words import words
from profkit.core.formatting import percent_text
from profkit.core.types import CodeSpot, Insight, LineSamples, RunDocument

MIN_SECONDS = 0.1
MOSTLY = (
    0.5  # of the sort's time, in the program's function that it calls: with less the sort itself is the work
)
MAKES = 0.03  # of the sort's time, in allocating memory for keys: comparing existing keys allocates none
COSTS = 0.2  # of the sort's time in functions that compute a key
_MAKES = re.compile(
    r"(_int_|__libc_|je_|mi_)?(malloc|calloc|realloc)|operator new(\[\])?|alloc::alloc::alloc|.*__rust_alloc"
)
_COMPUTES = re.compile(
    r"_*v?s?n?w?printf\w*|_*v\w*printf_internal|_*strto(d|f|l|ld|ul|ll|ull)\w*|_*(mktime|strptime|strftime)\w*"
    r"|.*to_(lower|upper)case|alloc::fmt::format.*|core::fmt::write"
    r"|_*(ieee754_)?(sin|cos|tan|asin|acos|atan2?|exp2?|log(2|10)?|pow)f?(_(fma|sse2|avx)\w*)?"
)


def keys_made_again(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a sort that spends most of its time on computing keys, again for each comparison."""
    line = _sort_at(document, spot)
    if line is None or not line.callees or spot.seconds < MIN_SECONDS:
        return None
    part = line.own / line.main_cpu
    makes, costs = (
        max((frame.value for frame in line.below if pattern.fullmatch(frame.function)), default=0.0)
        for pattern in (_MAKES, _COMPUTES)
    )
    if part < MOSTLY or (makes < MAKES * line.main_cpu and costs < COSTS * line.main_cpu):
        return None
    rust = (spot.where.file or "").endswith(".rs")
    name = function_name(line.callees[0].function)
    return say(
        spot,
        "sort-keys",
        "The sort makes the keys again for each comparison, instead of once for each element",
        f"{percent_text(100 * part)} of this is in {name}, which the sort calls some 2 log2(n) times for each "
        "of n elements" + ("; it takes memory each time" if makes >= MAKES * line.main_cpu else ""),
        spot.share * part,
        change=words(f"sort-keys.{'rust' if rust else 'native'}", "host"),
    )


def _sort_at(document: RunDocument, spot: CodeSpot) -> LineSamples | None:
    """Return the samples below the sort that a line of compiled code calls."""
    at = (spot.where.file, spot.where.line, spot.where.function)
    lines = (line for sampled in document.sampled if sampled.native for line in sampled.outer)
    return next((line for line in lines if (line.file, line.line, line.function) == at), None)


OF_CALLS: tuple[Find, ...] = (keys_made_again,)
