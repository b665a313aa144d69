"""What the rules conclude of sampled Python stacks, and where they are quiet."""

from __future__ import annotations

from dataclasses import replace

from profkit.analysis.insights import find_insights
from profkit.core.types import CodeLine, Hotspot, Insight, Profile, RunDocument, TimeSplit
from tests import documents

FILE = "/work/app.py"


def function(own: float, waiting: float = 0.0, line: int = 6, callers: tuple[CodeLine, ...] = ()) -> Hotspot:
    lines = (CodeLine("score", FILE, line, 0.8 * own),)
    counters = {"waiting": waiting, "main_waiting": waiting}
    return Hotspot("score", own, own, file=FILE, line=4, counters=counters, lines=lines, callers=callers)


def line(number: int, cpu: float, waiting: float, name: str = "score") -> Hotspot:
    return Hotspot(
        name, cpu, cpu, file=FILE, line=number, counters={"waiting": waiting, "main_waiting": waiting}
    )


def sampled(
    functions: list[Hotspot], lines: list[Hotspot], total: float, more: tuple[Profile, ...] = ()
) -> RunDocument:
    profiles = (
        Profile("", "s", total, tuple(functions), "sampled-functions"),
        Profile("", "s", total, tuple(lines), "sampled-lines"),
        *more,
    )
    split = TimeSplit(wall=total, waiting=0.0, cpu=total)
    return replace(documents.empty(), profiles=profiles, timings=(), time_split=split, packages={})


def found(document: RunDocument, rule: str) -> list[Insight]:
    return [insight for insight in find_insights(document) if insight.rule == rule]


MAIN = CodeLine("main", FILE, 40, 1.8)


def test_the_hottest_function_has_its_line_and_the_line_that_calls_it() -> None:
    (hot,) = found(sampled([function(1.8, callers=(MAIN,))], [line(6, 1.4, 0)], 2.0), "hot-python-function")
    assert hot.title == "Speed up score: Python itself works there"
    assert hot.evidence == (
        "90 % of the processor time of Python's threads is in the lines of score, 72 % in line 6 alone; "
        "called from main, app.py:40"
    )
    assert (hot.where.function, hot.where.line) == ("score", 6)
    assert hot.gain is not None
    assert hot.gain.at_most == 0.9


def test_a_program_that_waits_is_not_told_to_compute_faster() -> None:
    document = sampled([function(1.8, 18.0)], [line(6, 1.4, 0), line(9, 0.0, 18.0)], 2.0)
    document = replace(document, time_split=TimeSplit(wall=20.0, waiting=18.0, cpu=2.0))
    assert found(document, "hot-python-function") == []
    (waits,) = found(document, "waiting-program")
    assert waits.where.line == 9


def test_a_function_with_less_than_a_seventh_of_the_time_is_not_named() -> None:
    assert found(sampled([function(0.29)], [line(6, 0.29, 0)], 2.0), "hot-python-function") == []


def test_a_handful_of_samples_names_nothing() -> None:
    assert found(sampled([function(0.05)], [line(6, 0.05, 0)], 0.06), "hot-python-function") == []


def test_a_line_that_computes_on_a_busy_machine_does_not_wait() -> None:
    document = sampled([function(1.0, 1.0)], [line(6, 1.0, 1.0)], 1.0)
    document = replace(document, time_split=TimeSplit(wall=2.0, waiting=1.0, cpu=1.0))
    assert found(document, "waiting-program") == []


def test_a_built_in_function_is_named_where_cprofile_finds_the_time_in_it() -> None:
    counted = Profile(
        "",
        "s",
        2.0,
        (Hotspot("<built-in method builtins.sorted>", 1.7), Hotspot("score", 0.1, 1.8, 12, FILE, 4)),
        "own-time",
    )
    document = sampled([function(1.8)], [line(6, 1.8, 0)], 2.0, (counted,))
    (hot,) = found(document, "hot-python-function")
    assert hot.title == "Look at sorted in score"
    assert "12 calls by cProfile" in hot.evidence


def test_an_import_is_named_with_the_line_that_makes_it() -> None:
    importing = CodeLine("<module>", FILE, 3, 1.2)
    imports = Profile(
        "",
        "s",
        1.2,
        (
            Hotspot("pandas", 0.1, 1.2, counters={"outermost": 1.2}, callers=(importing,)),
            Hotspot("pandas.core", 1.1, 1.1, counters={"outermost": 0.0}),
        ),
        "sampled-imports",
    )
    threads = Profile("", "s", 2.0, (Hotspot("main", 1.5, 2.0),), "sampled-threads")
    (heavy,) = found(sampled([function(0.5)], [line(6, 0.5, 0)], 2.0, (imports, threads)), "heavy-imports")
    assert heavy.evidence == "60 % of the main threads' time is imports: pandas 1.20 s (app.py:3)"
    assert (heavy.where.function, heavy.where.line) == ("pandas", 3)


def test_a_function_that_cprofile_names_gets_its_hottest_line_and_no_other_functions() -> None:
    counted = Profile("", "s", 2.0, (Hotspot("score", 1.8, 1.9, 3, FILE, 4),), "own-time")
    other = Hotspot("other", 0.1, 0.1, file=FILE, line=6)
    document = sampled([function(1.8), other], [line(6, 1.4, 0), line(8, 1.5, 0, "other")], 2.0, (counted,))
    (hot,) = found(document, "hot-python-function")
    assert hot.where.line == 6


def test_a_line_of_array_operations_is_not_named_where_nobody_knows_whether_python_works_there() -> None:
    document = replace(sampled([function(1.8)], [line(6, 1.4, 0)], 2.0), packages={"torch": "2.11"})
    assert found(document, "hot-python-function") == []
    counted = Profile("", "s", 2.0, (Hotspot("score", 1.8, 1.9, 3, FILE, 4),), "own-time")
    assert found(replace(document, profiles=(*document.profiles, counted)), "hot-python-function")
