"""perf's records of processes: what a shell started, and how long it ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.profilers.perf.switches import read_switches
from profkit.profilers.perf.tasks import read_tasks

# A shell (10) that copies itself for `$(...)` (11), which starts `cut` (12); 14 is a thread of `cut`.
RECORDS = """\
  10/10   1.000000: PERF_RECORD_COMM exec: bash:10/10
  10/10   1.000000: PERF_RECORD_SWITCH IN
  10/10   1.001000: PERF_RECORD_FORK(11:11):(10:10)
  10/10   1.002000: context-switches:
  10/10   1.002000: PERF_RECORD_SWITCH OUT
  11/11   1.002000: PERF_RECORD_SWITCH IN
  11/11   1.002500: PERF_RECORD_FORK(12:12):(11:11)
  11/11   1.003000: PERF_RECORD_SWITCH OUT
  12/12   1.003000: PERF_RECORD_SWITCH IN
  12/12   1.003200: PERF_RECORD_COMM exec: cut:12/12
  12/12   1.003500: PERF_RECORD_FORK(12:14):(12:12)
  12/12   1.005000: PERF_RECORD_EXIT(12:12):(11:11)
  11/11   1.005000: PERF_RECORD_SWITCH IN
  11/11   1.005500: PERF_RECORD_EXIT(11:11):(10:10)
  10/10   1.005500: PERF_RECORD_SWITCH IN
  10/10   1.006000: PERF_RECORD_EXIT(10:10):(9:9)
"""


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "switched.txt"
    path.write_text(RECORDS)
    return path


def test_processes_are_counted_with_the_seconds_that_they_ran(records: Path) -> None:
    tasks = read_tasks(records, "bash")
    cut, copies = tasks.programs
    assert (cut.name, cut.command, cut.starts) == ("cut", "cut", 1)
    assert (cut.seconds, cut.starting) == (pytest.approx(0.002), pytest.approx(0.0002))
    assert (copies.name, copies.command, copies.starts) == ("copies of bash", "", 1)
    assert copies.seconds == pytest.approx(0.0015)
    assert tasks.seconds == pytest.approx(0.006)


def test_copies_of_what_is_no_shell_are_its_own_work(records: Path) -> None:
    assert [one.name for one in read_tasks(records, "server").programs] == ["cut"]


def test_records_of_processes_are_no_switches(records: Path) -> None:
    assert read_switches(records).threads[b"12"].first == 1.003
