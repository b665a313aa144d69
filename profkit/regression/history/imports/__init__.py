"""Results of other benchmark tools as entries: the tool is recognized by what a file holds, never by its name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from profkit.analysis.comparability import all_fields
from profkit.core.codec import valid_text
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.files.regular import open_regular, read_bounded_text
from profkit.core.statistics import combine_processes
from profkit.core.types import Entry, Feature, Scope, SeriesKey, Value
from profkit.regression.history.entry import ID_LENGTH
from profkit.regression.history.imports.native_tools import NATIVE_TOOLS
from profkit.regression.history.imports.python_tools import PYTHON_TOOLS
from profkit.regression.history.imports.result import MeasuredValue, ToolResult
from profkit.regression.times import microseconds

TOOLS = (*PYTHON_TOOLS, *NATIVE_TOOLS)

REWRITE = "let its tool write it again, and add that"
SIZE_LIMIT = 200 << 20  # bytes; raw samples of a thousand benchmarks are some MB


def import_file(path: Path) -> Entry | None:
    """The entry of another tool's result; None where the file is no result of a benchmark tool that is known.

    Raises UnreadableReport for JSON that is not whole, for a result in which a field has another type than its tool
    writes, and for one in which nothing has a value.
    """
    content = _load_json(path)
    try:
        tool = next((tool for tool in TOOLS if isinstance(content, dict) and tool.wrote(content)), None)
        return _entry_of_result(tool.read(content, path), content, path) if tool is not None else None
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise UnreadableReport(f"{path} is no result that its tool writes: {error!r}", REWRITE) from error


def begins_like_json(path: Path) -> bool:
    """Whether a file may be JSON at all: its first sign is a brace. Never raises."""
    try:
        with open_regular(path) as file:
            return file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"
    except OSError:
        return False


def _load_json(path: Path) -> object:
    try:
        content: object = json.loads(read_bounded_text(path, SIZE_LIMIT, encoding="utf-8-sig"))
        return content
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror or error}", REWRITE) from error
    except RecursionError as error:
        raise UnreadableReport(f"{path} is nested too deeply to be a benchmark's result", REWRITE) from error
    except ValueError as error:  # of UTF-8 too
        raise UnreadableReport(f"{path} is not whole JSON ({error})", REWRITE) from error


def _entry_of_result(result: ToolResult, content: object, path: Path) -> Entry:
    """The entry of a file. Its id is made of what the file holds, so it may be moved, copied or indented anew.

    Where the file does not say when it was measured, the time of the file itself stands for it, and `facts` say so.
    """
    measured = [value for value in result.values if isinstance(value, MeasuredValue)]
    left_out = "; ".join(dict.fromkeys(reason for reason in result.values if isinstance(reason, str)))
    if not measured:
        why = f": {left_out}" if left_out else ""
        raise UnreadableReport(
            f"{path} is a result of {result.source}, but nothing in it has a value{why}", REWRITE
        )
    name = valid_text(result.workload)
    facts = {**result.facts, "left out": left_out}
    started = result.started if _is_moment(result.started) else None
    if started is None:
        started = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).isoformat(timespec="seconds")
        facts["started"] = "the time of the file; it does not say itself when it was measured"
    features = tuple(_feature(field, str(value)) for field, value in result.machine.items() if value)
    values = {stored.key: stored for stored in (_value(name, result.backend, value) for value in measured)}
    return Entry(
        id=hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:ID_LENGTH],
        started=started,
        workload=name,
        backend=result.backend,
        state="complete",
        source=result.source,
        machine=_machine(features),
        features=features,
        commit=result.commit,
        dirty=result.dirty,
        path=str(path),
        facts={field: str(text) for field, text in facts.items() if text},
        values=tuple(values.values()),
    )


def _is_moment(text: str | None) -> bool:
    try:
        microseconds(text or "")
    except UsageError:
        return False
    return True


def _feature(name: str, value: str) -> Feature:
    """A field of comparability; one that the list does not know must be alike."""
    known = all_fields().get(name)
    return Feature(name, value, known.tier if known is not None else "must")


def _machine(features: Sequence[Feature]) -> str:
    words = sorted(f"{feature.name}={feature.value}" for feature in features if feature.tier == "must")
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def _value(workload: str, backend: str, measured: MeasuredValue) -> Value:
    centre = combine_processes(measured.groups) if measured.groups else None
    return Value(
        key=SeriesKey(workload, backend, measured.metric, Scope("region", measured.name)),
        unit=measured.unit,
        better=measured.better,
        value=measured.value,
        quality="measured",
        low=centre.low if centre is not None else None,
        high=centre.high if centre is not None else None,
        groups=measured.groups,
    )
