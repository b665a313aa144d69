"""Tries each row of the table of costly functions on a small program of its own.

    python -m tests.answers.costly [ROW...] [--seconds 2] [--python PYTHON] [--jobs 2]

The programs stand in `costly/*.yaml` by the name of the row, or with the `rule` that they are one of: `setup`, then
`work` as it is written `before` the advice and `after` it, with the same result, and `healthy` uses of the same
function of which nothing must be said.
Prints a table: is the row told of `before`, is it silent of `after` and of the healthy uses, and how many times faster
is `work` after it. Rows whose libraries are not installed are skipped and counted. `--python` runs the programs with
another Python, which needs nothing of profkit. Exits with 1 where a row failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.rules.spot_functions import costly_functions
from profkit.backends.source_lines import with_source
from profkit.core.tables import load_yaml
from profkit.core.types import Insight, RunDocument
from profkit.profilers.cprofile import read_cprofile, with_growth
from profkit.profilers.host.stacks import read_stacks
from profkit.runtime.passes.command import START_FOLDER
from tests import documents

PROGRAMS = Path(__file__).parent / "costly"
# Seconds of `work` in a run that is sampled, and of each version where they are timed. A quarter of a second is some
# fifty samples, which a fast or a busy machine may leave too few for a conclusion: what is not told, or not faster, is
# tried again with LONGER times as much. What is told of a mended program or of a healthy use is wrong at any length.
# Most rows are told after half of it, and a counted run takes three times as long as what it counts.
SAMPLED, TIMED = 0.25, 0.1
LONGER, HALF = (1, 4, 12), 0.5
# The threads of BLAS wait for one another where other programs hold the cores: then they time the machine.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
WORTH_IT = 1.15  # times faster: a row that brings less is no advice
# Seconds of the processor, so that a busy machine takes no samples away, and of the clock for what waits. The run that
# is counted does `work` as often as the one that was sampled.
LOOP = """

def main():
    until, latest = time.process_time() + float(sys.argv[1]), time.monotonic() + 4 * float(sys.argv[1])
    rounds, most = 0, int(sys.argv[2])
    while rounds < most if most else time.process_time() < until and time.monotonic() < latest:
        work()
        rounds += 1
    print(rounds)


if __name__ == "__main__":
    main()
"""
# Both versions in turn, so that what else the machine does meets both; the fastest calls say what the code needs. What
# is three times as fast in each of three calls needs no more of them: other programs do not bring that much.
TIMES = """
import json, math, sys, time
import before, after

def same(one, other):
    if hasattr(one, "equals"):
        return one.equals(other)
    if hasattr(one, "dtype") and hasattr(one, "shape"):
        import numpy
        return bool(numpy.allclose(one, other, equal_nan=True))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return math.isclose(one, other, rel_tol=1e-6) if isinstance(one, float) else one == other

equal = same(before.work(), after.work())
times = [[], []]
until = time.perf_counter() + 2 * float(sys.argv[1])
while len(times[1]) < 3 or time.perf_counter() < until and max(times[1]) * 3 > min(times[0]):
    for module, taken in zip((before, after), times):
        begin = time.perf_counter()
        module.work()
        taken.append(time.perf_counter() - begin)
fastest = [min(taken) for taken in times]
with open("times.json", "w") as file:
    json.dump([bool(equal), fastest[0] / fastest[1]], file)
