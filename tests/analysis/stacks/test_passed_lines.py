"""Lines that the interpreter runs through before it looks up, and which of them took the time."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.stacks.passed_lines import passed_lines
from profkit.backends.source_lines import in_own_lines, with_source
from profkit.core.types import CodeLine, LineSamples, Report, SampledTime, Variable, Workload

LOOP = """
    def unique(keys, known, seen):
        count = 0
        for key in keys:
            if key not in known:
                known.append(key)
            half = key // 2
            count += 1
        while count:
            text = text + "x"
            count -= 1
        other = sorted(keys)
        return count
"""
TEXT = textwrap.dedent(LOOP).lstrip()


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        (7, (6, 4)),  # count += 1, at the end of the round
        (5, (4,)),  # known.append: after its call the interpreter looks
        (3, (7, 6, 4)),  # the head of the loop, where some versions say that the round ends
        (10, (9,)),
        (4, ()),
        (12, ()),  # a call stands in between
        (99, ()),
    ],
)
def test_what_was_run_through_ends_at_the_last_look(line: int, passed: tuple[int, ...]) -> None:
    assert passed_lines(ast.parse(TEXT), line) == passed


SAMPLED = LineSamples(
    "unique", "/w/app.py", 7, main_wall=2.0, main_cpu=2.0, own=2.0,
    variables={"known": Variable("list", 9000), "text": Variable("str", 40)},
)  # fmt: skip


def placed(*lines: LineSamples) -> dict[int | None, float]:
    return {one.line: one.main_wall for one in in_own_lines(lines, lambda _: TEXT)}


def test_samples_behind_a_long_search_are_those_of_the_search() -> None:
    assert placed(SAMPLED) == {4: 2.0}
    assert placed(SAMPLED, replace(SAMPLED, line=4, main_wall=0.5)) == {4: 2.5}
    assert placed(replace(SAMPLED, line=5)) == {4: 2.0}


@pytest.mark.parametrize(
    "changes",
    [
        {"variables": {"known": Variable("list", 20)}},  # short
        {"variables": {"known": Variable("set", 9000)}},
        {"variables": {}},  # nothing is known
        {"callees": (CodeLine("load", "/w/app.py", 30, 1.9),)},
        {"waits": {"lock": 1.9}},
        {"line": 10},  # what is before it copies 40 characters
        {"line": 11},
    ],
)
def test_samples_stay_where_nothing_before_them_takes_long(changes: dict[str, object]) -> None:
    one = replace(SAMPLED, **changes)  # type: ignore[arg-type]
    assert placed(one) == {one.line: 2.0}


def test_lines_of_machine_code_stay_apart() -> None:
    one = LineSamples("main", None, None, main_wall=1.0)
    assert len(in_own_lines([one, replace(one, function="work")], lambda _: "")) == 2


def test_another_thread_at_a_line_that_only_sleeps_has_not_computed_there(tmp_path: Path) -> None:
    text = "import time\ndef work():\n    while True:\n        time.sleep(0.002)\n        step(time.sleep)\n"
    one = LineSamples("work", "app.py", 4, other_wall=5.0, other_cpu=1.5, own=1.5, other_waits={"sleep": 0.1})
    two = replace(one, line=5)
    report = Report("profkit", "stacks", sampled=SampledTime(5.0, 5.0, lines=(one, two)))
    (tmp_path / "app.py").write_text(text)
    sampled = with_source(report, Workload(("python", "app.py"), "app", str(tmp_path)))
    assert sampled is not None
    assert [(line.line, line.other_cpu, line.other_waits["sleep"]) for line in sampled.lines] == [
        (4, 0.0, 5.0),
        (5, 1.5, 0.1),
    ]
