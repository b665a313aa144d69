"""Machine code: what registers, counted loops and the text of a loop say, and where they stay silent."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.rules.host_native import small_transfers
from profkit.analysis.judge.rules.native.functions import costly_native
from profkit.analysis.judge.rules.native.loops import column_walk
from profkit.core.types import (
    RUN,
    Beneath,
    CodeLine,
    CodeSpot,
    Construct,
    Counter,
    Hotspot,
    Insight,
    LineCode,
    LineSamples,
    Place,
    Profile,
    RegisterFact,
    RegisterKind,
    RunDocument,
    SampledTime,
    TimeSplit,
)
from tests import documents

AT = Place(function="tick", file="filter.cpp", line=12)
SPOT = CodeSpot(0.9, 3.6, "native", AT, code=LineCode("y = b * x - a * y;"))
FACT = RegisterFact("denormal", "tick", "filter.cpp", 12, 80, 100, number=64)
# A walk over records: each load misses the first two caches, for four instructions of work.
WALK = Hotspot("tick", 4e6, file="filter.cpp", line=12, counters={"Ir": 4e6, "Dr": 1e6, "D1mr": 1e6})


def judged(document: RunDocument) -> dict[str, Insight]:
    return {one.rule: one for one in find_insights(document)}


def with_fact(fact: RegisterFact, *profiles: Profile, beyond: float = 0.0) -> RunDocument:
    sampled = SampledTime(4.0, 4.0, native=True, registers=(fact,))
    counters = (Counter("D2mr", beyond, "measured", scope=RUN),)
    return replace(
        documents.empty(), sampled=(sampled,), hot_spots=(SPOT,), profiles=profiles, counters=counters
    )


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("denormal", "denormal-numbers"),
        ("divisor", "same-divisor"),
        ("contended", "contended-memory"),
        ("beside", "false-sharing"),
    ],
)
def test_what_registers_showed_is_said_of_its_function(kind: RegisterKind, rule: str) -> None:
    fact = replace(FACT, kind=kind, threads=2)
    found = judged(with_fact(fact))[rule]
    assert (found.where.line, found.gain is not None and 0.5 < found.gain.at_most <= 0.72) == (12, True)
    assert "80 % of 100 looks" in found.evidence
    assert rule not in judged(with_fact(replace(fact, function="other")))
    # What to do is said in the words of C, C++ and Rust, and with nothing left to fill in.
    assert not re.search(r"numpy|torch|\{\w*\}", found.change), found.change


def test_the_lines_of_a_loop_that_registers_show_are_one_finding_with_the_share_of_all() -> None:
    beside = replace(SPOT, share=0.05, where=replace(AT, line=14), code=LineCode("state = y;"))
    document = with_fact(FACT)
    found = judged(replace(document, hot_spots=(replace(SPOT, share=0.8), beside)))["denormal-numbers"]
    assert found.evidence.startswith("85 % of the time is in tick, lines 12 to 14: numbers below")
    assert "_mm_setcsr" in found.change


def test_large_records_count_where_they_come_from_beyond_the_second_cache() -> None:
    fact = replace(FACT, kind="record", number=8, size=208)
    walk = Profile("functions", "instructions", 4e6, (WALK,), "counted-functions")
    assert "8 of each 208 bytes" in judged(with_fact(fact, walk, beyond=1e6))["cold-fields"].title
    assert "cold-fields" not in judged(with_fact(fact, walk, beyond=1e4))  # all of it is in a cache
    assert "cold-fields" not in judged(with_fact(fact))  # nothing was counted
    busy = replace(WALK, counters={**WALK.counters, "Ir": 90e6})
    assert "cold-fields" not in judged(with_fact(fact, replace(walk, hotspots=(busy,)), beyond=1e6))


def with_loop(
    spot: CodeSpot, rounds: float, entries: int, serial: float = 0.0, misses: float = 0.0
) -> RunDocument:
    counters = {"rounds": rounds, "serial": serial}
    loop = Hotspot("tick", 9e6, calls=entries, file="filter.cpp", line=13, counters=counters)
    line = Hotspot("tick", 9e6, file="filter.cpp", line=12, counters={"Dr": 2e6, "D1mr": misses})
    profiles = (
        Profile("inner loops", "instructions", 1e7, (loop,), "counted-loops"),
        Profile("lines", "instructions", 1e7, (line,), "counted-lines"),
    )
    return replace(documents.empty(), hot_spots=(spot,), profiles=profiles)


SEARCH = replace(
    SPOT, code=LineCode("for (auto& p : products)", constructs=(Construct("search", "products", "=="),))
)


def test_a_search_is_said_where_its_loop_was_counted_to_go_far_for_many_keys() -> None:
    found = judged(with_loop(SEARCH, 5000.0, 428))["linear-search"]
    assert found.title == "products is searched from the first element on for each key"
    assert "5,000 elements" in found.evidence
    assert "linear-search" not in judged(
        with_loop(SEARCH, 8.0, 428_000)
    )  # the ways of a cache, the edges of a node
    assert "linear-search" not in judged(with_loop(SEARCH, 1e6, 1))  # one look through all of it
    assert "linear-search" not in judged(with_loop(SPOT, 5000.0, 428))  # another loop


def test_a_sum_is_said_to_wait_for_itself_where_its_loop_is_long_and_its_data_is_near() -> None:
    found = judged(with_loop(SPOT, 1000.0, 100, serial=2.5))["serial-sum"]
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.54)
    assert "serial-sum" not in judged(with_loop(SPOT, 1000.0, 100))
    assert "serial-sum" not in judged(with_loop(SPOT, 7.0, 100_000, serial=2.5))  # rows of a sparse matrix
    assert "serial-sum" not in judged(
        with_loop(SPOT, 1000.0, 100, serial=2.5, misses=1e6)
    )  # waits for memory


DOWN = Hotspot(
    "creep", 9e6, calls=512, file="snow.c", line=49, counters={"rounds": 511.0, "serial": 0.0, "strided": 2e6}
)
HEAD = CodeSpot(
    0.3, 1.2, "native", Place(function="creep", file="snow.c", line=48), code=LineCode("for (...)")
)
BODY = replace(HEAD, share=0.2, seconds=0.8, where=replace(HEAD.where, line=49))


def by_columns(
    loop: Hotspot = DOWN, loads: float = 2e6, misses: float = 2e6, beyond: float = 1.6e6, last: float = 0.0
) -> Insight | None:
    """Judge a loop of two lines, whose loads miss the first cache `misses` times and the second `beyond` times."""
    line = Hotspot("main", 9e6, file="snow.c", line=49, counters={"Dr": loads, "D1mr": misses, "DLmr": last})
    profiles = (
        Profile("inner loops", "instructions", 1e7, (loop,), "counted-loops"),
        Profile("lines", "instructions", 1e7, (line,), "counted-lines"),
    )
    counters = tuple(
        Counter(name, value, "measured", scope=RUN)
        for name, value in (("D1mr", misses), ("D2mr", beyond), ("strided", loop.counters["strided"]))
    )
    document = replace(documents.empty(), hot_spots=(HEAD, BODY), profiles=profiles, counters=counters)
    return judged(document).get("strided-access")


def test_the_lines_of_a_loop_down_a_column_are_one_finding_wherever_its_lines_come_from() -> None:
    found = by_columns()  # the third cache holds all of it
    assert found is not None
    assert found.gain is not None
    assert found.where.line == 48
    assert found.title.startswith("Exchange the loops")
    assert found.evidence.startswith("50 % of the time is in creep, lines 48 to 49: 100 % of 2.00 M loads")
    assert 0.25 < found.gain.at_most < 0.5


def test_a_loop_in_order_or_of_a_small_matrix_needs_no_exchange() -> None:
    assert by_columns(misses=2e6 / 16) is None  # in order
    assert by_columns(beyond=1e5) is None  # the second cache holds it
    steady = replace(DOWN, counters={**DOWN.counters, "strided": 0.0})
    assert by_columns(steady) is None  # a table of indices
    busy = replace(DOWN, own=400e6)
    assert by_columns(busy) is None  # what is computed hides the misses
    assert by_columns(replace(DOWN, function="other")) is None


def test_a_sort_is_said_where_the_loop_adds_to_what_it_sorts() -> None:
    code = LineCode("std::sort(v.begin(), v.end());", constructs=(Construct("sorts", "v", "grown"),))
    below = (CodeLine("std::__introsort_loop", None, None, 0.8),)
    spot = replace(SPOT, code=code, below=below)
    assert judged(replace(documents.empty(), hot_spots=(spot,)))["repeated-sort"].title.startswith(
        "v is sorted"
    )
    for other in (replace(spot, below=()), replace(spot, code=LineCode(code.text))):
        assert "repeated-sort" not in judged(replace(documents.empty(), hot_spots=(other,)))


@pytest.mark.parametrize(("in_order", "said"), [(0.52, True), (0.05, False)])
def test_a_sort_of_a_member_is_said_where_its_elements_are_in_order_already(
    in_order: float, said: bool
) -> None:
    member = Construct("sorts", "self.events", "grown-member")
    code = LineCode("self.events.sort_by(|a, b| b.order(a));", constructs=(member,))
    below = (
        CodeLine("core::slice::sort::stable::sort", None, None, 1.0),
        CodeLine("core::slice::sort::shared::find_existing_run", None, None, in_order),
    )
    spot = replace(SPOT, code=code, below=below)
    found = judged(replace(documents.empty(), hot_spots=(spot,)))
    assert ("repeated-sort" in found) == said
    if said:
        assert "52 % in finding that the elements are in order already" in found["repeated-sort"].evidence


def test_a_lock_that_one_thread_takes_is_polled_and_not_contended() -> None:
    below = (CodeLine("pthread_mutex_lock", None, None, 3.0),)
    line = LineSamples("tick", "filter.cpp", 12, main_wall=3.6, main_cpu=3.6, below=below)
    taken = Hotspot("pthread_mutex_lock", 3.0)
    code = LineCode("std::unique_lock<std::mutex> l(m);", constructs=(Construct("spin", "lock"),))

    def found(threads: int) -> set[str]:
        sampled = SampledTime(4.0, 4.0, native=True, lines=(replace(line, threads=threads),))
        document = replace(
            documents.empty(),
            sampled=(sampled,),
            hot_spots=(replace(SPOT, code=code),),
            profiles=(Profile("functions", "s", 4.0, (taken,), "functions"),),
            time_split=TimeSplit(4.0, waiting=0.0, threads=1.0, thread_count=2),
        )
        return set(judged(document))

    assert found(threads=0) == {"spinning"}
    assert found(threads=2) == {"lock-contention"}


@pytest.mark.parametrize(
    ("below", "found"),
    [
        ((("std::_Rb_tree::_M_lower_bound", 0.9),), True),
        ((("alloc::collections::btree::map::BTreeMap::get", 0.9),), True),
        # A walk from node to node, by an iterator: no key is looked up.
        ((("std::_Rb_tree_increment", 0.98), ("std::_Rb_tree_iterator::operator++", 0.98)), False),
        ((("std::_Rb_tree_increment", 0.6), ("std::_Rb_tree::_M_lower_bound", 0.3)), False),
        ((("alloc::collections::btree::map::Iter::next", 0.9),), False),
        ((("std::_Rb_tree::_M_erase", 0.9),), False),
    ],
)
def test_keys_are_looked_up_in_a_tree_where_it_is_not_walked(
    below: tuple[tuple[str, float], ...], found: bool
) -> None:
    frames = tuple(CodeLine(name, None, None, part) for name, part in below)
    sampled = tuple(Hotspot(name, 3.6 * part) for name, part in below)
    document = replace(
        documents.empty(),
        hot_spots=(replace(SPOT, below=frames),),
        profiles=(Profile("functions", "s", 4.0, sampled, "functions"),),
    )
    assert ("tree-compare" in judged(document)) == found


def sorted_by(own: float, *below: tuple[str, float], file: str = "shelf.rs") -> Insight | None:
    """Judge a sort of 4 s, `own` of them in the program's function that it calls."""
    frames = tuple(CodeLine(name, None, None, seconds) for name, seconds in below)
    called = (CodeLine("shelf::filing_key", None, None, own),)
    line = LineSamples("main", file, 91, 4.0, 4.0, own=own, callees=called, below=frames)
    sampled = SampledTime(4.2, 4.2, native=True, outer=(line,))
    return judged(replace(documents.empty(), sampled=(sampled,))).get("sort-keys")


