"""A journal that was cut off anywhere gives every whole outcome, and a resumed campaign does the rest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport, UsageError
from profkit.execution import journal as journals


@dataclass(frozen=True)
class Outcome:
    """Of a made-up case."""

    value: float
    name: str = ""


FORMAT = journals.JournalFormat("made-up/1", "trial", "profkit try", "trial.jsonl", "case", Outcome)
CASES = {name: Outcome(number / 3, name) for number, name in enumerate("abcde")}


def test_one_that_was_cut_off_at_any_byte_has_the_rest_done_and_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / FORMAT.file
    journal = journals.open_journal(tmp_path, FORMAT, {"why": "a test"})
    journal.note(device="a device")
    for name, outcome in CASES.items():
        journal.settle(name, outcome)
    journal.close()
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole), 3):
        path.write_bytes(whole[:end])
        journal = journals.open_journal(tmp_path, FORMAT, {})
        done = [*journal.contents.outcomes]
        lines = whole[:end].splitlines(keepends=True)
        assert len(done) == max(0, sum(line.endswith(b"\n") for line in lines) - 2)
        for name in [*CASES][len(done) :]:
            journal.settle(name, CASES[name])
        journal.close()
        found = journals.read_journal(tmp_path, FORMAT)
        assert found.outcomes == CASES
        assert found.header["why"] == "a test"


def test_of_two_outcomes_and_two_notes_the_later_one_counts(tmp_path: Path) -> None:
    journal = journals.open_journal(tmp_path, FORMAT, {})
    for value in (1.0, 2.0):
        journal.settle("a", Outcome(value))
        journal.note(device=value, **{f"only {value:g}": True})
    journal.close()
    found = journals.read_journal(tmp_path, FORMAT)
    assert found.outcomes == {"a": Outcome(2.0)}
    assert found.about == {"device": 2.0, "only 1": True, "only 2": True}


@pytest.mark.parametrize(
    "bad",
    [
        b"\xff\x00\n",
        b"[" * 100_000 + b"\n",
        b"[1]\n",
        b'{"case": 3}\n',
        b'{"case": "b", "outcome": {"value": "x"}}\n',
        b'{"note": "x"}\n',
        b'{"at": 1e999}\n',
    ],
)
def test_a_line_that_is_damaged_is_passed_over(tmp_path: Path, bad: bytes) -> None:
    head = json.dumps({"schema": FORMAT.schema}).encode() + b"\n"
    (tmp_path / FORMAT.file).write_bytes(head + bad + b'{"case": "a", "outcome": {"value": 1}, "at": 2}\n')
    for _ in range(2):
        found = journals.read_journal(tmp_path, FORMAT)
        assert found.outcomes == {"a": Outcome(1.0)}
        assert found.seconds == 2.0
        journals.open_journal(tmp_path, FORMAT, {}).close()


@pytest.mark.parametrize("content", ["", "{}", "not json\n", '{"schema": "made-up/2"}\n', "\x00\x01\n"])
def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / FORMAT.file).write_text(content)
    with pytest.raises(UnreadableReport, match="not a journal of a trial"):
        journals.open_journal(tmp_path, FORMAT, {})
    with pytest.raises(UnreadableReport, match="there is no trial in"):
        journals.read_journal(tmp_path / "none", FORMAT)


def test_two_runs_do_not_write_one_journal(tmp_path: Path) -> None:
    first = journals.open_journal(tmp_path, FORMAT, {})
    with pytest.raises(UsageError, match="another trial is writing"):
        journals.open_journal(tmp_path, FORMAT, {})
    first.close()
    journals.open_journal(tmp_path, FORMAT, {}).close()
