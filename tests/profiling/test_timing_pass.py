"""The timing pass adds processes until the median of all of them is known, or the time is spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import profkit

# Ten times the same time in each process, which is what a process's own interval calls precise; the processes
# themselves differ by the factor that stands in the file of turns.
PROCESS = """
import json, os, pathlib, sys
turns = pathlib.Path("turns"); n = int(turns.read_text()) if turns.exists() else 0
turns.write_text(str(n + 1))
factor = {factors}[n % len({factors})]
directive = json.loads(os.environ["PROFKIT_DIRECTIVE"])
samples = [factor * (1 + 0.0001 * (i % 3)) for i in range(30)]
record = {{"schema": "profkit.region/1", "pid": os.getpid(), "pass": "timing", "regions": [], "benchmarks": [
    {{"name": "made", "flops": None, "bytes": None, "sample_set": {{"seconds": samples}}}}]}}
pathlib.Path(f"{{directive['record']}}.{{os.getpid()}}.json").write_text(json.dumps(record))
"""


@pytest.mark.parametrize(
    ("factors", "least", "most"),
    [
        ([1.0], 3, 3),  # alike: the planned three tell all there is
        ([1.0, 1.001, 0.999], 3, 4),
        (
            [1.0, 1.4, 1.0, 1.0, 1.0, 1.0],
            6,
            40,
        ),  # one of six is slow: more are needed to know which is the rule
    ],
)
def test_processes_are_added_while_they_differ(
    tmp_path: Path, factors: list[float], least: int, most: int
) -> None:
    (tmp_path / "made.py").write_text(PROCESS.format(factors=factors))
    said = profkit(
        *("profile", "--passes", "timing", "--sampling", "3", "--format", "json", "--quiet"),
        *("--", "python3", "made.py"),
        cwd=tmp_path,
    )
    assert said.code == 0, said.err
    timing = json.loads(said.out)["timings"][0]
    assert least <= len(timing["processes"]) <= most
    interval = next(r for r in said.json()["readings"] if r["metric"] == "time.interval")
    assert interval["value"] <= 1.0


def test_a_budget_that_ends_first_is_said(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(PROCESS.format(factors=[1.0, 2.0, 3.0, 1.5, 2.5]))
    said = profkit(
        *("profile", "--passes", "timing", "--sampling", "0.3", "--quiet", "--", "python3", "made.py"),
        cwd=tmp_path,
    )
    assert said.code == 0, said.err
    assert "time-precision" in said.out
    assert "UNKNOWN time-precision" in said.out


def test_a_short_budget_for_the_whole_run_is_not_spent_on_plain_runs(tmp_path: Path) -> None:
    """Of a program of 0.4 s another run would end after a quarter of 1 s; without a budget there are three."""
    said = profkit(
        *("profile", "--passes", "timing", "--budget", "1", "--format", "json", "--quiet"),
        *("--", "sleep", "0.4"),
        cwd=tmp_path,
    )
    assert said.code == 0, said.err
    assert len(said.json()["timings"][0]["processes"][0]["seconds"]) == 1
