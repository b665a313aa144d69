"""A history that a stranger sent: nothing in it runs, and every command refuses what would."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from profkit.regression.history import open_history
from tests.cli_runner import profkit
from tests.conftest import ROOT
from tests.regression.history.entries import entry

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


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("list", "--format", "json"),
        ("trend", "w", "time.median"),
        ("export", "--to", "out.csv"),
        ("prune", "--keep", "1"),
    ],
    ids=" ".join,
)
def test_a_view_in_place_of_a_table_is_refused_by_every_command(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    view = f"CREATE VIEW entry AS {COUNT} SELECT count(*) AS number, 1 AS id, 1 AS started FROM n"
    path = _with(tmp_path, "ALTER TABLE entry RENAME TO other", view)
    before = path.read_bytes()
    words = tuple(tmp_path / word if word.endswith("csv") else word for word in words)  # type: ignore[misc]
    said = profkit("history", *words, "--history", path, cwd=tmp_path)
    assert said.code == 2
    assert "the view entry" in said.err
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["h.sqlite"]


def test_a_trigger_that_would_delete_what_is_stored_is_refused(tmp_path: Path) -> None:
    path = _with(tmp_path, "CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM point; END")
    before = path.read_bytes()
    said = profkit(
        "history", "add", ROOT / "tests/data/cuda/nsys/hostbound.sqlite", "--history", path, cwd=tmp_path
    )
    assert said.code == 2
    assert "the trigger t" in said.err
    assert path.read_bytes() == before