"""


@dataclass(frozen=True)
class RowProgram:
    """The program of a row: what both versions begin with, and `work` or the whole program of each version."""

    row: str
    setup: str
    before: str
    after: str
    healthy: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    rule: str = ""  # of which it is a program, where it is not one of a row of the table
    seconds: float = SAMPLED  # of the sampled run: more where the imports take long

    @property
    def versions(self) -> dict[str, str]:
        """Return the versions by name, without what all of them begin with."""
        healthy = {f"healthy{number}": version for number, version in enumerate(self.healthy)}
        return {"before": self.before, "after": self.after, **healthy}

    def code(self, version: str) -> str:
        """The program of a version; `work` is called in a loop, and what defines none is the whole program."""
        loop = LOOP if "def work():" in version else ""
        return f"import sys, time\n{self.setup}\n{version}{loop}"


@dataclass(frozen=True)
class RowResult:
    """How a row went; `instead` are the titles of what was told of `before` in place of the row.

    `beside` are the other versions and the rules of what was told of them, none of which is the row's.
    """

    row: str
    fires: bool
    silent: bool
    healthy: tuple[bool, ...]
    equal: bool
    gain: float
    instead: tuple[str, ...] = ()
    beside: frozenset[tuple[str, str]] = frozenset()

    @property
    def holds(self) -> bool:
        """Whether the row is right on all versions, and worth it."""
        return self.fires and self.silent and all(self.healthy) and self.equal and self.gain >= WORTH_IT


@cache
def row_programs() -> dict[str, RowProgram]:
    """Return the programs of all files by the name of the row."""
    found: dict[str, RowProgram] = {}
    for path in sorted(PROGRAMS.glob("*.yaml")):
        loaded: dict[str, Any] = load_yaml(path)
        for name, fields in loaded.items():
            lists = {key: tuple(fields.get(key, ())) for key in ("healthy", "needs")}
            row = fields.pop("of", name)  # a row may have a program for each of its libraries
            found[name] = RowProgram(row, **{"setup": "", **fields, **lists})
    return found


def missing_libraries(program: RowProgram, python: str = sys.executable) -> tuple[str, ...]:
    """The modules that a program needs and this Python, or another, does not have."""
    return tuple(name for name in program.needs if not _has(name, python))


@cache
def _has(module: str, python: str) -> bool:
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], check=False, capture_output=True).returncode == 0


def record(folder: Path, code: str, seconds: float, python: str = sys.executable) -> None:
    """Sample a program, and then count its calls; `folder` gets the program and the files of both."""
    program = folder / "work.py"
    program.write_text(code)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROFKIT"))}
    sampled = env | {"PYTHONPATH": str(START_FOLDER), "PROFKIT_STACKS": str(folder / "stacks.jsonl")}
    rounds = run_program([python, str(program), str(seconds), "0"], folder, sampled) or ["0"]
    host = START_FOLDER.parent / "host"
    run_program(
        [python, str(host), "cprofile", "calls.prof", "--", str(program), "0", rounds[-1]], folder, env
    )


def rows_told(folder: Path) -> list[Insight]:
    """Return the insights of costly functions on what `record` left, as a user's run has them."""
    return [insight for insight in find_insights(document_of(folder)) if insight.rule != "hot-spot"]


def document_of(folder: Path) -> RunDocument:
    """Return the document of a program that was sampled and counted: its stacks, and then its calls."""
    stacks, calls = read_stacks(folder / "stacks.jsonl"), read_cprofile(folder / "calls.prof")
    grown = [with_growth(profile, folder / "calls.json") for profile in calls.profiles]
    document = documents.empty()
    lines = with_source(stacks, replace(document.workload, folder=str(folder)))
    assert lines is not None
    document = replace(document, sampled=(lines,), profiles=(*stacks.profiles, *grown))
    return replace(document, hot_spots=hot_spots(document))


def run_program(words: list[str], folder: Path, env: dict[str, str] | None = None) -> list[str]:
    """Run a program and return the words that it wrote; an AssertionError says how it failed."""
    ended = subprocess.run(
        words, cwd=folder, env=env, check=False, capture_output=True, text=True, errors="replace", timeout=120
    )
    assert ended.returncode == 0, f"{' '.join(words)}: {ended.stderr[-2000:]}"
    return ended.stdout.split()


def is_told(program: RowProgram, told: list[Insight]) -> bool:
    """Whether an insight is that of a program's row, or of its rule."""
    if program.rule:
        return any(one.rule == program.rule for one in told)
    named = next(one for one in costly_functions() if one.name == program.row)
    return any(
        one.rule == "costly-helper" and (one.title, one.change) == (named.title, named.change) for one in told
    )


