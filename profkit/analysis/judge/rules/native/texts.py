"""Machine code: what the text of a function or loop does too often, where counts or samples prove that it costs.

The text says what is done, never how often: each rule asks for calls, rounds or samples at the place as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.function_names import plain_symbol
from profkit.analysis.judge.rules.counted import profile_of
from profkit.analysis.judge.rules.native.loops import SORTS
from profkit.analysis.judge.rules.spots import Find, count_text, say, say_together
from profkit.analysis.judge.words import words
from profkit.analysis.summaries.host import EACH_MISSES
from profkit.core.formatting import percent_text
from profkit.core.types import RUN, CodeSpot, Construct, ConstructKind, Hotspot, Insight, RunDocument

MIN_SECONDS = 0.1
MIN_CALLS = 10_000  # of a function that computes the same again
MIN_TIMES = 20  # that a table was made: with fewer it may be one for each file or thread
NEAR = 3  # lines
FAR = 500.0  # elements that each one is compared with
LONG = 100.0  # elements: a short array is sorted by hand as fast as by anything else
PASSED = 16.0  # slots: at a load of 80 % a look-up passes three, and 13 where there is nothing
CONSTRUCTED = 0.3  # of a place's samples, in the constructor of what a function takes by value
COPIED = 12.0  # writes of a call beyond its own: 100 bytes
MADE = 0.15  # of the time of the lines that make a key and look it up
_MAKES = re.compile(
    r"std::operator\+|std::(__cxx11::)?to_string|std::__cxx11::basic_string::(append|_M_append|operator\+=|basic_string)"
    r"|alloc::fmt::format.*|.*::to_string|core::fmt::write"
)


def _found(
    document: RunDocument, spot: CodeSpot, kind: ConstructKind
) -> tuple[Construct, list[CodeSpot]] | None:
    """Return what a place does, with all places that do it; None but for the largest of them."""
    construct = _first(spot, kind)
    if construct is None:
        return None
    alike = [
        place
        for place in document.hot_spots
        if place.where.file == spot.where.file
        and (other := _first(place, kind)) is not None
        and other.name == construct.name
    ]
    if not alike or spot is not max(alike, key=lambda place: place.share):
        return None
    return (construct, alike) if sum(place.seconds for place in alike) >= MIN_SECONDS else None


def _first(spot: CodeSpot, kind: ConstructKind) -> Construct | None:
    native = spot.kind == "native" and spot.code is not None
    return next(iter(spot.code.find(kind)), None) if native and spot.code is not None else None


def _calls_of(document: RunDocument, name: str) -> int:
    """Return how often functions of a name were called where that was counted."""
    profile = profile_of(document, "counted-functions")
    rows = profile.hotspots if profile is not None else ()
    return sum(row.calls or 0 for row in rows if _last_name(row.function) == name)


def _last_name(symbol: str) -> str:
    return plain_symbol(symbol).rpartition("::")[2]


def _loop_at(document: RunDocument, spots: list[CodeSpot]) -> Hotspot | None:
    """Return the counted inner loop of most instructions at places."""
    profile = profile_of(document, "counted-loops")
    near = (
        row
        for row in (profile.hotspots if profile is not None else ())
        if any(
            row.file == spot.where.file and abs((row.line or 0) - (spot.where.line or 0)) <= NEAR
            for spot in spots
        )
    )
    return max(near, key=lambda row: row.own, default=None)


def _share(spots: list[CodeSpot]) -> float:
    return min(1.0, sum(spot.share for spot in spots))


def overlapping_calls(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a function that reaches the same arguments in many ways, and computes their result each time."""
    found = _found(document, spot, "overlaps")
    if found is None:
        return None
    construct, alike = found
    calls = _calls_of(document, construct.name)
    if calls < MIN_CALLS:
        return None
    return say_together(
        alike,
        "repeated-work",
        f"{construct.name} computes the same results again and again",
        f"it calls itself for {construct.how}, which reach the same arguments by many ways, and has no other effect; "
        f"{count_text(calls, 'call')} were counted",
        change=words("repeated-work.native", "host"),
    )


