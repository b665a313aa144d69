"""Files that others may have written: opened once, regular or refused, and never read without a bound."""

from __future__ import annotations

import ast
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.core.files import regular as regular_files
from profkit.core.files.regular import (
    DOCUMENT_BYTES,
    check_regular,
    copy_regular,
    open_regular,
    open_regular_text,
    read_bounded,
    read_bounded_text,
    read_start,
)
from tests.conftest import ROOT

PACKAGE = ROOT / "profkit"
# What reads only the system's own files or those that are installed with the package, runs inside of the workload, or
# is sent alone to another machine; and what a workload is given as its standard input.
OTHERS = {
    "analysis/metrics/catalogue.py",
    "cli/regression/nightly.py",
    "core/process.py",
    "core/process_tree.py",
    "core/status.py",
    "core/tables.py",
    "core/files/regular.py",
    "core/files/safe_folder.py",
    "execution/limits.py",
    "execution/places/boot.py",
    "execution/places/ray_shell.py",
    "hardware/macos.py",
    "hardware/gpu_locks.py",
    "hardware/peaks.py",
    "hardware/processor.py",
    "hardware/system.py",
    "kernels/operations/cuda/launch.py",
    "profilers/perf/probe.py",
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
        of_module = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "")
        of_path = isinstance(node.func, ast.Attribute) and of_module not in ("system", "child")
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
        open_regular_text,
        read_bounded,
        read_bounded_text,
        check_regular,
        lambda path: read_start(path, 9),
        lambda path: copy_regular(path, path.with_name("copy")),
    ],
)
def test_a_pipe_a_device_and_a_folder_are_refused_at_once(read, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "endless"):
        with pytest.raises(OSError, match="it is no regular file"):
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
    with pytest.raises(OSError, match="it is no regular file"):
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
