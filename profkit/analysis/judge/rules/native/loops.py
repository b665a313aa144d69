"""Machine code: loops that search, sums that wait for each other, what is sorted again: by text and by counts."""

from __future__ import annotations

import re

from profkit.analysis.judge.rules.counted import profile_of
from profkit.analysis.judge.rules.spots import Find, say
from profkit.analysis.judge.words import words
from profkit.core.formatting import percent_text
from profkit.core.types import CodeSpot, Hotspot, Insight, RunDocument

MIN_SECONDS = 0.1
NEAR = 3  # lines: a loop's head and what is in it
LONG, MIN_LOOP_CALLS = 32.0, 20  # rounds of a loop each time, and times: with fewer nobody gains from a table
HOT = 0.4  # of the simulated instructions
CACHED = 0.25  # of the loads at most miss the first cache: with more, memory may be what a loop waits for
SORTING = 0.5  # of a place's samples
_SORTS = re.compile(
    r"std::(__\w*sort\w*|sort|stable_sort|__\w*merge\w*|__\w*heap\w*|__unguarded_\w+|__move_median\w*|__unguarded_partition\w*)"
    r"|qsort\w*|msort_with_tmp\w*|(core|alloc)::slice::.*(sort|merge|quicksort|partition).*"
)


def native_search(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a loop that compares element after element with a key, and was counted to go far for many keys."""
    search = next((construct for construct in _constructs(spot, "search")), None)
    loop = _loop_near(document, spot)
    if search is None or loop is None or spot.seconds < MIN_SECONDS:
        return None
    rounds = loop.counters["rounds"]
    if rounds < LONG or (loop.calls or 0) < MIN_LOOP_CALLS:
        return None
    name = f"{search.name} is" if search.name else "The elements are"
    return say(
        spot,
        "linear-search",
        f"{name} searched from the first element on for each key",
        f"{rounds:,.0f} elements are compared each time, counted {loop.calls:,} times",
        change=words("linear-search.native", "host"),
    )


def grown_sort(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a sort within a loop that adds to what it sorts."""
    sorts = next((construct for construct in _constructs(spot, "sorts") if construct.how == "grown"), None)
    if sorts is None or spot.seconds < MIN_SECONDS:
        return None
    part = max((frame.value for frame in spot.below if _SORTS.fullmatch(frame.function)), default=0.0)
    if part < SORTING:
        return None
    return say(
        spot,
        "repeated-sort",
        f"{sorts.name} is sorted again each time that something is added to it",
        f"{percent_text(100 * part)} of this is in sorting, in the loop that adds to {sorts.name}",
        spot.share * part,
        change=words("repeated-sort.native", "host"),
    )


def serial_sum(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a loop that was counted to do little but add to one floating-point sum."""
    profile, loop = profile_of(document, "counted-loops"), _loop_near(document, spot)
    if profile is None or loop is None or spot.seconds < MIN_SECONDS or profile.total <= 0:
        return None
    serial = loop.counters.get("serial", 0.0)
    if not serial or loop.own < HOT * profile.total or loop.counters["rounds"] < LONG:
        return None
    lines = profile_of(document, "counted-lines")
    here = [
        row.counters
        for row in (lines.hotspots if lines is not None else ())
        if (row.file or "").rpartition("/")[2] == (spot.where.file or "").rpartition("/")[2]
    ]
    loads, misses = (sum(counters.get(event, 0.0) for counters in here) for event in ("Dr", "D1mr"))
    if not loads or misses > CACHED * loads:
        return None
    return say(
        spot,
        "serial-sum",
        "Each addition waits for the one before it: the sum is one chain",
        f"its loop went round {loop.counters['rounds']:,.0f} times each time, and a sum that takes 4 cycles takes "
        f"{serial:.1f} times as long as all of its instructions side by side",
        spot.share * (1 - 1 / serial),
        change=words("serial-sum", "host"),
    )


def _constructs(spot: CodeSpot, kind: str) -> tuple:  # type: ignore[type-arg]
    return spot.code.find(kind) if spot.kind == "native" and spot.code is not None else ()  # type: ignore[arg-type]


def _loop_near(document: RunDocument, spot: CodeSpot) -> Hotspot | None:
    """Return the counted inner loop of most instructions at a place or next to it."""
    profile = profile_of(document, "counted-loops")
    where = spot.where
    if profile is None or spot.kind != "native" or where.file is None or where.line is None:
        return None
    near = (
        row
        for row in profile.hotspots
        if row.file == where.file and row.line is not None and abs(row.line - where.line) <= NEAR
    )
    return max(near, key=lambda row: row.own, default=None)


PATTERNS: tuple[Find, ...] = (native_search, grown_sort, serial_sum)
