"""The bound of a finding is that of all lines that it covers: those of the function that it has called less often."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.covered import with_covered_lines
from profkit.core.types import (
    CodeLine,
    CodeSpot,
    Construct,
    Gain,
    Insight,
    LineCode,
    LineSamples,
    Place,
    RunDocument,
    SampledTime,
)
from tests import documents

FILE = "cohort.py"
PANDAS = "/venv/site-packages/pandas/core/groupby/ops.py"
DJANGO = "/venv/site-packages/django/core/handlers/base.py"


def spot(function: str, line: int, share: float, caller: str | None = None, call: str = "mean") -> CodeSpot:
    code = LineCode(f"line {line}", constructs=(Construct("call", call),))
    callers = (CodeLine("f", caller, 1, 1.0),) if caller is not None else ()
    return CodeSpot(
        share,
        5 * share,
        "library",
        Place(function=function, file=FILE, line=line),
        code=code,
        callers=callers,
    )


def document(*spots: CodeSpot, below: tuple[int, ...]) -> RunDocument:
    """A run of 5 s whose `below` lines are reached through line 67 of `table`."""
    lines = tuple(
        LineSamples(
            each.where.function or "",
            FILE,
            each.where.line,
            main_wall=each.seconds,
            within=(
                (CodeLine("main", FILE, 86, each.seconds), CodeLine("table", FILE, 67, each.seconds))
                if each.where.line in below
                else ()
            ),
        )
        for each in spots
    )
    return replace(documents.empty(), hot_spots=spots, sampled=(SampledTime(5.0, 5.0, lines=lines),))


def finding(rule: str, of: CodeSpot, gain: float) -> Insight:
    return Insight(rule, "the title", "", "the change", of.where, Gain(gain, "the run time", ""))


@pytest.mark.parametrize(
    ("rule", "caller", "covered"),
    [
        (
            "calls-in-loop",
            PANDAS,
            [51, 50, 20, 67],
        ),  # the function, what it calls, and the line that has it called
        ("calls-in-loop", DJANGO, [51]),  # a query in a view, whose other lines stay
        ("costly-helper", PANDAS, [51]),
    ],
)
def test_a_function_that_is_called_for_each_group_goes_with_all_that_is_below_the_call(
    rule: str, caller: str, covered: list[int]
) -> None:
    spots = (
        spot("summarise", 51, 0.17, caller),
        spot("summarise", 50, 0.09, caller),
        spot("helper", 20, 0.05),
        spot("table", 67, 0.08),
        spot("clean", 46, 0.06),
    )
    found = with_covered_lines(document(*spots, below=(50, 51, 20)), [finding(rule, spots[0], 0.17)])
    assert [one.where.line for one in found] == covered
    assert {(one.rule, one.title, one.change) for one in found} == {(rule, "the title", "the change")}
    assert [one.gain.at_most for one in found if one.gain] == [
        each.share for line in covered for each in spots if each.where.line == line
    ]


def test_a_line_with_a_finding_of_its_own_is_not_counted_twice() -> None:
    spots = (spot("summarise", 51, 0.17, PANDAS), spot("summarise", 50, 0.14, PANDAS))
    both = [finding("calls-in-loop", spots[0], 0.17), finding("repeated-work", spots[1], 0.12)]
    assert list(with_covered_lines(document(*spots, below=(50, 51)), both)) == both


@pytest.mark.parametrize(
    ("call", "in_loop", "gains"),
    [
        ("json.dump", False, [0.62, 0.33]),  # opening and replacing the file goes as well
        ("json.dump", True, [0.41]),  # the function itself goes through what is saved
        ("sorted", False, [0.41]),  # what is new has to be sorted in
    ],
)
def test_a_state_that_is_saved_as_a_whole_after_each_step_covers_the_function_that_saves(
    call: str, in_loop: bool, gains: list[float]
) -> None:
    save, rename = spot("save", 56, 0.62, call=call), spot("save", 57, 0.33, call="os.replace")
    assert save.code is not None
    save = replace(save, code=replace(save.code, loop=55 if in_loop else None))
    found = with_covered_lines(document(save, rename, below=()), [finding("growing-work", save, 0.41)])
    assert [one.gain.at_most for one in found if one.gain] == gains
