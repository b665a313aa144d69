"""Machine code whose text says that it does too much: named with counts or samples of it, and silent without them.

The counts are those of programs that profkit profiled on an Intel Xeon.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.rules import host_native
from profkit.analysis.judge.rules.host_native import known_callee, simulated_part
from profkit.analysis.stacks.native.code import native_constructs
from profkit.core.types import (
    RUN,
    Beneath,
    CodeLine,
    CodeSpot,
    Construct,
    Counter,
    Fact,
    Hotspot,
    Insight,
    LineCode,
    Place,
    Profile,
    Reading,
    RunDocument,
    Source,
)
from tests import documents

FILE = "/src/prog.cpp"


def spot(
    line: int, share: float, construct: Construct | None = None, function: str = "work", **more: object
) -> CodeSpot:
    code = LineCode(f"line {line}", constructs=(construct,) if construct is not None else ())
    where = Place(function=function, file=str(more.pop("file", FILE)), line=line)
    return CodeSpot(share, 3 * share, "native", where, code=code, **more)  # type: ignore[arg-type]


def row(
    function: str, line: int | None = None, own: float = 0.0, calls: int | None = None, **counters: float
) -> Hotspot:
    return Hotspot(function, own, calls=calls, file=FILE, line=line, counters=counters)


def run(
    *spots: CodeSpot,
    lines: tuple[Hotspot, ...] = (),
    functions: tuple[Hotspot, ...] = (),
    loops: tuple[Hotspot, ...] = (),
    beyond: float = 0.0,
) -> RunDocument:
    kinds = (("counted-lines", lines), ("counted-functions", functions), ("counted-loops", loops))
    profiles = tuple(Profile(kind, "instructions", 1e8, rows, kind) for kind, rows in kinds)  # type: ignore[arg-type]
    counters = (
        Counter("D1mr", 1e7, "measured", scope=RUN),
        Counter("D2mr", beyond * 1e7, "measured", scope=RUN),
    )
    return replace(documents.empty(), hot_spots=spots, profiles=profiles, counters=counters)


def judged(document: RunDocument) -> dict[str, Insight]:
    return {one.rule: one for one in find_insights(document)}


@pytest.mark.parametrize(("calls", "said"), [(5_969_788, True), (900, False)])
def test_a_recursion_is_told_where_its_calls_were_counted(calls: int, said: bool) -> None:
    construct = Construct("overlaps", "cheapest", "(x, y - 1) and (x - 1, y)")
    spots = (spot(19, 0.5, construct, "cheapest"), spot(12, 0.3, construct, "cheapest"))
    found = judged(run(*spots, functions=(row("cheapest(City const&, int, int)", calls=calls),)))
    assert ("repeated-work" in found) == said
    if said:
        one = found["repeated-work"]
        assert one.title == "cheapest computes the same results again and again"
        assert (one.where.line, one.gain is not None and round(one.gain.at_most, 2)) == (19, 0.8)
        assert "5,969,788 calls" in one.evidence


@pytest.mark.parametrize(("sorting", "said"), [(1.0, True), (0.2, False)])
def test_a_sort_for_one_element_is_told_where_sorting_takes_the_time(sorting: float, said: bool) -> None:
    below = (CodeLine("std::__introsort_loop", None, None, sorting),)
    document = run(spot(8, 0.97, Construct("one-of-sorted", "window", "width / 2"), below=below))
    found = judged(document)
    assert ("partial-sort" in found) == said
    assert not said or "std::nth_element" in found["partial-sort"].change


@pytest.mark.parametrize(
    ("construct", "rule", "rounds", "entries", "said"),
    [
        (Construct("all-pairs", "stars", "limit"), "all-pairs", 59_721, 578, True),
        (Construct("all-pairs", "stars", "limit"), "all-pairs", 40, 90_000, False),  # of a cell
        (Construct("sorts-by-hand", "all", "exchanging neighbours"), "quadratic-sort", 29_416, 1_185, True),
        (Construct("sorts-by-hand", "all", "exchanging neighbours"), "quadratic-sort", 8, 90_000, False),
        (Construct("probes", "slots_", "at"), "hash-chains", 5_919, 4_714, True),
        (Construct("probes", "slots_", "at"), "hash-chains", 3, 900_000, False),
        (Construct("always-the-same", "table_of", "2048"), "repeated-work", 8, 3_412_629, True),
        (Construct("always-the-same", "table_of", "2048"), "repeated-work", 8, 256, False),  # made once
    ],
)
def test_a_loop_is_told_where_its_rounds_were_counted(
    construct: Construct, rule: str, rounds: float, entries: int, said: bool
) -> None:
    counted = (row("work", 14, 9e7, entries, rounds=rounds),)
    assert (rule in judged(run(spot(14, 0.9, construct), loops=counted))) == said
    assert rule not in judged(run(spot(14, 0.9), loops=counted))
    elsewhere = (row("work", 44, 9e7, entries, rounds=rounds),)
    assert rule not in judged(run(spot(14, 0.9, construct), loops=elsewhere))


@pytest.mark.parametrize(
    ("beyond", "misses", "said"), [(0.9, 9.98e6, True), (0.02, 9.98e6, False), (0.9, 1e5, False)]
)
def test_a_list_is_told_where_its_nodes_come_from_beyond_the_second_cache(
    beyond: float, misses: float, said: bool
) -> None:
    counted = (row("turnover", 38, 3e7, Dr=1e7, D1mr=misses), row("turnover", 39, 3e7, Dr=7.6e6))
    document = run(spot(38, 0.93, Construct("next-node", "order", "next")), lines=counted, beyond=beyond)
    assert ("memory-latency" in judged(document)) == said


@pytest.mark.parametrize(("making", "said"), [(0.46, True), (0.05, False)])
def test_keys_are_told_with_what_making_them_takes_of_both_lines(making: float, said: bool) -> None:
    construct = Construct("key-made", "seats", "23")
    made = spot(23, 0.5, construct, below=(CodeLine("std::operator+", None, None, 2 * making),))
    document = run(made, spot(24, 0.5, construct))
    found = judged(document)
    assert ("made-keys" in found) == said
    assert not said or found["made-keys"].where.line == 23


@pytest.mark.parametrize(("written", "said"), [(56_211_426.0, True), (2_000_000.0, False)])
def test_a_struct_by_value_is_told_where_all_of_it_was_counted_to_be_written(
    written: float, said: bool
) -> None:
    document = run(
        spot(34, 0.36, Construct("by-value", "spread", "Quote quote")),
        lines=(row("main", 34, 6e7, Dw=written),),
        functions=(row("spread(Quote)", calls=669_183),),
    )
    found = judged(document)
    assert ("copies" in found) == said
    assert not said or found["copies"].change.startswith("const Quote& quote")


AT = row("Photo::at(int, int) const", own=28_277_936, calls=3_534_742)
BESIDE = row("Gradient::at(int, int) const", own=17_673_715, calls=3_534_743)


@pytest.mark.parametrize(
    ("jumps", "functions", "said"),
    [
        (7_069_485.0, (AT, BESIDE), True),
        (0.0, (AT, BESIDE), False),  # called by name
        (90e6, (AT, BESIDE), False),  # a switch
        (7_069_485.0, (replace(AT, own=9e8), replace(BESIDE, own=9e8)), False),  # they do something
    ],
)
def test_small_functions_that_are_called_through_a_pointer_are_told_at_the_call(
    jumps: float, functions: tuple[Hotspot, ...], said: bool
) -> None:
    spots = (spot(21, 0.5, None, "Photo::at(int, int) const"), spot(38, 0.4, None, "compose"))
    document = run(*spots, lines=(row("main", 38, 5e7, Bi=jumps), row("main", 37, 2e7)), functions=functions)
    found = judged(document)
    assert ("indirect-calls" in found) == said
    if said:
        one = found["indirect-calls"]
        assert (one.where.line, one.gain is not None and round(one.gain.at_most, 2)) == (38, 0.9)
        assert "7,069,485 calls of Gradient::at, Photo::at" in one.evidence
        assert "which takes 90 % with them" in one.evidence


@pytest.mark.parametrize(
    ("text", "made", "said"),
    [
        ("d = distance(cells[c], near[k]);", 0.55, True),
        ("d = distance(cells[c], near[k]);", 0.1, False),  # something else takes the time
        ("d = distance(std::move(cell), near[k]);", 0.55, False),  # what is moved is not copied
    ],
)
def test_an_object_that_a_function_takes_by_value_is_told_where_it_is_made_and_freed(
    text: str, made: float, said: bool
) -> None:
    below = (CodeLine("Profile::Profile", None, None, made), CodeLine("Profile::~Profile", None, None, 0.44))
    calls = spot(74, 0.39, Construct("by-value", "distance", "Profile a"), below=below)
    calls = replace(calls, code=LineCode(text, constructs=(Construct("by-value", "distance", "Profile a"),)))
    found = judged(run(calls))
    assert ("copies" in found) == said
    if said:
        one = found["copies"]
        assert one.title == "distance takes Profile a by value: all of it is copied for each call"
        assert one.change.startswith("const Profile& a")
        assert one.gain is not None
        assert one.gain.at_most == pytest.approx(0.39 * 0.99)


def test_an_array_that_grows_by_one_is_told_as_such_where_copying_takes_the_time() -> None:
    copying = spot(
        19,
        0.86,
        Construct("grows-by-one", "h->count"),
        under=Beneath("__memmove_avx512_unaligned_erms", "libc.so.6"),
    )
    found = known_callee(run(copying), copying)
    assert found is not None
    assert found.title == "All elements are moved to make room for one more"
    plain = replace(copying, code=LineCode("frame = next;"))
    other = known_callee(run(plain), plain)
    assert other is not None
    assert other.title == "Memory is copied here"


PART = Reading(
    "cache.l1.miss_rate", 8.0, "%", "estimated", RUN, Source("valgrind"), reason=Fact("simulated-hot-place")
)


@pytest.mark.parametrize(("little", "calls", "said"), [(True, 41, True), (True, 1, False), (False, 1, True)])
def test_branches_of_a_small_part_are_told_where_it_was_entered_many_times(
    little: bool, calls: int, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_native, "is_little_simulated", lambda document: little)
    spots = (spot(14, 0.42, None, "heavy"), spot(17, 0.37, None, "heavy"))
    counted = (row("heavy", 14, 1.2e8, Ir=1.2e8), row("heavy", 15, 1.2e8, Ir=1.2e8, Bc=4e7, Bcm=2e7))
    document = replace(run(*spots, lines=counted, functions=(row("heavy", calls=calls),)), readings=(PART,))
    found = simulated_part(document, spots[0])
    assert (found is not None) == said
    assert simulated_part(document, spots[1]) is None  # the lines of a function are one finding
    if found is not None:
        assert found.evidence.startswith(
            "79 % of the time is in heavy, lines 14 to 17: 50 % of 40.0 M branches"
        )


def test_a_copy_of_a_container_names_the_parameter_that_makes_it() -> None:
    below = tuple(
        CodeLine(name, None, None, 0.9) for name in ("std::uninitialized_copy", "std::vector::vector")
    )
    copying = spot(34, 0.97, Construct("by-value", "mean", "std::vector<double> prices"), below=below)
    found = judged(run(copying))["costly-native"]
    assert found.evidence.endswith("mean takes std::vector<double> prices by value")
    assert found.change.startswith("const std::vector<double>& prices")


@pytest.mark.parametrize(
    ("scalar", "rounds", "own", "misses", "said"),
    [
        (5.0, 4097.0, 9e7, 4e5, True),
        (0.0, 4097.0, 9e7, 4e5, False),  # vectorised, or its rounds need each other
        (5.0, 8.0, 9e7, 4e5, False),
        (5.0, 4097.0, 1e7, 4e5, False),  # little of the work
        (5.0, 4097.0, 9e7, 9e7, False),  # it waits for memory
    ],
)
def test_a_loop_of_single_numbers_is_told_where_it_is_most_of_the_work(
    scalar: float, rounds: float, own: float, misses: float, said: bool
) -> None:
    loop = row("mix", 13, own, 10_314, rounds=rounds, scalar=scalar, bytes=4.0)
    spots = (spot(13, 0.6, None, "mix"), spot(12, 0.2, None, "mix"))
    document = run(*spots, lines=(row("mix", 13, 9e7, Dr=1.37e8, D1mr=misses),), loops=(loop,))
    found = judged(document)
    assert ("scalar-arithmetic" in found) == said
    if said:
        gain = found["scalar-arithmetic"].gain
        assert gain is not None
        assert round(gain.at_most, 2) == 0.6  # four numbers at a time in place of one


@pytest.mark.parametrize(("copying", "said"), [(0.99, True), (0.1, False)])
def test_a_copy_that_is_made_to_grow_is_one_finding_at_both_lines(copying: float, said: bool) -> None:
    """Of a search through a graph in Rust: it was told to reserve, for a vector that moves once."""
    construct = Construct("copied-to-grow", "path", "state.path")
    grown = CodeLine("alloc::raw_vec::RawVec::grow_one", None, None, copying)
    cloned = CodeLine("alloc::vec::Vec::clone", None, None, 1.0)
    document = run(spot(58, 0.45, construct, below=(grown,)), spot(57, 0.33, construct, below=(cloned,)))
    found = [one for one in find_insights(document) if one.rule in ("copies", "costly-function")]
    assert [(one.title, one.where.line) for one in found] == [
        ("path is made as a copy of state.path each time, to add to it", 58)
    ] * said
    if said:
        assert found[0].gain is not None
        assert found[0].gain.at_most == pytest.approx(0.78)


@pytest.mark.parametrize(
    ("copy", "adds", "said"),
    [
        ("let mut path = state.path.clone();", "path.push(next);", True),
        ("std::vector<int> path(state.path);", "path.push_back(next);", True),
        ("let mut path = Vec::new();", "path.push(next);", False),
        ("let mut path = state.path.clone();", "other.push(next);", False),
        ("let mut key = prefix.clone();", "key.push_str(next);", False),
    ],
)
@pytest.mark.parametrize("loops", [True, False])
def test_a_container_that_a_loop_copies_and_adds_to_is_known_by_its_text(
    copy: str, adds: str, said: bool, loops: bool
) -> None:
    head = "for next in edges {" if loops else "if next {"
    lines = ["fn explore() {", f"    {head}", f"        {copy}", f"        {adds}", "    }", "}"]
    kinds = [one.kind for number in (3, 4) for one in native_constructs(lines, number)]
    assert kinds.count("copied-to-grow") == 2 * (said and loops)
