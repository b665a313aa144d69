"""Machine code: patterns of its places, by the functions that samples saw below the program's lines, and threads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from profkit.analysis.evidence import RunEvidence
from profkit.analysis.function_names import function_name, plain_symbol
from profkit.analysis.judge.rule import insight_at
from profkit.analysis.judge.rules.counted import profile_of
from profkit.analysis.judge.rules.host_memory import COLUMNS, hottest_place, is_little_simulated
from profkit.analysis.judge.rules.native.functions import MIN_SECONDS, costly_row
from profkit.analysis.judge.rules.spots import Find, count_text, say, say_together
from profkit.analysis.judge.words import words
from profkit.analysis.summaries.host import EACH_MISSES, is_chained, is_strided, simulated_cycles
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import CodeSpot, Gain, Hotspot, Insight, LineSamples, RunDocument

COMPARED = 0.25  # of the samples
WALKED = 0.5  # of a place's time: it walks from node to node without a search for a key
LOCKED, NOTABLE = 0.25, 0.1  # of the samples
MIN_COUNTED = 2e6  # instructions: with fewer, first reads of a cache would be taken for misses
PART_COSTS = 0.4  # of the cycles of a simulated part
_PART, _EVENTS = "simulated-hot-place", ("Ir", "Dr", "DLmr", "Bc", "Bcm")
_PART_SAYS = {
    "mispredicted-branches": "Avoid the branch that depends on the data",
    "memory-latency": "Each load waits for the one before it",
    "strided-access": "Use all of each cache line: walk memory in order",
}
ALLOCATING = 0.3  # of a line's time
_ALLOCATES = re.compile(
    r"(_int_|__libc_|je_|tc_|mi_)?(malloc|free|calloc|realloc|memalign)(_consolidate|_printerr)?(\.\w+)*"
    r"|operator (new|delete).*|unlink_chunk.*|sysmalloc|cfree.*|tcache_\w+|_?_?(sbrk|brk)"
)
_TREE = re.compile(r".*(_Rb_tree|BTreeMap|btree::).*")
# Functions that walk from node to node, copy a tree or free it compare no keys.
_WALKS = re.compile(
    r".*_Rb_tree_(in|de)crement.*|.*_Rb_tree_(const_)?iterator.*|.*__tree_(next|prev|(const_)?iterator)\w*.*"
    r"|.*_Rb_tree<?.*::(_M_erase|_M_copy|clear|r?begin|r?end)\b.*|.*btree::(navigate|append|mem)::.*"
    r"|.*btree::(map|set)::(Iter|IterMut|IntoIter|Into(Keys|Values)|Keys|Values|ValuesMut|Range|RangeMut)\b.*"
    r"|.*BTree(Map|Set).*(drop|clone|(into_)?iter|keys|values)\b.*"
)
_COMPARES = re.compile(r"(__)?(mem|str|strn|strcase|wmem|b)cmp.*|.*basic_string.*compare.*")
_COPIES = re.compile(r"(__)?(mem(cpy|move)|wmemcpy)\w*")
_SIZES = re.compile(r"(__)?(strlen|wcslen)\w*")
_ENDS = re.compile(r"(__)?rawmemchr\w*")  # glibc's sscanf searches the end of its text with it
_ASKS_TO_COPY = re.compile(r"\b(w?memcpy|copy_n|copy_from_slice|extend_from_slice)\s*\(|\bstd::copy\s*\(")
_CLEARS = re.compile(r"(__)?(memset|bzero)\w*")


def allocation(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find small pieces of memory that are allocated and freed one by one."""
    lines = [sample for sampled in document.sampled if sampled.native for sample in sampled.lines]
    at = (spot.where.file, spot.where.line, spot.where.function)
    line = next((sample for sample in lines if (sample.file, sample.line, sample.function) == at), None)
    if spot.kind != "native" or line is None:
        return None
    called = [callee for callee in line.callees if _ALLOCATES.fullmatch(callee.function)]
    part = sum(callee.value for callee in called) / line.main_cpu
    here = (spot.where.file, spot.where.function)
    known = (
        costly_row(hot_spot)
        for hot_spot in document.hot_spots
        if (hot_spot.where.file, hot_spot.where.function) == here
    )
    if part < ALLOCATING or any(known):
        return None  # it is little, or the caller has a finding of its own
    public = spot.under.public if spot.under is not None else None
    return say(
        spot,
        "allocation",
        "Memory is allocated or freed here in small pieces",
        f"{percent_text(100 * part)} of this is in {function_name(called[0].function)} and the like"
        + (f", below {public}" if public and public != function_name(called[0].function) else ""),
        spot.share * part,
    )


