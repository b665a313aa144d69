"""The fronts with profkit and perf themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUSY = ("sh", "-c", "i=0; while [ $i -lt 4000 ]; do i=$((i+1)); done")

pytestmark = pytest.mark.perf


def call(front: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    hidden = cwd / "hidden" / "numpy"  # with it the machine's peaks would be measured, for seconds
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError")
    environment = {**os.environ, "PROFKIT_PYTHON": sys.executable, "PYTHONPATH": str(hidden.parent)}
    return subprocess.run(
        [str(ROOT / front), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=200
    )


def test_perf_leaves_a_report_that_profkit_reads_and_the_workload_got_its_words(tmp_path: Path) -> None:
    note = "import sys; open('words', 'w').write(repr(sys.argv[1:])); sum(range(3_000_000))"

    done = call("wrappers/perf.sh", "my out.data", sys.executable, "-c", note, "a b", 'say "x"', cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "words").read_text() == repr(["a b", 'say "x"'])
    read = subprocess.run(
        [sys.executable, "-m", "profkit", "summarize", "my out.data", "--format", "json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert read.returncode == 0, read.stderr
    assert json.loads(read.stdout)["profiles"]


@pytest.mark.thorough
@pytest.mark.valgrind
def test_analyze_leaves_the_report_and_a_judged_run_beside_it(tmp_path: Path) -> None:
    done = call("analyze_multibackend.sh", "cpu", "out.data", *BUSY, cwd=tmp_path)

    assert done.returncode in (0, 1), done.stderr  # 1: a shell loop may miss a target
    assert (tmp_path / "out.data").stat().st_size > 0
    [run] = (tmp_path / "out.data.runs").iterdir()
    document = json.loads((run / "run.json").read_text())
    assert document["state"] == "complete"
    assert document["verdicts"]
