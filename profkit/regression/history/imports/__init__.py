"""Results of other benchmark tools as entries: the tool is recognized by what a file holds, never by its name."""

from __future__ import annotations

from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.types import Entry
from profkit.regression.history.imports import native_tools, python_tools
from profkit.regression.history.imports.result import JsonNode, ToolResult, entry_of_result, load_json

SOURCES = (
    python_tools.PYTEST_BENCHMARK,
    python_tools.ASV,
    native_tools.NVBENCH,
    native_tools.GOOGLE_BENCHMARK,
    native_tools.HYPERFINE,
    python_tools.PYPERF,
)


def import_file(path: Path, workload: str | None = None, commit: str | None = None) -> Entry | None:
    """The entry of another tool's result; None where the file is no result of a benchmark tool that is known.

    Raises UnreadableReport for JSON that is not whole, and for a result in which nothing has a value.
    """
    data = load_json(path)
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


def _read(data: JsonNode, path: Path) -> ToolResult | None:
    """What the one tool that writes such a file says in it."""
    if python_tools.is_pytest_benchmark(data):
        return python_tools.read_pytest_benchmark(data)
    if native_tools.is_google_benchmark(data):
        return native_tools.read_google_benchmark(data)
    if python_tools.is_asv(data):
        return python_tools.read_asv(data, path)
    if native_tools.is_nvbench(data):
        return native_tools.read_nvbench(data, path)
    if native_tools.is_hyperfine(data):
        return native_tools.read_hyperfine(data)
    if python_tools.is_pyperf(data):
        return python_tools.read_pyperf(data)
    if path.name == "machine.json" and data.at("machine").text() is not None:
        raise UnreadableReport(
            f"{path} describes a machine of asv's; its results are beside it",
            f"profkit history add {path.parent}/*-*.json",
        )
    return None
