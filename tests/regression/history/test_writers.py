"""Several writers at once, writers that are killed, disks that are full, folders that may only be read."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profkit.core.errors import MachineError
from profkit.regression.history import open_history
from tests.conftest import ROOT
from tests.regression.history.entries import entry, value

NOBODY = 65534
WRITER = """
import sys
from pathlib import Path
from profkit.regression.history import open_history
from tests.regression.history.entries import entry, value
path, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for number in range(first, last):
    with open_history(path) as history:
        history.add(entry(number, *(value(f"m{metric}", number) for metric in range(50))))
    print(number, flush=True)
"""


def writer(path: Path, first: int, last: int) -> subprocess.Popen[str]:
    """A process of its own that adds runs, and says each that is stored."""
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(last)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def whole(path: Path) -> list[int]:
    """The numbers of the runs that are there, each with all that it told, in a file that SQLite calls sound."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with open_history(path, read_only=True) as history:
        runs = [history.entry(one.id) for one in history.entries()]
        assert all(len(run.values) == 50 for run in runs)
        assert {len(series.points) for series in history.series()} <= {len(runs)}
    return [int(run.id, 16) for run in runs]


@pytest.mark.thorough
def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    """Four processes make the file and add to it at once."""
    path = tmp_path / "reports" / "history.sqlite"
    writers = [writer(path, 10 * n, 10 * n + 10) for n in range(4)]
    said = [process.communicate(timeout=120) for process in writers]
    assert [process.returncode for process in writers] == [0] * 4, said
    assert whole(path) == list(range(40))
    assert not [name for name in os.listdir(path.parent) if name.startswith(".")]


@pytest.mark.thorough
def test_a_writer_that_is_killed_costs_no_run_that_it_said_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    rng = random.Random(3)
    said: set[int] = set()
    for round_ in range(5):
        process = writer(path, 1000 * round_, 1000 * round_ + 1000)
        assert process.stdout is not None
        said.add(int(process.stdout.readline()))
        time.sleep(rng.uniform(0, 0.05))  # anywhere within the runs that follow
        process.send_signal(signal.SIGKILL)
        said |= {
            int(line) for line in process.stdout
        }  # communicate() would lose what readline() has read ahead
        process.wait(timeout=60)
    there = whole(path)
    assert said <= set(there)
    assert len(there) <= len(said) + 5  # one of each may be stored, and not said yet
    with open_history(path) as history:
        assert history.add(entry(9999, *(value(f"m{metric}") for metric in range(50))))


def test_a_full_disk_is_told_and_costs_nothing_that_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with open_history(path) as history:
        history.add(entry(1))
        pages = history._connection.execute("PRAGMA page_count").fetchone()[0]
        history._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(MachineError, match="disk is full") as fault:
            history.add(entry(2, *(value(f"m{metric}") for metric in range(500))))
        assert "df -h" in (fault.value.fix or "")
        assert [int(one.id, 16) for one in history.entries()] == [1]
    with open_history(path) as history:
        assert len(history.series()) == 1
        assert history.add(entry(2))