def test_a_sort_that_makes_its_keys_for_each_comparison_is_told_to_make_them_once() -> None:
    found = sorted_by(3.6, ("malloc", 0.2))
    assert found is not None
    assert found.gain is not None
    assert (found.where.line, found.gain.at_most) == (91, pytest.approx(3.6 / 4.2))
    assert "sort_by_cached_key" in found.change
    in_cpp = sorted_by(3.6, ("__vfprintf_internal", 3.0), file="shelf.cpp")
    assert in_cpp is not None
    assert "pairs of key and index" in in_cpp.change


def test_a_sort_that_compares_what_is_there_is_the_work_itself() -> None:
    assert sorted_by(3.6, ("__memcmp_avx2_movbe", 2.0)) is None  # a field
    assert sorted_by(1.0, ("malloc", 0.4)) is None  # most of it is the sort
    assert sorted_by(3.6, ("malloc", 0.01)) is None


@pytest.mark.parametrize(
    ("loads", "beyond", "elsewhere", "said"),
    [
        (20e6, 0.9, 0.0, True),
        (100e6, 0.9, 0.0, False),  # one load in a hundred misses
        (
            20e6,
            0.1,
            0.0,
            False,
        ),  # the second cache has the columns, and most loads are served by the first one
        (1.5e6, 0.1, 0.0, True),  # each load brings a line
        (2.1e6, 0.1, 0.0, True),  # a product: the column, beside the row and the sum
        (20e6, 0.9, 5e6, False),  # most misses are in another line
    ],
)
def test_a_walk_down_columns_by_its_text_is_told_where_its_loads_miss(
    loads: float, beyond: float, elsewhere: float, said: bool
) -> None:
    walks = LineCode("sum += src[y * w + x];", constructs=(Construct("column-walk", "src", "x y"),))
    spot = replace(SPOT, code=walks)
    lines = (
        Hotspot("tick", 9e7, file="filter.cpp", line=12, counters={"Ir": 9e7, "Dr": loads, "D1mr": 1e6}),
        Hotspot("load", 9e6, file="filter.cpp", line=70, counters={"Ir": 9e6, "Dr": 9e6, "D1mr": elsewhere}),
    )
    misses = 1e6 + elsewhere
    counters = tuple(
        Counter(name, value, "measured", scope=RUN)
        for name, value in (("D1mr", misses), ("D2mr", beyond * misses))
    )
    document = replace(
        documents.empty(),
        hot_spots=(spot,),
        profiles=(Profile("", "instructions", 9.9e7, lines, "counted-lines"),),
        counters=counters,
    )
    found = column_walk(document, spot)
    assert (found is not None) == said
    if found is not None:
        assert (
            "the loop over y moves src's index by a row, the outer one over x by one element"
            in found.evidence
        )


