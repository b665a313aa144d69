"""`profkit record` where it is not known before whether the workload marks a region."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli_runner import profkit

BUSY = "s = 0\nfor i in range(400_000): s += i * i\n"
MENTIONS = f"import profkit\n{BUSY}"
STEPS = """
import profkit
def walk():
    for _ in range(3):
        with profkit.region("step"):
            sum(i * i for i in range(60_000))
"""


@pytest.mark.perf
@pytest.mark.parametrize(
    ("script", "says"),
    [(MENTIONS, "it marks no region: once more"), ("from steps import walk\nwalk()", "it marks a region")],
)
def test_a_wrong_guess_about_regions_costs_a_second_run_and_never_an_empty_report(
    tmp_path: Path, script: str, says: str
) -> None:
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "work.py").write_text(script)
    said = profkit("record", "--tool", "perf", "--report", "r", "--", sys.executable, "work.py", cwd=tmp_path)
    assert said.code == 0
    assert says in said.err
    assert sorted(p.name for p in tmp_path.glob("r*")) == ["r"]  # perf's r.old is not left
    told = profkit("summarize", "r", cwd=tmp_path)
    assert told.code == 0
    assert "samples" in told.out
