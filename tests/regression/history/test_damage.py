"""A file that is broken, foreign or not ours is refused in words, and left as it is."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.core.errors import ProfkitError, UnreadableReport
from profkit.core.types import Entry
from profkit.regression.history import open_history
from tests.cli_runner import profkit
from tests.regression.history.entries import entry, value


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of 30 nights, without a log beside it."""
    path = tmp_path_factory.mktemp("whole") / "history.sqlite"
    with open_history(path) as history:
        for number in range(30):
            history.add(entry(number, value(), *(value(f"m{metric}", number) for metric in range(20))))
    return path


def read_all(path: Path) -> object:
    """Everything that a history tells."""
    with open_history(path, read_only=True) as history:
        runs = [history.entry(one.id) for one in history.entries()]
        return runs, history.series(), history.accepted()


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
    "make",
    [
        lambda path: path.write_text("a text\n"),
        lambda path: path.write_bytes(os.urandom(10000)),
        foreign,
        lambda path: path.mkdir(),
        os.mkfifo,
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.write_bytes(b"SQLite format 3\0"),
    ],
)
def test_what_is_no_history_is_refused(tmp_path: Path, make: Callable[[Path], object]) -> None:
    path = tmp_path / "it's a history.sqlite"
    make(path)
    fault = refused(path)
    assert "is not a history" in fault.message
    assert fault.exit_code == 2


@pytest.mark.parametrize("kept", [50, 100, 0.3, 0.999])
def test_a_file_that_is_cut_off_is_refused(whole: Path, tmp_path: Path, kept: float) -> None:
    path = tmp_path / "history.sqlite"
    content = whole.read_bytes()
    path.write_bytes(content[: int(kept * len(content)) if kept < 1 else int(kept)])
    fault = refused(path)
    assert isinstance(fault, UnreadableReport)
    assert "history" in fault.message
    assert fault.fix


def test_a_page_that_is_lost_is_refused_wherever_it_is(whole: Path, tmp_path: Path) -> None:
    """Each page in turn is zeroed, or overwritten."""
    content = whole.read_bytes()
    path = tmp_path / "history.sqlite"
    size = 4096
    for at in range(0, len(content), size):
        for damage in (bytes(size), b"\xa5" * size):
            path.write_bytes(content[:at] + damage + content[at + size :])
            with pytest.raises(UnreadableReport):
                open_history(path, read_only=True)


def test_a_value_that_is_of_no_type_of_its_column_is_refused(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    shutil.copy(whole, path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as sql:
        sql.execute("PRAGMA ignore_check_constraints = ON")
        sql.execute("UPDATE point SET value = 'much' WHERE entry = 3")
    with pytest.raises(UnreadableReport, match="is damaged: CHECK constraint failed in point"):
        open_history(path, read_only=True)


def runs(path: Path) -> dict[str, Entry]:
    with open_history(path, read_only=True) as history:
        return {one.id: history.entry(one.id) for one in history.entries()}


@pytest.mark.parametrize("version", [99, 3])
def test_a_history_of_another_version_is_refused_and_kept(whole: Path, tmp_path: Path, version: int) -> None:
    path = tmp_path / "history.sqlite"
    shutil.copy(whole, path)
    sqlite3.connect(path).execute(f"PRAGMA user_version = {version}").connection.close()
    fault = refused(path)
    assert f"has version {version} of its tables" in fault.message
    assert "upgrade profkit, or make a new one" in (fault.fix or "")


# ---------------------------------------------------------------- a history that a stranger sent


COUNT = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def _with(folder: Path, *statements: str) -> Path:
    path = folder / "h.sqlite"
    with open_history(path) as history:
        history.add(entry(1))
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


def test_a_view_in_place_of_a_table_is_refused(tmp_path: Path) -> None:
    view = f"CREATE VIEW entry AS {COUNT} SELECT count(*) AS number, 1 AS id, 1 AS started FROM n"
    path = _with(tmp_path, "ALTER TABLE entry RENAME TO other", view)
    before = path.read_bytes()
    said = profkit("history", "list", "--history", path, cwd=tmp_path)
    assert said.code == 2
    assert "the view entry" in said.err
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["h.sqlite"]