@pytest.mark.parametrize(
    ("how", "missed", "won"),
    [
        ("i j", 1e6, 0.14 + 0.13 + 0.12),
        ("k j", 1e6, 0.14),  # another nest with the same fault, which is a finding of its own
        ("k j", 1e5, None),  # hardly one of its loads misses
        ("", 1e6, None),  # most misses are in lines that do not go down columns
    ],
)
def test_the_lines_of_a_stencil_that_go_down_columns_by_the_same_loops_count_together(
    how: str, missed: float, won: float | None
) -> None:
    """Each of three lines has a third of the misses; none has most of them alone."""
    places = []
    for line, loops in ((12, "i j"), (13, how), (14, how)):
        constructs = (Construct("column-walk", "diff", loops),) if loops else ()
        code = LineCode("fn = diff[j + 1][i];", constructs=constructs)
        where = replace(SPOT.where, line=line)
        places.append(replace(SPOT, share=0.26 - line / 100, code=code, where=where))
    rows = tuple(
        Hotspot("tick", 3e7, file="filter.cpp", line=line, counters={"Ir": 3e7, "Dr": 2e6, "D1mr": misses})
        for line, misses in ((12, missed), (13, 1e6), (14, 1e6))
    )
    document = replace(
        documents.empty(),
        hot_spots=tuple(places),
        profiles=(Profile("", "instructions", 9e7, rows, "counted-lines"),),
    )
    found = column_walk(document, places[0])
    assert (found is not None) == (won is not None)
    if found is not None:
        assert ("lines 12 to 14" in found.evidence) == (how == "i j")
        assert found.gain is not None
        assert found.gain.at_most == pytest.approx(won)