# Functions of a stream of C++, and of its construction: its locale is looked up, with a cast for each facet.
_STREAMS = re.compile(
    r"std::(__cxx11::)?(basic_(i|o|io)?(stringstream|stringbuf|stream|ios)\b|basic_streambuf|[io]?stream::|locale|has_facet"
    r"|use_facet|num_(put|get)|ios_base|__ostream_insert|ctype|__use_cache).*|__dynamic_cast|__cxxabiv1::.*do_dyncast"
)
_MADE = re.compile(
    r"std::(has_facet.*|locale::(~?locale|operator=)|ios_base::(~?ios_base|_M_init)|basic_ios<.*::init)"
)
_READS = re.compile(r"\bgetline\(|>>\s*\w|\bistringstream\b")
STREAMING, MAKING = 0.2, 0.01  # of a line's samples; of all samples


def streams_made(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find streams of C++ that are constructed again and again to format a few numbers."""
    functions = profile_of(document, "functions")
    if functions is None or spot.kind != "native" or functions.total <= 0:
        return None
    made = sum(row.own for row in functions.hotspots if _MADE.fullmatch(row.function)) / functions.total
    if made < MAKING:  # a single stream looks up its locale once, however much is written to it
        return None
    here = (spot.where.file, spot.where.function)
    sampled = [line for each in document.sampled if each.native for line in each.lines]
    lines = {line.line for line in sampled if (line.file, line.function) == here and _streams(line)}
    places = [
        hot_spot
        for hot_spot in document.hot_spots
        if (hot_spot.where.file, hot_spot.where.function) == here and hot_spot.where.line in lines
    ]
    if not places or spot is not max(places, key=lambda hot_spot: hot_spot.share):
        return None
    reads = any(
        hot_spot.code is not None and _READS.search(hot_spot.code.text)
        for hot_spot in document.hot_spots
        if (hot_spot.where.file, hot_spot.where.function) == here
    )
    return say(
        spot,
        "streams-made",
        f"Do not create a new stream each time to {'take text apart' if reads else 'format text'}",
        f"most of this is in the streams of C++, and {percent_text(100 * made)} of all samples in creating one (its "
        "locale)",
        sum(hot_spot.share for hot_spot in places),
        change=words("streams-made.read" if reads else "streams-made", "host"),
    )


def _streams(line: LineSamples) -> bool:
    inside = sum(callee.value for callee in line.callees if _STREAMS.fullmatch(callee.function))
    return inside >= STREAMING * line.main_cpu


def tree_compare(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a tree in which a lookup compares keys at every level."""
    functions = next(
        (profile for profile in document.profiles if profile.kind == "functions" and profile.total > 0), None
    )
    if spot.kind != "native" or (spot.code is not None and spot.code.find("ordered")):
        return None
    below = max((frame.value for frame in spot.below if _looks_up(frame.function)), default=0.0)
    sampled = functions.hotspots if functions is not None else ()
    trees = [row for row in sampled if _looks_up(row.function)]
    walked = max((frame.value for frame in spot.below if _WALKS.fullmatch(frame.function)), default=0.0)
    if walked >= WALKED:
        return None
    comparing = [row for row in sampled if _COMPARES.fullmatch(row.function) or row in trees]
    share = sum(row.own for row in comparing) / functions.total if trees and functions is not None else 0.0
    if max(share, below * spot.share) < COMPARED or spot.seconds < MIN_SECONDS:
        return None
    if share >= max(COMPARED, below * spot.share):
        first = max(comparing, key=lambda row: row.own)
        evidence = (
            f"{100 * share:.0f} % of the samples are in the tree and in {function_name(first.function)[:60]}"
        )
    else:
        public = spot.under.public if spot.under is not None else None
        evidence = f"{percent_text(100 * below)} of this is in {public or 'the tree'}"
    title = "Keys are looked up in a tree, and compared at each step down"
    return say(spot, "tree-compare", title, evidence, spot.share * max(below, min(1.0, share / spot.share)))


def _looks_up(function: str) -> bool:
    """Return whether a function of a tree searches for a key."""
    return _TREE.fullmatch(function) is not None and _WALKS.fullmatch(function) is None


# Functions that are called below a line, and what they tell about the line.
_CALLED = (
    (_COPIES, "copies", "Memory is copied here", ""),
    (
        _SIZES,
        "costly-helper.length",
        "The length of a string is computed here again and again",
        ", which looks at each character",
    ),
    (_ENDS, "costly-helper.sscanf", "Each call looks for the end of the whole string", ""),
    (_CLEARS, "clearing", "Memory is cleared here", ""),
)


# Seconds of copying or clearing. At some 10 GB/s, in less time a program may have moved its data only once.
MOVED_ONCE = 0.3
COSTLY = 0.5  # of the time of a function whose lines are not known


def known_callee(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a line that calls a function which copies memory, or counts the characters of a string."""
    name = spot.under.name if spot.under is not None else ""
    for pattern, key, title, how in _CALLED:
        if key in ("copies", "clearing") and costly_row(spot) is not None:
            continue  # the copying function has a finding of its own
        if spot.where.file is None and _share_of(pattern, spot) < COSTLY:
            continue
        grown = next(iter(spot.code.find("grows-by-one")), None) if spot.code is not None else None
        asked = spot.code is not None and _ASKS_TO_COPY.search(spot.code.text) is not None
        if key == "copies" and asked and grown is None:
            continue  # what the line itself puts together elsewhere
        if key == "copies" and grown is not None:
            title, key = "All elements are moved to make room for one more", "copies.grown"
            how = f", for {grown.name} + 1 elements each time"
        if pattern.fullmatch(name) and (
            key not in ("copies", "copies.grown", "clearing") or spot.seconds >= MOVED_ONCE
        ):
            evidence, change = f"most of its time is in {name}{how}", words(key, "host")
            return say(spot, key.partition(".")[0], title, evidence, change=change)
    return None


def _share_of(pattern: re.Pattern[str], spot: CodeSpot) -> float:
    """Return the share (0..1) of a place in functions that have such a name, by the largest of them."""
    return max((frame.value for frame in spot.below if pattern.fullmatch(frame.function)), default=0.0)


_TRANSFERS = re.compile(r"(__GI_)?_*(libc_)?p?(read|write)(v|64)?|_*(libc_)?(recv|send)(from|to|msg)?")
_CLOSES = re.compile(
    r"(std::)?basic_(filebuf|[io]?fstream)::(close|~\w+)|_*fclose\w*|_IO_(new_)?file_close_it"
)
TRANSFERS_A_SECOND, SMALL = 20_000, 1024  # and bytes of each


def small_transfers(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a line of compiled code that enters the kernel for a few bytes each time."""
    split, name = document.time_split, spot.under.name if spot.under is not None else ""
    if split is None or not split.io_calls or spot.kind != "native" or not _TRANSFERS.fullmatch(name):
        return None
    each = ((split.read or 0.0) + (split.written or 0.0)) / split.io_calls
    if split.io_calls < TRANSFERS_A_SECOND * max(split.wall, 0.1) or each > SMALL:
        return None
    if _share_of(_CLOSES, spot) >= COSTLY:
        return None  # a file that is closed each time has to be written then
    return say(
        spot,
        "small-transfers",
        f"Read and write larger blocks: {count_text(split.io_calls)} system calls",
        f"most of its time is in {name}; {count_text(split.io_calls)} reads and writes of "
        f"{format_quantity(each, 'B')} each",
        change=words(f"small-transfers.native.{'read' if re.search('read|recv', name) else 'write'}", "host"),
    )


def simulated_part(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return what takes most of the time of a place, by the counts of a simulated part of the program that began there.

    The counts of the whole program are not known, so instructions, misses and mispredictions are compared with each
    other, each multiplied by its cost.
    """
    lines = profile_of(document, "counted-lines")
    part = any(reading.reason is not None and reading.reason.code == _PART for reading in document.readings)
    if lines is None or not part or spot.kind != "native" or spot.where.file is None:
        return None
    name = spot.where.file.rpartition("/")[2]
    here = [row for row in lines.hotspots if (row.file or "").rpartition("/")[2] == name]
    counts = {event: sum(row.counters.get(event, 0.0) for row in here) for event in _EVENTS}
    # The stride of a loop is the same in the whole run; other properties of a small part may not be, but those of code
    # that was entered many times.
    strided, entered = is_strided(document, counts["DLmr"]), _is_entered_often(document, spot)
    if counts["Ir"] < MIN_COUNTED or (is_little_simulated(document) and not strided and not entered):
        return None
    follows, cycles = is_chained(document, counts["DLmr"]), simulated_cycles(document, counts)
    kind = max(cycles, key=lambda cause: cycles[cause])
    share = cycles[kind] / sum(cycles.values())
    event = {"memory": "DLmr", "branches": "Bcm"}.get(kind, "Ir")
    line = max(here, key=lambda row: row.counters.get(event, 0.0)).counters
    if kind == "work" or share < PART_COSTS:
        return None
    if kind == "branches" and not _is_near(spot, lines.hotspots, "Bcm"):
        return (
            None  # in the library's heap or tree, where branches depend on the data by nature, or elsewhere
        )
    if kind == "branches":
        rule, of, text = "mispredicted-branches", "Bc", "branches are mispredicted"
    elif follows:
        rule, of, text = "memory-latency", "Dr", "loads miss all caches, and the next address comes with each"
    else:
        rule, of, text = (
            "strided-access",
            "Dr",
            "loads miss all caches, and each brings 64 bytes for one value",
        )
    if kind == "memory" and line.get(event, 0.0) < EACH_MISSES * line.get("Dr", 0.0) and not follows:
        return None  # memory is read in order
    columns = rule == "strided-access" and strided
    if not columns and is_little_simulated(document) and not (entered and kind == "branches"):
        return None
    alike = [
        place
        for place in document.hot_spots
        if place.kind == "native"
        and (place.where.file, place.where.function) == (spot.where.file, spot.where.function)
    ]
    if spot is not max(alike, key=lambda place: place.share, default=spot):
        return None  # lines of one function are one finding
    counted = format_quantity(line.get(of, 0.0), "count")
    rate = percent_text(100 * line.get(event, 0.0) / max(1.0, line.get(of, 0.0)))
    return say_together(
        alike or [spot],
        rule,
        COLUMNS if columns else _PART_SAYS[rule],
        f"{rate} of {counted} {text}; {format_quantity(counts['Ir'], 'count')} instructions were simulated, from the "
        "first time that the program came here",
        sum(place.share for place in alike or [spot]) * share,
        words(f"{rule}.{'columns' if columns else 'counted'}", "host"),
    )


NEAR = 3  # lines: a branch, and the lines that it skips
MIN_ENTRIES = 20  # of a function or a loop: the data of a single one may be that of the start of the program


def _is_entered_often(document: RunDocument, spot: CodeSpot) -> bool:
    """Return whether the function of a place, or its loop, was simulated to be entered many times."""
    functions, loops, where = (
        profile_of(document, "counted-functions"),
        profile_of(document, "counted-loops"),
        spot.where,
    )
    called = plain_symbol(where.function or "")
    rows = [
        row
        for row in (functions.hotspots if functions is not None else ())
        if plain_symbol(row.function) == called
    ]
    rows += [
        row
        for row in (loops.hotspots if loops is not None else ())
        if row.file == where.file and abs((row.line or 0) - (where.line or 0)) <= NEAR
    ]
    return any((row.calls or 0) >= MIN_ENTRIES for row in rows)


def _is_near(spot: CodeSpot, lines: Sequence[Hotspot], event: str) -> bool:
    """Return whether the line with most of an event is the place itself, or a line beside it."""
    most = max(lines, key=lambda row: row.counters.get(event, 0.0))
    if most.line is None or spot.where.line is None or not most.file or not spot.where.file:
        return False
    same = most.file.rpartition("/")[2] == spot.where.file.rpartition("/")[2]
    return same and abs(most.line - spot.where.line) <= NEAR


CHAIN = 4.0  # nodes that a lookup reads; with a hash that spreads its keys, one or two
_CLUSTER = 12  # lines of hashtable.h from the load of a bucket to the end of the walk through it
MIN_LOOKUPS = 10_000


def hash_chains(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a hash table of libstdc++ whose keys fall into few buckets, so that lookups walk along chains.

    In `_M_find_before_node` of hashtable.h each lookup loads a bucket, and each further node of its chain in a line
    that also branches. A walk over all elements executes neither. What was simulated of the program is its beginning,
    where the table is still small: the chains of the whole run are at least as long.
    """
    lines = next((profile for profile in document.profiles if profile.kind == "counted-lines"), None)
    if lines is None or spot.kind != "native" or spot is not document.hot_spots[0]:
        return None
    table = [
        (row.line or 0, row.counters)
        for row in lines.hotspots
        if (row.file or "").endswith("/bits/hashtable.h") and row.counters.get("Dr")
    ]
    # At each node, the walk tests whether it has the key, and whether the bucket ends: fewer branches are no walk.
    walks = (row for row in table if row[1].get("Bc", 0.0) >= row[1]["Dr"])
    walked = max(walks, key=lambda row: row[1]["Dr"], default=None)
    if walked is None:
        return None
    before = [own["Dr"] for at, own in table if 0 < walked[0] - at <= _CLUSTER and not own.get("Bc")]
    lookups, steps = max(before, default=0.0), walked[1]["Dr"]
    if lookups < MIN_LOOKUPS or steps < CHAIN * lookups:
        return None
    return say(
        spot,
        "hash-chains",
        f"Many keys fall into the same bucket: a lookup walks along {steps / lookups:.0f} nodes and more",
        f"{format_quantity(steps, 'count')} steps from node to node in at most {format_quantity(lookups, 'count')} "
        "lookups were simulated; with a hash that spreads the keys it is about one step",
    )


_FROM_THE_START = re.compile(r"(advance_by|nth)")
_OF_TEXT = re.compile(r".*\bstr::iter::Char(s|Indices)\b.*(advance_by|nth).*")
LONG_WALK = 50.0  # instructions of a call: the wanted character is not among the first


def walk_from_the_start(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a text of Rust that is read by character number: it is decoded from its start each time."""
    name = function_name(spot.under.name) if spot.under is not None else ""
    if not _FROM_THE_START.fullmatch(name):
        return None
    counted = next((profile for profile in document.profiles if profile.kind == "counted-functions"), None)
    walks = (
        [row for row in counted.hotspots if _OF_TEXT.fullmatch(row.function)] if counted is not None else []
    )
    walk = max(walks, key=lambda row: row.own, default=None)
    if walk is None or not walk.calls or walk.calls < MIN_LOOKUPS or walk.own < LONG_WALK * walk.calls:
        return None
    return say(
        spot,
        "walk-from-start",
        "The text is decoded from its start for each requested character",
        f"{walk.calls:,} calls of Chars::{name} were simulated, {walk.own / walk.calls:,.0f} instructions each",
    )


_LOCKS = re.compile(
    r"pthread_(mutex|rwlock|spin)_(timed|try)?(rd|wr)?(un)?lock|lll_lock|futex|spin_lock_slowpath"
)


def _locking_lines(document: RunDocument) -> list[LineSamples]:
    """Return the lines of compiled code that spend much of their time, and of the run's, on locks."""
    return [
        line
        for sampled in document.sampled
        if sampled.native
        for line in sampled.lines
        if line.main_cpu >= NOTABLE * sampled.cpu
        and any(
            frame.value >= LOCKED * line.main_cpu and _LOCKS.search(frame.function) for frame in line.below
        )
    ]


def _is_of_one_thread(document: RunDocument) -> bool:
    """Return whether only one thread was seen to take locks: then it and the others do not wait for each other."""
    lines = _locking_lines(document)
    return (
        bool(lines)
        and not any(line.threads for line in lines)
        and len({line.function for line in lines}) == 1
    )


def polled_lock(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a loop that takes a lock without a pause to see whether there is work, in one thread."""
    polls = spot.kind == "native" and spot.code is not None and spot.code.find("spin")
    if not polls or spot.seconds < MIN_SECONDS or not _is_of_one_thread(document):
        return None
    alike = [hot_spot for hot_spot in document.hot_spots if hot_spot.where.function == spot.where.function]
    return say(
        spot,
        "spinning",
        "A loop takes the lock again and again to see whether there is work",
        "one thread alone takes and gives back this lock, and nothing in the loop waits",
        sum(hot_spot.share for hot_spot in alike if hot_spot.kind == "native"),
        change=words("spinning.lock", "host"),
    )


def native_locks(run: RunEvidence) -> Iterator[Insight]:
    """Find compiled threads that spend their time on taking and releasing locks."""
    sampled, split = run.profile("functions"), run.document.time_split
    if sampled is None or split is None or (split.thread_count or 1) < 2 or run.document.workload.python:
        return
    locking = [row for row in sampled.hotspots if _LOCKS.search(row.function)]
    share = sum(row.own for row in locking) / sampled.total
    if share < LOCKED or _is_of_one_thread(run.document):
        return
    yield insight_at(
        "lock-contention",
        "Take locks less often",
        f"{percent_text(100 * share)} of the samples are in acquiring and releasing locks "
        f"({function_name(locking[0].function)}), by {split.thread_count} threads",
        hottest_place(run),
        Gain(share, "the CPU time", "as if locks took no time"),
    )


PATTERNS: tuple[Find, ...] = (
    hash_chains,
    walk_from_the_start,
    simulated_part,
    small_transfers,
    allocation,
    tree_compare,
    streams_made,
    known_callee,
    polled_lock,
)
# Patterns of a function whose lines are not known.
OF_FUNCTIONS: tuple[Find, ...] = (small_transfers, streams_made, known_callee)