def compared(
    program: RowProgram, folder: Path, seconds: float, python: str = sys.executable
) -> tuple[bool, float]:
    """Whether both versions give the same, and how many times faster `after` is."""
    for name in ("before", "after"):
        (folder / f"{name}.py").write_text(program.code(getattr(program, name)))
    (folder / "times.py").write_text(TIMES)
    run_program([python, "times.py", str(seconds)], folder, os.environ | ONE_THREAD)
    equal, gain = json.loads((folder / "times.json").read_text())
    return equal, gain


def try_row(
    program: RowProgram, folder: Path, *, seconds: float = 0.0, python: str = sys.executable
) -> RowResult:
    """Run all versions of a row's program, each in a folder below `folder` of its name.

    `seconds`: of each run, where it is more than the program's own.
    """
    sampled = max(seconds, program.seconds)

    def told_of(version: str, longer: float = 1) -> list[Insight]:
        place = folder / version
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        record(place, program.code(program.versions[version]), longer * sampled, python)
        return rows_told(place)

    for longer in (HALF, *LONGER):
        told = {"before": told_of("before", longer)}
        if is_told(program, told["before"]):
            break
    for longer in LONGER:
        equal, gain = compared(program, Path(mkdtemp(dir=folder)), longer * max(seconds, TIMED), python)
        if gain >= WORTH_IT:
            break
    told |= {version: told_of(version) for version in program.versions if version != "before"}
    return result_of(program, told, equal=equal, gain=gain)


def result_of(program: RowProgram, told: dict[str, list[Insight]], *, equal: bool, gain: float) -> RowResult:
    """Return how a row went, of which `told` are the insights on each version."""
    is_of_row = {version: is_told(program, insights) for version, insights in told.items()}
    fires = is_of_row["before"]
    instead = () if fires else tuple(f"{insight.rule}: {insight.title}" for insight in told["before"])
    healthy = tuple(not is_of_row[version] for version in program.versions if version.startswith("healthy"))
    beside = frozenset((version, one.rule) for version in told.keys() - {"before"} for one in told[version])
    return RowResult(program.row, fires, not is_of_row["after"], healthy, equal, gain, instead, beside)


def line_of(result: RowResult) -> str:
    """The row of the table."""
    words = {True: "yes", False: "NO"}
    healthy = ", ".join(words[one] for one in result.healthy) or "-"
    output = "" if result.equal else "  OUTPUT DIFFERS"
    instead = f"  instead: {'; '.join(result.instead) or 'nothing'}" if not result.fires else ""
    return (
        f"{result.row:24} {words[result.fires]:5} {words[result.silent]:12} {healthy:14} "
        f"{result.gain:8.3g}{output}{instead}"
    )


def main() -> None:
    """Try the rows that are named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the programs")
    parser.add_argument("--jobs", type=int, default=1, help="rows at the same time")
    options = parser.parse_args()
    programs = [row_programs()[name] for name in options.rows or row_programs()]
    there = [one for one in programs if not missing_libraries(one, options.python)]
    print(f"{'row':24} {'fires':5} {'silent after':12} {'silent healthy':14} {'gain':>8}")

    def tried(program: RowProgram) -> RowResult | None:
        try:
            with TemporaryDirectory() as folder:
                result = try_row(program, Path(folder), seconds=options.seconds, python=options.python)
        except AssertionError as error:
            print(f"{program.row:24} {error}", flush=True)
            return None
        print(line_of(result), flush=True)
        return result

    with ThreadPoolExecutor(options.jobs) as executor:
        results = list(executor.map(tried, there))
    held = sum(one is not None and one.holds for one in results)
    print(
        f"{len(programs)} rows: {held} hold, {len(results) - held} fail, {len(programs) - len(there)} skipped"
    )
    sys.exit(held != len(results))


if __name__ == "__main__":
    main()
