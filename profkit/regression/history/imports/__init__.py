"""Results of other benchmark tools as entries: one file per tool, told by what a file holds, never by its name."""

from __future__ import annotations

from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.types import Entry
from profkit.regression.history.imports import (
    asv,
    google_benchmark,
    hyperfine,
    nvbench,
    pyperf,
    pytest_benchmark,
)
from profkit.regression.history.imports.node import Node, load
from profkit.regression.history.imports.result import Result, entry_of_result

SOURCES = (
    pytest_benchmark.SOURCE,
    asv.SOURCE,
    nvbench.SOURCE,
    google_benchmark.SOURCE,
    hyperfine.SOURCE,
    pyperf.SOURCE,
)


def import_file(path: Path, workload: str | None = None, commit: str | None = None) -> Entry | None:
    """The entry of another tool's result; None where the file is no result of a benchmark tool that is known.

    Raises UnreadableReport for JSON that is not whole, and for a result in which nothing has a value.
    """
    data = load(path)
    try:
        result = _read(data, path)
    except UnreadableReport as error:
        where = "" if str(path) in error.message else f"cannot read {path}: "
        raise UnreadableReport(f"{where}{error.message}", error.fix) from error
    return None if result is None else entry_of_result(result, data.data, path, workload, commit)


def begins_like_json(path: Path) -> bool:
    """Whether a file may be JSON at all: its first sign is a brace. Never raises."""
    try:
        with path.open("rb") as file:
            return file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"
    except OSError:
        return False


def _read(data: Node, path: Path) -> Result | None:
    """What the one tool that writes such a file says in it."""
    if pytest_benchmark.looks_like(data):
        return pytest_benchmark.read(data)
    if google_benchmark.looks_like(data):
        return google_benchmark.read(data)
    if asv.looks_like(data):
        return asv.read(data, path)
    if nvbench.looks_like(data):
        return nvbench.read(data, path)
    if hyperfine.looks_like(data):
        return hyperfine.read(data)
    if pyperf.looks_like(data):
        return pyperf.read(data)
    if path.name == "machine.json" and data.at("machine").text() is not None:
        raise UnreadableReport(
            f"{path} describes a machine of asv's; its results lie beside it",
            f"profkit history add {path.parent}/*-*.json",
        )
    return None
