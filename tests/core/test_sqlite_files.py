"""SQLite files that others may have written: what is code in them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from profkit.core.files.sqlite import code_in, connect, plain_tables
from tests.conftest import ROOT

COUNT = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS i FROM n"
ENDLESS = f"CREATE VIEW endless AS {COUNT}"


def _made(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE plain (number INTEGER PRIMARY KEY, word TEXT CHECK (typeof(word) = 'text'))"
        )
        database.execute("CREATE INDEX by_word ON plain (word, number)")
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (ENDLESS, "the view endless"),
        ("CREATE TRIGGER t AFTER INSERT ON plain BEGIN DELETE FROM plain; END", "the trigger t"),
        ("CREATE VIRTUAL TABLE v USING fts5 (word)", "the virtual table v"),
        ("CREATE TABLE c (a INTEGER, b TEXT GENERATED ALWAYS AS (hex(zeroblob(9))))", "a computed column"),
        ("CREATE TABLE c (a INTEGER, b AS (a + 1))", "a computed column in the table c"),
        ("CREATE INDEX x ON plain (upper(word))", "an expression in the index x"),
        ("CREATE INDEX x ON plain (word) WHERE number > abs(number)", "an expression in the index x"),
    ],
    ids=lambda value: value.split()[1].lower() if value.startswith("CREATE") else "",
)
def test_what_would_run_is_named(tmp_path: Path, statement: str, named: str) -> None:
    connection = connect(_made(tmp_path / "f.sqlite", statement), "mode=ro")
    assert (code_in(connection) or "").startswith(named)
    assert "plain" in plain_tables(connection)
    assert not {"endless", "v"} & plain_tables(connection)
    connection.close()


def test_tables_and_their_indexes_are_no_code(tmp_path: Path) -> None:
    connection = connect(_made(tmp_path / "f.sqlite"), "mode=ro")
    assert code_in(connection) is None
    assert plain_tables(connection) == {"plain"}
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM plain")
    connection.close()


def test_one_place_opens_a_database() -> None:
    package = ROOT / "profkit"
    opened = {
        path.relative_to(package).as_posix(): path.read_text().count("sqlite3.connect(")
        for path in package.rglob("*.py")
    }
    assert {name: count for name, count in opened.items() if count} == {"core/files/sqlite.py": 1}
