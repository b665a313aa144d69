"""A file of an older version is brought forward where it lies, and read where it may not be written."""

from __future__ import annotations

import multiprocessing
import shutil
import sqlite3
from pathlib import Path

import pytest

from profkit.core.types import AcceptedChange, Entry, Scope
from profkit.regression.history import open_history, schema
from tests.conftest import ROOT
from tests.regression.history.entries import entry

OLD = ROOT / "tests" / "data" / "history" / "v1.sqlite"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "history.sqlite"
    shutil.copy(OLD, path)
    return path


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return schema.version_of(connection)
    finally:
        connection.close()


def told(path: Path, **how: bool) -> tuple[tuple[Entry, ...], tuple[AcceptedChange, ...]]:
    with open_history(path, **how) as history:
        return tuple(history.entry(one.id) for one in history.entries()), history.accepted()


def check(entries: tuple[Entry, ...], accepted: tuple[AcceptedChange, ...]) -> None:
    assert [(one.started, one.night, one.valid) for one in entries] == [
        ("2026-11-18T01:00:00+00:00", "2026-11-18", True),
        ("2026-11-19T01:00:00+00:00", "2026-11-19", False),
        ("2026-11-20T01:00:00+00:00", "2026-11-20", True),
    ]
    assert entries[0].outcome == "pass"
    assert entries[1].reason == "throttled: power limit"
    time, occupancy = entries[2].values
    assert (time.value, time.groups[1], occupancy.doubt) == (
        1.002e-3,
        (pytest.approx(1.002e-3, rel=1e-7),),
        "another report says 40 %",
    )
    assert occupancy.key.scope == Scope("kernel", "void f<float, (int)4>(T1 *)", "2x1x1 of 64x1x1")
    assert accepted == (
        AcceptedChange("mlp", "2026-11-19T00:00:00+00:00", "new compiler", "time.median", "anna"),
    )


def test_version_1_is_brought_forward_with_all_that_it_holds(old: Path) -> None:
    check(*told(old))
    assert version(old) == schema.VERSION
    with open_history(old) as history:
        history.confirm(
            history.entry("last").id, history.entry("last").values[0].key, "same"
        )  # new in version 2
        assert history.add(entry(5))


def test_the_old_file_is_laid_beside_it(old: Path) -> None:
    told(old)
    copy = old.with_name("history.sqlite.v1")
    assert version(copy) == 1
    check(*told(copy, read_only=True))


def test_read_only_it_is_read_in_memory(old: Path) -> None:
    before = old.read_bytes()
    check(*told(old, read_only=True))
    assert old.read_bytes() == before
    assert [path.name for path in old.parent.iterdir()] == ["history.sqlite"]


def test_a_migration_that_fails_leaves_the_old_file(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (a)")
        raise KeyboardInterrupt

    monkeypatch.setitem(schema.MIGRATIONS, 1, fails)
    with pytest.raises(KeyboardInterrupt):
        open_history(old)
    assert version(old) == 1
    monkeypatch.undo()
    check(*told(old))


def test_several_processes_at_once_migrate_it_once(old: Path) -> None:
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=told, args=(old,)) for _ in range(6)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 6
    assert version(old.with_name("history.sqlite.v1")) == 1
    check(*told(old))


def test_a_fresh_file_has_the_tables_of_one_that_was_brought_forward(old: Path, tmp_path: Path) -> None:
    told(old)
    with open_history(tmp_path / "fresh.sqlite"):
        pass

    def tables(path: Path) -> object:
        sql = sqlite3.connect(path)
        names = [name for (name,) in sql.execute("SELECT name FROM sqlite_master ORDER BY name")]
        return [(name, sql.execute(f"PRAGMA table_info({name})").fetchall()) for name in names]

    assert tables(old) == tables(tmp_path / "fresh.sqlite")


def test_every_version_has_a_step_to_the_next() -> None:
    assert sorted(schema.MIGRATIONS) == list(range(1, schema.VERSION))


def test_the_stored_file_is_of_version_1() -> None:
    assert version(OLD) == 1
