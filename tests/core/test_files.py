"""Files that others may have written, files that are written whole, folders that go away."""

from __future__ import annotations

import ast
import io
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.core.files import regular as regular_files
from profkit.core.files.regular import (
    DOCUMENT_BYTES,
    _WithoutWaiting,
    check_regular,
    code_in,
    connect,
    open_regular,
    plain_tables,
    read_bounded,
    read_start,
)
from profkit.core.files.safe_folder import copy_into, write_whole
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
    assert {name: count for name, count in opened.items() if count} == {"core/files/regular.py": 1}


def test_a_file_takes_the_place_of_the_former_one(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("former")
    write_whole(path, ("one ", "two \udc80"))
    assert path.read_text() == "one two ?"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_what_fails_leaves_the_former_file_and_no_litter(tmp_path: Path, stop: type[BaseException]) -> None:
    def pieces() -> Iterator[str]:
        yield "half"
        raise stop

    path = tmp_path / "out.txt"
    path.write_text("former")
    with pytest.raises(stop):
        write_whole(path, pieces())
    assert path.read_text() == "former"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is not a regular file"):
        write_whole(tmp_path / "pipe", ("text",))
    assert (tmp_path / "pipe").is_fifo()


PACKAGE = ROOT / "profkit"
# What reads only the system's own files or those that are installed with the package, runs inside of the workload, or
# is sent alone to another machine; and what a workload is given as its standard input.
OTHERS = {
    "analysis/metrics/catalogue.py",
    "cli/nightly.py",
    "core/process.py",
    "core/process_tree.py",
    "core/standard_input.py",
    "core/tables.py",
    "core/files/regular.py",
    "core/files/safe_folder.py",
    "execution/worker.py",
    "execution/places/boot.py",
    "execution/places/connection.py",
    "execution/places/files.py",
    "execution/places/ray_shell.py",
    "fronts/gate.py",
    "hardware/macos.py",
    "runtime/passes/shown_command.py",  # the words beside it
    "hardware/gpu_locks.py",
    "hardware/peaks.py",
    "hardware/machine.py",
    "hardware/system.py",
    "kernels/operations/cuda/launch.py",
    "profilers/perf/probe.py",
    "profilers/perf/watch.py",  # the memory of a process that it traces
    "backends/attached.py",
    "profiling/attach.py",
    "profiling/workload.py",
    "reporting/html/page.py",
}
INSIDE = ("runtime/region/", "runtime/passes/host/")


def _reading_calls(file: Path) -> Iterator[str]:
    text = file.read_text()
    if "open(" not in text and ".read_" not in text:  # most; to parse them all takes seconds
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        of_module = owner is not None and (getattr(owner, "id", "") or getattr(owner, "attr", ""))
        of_path = isinstance(node.func, ast.Attribute) and of_module not in ("system", "child", "_child")
        if name in ("read_text", "read_bytes") and of_path:
            yield f"{file.name}:{node.lineno}"
        if name == "open" and of_module not in ("os", "self", "gzip"):
            modes = [word.value for word in node.args if isinstance(word, ast.Constant)]
            keywords = {word.arg for word in node.keywords}
            written = any(isinstance(mode, str) and set(mode) & set("wax+") for mode in modes)
            if not written and (modes or keywords & {"mode", "encoding", "errors", "newline"}):
                yield f"{file.name}:{node.lineno}"


def test_every_file_comes_in_through_the_one_door() -> None:
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    elsewhere = {
        name: calls
        for name, path in files.items()
        if name not in OTHERS and not name.startswith(INSIDE) and (calls := [*_reading_calls(path)])
    }
    assert elsewhere == {}
    assert files.keys() >= OTHERS
    assert [*_reading_calls(PACKAGE / "hardware/system.py")]  # it finds what there is


@pytest.mark.parametrize(
    "read",
    [
        open_regular,
        read_bounded,
        check_regular,
        lambda path: read_start(path, 9),
        lambda path: copy_into(path, path.with_name("copy")),
    ],
)
def test_a_pipe_a_device_and_a_folder_are_refused_at_once(read, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "endless"):
        with pytest.raises(OSError, match="it is not a regular file"):
            read(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent")
    assert not (tmp_path / "copy").exists()


def test_what_was_opened_counts_and_not_what_the_name_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is a pipe's by the time it is opened: it is neither waited for nor read."""
    regular, pipe = tmp_path / "regular", tmp_path / "pipe"
    regular.write_bytes(b"content")
    os.mkfifo(pipe)
    before = regular.stat()
    monkeypatch.setattr(regular_files.os, "stat", lambda _: before)
    with pytest.raises(OSError, match="it is not a regular file"):
        open_regular(pipe)
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)


def test_no_more_than_the_bound_is_read_however_large_the_file_is(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(1 << 40)  # no byte of it on the disk
    with pytest.raises(OSError, match="it is larger than 3 KiB"):
        read_bounded(large, 3 << 10)
    with pytest.raises(OSError, match="it is larger than 64 MiB"):
        check_regular(large, DOCUMENT_BYTES)
    assert len(read_start(large, 100)) == 100
    small = tmp_path / "small"
    small.write_bytes(b"12345")
    assert read_bounded(small, 5) == b"12345"
    with pytest.raises(OSError, match="larger"):
        read_bounded(small, 4)


def test_a_file_that_has_nothing_to_read_yet_is_refused_and_not_waited_for() -> None:
    """Some of /proc say that they are regular: a read of them gives None where another file has an end."""
    there, _ = os.pipe()
    os.set_blocking(there, False)
    with io.BufferedReader(_WithoutWaiting(there)) as file:
        for size in (10, -1):
            with pytest.raises(BlockingIOError):
                file.read(size)
