"""A journal that was cut off anywhere gives every whole entry, and a resumed run does the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_up_jobs import PLAIN, outcomes, singles

from profkit.core.errors import UnreadableReport, UsageError
from profkit.execution import journal as journals
from profkit.execution.job import JobOutcome, JobStatus

FORMAT = journals.JournalFormat("made-up/1", "trial", "profkit try")
JOBS = {name: {"do": "sleep", "seconds": 0.0} for name in "abc"}


def test_a_run_that_was_cut_off_at_any_byte_is_resumed_without_doing_a_job_twice(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = journals.create(path, FORMAT, {"jobs": list(JOBS)})

    def store(outcome: JobOutcome) -> None:
        if outcome.status not in (JobStatus.lost, JobStatus.cancelled):
            journal.append({"key": outcome.job.key, "status": outcome.status.value, "value": outcome.value})

    found, _ = outcomes(singles(JOBS), PLAIN)
    for outcome in found.values():
        store(outcome)
    journal.close()
    whole = path.read_bytes()
    for end in range(len(whole.splitlines(keepends=True)[0]), len(whole)):
        path.write_bytes(whole[:end])
        journal, contents = journals.reopen(path, FORMAT)
        done = [entry["key"] for _, entry in contents.entries]
        assert (
            done
            == list(JOBS)[: len(whole[:end].splitlines(keepends=True)) - 1 - (whole[end - 1 : end] != b"\n")]
        )
        for key in list(JOBS)[len(done) :]:
            store(found[key])
        journal.close()
        assert path.read_bytes() == whole


def test_a_line_that_is_damaged_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    head = json.dumps({"schema": FORMAT.schema}).encode() + b"\n"
    for bad in (b"\xff\x00\n", b"[" * 100_000 + b"\n", b"[1]\n"):
        path.write_bytes(head + bad + b'{"key": "a"}\n')
        assert journals.read(path, FORMAT).entries == [(3, {"key": "a"})]


@pytest.mark.parametrize("content", ["", "{}", "not json\n", '{"schema": "made-up/2"}\n', "\x00\x01\n"])
def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "journal"
    path.write_text(content)
    with pytest.raises(UnreadableReport, match="no journal of a trial"):
        journals.reopen(path, FORMAT)
    with pytest.raises(UnreadableReport, match="there is no trial in"):
        journals.read(tmp_path / "none", FORMAT)


def test_two_runs_do_not_write_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = journals.create(path, FORMAT, {})
    with pytest.raises(UsageError, match="another trial is writing"):
        journals.reopen(path, FORMAT)
    first.close()
    journals.reopen(path, FORMAT)[0].close()