@pytest.mark.parametrize(
    ("below", "said"), [("std::basic_filebuf::close", False), ("std::ostream::flush", True)]
)
def test_a_file_that_is_closed_each_time_is_not_told_to_write_larger_blocks(below: str, said: bool) -> None:
    split = TimeSplit(2.0, cpu=2.0, threads=1.0, read=0.0, written=20e6, io_calls=700_000)
    spot = CodeSpot(
        0.3,
        0.6,
        "native",
        AT,
        Beneath("__GI___libc_write", "libc.so.6"),
        below=(CodeLine(below, None, None, 0.9),),
    )
    found = small_transfers(replace(documents.empty(), time_split=split), spot)
    assert (found is not None) == said
    assert found is None or "fflush" in found.change


def test_single_bytes_that_are_read_are_told_to_be_read_in_blocks() -> None:
    split = TimeSplit(2.0, cpu=2.0, threads=1.0, read=2e6, written=0.0, io_calls=2_000_000)
    spot = CodeSpot(0.9, 1.8, "native", AT, Beneath("read", "libc.so.6"))
    found = small_transfers(replace(documents.empty(), time_split=split), spot)
    assert found is not None
    assert found.change.startswith("read blocks of 64 KiB into a buffer")


@pytest.mark.parametrize(
    ("destroyed", "won"),
    [("std::_Rb_tree::~_Rb_tree", 0.94 * 0.98), ("std::vector::~vector", 0.94 * 0.45)],  # of something else
)
def test_what_is_copied_is_destroyed_as_well_and_both_could_be_saved(destroyed: str, won: float) -> None:
    below = (CodeLine(destroyed, None, None, 0.53), CodeLine("std::_Rb_tree::_M_copy", None, None, 0.45))
    code = LineCode("value += amount * discount(curve, t);")
    spot = replace(SPOT, share=0.94, seconds=2.6, code=code, below=below)
    found = costly_native(replace(documents.empty(), hot_spots=(spot,)), spot)
    assert found is not None
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(won)
    assert "45 % of this is in std::_Rb_tree::_M_copy" in found.evidence
