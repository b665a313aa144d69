"""What profkit says to an agent names arguments of its tools, not options of a command line that it does not type."""

from __future__ import annotations

import re

import pytest

from profkit.core.types import Fact
from profkit.fronts.tool_words import as_arguments
from profkit.reporting.facts import fact_text

A_LINE = re.compile(r"(profkit|git|nsys|callgrind|docker) ")


@pytest.mark.parametrize(
    ("typed", "called"),
    [
        ("--budget 60", "budget: 60"),
        ("--timeout SECONDS", "budget: SECONDS"),
        ("--force compares them anyway", "force: true compares them anyway"),
        ("choose another name, or add --force", "choose another name, or add force: true"),
        ("profile both again with --depth full: it", 'profile both again with depth: "full": it'),
        ("source counters show it (--depth full)", 'source counters show it (depth: "full")'),
        ("with a larger --sampling, on a quiet machine", "with a larger budget, on a quiet machine"),
        ("--metric time.median accepts it", 'metric: "time.median" accepts it'),
        ("--budget 63, or --floor 12 %", 'budget: 63, or floor: "12 %"'),
        ("--backend cpu", 'backend: "cpu"'),
        (
            "--base HEAD~1; or --base HEAD --head HEAD",
            'base: "HEAD~1"; or profkit compare --base HEAD --head HEAD',
        ),
        (
            "--a COMMAND --b COMMAND times both; --force",
            "profkit compare --a COMMAND --b COMMAND times both; force: true",
        ),
        ("--output FOLDER   (one that is yours)", "profkit mcp FOLDER   (one that is yours)"),
    ],
)
def test_an_option_becomes_the_argument_of_its_tool(typed: str, called: str) -> None:
    assert as_arguments(typed) == called


@pytest.mark.parametrize(
    "line",
    [
        "profkit compare --a 'python a.py' --b 'python b.py'",
        "alternate runs of both on one machine: profkit compare --a COMMAND --b COMMAND",
        "git worktree remove --force x",
        "docker run --cap-add SYS_PTRACE",
        "nsys stats --report cuda_gpu_kern_gb_sum has them",
        "XLA_FLAGS=--xla_dump_to=x",
        "use --print-units base",
        "a sentence without options",
    ],
)
def test_a_line_of_a_shell_and_the_options_of_other_tools_stay(line: str) -> None:
    assert as_arguments(line) == line


@pytest.mark.parametrize(
    "fact",
    [
        Fact("force"),
        Fact("force-other-work"),
        Fact("larger-budget"),
        Fact("sample-longer"),
        Fact("more-processes"),
        Fact("in-turns"),
        Fact.of("accept", metric="time.median"),
        Fact.of("budget", seconds=60.0),
        Fact.of("budget-or-floor", seconds=60.0, floor=0.1),
        Fact.of("floor", floor=0.1),
    ],
    ids=lambda fact: fact.code,
)
def test_what_decides_a_comparison_has_options_in_whole_lines_alone(fact: Fact) -> None:
    for part in re.split(r"; |: ", as_arguments(fact_text(fact))):
        assert "--" not in part or A_LINE.match(part), part
