"""Machine code: loops that search or walk down columns, serial sums, repeated sorts: by their text and by counts."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from profkit.analysis.function_names import plain_symbol
from profkit.analysis.judge.rules.counted import profile_of
from profkit.analysis.judge.rules.host_memory import COLUMNS, LINE_BYTES
from profkit.analysis.judge.rules.spots import Find, say, say_together
from profkit.analysis.judge.words import words
from profkit.analysis.summaries.host import EACH_CYCLE, EACH_MISSES, UNDER_WAY, clock_of
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import RUN, CodeSpot, Hotspot, Insight, RunDocument

MIN_SECONDS = 0.1
NEAR = 3  # lines between a loop's head and its body
LONG = 32.0  # iterations of a loop each time
MIN_LOOP_CALLS = 20  # times that it ran: with fewer, a table saves nothing
HOT = 0.4  # of the simulated instructions
CACHED = 0.25  # of the loads, at most, miss the first cache: with more, the loop may wait for memory
SORTING = 0.5  # of a place's samples
SORTS = re.compile(
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
    sorts = next((construct for construct in _constructs(spot, "sorts") if construct.how in _GROWN), None)
    if sorts is None or spot.seconds < MIN_SECONDS:
        return None
    # Of a method it is not known how often it is called. Rust's sort first looks for what is in order already, and has
    # other work where it gets elements in any order.
    in_order = max((frame.value for frame in spot.below if _FINDS_RUNS.search(frame.function)), default=0.0)
    if sorts.how == "grown-member" and in_order < IN_ORDER:
        return None
    part = max((frame.value for frame in spot.below if SORTS.fullmatch(frame.function)), default=0.0)
    if part < SORTING:
        return None
    return say(
        spot,
        "repeated-sort",
        f"{sorts.name} is sorted again each time that something is added to it",
        f"{percent_text(100 * part)} of this is in sorting, "
        + (
            f"in the loop that adds to {sorts.name}"
            if sorts.how == "grown"
            else f"and {percent_text(100 * in_order)} in finding that the elements are in order already"
        ),
        spot.share * part,
        change=words("repeated-sort.native", "host"),
    )


IN_ORDER = 0.3  # of the sort's time
_GROWN = ("grown", "grown-member")
_FINDS_RUNS = re.compile(r"find_existing_run|find_streak")
SCALAR = 2  # arithmetic instructions of a round
VECTOR_BYTES = 16  # of the registers that any x86-64 has


def scalar_loop(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a loop that computes number after number, though no round needs another one, out of the first cache."""
    profile, loop = profile_of(document, "counted-loops"), _loop_near(document, spot)
    if profile is None or loop is None or spot.seconds < MIN_SECONDS or profile.total <= 0:
        return None
    each, size = loop.counters.get("scalar", 0.0), loop.counters.get("bytes", 0.0)
    alike = [
        place
        for place in document.hot_spots
        if place.kind == "native"
        and place.where.function == spot.where.function
        and _loop_near(document, place) is loop
    ]
    if each < SCALAR or not size or loop.own < HOT * profile.total or loop.counters["rounds"] < LONG:
        return None
    loads, misses = _counted_near(document, loop, "Dr"), _counted_near(document, loop, "D1mr")
    if (
        not loads
        or misses > CACHED * loads
        or spot is not max(alike, key=lambda place: place.share, default=spot)
    ):
        return None
    return say_together(
        alike or [spot],
        "scalar-arithmetic",
        "The compiler did not vectorise this loop: it computes one number at a time",
        f"{each:.0f} arithmetic instructions in each of {loop.counters['rounds']:,.0f} rounds, each of one number of "
        f"{size:.0f} bytes; by its registers no round needs the result of another",
        sum(place.share for place in alike or [spot]) * (1 - size / VECTOR_BYTES),
        words("scalar-arithmetic.loop", "host"),
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


# From the third cache, which serves what the second one misses: 60 to 75 cycles on servers, 40 to 50 on desktops (Agner
# Fog; Chips and Cheese's measurements). So many lines are under way at a time that ten share it.
THIRD_CACHE_SECONDS = 20e-9
STRIDED_COSTS = 0.3  # of the loop's cycles


def strided_loop(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a loop whose loads step over cache lines, so that each misses the first two caches, told once for all of
    its lines.

    Which cache serves them in the end depends on how large the last one is here: a matrix of 16 MiB is in it on a
    server, and in memory on a laptop.
    """
    loop = _strided_near(document, spot)
    if any(each.how.endswith((" blocked", " turned")) for each in _constructs(spot, "column-walk")):
        return None  # exchanged loops would step over the lines of the other matrix
    if loop is None or spot.kind != "native" or not _is_beyond(document):
        return None
    loads, misses = _counted_near(document, loop, "Dr"), _counted_near(document, loop, "D1mr")
    if not loads or misses < EACH_MISSES * loads or loop.counters["strided"] < EACH_MISSES * misses:
        return None
    alike = [
        spot for spot in document.hot_spots if _strided_near(document, spot) is loop and spot.kind == "native"
    ]
    share, seconds = sum(spot.share for spot in alike), sum(spot.seconds for spot in alike)
    waits = misses * THIRD_CACHE_SECONDS * clock_of(document) / UNDER_WAY
    part = waits / (waits + loop.own / EACH_CYCLE)
    largest = max(alike, key=lambda spot: spot.share)
    if spot is not largest or seconds < MIN_SECONDS or part < STRIDED_COSTS:
        return None
    return say_together(
        alike,
        "strided-access",
        COLUMNS,
        f"{percent_text(min(100.0, 100 * misses / loads))} of {format_quantity(loads, 'count')} loads in this loop "
        "were simulated to miss the first cache, most of them the second one too: its addresses move by an equal step "
        f"of {LINE_BYTES} bytes or more, so that each load brings a line for one value",
        share * part,
        words("strided-access.columns", "host"),
    )


TURNED = "Transpose in blocks: the line reads along the rows of one matrix and down the columns of the other"
# Of the loads of a line, and of all loads that miss: one line of the cache for each element of a column, of which a
# filter of 25 rows reads each 25 times.
COLUMN_MISSES, MOST_MISSES = 0.03, 0.5
ALIKE = 0.5  # of the rate of misses of all lines that go down columns


def column_walk(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return lines whose indices go down columns by their text, and whose loads were simulated to miss.

    Lines of one function that go down columns by the same loops are one finding, with the lines between them: a stencil
    has several. Another function may have further misses of the same kind, so that all of them together are most.

    Each load misses the first cache, or some miss two caches: a filter reads each element again from the first one.
    Each element of a column is in a page of its own as well: a matrix of 2,000 rows whose columns the second cache
    holds was gone through seven times as fast along its rows (Intel Xeon). So are addresses that the code of the inner
    loop does not show to move by an equal step, as where the row is clamped.
    """
    walk = next((construct for construct in _constructs(spot, "column-walk")), None)
    lines, where = profile_of(document, "counted-lines"), spot.where
    alike = [
        other
        for other in document.hot_spots
        if walk is not None
        and other.where.file == where.file
        and (other.where.line == where.line or other.where.function == where.function)
        and any(each.how == walk.how for each in _constructs(other, "column-walk"))
    ]
    if walk is not None and walk.how.endswith(" blocked"):
        return None  # a transposition in blocks, one side of which has to go down columns
    if walk is None or lines is None or spot is not max(alike, key=lambda other: other.share, default=spot):
        return None
    name = (where.file or "").rpartition("/")[2]
    rows = [row for row in lines.hotspots if (row.file or "").rpartition("/")[2] == name]
    own = {where.line, *(other.where.line for other in alike)}
    walks = own | {
        other.where.line
        for other in document.hot_spots
        if other.where.file == where.file and _constructs(other, "column-walk")
    }
    accesses, missing = ("Dr", "Dw"), ("D1mr", "D1mw")
    loads, misses = (_counted_at(rows, own, events) for events in (accesses, missing))
    all_loads, all_misses = (_counted_at(rows, walks, events) for events in (accesses, missing))
    total = sum(row.counters.get(event, 0.0) for row in lines.hotspots for event in missing)
    # Beside the column, a line reads other operands and the pointers of rows.
    least = COLUMN_MISSES if _is_beyond(document) else EACH_MISSES / 2
    seconds = sum(other.seconds for other in alike)
    if not loads or misses < least * loads or seconds < MIN_SECONDS:
        return None
    if all_misses < MOST_MISSES * total or misses / loads < ALIKE * all_misses / all_loads:
        return None
    numbers = [line for line in own if line is not None]
    outer, inner, *turned = walk.how.split()
    nest = [
        other
        for other in document.hot_spots
        if (other.where.file, other.where.function) == (where.file, where.function)
        and (min(numbers) <= (other.where.line or 0) <= max(numbers) or _is_head(other, inner))
    ]
    return say_together(
        nest or [spot],
        "strided-access",
        TURNED if turned else COLUMNS,
        f"the loop over {inner} moves {walk.name}'s index by a row, the outer one over {outer} by one element; "
        f"{percent_text(100 * misses / loads)} of {format_quantity(loads, 'count')} loads and stores there were "
        f"simulated to miss the first cache{', most of them the second one too' if _is_beyond(document) else ''}",
        sum(other.share for other in nest) or spot.share,
        words(f"strided-access.{'turned' if turned else 'columns'}", "host"),
    )


def _is_head(spot: CodeSpot, variable: str) -> bool:
    """Return whether a line begins the loop of a variable: where its loads are waited for, samples are there, too."""
    text = spot.code.text if spot.code is not None else ""
    return re.match(rf"\s*for\b[^;]*\b{re.escape(variable)}\b", text) is not None


def _counted_at(rows: Sequence[Hotspot], lines: Collection[int | None], events: Sequence[str]) -> float:
    return sum(row.counters.get(event, 0.0) for row in rows for event in events if row.line in lines)


def _is_beyond(document: RunDocument) -> bool:
    """Return whether most of what misses the first cache was simulated to miss the second one, too."""
    counters = {counter.name: counter.value or 0.0 for counter in document.counters if counter.scope == RUN}
    return counters.get("D2mr", 0.0) >= EACH_MISSES * counters.get("D1mr", 0.0) > 0


def _strided_near(document: RunDocument, spot: CodeSpot) -> Hotspot | None:
    """Return the inner loop of a place if that steps over cache lines; of two loops the nearer one's."""
    profile, where = profile_of(document, "counted-loops"), spot.where
    if profile is None or where.file is None or where.line is None:
        return None
    line = where.line
    near = [
        row
        for row in profile.hotspots
        if row.file == where.file and row.line is not None and abs(row.line - line) <= NEAR
    ]
    nearest = min(near, key=lambda row: (abs((row.line or 0) - line), -row.own), default=None)
    same = nearest is not None and plain_symbol(nearest.function) == plain_symbol(where.function or "")
    return nearest if same and nearest is not None and nearest.counters.get("strided") else None


def _counted_near(document: RunDocument, loop: Hotspot, event: str) -> float:
    """Return what was counted of an event in the lines of a loop: those next to it."""
    lines = profile_of(document, "counted-lines")
    name = (loop.file or "").rpartition("/")[2]
    return sum(
        row.counters.get(event, 0.0)
        for row in (lines.hotspots if lines is not None else ())
        if (row.file or "").rpartition("/")[2] == name
        and row.line is not None
        and abs(row.line - (loop.line or 0)) <= 1
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


PATTERNS: tuple[Find, ...] = (native_search, grown_sort, scalar_loop, serial_sum, strided_loop, column_walk)
