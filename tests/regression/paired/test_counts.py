"""What decides beside time: instructions that were counted, and files that are the same in both versions."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import pytest

from profkit.core.errors import Silent
from profkit.core.types import Change, ChangeWord, Course, Fact, Sample
from profkit.regression.paired import PairedOptions, RunOptions, VersionsRequest, compare_versions
from profkit.regression.paired.checkout import Version
from profkit.regression.paired.counts import CountedRuns, Counts, settled
from profkit.regression.paired.one_run import run_once
from tests.cli_runner import profkit
from tests.git_repository import commit, git, repository


def timed(ratio: float, low: float, high: float, word: ChangeWord = "ambiguous") -> Change:
    sample = Sample(1.0)
    return Change(
        "time.median", "s", "lower", sample, sample, word, "neither",
        ratio=ratio, low=low, high=high, floor=0.02,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "counted", "word", "course"),
    [
        (timed(1.005, 0.93, 1.08), 1.0004, "same", "neither"),
        (timed(1.01, 0.8, 1.3), 1.0004, "same", "neither"),  # equal counts, a noisy machine
        (timed(1.01, 0.8, 1.3), 1.01, "ambiguous", "neither"),  # not equal: what is slower could hide
        (
            timed(1.06, 0.99, 1.11),
            1.0,
            "ambiguous",
            "neither",
        ),  # as many instructions, and it leans to slower
        (timed(1.06, 0.99, 1.13), 1.094, "different", "worse"),
        (timed(0.95, 0.88, 1.03), 0.90, "different", "better"),
        (timed(0.99, 0.90, 1.08), 1.094, "ambiguous", "neither"),  # time leans the other way
        (timed(1.004, 0.99, 1.015, "same"), 1.5, "same", "neither"),  # what time decided stands
        (timed(1.3, 1.2, 1.4, "different"), 1.0, "different", "neither"),
    ],
)
def test_counts_decide_what_times_leave_open_and_only_where_both_agree(
    change: Change, counted: float, word: ChangeWord, course: Course
) -> None:
    found = settled(change, Counts("a counter", ((1e9, counted * 1e9),)))
    assert (found.word, found.course) == (word, course)
    assert [doubt.code for doubt in found.doubts] == ["settled-by-instructions"] * (found is not change)


LOOP = "n=$(( 3600 + $$ % 97 * 40 )); i=0; while [ $i -lt {} ]; do i=$((i + 1)); done"


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
@pytest.mark.parametrize(
    ("old", "new", "seconds", "expected"),
    [
        ("8000", "8000", 60.0, 1.0),
        ("8000", "8800", 60.0, 1.1),
        ("8000", "$n", 60.0, "counts-scatter"),
        ("8000; exit 3", "8000", 60.0, "counts-failed"),
        ("8000", "8000", 0.001, "counts-too-long"),
    ],
)
def test_instructions_are_counted_twice_where_they_differ_and_are_no_evidence_where_they_scatter(
    old: str, new: str, seconds: float, expected: float | str, tmp_path: Path
) -> None:
    versions = [Version(name, ("sh", "-c", LOOP.format(name)), tmp_path) for name in (old, new)]
    counting = CountedRuns((versions[0], versions[1]), False, 0.02, 0.02, tmp_path, lambda _: None)
    found = counting.count(seconds)
    if isinstance(expected, str):
        assert isinstance(found, Fact)
        assert found.code == expected
    else:
        assert isinstance(found, Counts)
        assert found.ratio == pytest.approx(expected, abs=0.01)
        assert len(found.runs) == (1 if expected == 1.0 else 2)


READS = """import csvlib, pathlib
words = pathlib.Path("data.txt").read_text()
"""
STARTS = READS + "import subprocess\nsubprocess.run(['true'], check=True)\n"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "changed", "same"),
    [
        (READS, "tests/test_csvlib.py", True),
        (READS, "NEWS.md", True),
        (READS, "csvlib.py", False),
        (READS, "data.txt", False),
        (STARTS, "NEWS.md", False),  # what another program reads is not seen
        (READS + "len(list(pathlib.Path('tests').iterdir()))", "tests/test_csvlib.py", False),
    ],
)
def test_versions_whose_loaded_and_read_files_are_equal_are_the_same_at_once(
    program: str, changed: str, same: bool, tmp_path: Path
) -> None:
    place = repository(tmp_path / "re po", size=1)
    files = {"work.py": program, "csvlib.py": "", "data.txt": "one two", "tests/test_a.py": "", changed: ""}
    for name, text in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        if name != changed or name in ("csvlib.py", "data.txt"):
            (place / name).write_text(text)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "before")
    (place / changed).write_text("# another\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "after")
    pairs = PairedOptions(budget=0.8, seed=1, counts="never", run=RunOptions(sampling=0.1))
    request = VersionsRequest((sys.executable, "work.py"), "HEAD~1", cwd=place, pairs=pairs, causes=False)
    found = compare_versions(request, Silent()).comparison
    assert (found.pairing is None) == same
    if same:
        assert (found.outcome, found.why.code) == ("same", "nothing-differs")


@pytest.mark.thorough
def test_a_commit_beside_itself_is_a_trial_of_the_machine_where_both_are_named(tmp_path: Path) -> None:
    place = repository(tmp_path / "repo", size=1)
    commit(place, 2)
    command = ("--budget", "3", "--no-cause", "--format", "json", "--", sys.executable, "work.py")
    said = profkit("compare", "--base", "HEAD", "--head", "HEAD", *command, cwd=place, process=False)
    assert said.json()["pairing"]["pairs"] >= 1  # as many as this machine makes in that time
    assert said.json()["outcome"] in ("same", "ambiguous")
    refused = profkit("compare", "--base", "HEAD", *command, cwd=place, process=False)
    assert refused.code == 2
    assert "--head HEAD" in refused.err


THREADS = """import threading, time
stop = threading.Event()
for _ in range(3): threading.Thread(target=stop.wait).start()
end = time.process_time() + 0.2
while time.process_time() < end: pass
stop.set()
"""


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel keeps no schedstat")
def test_waiting_for_a_processor_is_known_of_a_program_whose_other_threads_only_wait(tmp_path: Path) -> None:
    version = Version("threads", (sys.executable, "-c", THREADS), tmp_path)
    run = run_once(version, RunOptions(), tmp_path / "run", random.Random(1))
    assert run.waited is not None
    assert run.wall - run.waited < 1.0
