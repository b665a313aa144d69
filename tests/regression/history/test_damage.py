"""A file that is broken, foreign or not ours is refused in words, and left as it is."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import ProfkitError, UnreadableReport, UsageError
from profkit.core.types import Entry
from profkit.regression.history import open_history
from profkit.regression.history.rescue import RescueResult, rescue
from tests.regression.history.entries import entry, value


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of 30 nights in a single file."""
    path = tmp_path_factory.mktemp("whole") / "history.sqlite"
    with open_history(path) as history:
        for number in range(30):
            history.add(entry(number, value(), *(value(f"m{metric}", number) for metric in range(20))))
    return path


def read_all(path: Path) -> object:
    """Everything that a history tells."""
    with open_history(path, read_only=True) as history:
        runs = [history.entry(one.id) for one in history.entries()]
        return runs, history.series(), history.accepted(), history.confirmed()


def refused(path: Path) -> ProfkitError:
    """The fault of opening and reading it; reading and writing leave its bytes alone."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ProfkitError):
        add_and_read(path)
    with pytest.raises(ProfkitError) as reading:
        read_all(path)
    assert before is None or path.read_bytes() == before
    return reading.value


def add_and_read(path: Path) -> None:
    with open_history(path) as history:
        history.add(entry(1000))
        history.series()
        history.entries()


def foreign(path: Path) -> None:
    sqlite3.connect(path).executescript("CREATE TABLE entry (a); INSERT INTO entry VALUES (1)")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_text("a text\n"), "no history: it is not an SQLite file"),
        (lambda path: path.write_bytes(os.urandom(10000)), "no history: it is not an SQLite file"),
        (foreign, "SQLite file of another program"),
        (lambda path: path.mkdir(), "is a folder"),
        (os.mkfifo, "no regular file"),
        (lambda path: path.symlink_to("nowhere"), "link to nothing"),
        (lambda path: path.write_bytes(b"SQLite format 3\0"), "ends after 16 bytes"),
    ],
)
def test_what_is_no_history_is_refused(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "it's a history.sqlite"
    make(path)
    fault = refused(path)
    assert words in fault.message
    assert fault.exit_code == 2


def test_there_is_no_history_to_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no history"):
        read_all(tmp_path / "none.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="no file name"):
        open_history(Path("a\0b"))


@pytest.mark.parametrize("kept", [1, 50, 99, 100, 5000, 0.3, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_refused(whole: Path, tmp_path: Path, kept: float) -> None:
    path = tmp_path / "history.sqlite"
    content = whole.read_bytes()
    path.write_bytes(content[: int(kept * len(content)) if kept < 1 else int(kept)])
    fault = refused(path)
    assert isinstance(fault, UnreadableReport)
    assert "history" in fault.message
    assert fault.fix


@pytest.mark.parametrize(("start", "length"), [(18, 2), (56, 12)])
def test_an_overwritten_header_is_refused(whole: Path, tmp_path: Path, start: int, length: int) -> None:
    path = tmp_path / "history.sqlite"
    content = bytearray(whole.read_bytes())
    content[start : start + length] = b"\xa5" * length
    path.write_bytes(content)
    fault = refused(path)
    assert "damaged" in fault.message or "newer profkit" in fault.message
    assert fault.fix


def test_pages_that_were_overwritten_are_refused_or_told_right(whole: Path, tmp_path: Path) -> None:
    """Each page of the file in turn is zeroed, and swapped with its neighbour: no number is ever told wrong."""
    content, truth = whole.read_bytes(), read_all(whole)
    path = tmp_path / "history.sqlite"
    size = 4096
    noticed = 0
    for page in range(len(content) // size):
        at, after = page * size, (page + 1) * size
        for damage in (bytes(size), content[after : after + size] or bytes(size), os.urandom(size)):
            path.write_bytes(content[:at] + damage + content[after:])
            try:
                assert read_all(path) == truth  # of an index, which this reading does not need
            except UnreadableReport:
                noticed += 1
    assert noticed > 3 * len(content) // size / 2


def test_single_bits_that_flip_are_refused_or_told_right(whole: Path, tmp_path: Path) -> None:
    content, truth = whole.read_bytes(), read_all(whole)
    path = tmp_path / "history.sqlite"
    rng = random.Random(7)
    noticed = 0
    for _ in range(120):
        flipped = bytearray(content)
        flipped[rng.randrange(100, len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)
        try:
            assert read_all(path) == truth
        except UnreadableReport:
            noticed += 1
    assert noticed > 20


def damages(content: bytes) -> dict[str, bytes]:
    return {
        "cut off": content[: len(content) * 9 // 10],
        "whole": content,
    }


@pytest.mark.parametrize("name", ["cut off", "whole"])
def test_what_is_left_is_rescued_and_what_was_lost_is_told(whole: Path, tmp_path: Path, name: str) -> None:
    path, target = tmp_path / "it's.sqlite", tmp_path / "new.sqlite"
    path.write_bytes(damages(whole.read_bytes())[name])
    before = path.read_bytes()
    done = rescue(path, target)
    assert path.read_bytes() == before
    truth, found = runs(whole), runs(target)
    hold(truth, found, done)
    assert found
    assert (found == truth) == (name != "cut off")


def test_a_page_that_is_lost_costs_what_was_on_it(whole: Path, tmp_path: Path) -> None:
    content, truth = whole.read_bytes(), runs(whole)
    path = tmp_path / "history.sqlite"
    costs = []
    for at in range(0, len(content), 3 * 4096):
        path.write_bytes(content[:at] + bytes(4096) + content[at + 4096 :])
        target = tmp_path / f"{at}.sqlite"
        try:
            done = rescue(path, target)
        except UnreadableReport:  # the page that says where all others are
            costs.append(len(truth))
        else:
            hold(truth, runs(target), done)
            costs.append(len(truth) - done.runs + done.lost_values)
    assert sum(cost == 0 for cost in costs) >= 1  # indices
    assert sum(0 < cost < 120 for cost in costs) > 3


def runs(path: Path) -> dict[str, Entry]:
    with open_history(path, read_only=True) as history:
        return {one.id: history.entry(one.id) for one in history.entries()}


def hold(truth: dict[str, Entry], found: dict[str, Entry], done: RescueResult) -> None:
    """Nothing is there that was not, and what is missing is told."""
    for key, run in found.items():
        assert replace(run, values=()) == replace(truth[key], values=())
        assert set(run.values) <= set(truth[key].values)
    kept = sum(len(run.values) for run in found.values())
    assert (done.runs, done.values) == (len(found), kept)
    assert done.lost_values == sum(len(truth[key].values) for key in found) - kept
    assert done.lost_runs in (None, len(truth) - len(found))


def test_rescue_refuses_what_is_no_history_and_a_file_that_is_there(whole: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no history")
    with pytest.raises(UnreadableReport, match="is no history"):
        rescue(text, tmp_path / "new.sqlite")
    with pytest.raises(UsageError, match="exists already"):
        rescue(whole, text)
    assert not (tmp_path / "new.sqlite").exists()


def test_a_newer_history_is_refused_and_kept(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    shutil.copy(whole, path)
    sqlite3.connect(path).execute("PRAGMA user_version = 99").connection.close()
    fault = refused(path)
    assert "newer profkit (version 99" in fault.message
    assert "upgrade profkit" in (fault.fix or "")


def test_a_link_to_nothing_or_to_itself_is_refused_with_a_fix(tmp_path: Path) -> None:
    for name, target in (("nothing", "elsewhere"), ("loop", "loop")):
        (tmp_path / name).symlink_to(tmp_path / target)
        with pytest.raises(UnreadableReport, match="link to nothing") as fault:
            open_history(tmp_path / name)
        assert "--history" in (fault.value.fix or "")
        assert (tmp_path / name).is_symlink()