def sorted_for_one(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a sort of which one element is used."""
    construct = _first(spot, "one-of-sorted")
    part = max((frame.value for frame in spot.below if SORTS.fullmatch(frame.function)), default=0.0)
    if construct is None or spot.seconds < MIN_SECONDS or part < 0.5:
        return None
    return say(
        spot,
        "partial-sort",
        f"{construct.name} is sorted as a whole for the element {construct.how}",
        f"{percent_text(100 * part)} of this is in sorting, and nothing else of {construct.name} is used",
        spot.share * part,
        change=words(
            "partial-sort.rust" if (spot.where.file or "").endswith(".rs") else "partial-sort.native", "host"
        ),
    )


def all_pairs(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return two loops that look for near neighbours among all pairs."""
    found = _found(document, spot, "all-pairs")
    loop = _loop_at(document, found[1]) if found is not None else None
    if (
        found is None
        or loop is None
        or loop.counters.get("rounds", 0.0) < FAR
        or (loop.calls or 0) < MIN_TIMES
    ):
        return None
    construct, alike = found
    return say_together(
        alike,
        "all-pairs",
        f"Each of {construct.name} is compared with each other one, to find those nearer than {construct.how}",
        f"counted {loop.counters['rounds']:,.0f} comparisons for each of {count_text(loop.calls or 0, 'element')}",
        change=words("all-pairs.native", "host"),
    )


def sorted_by_hand(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return two loops that sort a long array in n² steps."""
    found = _found(document, spot, "sorts-by-hand")
    loop = _loop_at(document, found[1]) if found is not None else None
    if (
        found is None
        or loop is None
        or loop.counters.get("rounds", 0.0) < LONG
        or (loop.calls or 0) < MIN_TIMES
    ):
        return None
    construct, alike = found
    return say_together(
        alike,
        "quadratic-sort",
        f"{construct.name} is sorted by {construct.how}, which takes n² steps",
        f"its inner loop went round {loop.counters['rounds']:,.0f} times each time, counted {loop.calls:,} times",
        change=words("quadratic-sort", "host"),
    )


def collected_once(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a Vec that is filled only to be gone through once."""
    found = _found(document, spot, "collected")
    if found is None:
        return None
    construct, alike = found
    return say_together(
        alike,
        "large-temporary",
        f"{construct.name} is collected into a Vec, only to be gone through once",
        "its text says so; all of it is written to memory and read again",
        change=words("large-temporary.collected", "host"),
    )


_COPIES = re.compile(
    r".*(?:clone|to_vec|grow_one|grow_amortized|_M_realloc\w*|uninitialized_copy\w*|vector|_M_append)"
)


def copied_to_grow(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a container that a loop copies whole in order to add one element, where the copying takes the time."""
    found = _found(document, spot, "copied-to-grow")
    if found is None:
        return None
    construct, alike = found
    if (
        max((below.value for below in spot.below if _COPIES.fullmatch(below.function)), default=0.0)
        < MIN_COPYING
    ):
        return None
    return say_together(
        alike,
        "copies",
        f"{construct.name} is made as a copy of {construct.how} each time, to add to it",
        "all that it holds is copied, moved again when it grows, and freed",
        change=words("copies.to-grow", "host"),
    )


MIN_COPYING = 0.3  # of the time of the larger line


def walked_list(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a loop over a linked list whose nodes were simulated to come from beyond the first two caches."""
    found = _found(document, spot, "next-node")
    lines = profile_of(document, "counted-lines")
    if found is None or lines is None:
        return None
    construct, alike = found
    name = (spot.where.file or "").rpartition("/")[2]
    numbers = [place.where.line for place in alike if place.where.line is not None]
    here = [
        row.counters
        for row in lines.hotspots
        if (row.file or "").rpartition("/")[2] == name
        and row.line is not None
        and min(numbers, default=0) - 1 <= row.line <= max(numbers, default=0) + 1
    ]
    loads, misses = (sum(counters.get(event, 0.0) for counters in here) for event in ("Dr", "D1mr"))
    counters = {counter.name: counter.value or 0.0 for counter in document.counters if counter.scope == RUN}
    beyond = counters.get("D2mr", 0.0) >= EACH_MISSES * counters.get("D1mr", 0.0) > 0
    if not beyond or misses < EACH_MISSES / 2 * loads or misses < EACH_MISSES * counters["D1mr"]:
        return None
    return say_together(
        alike,
        "memory-latency",
        "A linked list is walked: the address of each node comes with the one before",
        f"{construct.name} moves on by its member {construct.how}; {percent_text(100 * misses / loads)} of the loads "
        "here were simulated to miss the first cache, most of them the second one too",
        change=words("memory-latency.list", "host"),
    )


def long_probes(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a hash table with open addresses in which a look-up was counted to pass many slots."""
    found = _found(document, spot, "probes")
    loop = _loop_at(document, found[1]) if found is not None else None
    if (
        found is None
        or loop is None
        or loop.counters.get("rounds", 0.0) < PASSED
        or (loop.calls or 0) < MIN_TIMES
    ):
        return None
    construct, alike = found
    return say_together(
        alike,
        "hash-chains",
        f"A look-up in {construct.name} goes past many slots before it ends",
        f"counted {loop.counters['rounds']:,.0f} slots each time, {loop.calls:,} times",
        change=words("hash-chains.slots", "host"),
    )


def made_keys(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a map whose keys are texts that are put together for each look-up."""
    found = _found(document, spot, "key-made")
    if found is None:
        return None
    construct, alike = found
    seconds = sum(place.seconds for place in alike)
    made = sum(
        place.seconds
        * max((frame.value for frame in place.below if _MAKES.fullmatch(frame.function)), default=0.0)
        for place in alike
    )
    if made < MADE * seconds:
        return None
    rust = (spot.where.file or "").endswith(".rs")
    return say_together(
        alike,
        "made-keys",
        f"A text is put together for each look-up in {construct.name}, then hashed and compared",
        f"{percent_text(100 * made / seconds)} of this is in making it",
        change=words(f"made-keys.{'rust' if rust else 'native'}", "host"),
    )


def always_the_same(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return loops that compute the same in each call, by the numbers of their rounds and the counted ones."""
    found = _found(document, spot, "always-the-same")
    if found is None:
        return None
    construct, alike = found
    inner = max(alike, key=lambda place: int(_how(place)))
    loop = _loop_at(document, [inner])
    rounds = loop.counters.get("rounds", 0.0) * (loop.calls or 0) if loop is not None else 0.0
    times = rounds / int(_how(inner))
    if times < MIN_TIMES:
        return None
    return say_together(
        alike,
        "repeated-work",
        f"{construct.name} computes the same in each call",
        f"its loops depend on nothing that it is given, and were counted to run {times:,.0f} times",
        change=words("repeated-work.table", "host"),
    )


def _how(spot: CodeSpot) -> str:
    construct = _first(spot, "always-the-same")
    return construct.how if construct is not None else "1"


def constructed_argument(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a call that was sampled to make and free an object, because the function takes it by value."""
    construct = _first(spot, "by-value")
    if construct is None or spot.code is None or spot.seconds < MIN_SECONDS or "move(" in spot.code.text:
        return None
    declared, _, name = construct.how.rpartition(" ")
    bare = re.sub(r"<.*", "", declared).rpartition("::")[2]
    made, freed = (
        max(
            (
                frame.value
                for frame in spot.below
                if re.search(rf"(?:^|::){tilde}{re.escape(bare)}$", frame.function)
            ),
            default=0.0,
        )
        for tilde in (rf"{re.escape(bare)}::", rf"{re.escape(bare)}::~")
    )
    if made < CONSTRUCTED:
        return None
    return say(
        spot,
        "copies",
        f"{construct.name} takes {construct.how} by value: all of it is copied for each call",
        f"{percent_text(100 * made)} of this is in {bare}::{bare} below it"
        + (f", and {percent_text(100 * freed)} in {bare}::~{bare}" if freed else ""),
        spot.share * min(1.0, made + freed),
        change=words("copies.argument", "host").format(type=declared, name=name),
    )


def copied_argument(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a call whose struct was counted to be written as a whole, because the function takes it by value."""
    lines, where = profile_of(document, "counted-lines"), spot.where
    construct = _first(spot, "by-value")
    if construct is None or lines is None or spot.seconds < MIN_SECONDS:
        return None
    name = (where.file or "").rpartition("/")[2]
    written = sum(
        row.counters.get("Dw", 0.0)
        for row in lines.hotspots
        if (row.file or "").rpartition("/")[2] == name and row.line == where.line
    )
    calls = _calls_of(document, construct.name)
    if calls < MIN_CALLS or written < COPIED * calls:
        return None
    return say(
        spot,
        "copies",
        f"{construct.name} takes {construct.how} by value: all of it is copied for each call",
        f"{written / calls:,.0f} writes for each of {count_text(calls, 'call')} that were counted",
        change=words("copies.argument", "host").format(
            type=construct.how.rpartition(" ")[0], name=construct.how.rpartition(" ")[2]
        ),
    )


# Instructions of a call that a loop makes through a pointer: the call itself takes some five, and keeps the compiler
# from working on several elements at once.
SMALL_CALL = 25.0
INDIRECT = 0.01  # of the instructions


def calls_through_pointers(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a loop that calls small functions by a pointer (virtual, dyn) for each element, told at the call."""
    lines, functions = profile_of(document, "counted-lines"), profile_of(document, "counted-functions")
    if spot.kind != "native" or lines is None or functions is None or spot.where.file is None:
        return None
    name = spot.where.file.rpartition("/")[2]
    calling = [
        row
        for row in lines.hotspots
        if (row.file or "").rpartition("/")[2] == name
        and row.counters.get("Bi", 0.0) >= INDIRECT * lines.total
    ]
    jumps = sum(row.counters["Bi"] for row in calling)
    callees = [
        row
        for row in functions.hotspots
        if (row.file or "").rpartition("/")[2] == name
        and (row.calls or 0) >= MIN_CALLS
        and row.own <= SMALL_CALL * (row.calls or 0)
        and not any(row.function == caller.function for caller in calling)
    ]
    calls = sum(row.calls or 0 for row in callees)
    # Each jump goes to one of these functions, and they are called from nowhere else: with fewer jumps than calls some
    # of them are called directly, with many more the jumps are those of a switch.
    if not callees or not 0.8 * calls <= jumps <= 1.25 * calls:
        return None
    alike = list(
        _of_calls(
            document, spot, {row.line for row in calling}, {plain_symbol(row.function) for row in callees}
        )
    )
    at = [place for place in alike if any(place.where.line == row.line for row in calling)]
    first = max(at or alike, key=lambda place: place.share, default=None)
    if spot is not first or sum(place.seconds for place in alike) < MIN_SECONDS:
        return None
    each = sum(row.own for row in callees) / calls
    names = sorted({plain_symbol(row.function) for row in callees})
    rust = spot.where.file.endswith(".rs")
    return say(
        spot,
        "indirect-calls",
        f"Functions of {each:.0f} instructions are called through a pointer for each element",
        f"{count_text(calls, 'call')} of {', '.join(names[:3])}{' and others' if len(names) > 3 else ''} were counted; "
        f"the compiler cannot make them part of the loop, which takes {percent_text(100 * _share(alike))} with them",
        _share(alike),
        change=words(f"indirect-calls.{'rust' if rust else 'native'}", "host"),
    )


def _of_calls(
    document: RunDocument, spot: CodeSpot, lines: set[int | None], names: set[str]
) -> Iterator[CodeSpot]:
    """Yield the places of a file that call, at lines, or are in the functions that are called."""
    for place in document.hot_spots:
        if place.kind == "native" and place.where.file == spot.where.file:
            called = plain_symbol(place.where.function or "") in names
            if called or place.where.line in lines:
                yield place


PATTERNS: tuple[Find, ...] = (
    overlapping_calls,
    sorted_for_one,
    all_pairs,
    sorted_by_hand,
    collected_once,
    copied_to_grow,
    walked_list,
    long_probes,
    made_keys,
    always_the_same,
    constructed_argument,
    copied_argument,
    calls_through_pointers,
)
