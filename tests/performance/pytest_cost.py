"""What `pytest --profkit` costs: processor time of a suite with it to that without it, and the time of its page.

Run alone: python tests/performance/pytest_cost.py [PAIRS [FOLDER [PYTEST'S WORDS ...]]]
Without a folder on two suites that are written here: 3,000 tests of a millisecond, and 6 of a second. With one on its
tests, those of a package say. Pairs of runs follow each other in turn, so that a busy machine slows both alike.
Limits: 1.1 while tests run, as the median of the pairs' ratios, and 1 s of processor time for the page.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.statistics import median

RATIO, PAGE = 1.1, 1.0
WORK = "def work(n):\n    return sum(i * i % 7 for i in range(n))\n\n\n"
MANY = """
import pytest
from work import work

@pytest.mark.parametrize("n", range(3000))
def test_small(n):
    assert work(15_000) >= n * 0
"""
FEW = "from work import work\n\n" + "\n".join(
    f"def test_long_{n}():\n    assert work(14_000_000)\n" for n in range(6)
)
SUITES = {"3,000 tests of a millisecond": MANY, "6 tests of a second": FEW}
# A plugin that notes the processor time of this process around the tests, and around what is printed after them.
CLOCK = """
import json, os, time
import pytest

MARKS = {}

@pytest.hookimpl(tryfirst=True)
def pytest_collection():
    MARKS["begun"] = time.process_time()

@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_terminal_summary():
    tested = time.process_time()
    yield
    marks = {"tests": tested - MARKS["begun"], "end": time.process_time() - tested}
    with open(os.environ["MARKS"], "w") as file:
        json.dump(marks, file)
"""


@dataclass(frozen=True)
class Times:
    """Seconds of processor time: of the tests, of what came after them, and of the whole process."""

    tests: float
    end: float
    whole: float


def run(folder: Path, marks: Path, words: Sequence[str]) -> Times:
    before = os.times()
    plain = ["-q", "-p", "no:cacheprovider", "-p", "profkit_clock"]
    env = {**os.environ, "MARKS": str(marks / "marks.json"), "PYTHONPATH": str(marks)}
    env["PYTHONPYCACHEPREFIX"] = str(marks / "pyc")
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # what is measured is an installed package
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plain, *words], cwd=folder, env=env, capture_output=True
    )
    if done.returncode:
        raise SystemExit(done.stdout.decode() + done.stderr.decode())
    after = os.times()
    whole = after.children_user - before.children_user + after.children_system - before.children_system
    return Times(**json.loads((marks / "marks.json").read_text()), whole=whole)


def measure(name: str, folder: Path, words: Sequence[str], pairs: int) -> bool:
    """Print the row of a suite; whether it is within the limits."""
    with tempfile.TemporaryDirectory() as marks:
        Path(marks, "profkit_clock.py").write_text(CLOCK)
        run(folder, Path(marks), ["--profkit", *words])  # writes the compiled modules
        taken = []
        for number in range(pairs):
            options = [[], ["--profkit"]][:: 1 if number % 2 else -1]
            both = [run(folder, Path(marks), [*option, *words]) for option in options]
            taken.append(both if number % 2 else both[::-1])
    tests = median([sampled.tests / plain.tests for plain, sampled in taken])
    whole = median([sampled.whole / plain.whole for plain, sampled in taken])
    page = median([sampled.end - plain.end for plain, sampled in taken])
    seconds = median([plain.whole for plain, _ in taken])
    print(f"{name:30} {seconds:6.1f} s {tests:8.3f} {page:7.2f} s {whole:8.3f}", flush=True)
    return tests < RATIO and page < PAGE


def main(pairs: int, folder: Path | None, words: Sequence[str]) -> int:
    print(f"{'suite':30} {'plain':>8} {'tests':>8} {'page':>9} {'whole':>8}   {pairs} pairs, processor time")
    if folder is not None:
        good = measure(folder.name, folder, words, pairs)
    else:
        good = True
        for name, text in SUITES.items():
            with tempfile.TemporaryDirectory() as place:
                Path(place, "work.py").write_text(WORK)
                Path(place, "test_work.py").write_text(text)
                good = measure(name, Path(place), words, pairs) and good
    print("held" if good else f"MISSED: more than {RATIO} while tests run, or {PAGE} s for the page")
    return 0 if good else 1


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(int(given[0]) if given else 7, Path(given[1]) if len(given) > 1 else None, given[2:]))
