"""What cannot be is refused or in doubt and never judged; what only looks odd is read."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from math import isclose
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import RunDocument
from profkit.profiling.summarize import summarize_report
from tests.profiling.impossible_inputs import (
    DATA,
    IDLE,
    IMPOSSIBLE,
    ODD,
    PERF_SCRIPT_SECONDS,
    Case,
    Odd,
    known,
    recursive,
)


def _path(folder: Path, name: str) -> Path:
    return folder / ("run.json" if name.startswith("run-") else "report")


def _document_of(path: Path) -> RunDocument | None:
    """What is read of a file; None where it is refused, in a sentence that names it."""
    document = None
    with suppress(UnreadableReport):
        document = summarize_report(path)
    if document is None:
        with pytest.raises(UnreadableReport, match=re.escape(path.name)):
            summarize_report(path)
    return document


@pytest.mark.parametrize("case", IMPOSSIBLE, ids=lambda case: case.name)
def test_a_number_that_cannot_be_is_refused_or_in_doubt(case: Case, tmp_path: Path) -> None:
    path = _path(tmp_path, case.name)
    case.write(path)
    document = _document_of(path)
    if document is None:
        return
    assert not case.wrong(document)
    doubted = {reading.metric for reading in document.readings if reading.doubt is not None}
    for verdict in document.verdicts:
        if verdict.scope.kind == "run" and verdict.metric in doubted and not known(document, verdict.metric):
            assert verdict.verdict in ("unknown", "not-applicable"), verdict


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name)
def test_a_number_that_only_looks_odd_is_read(odd: Odd, tmp_path: Path) -> None:
    path = _path(tmp_path, odd.name)
    odd.write(path)
    values = known(summarize_report(path), odd.metric)
    assert any(isclose(value, odd.value, rel_tol=1e-3) for value in values), values


def test_the_cumulative_time_of_recursion_is_no_contradiction(tmp_path: Path) -> None:
    recursive(tmp_path / "report")
    document = summarize_report(tmp_path / "report")
    assert all(profile.doubt is None for profile in document.profiles)
    assert known(document, "time.python")


def test_the_idle_thread_of_many_processors_may_have_more_than_the_window(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text(IDLE + "\n")
    totals = {profile.total for profile in summarize_report(path).profiles if profile.unit == "s"}
    assert totals == {PERF_SCRIPT_SECONDS}


def test_a_doubted_count_is_shown_and_meets_no_target(tmp_path: Path) -> None:
    (case,) = [case for case in IMPOSSIBLE if case.name == "perf-csv-100-instructions-a-cycle"]
    case.write(tmp_path / "report")
    targets = tmp_path / "targets.yaml"
    targets.write_text("targets:\n  instructions: '< 1e20'\n  cycles: '> 1'\n")
    verdicts = {v.metric: v.verdict for v in summarize_report(tmp_path / "report", targets).verdicts}
    assert (verdicts["instructions"], verdicts["cycles"]) == ("unknown", "unknown")


@pytest.mark.parametrize("word", [b"CUPTI_ACTIVITY_KIND_KERNEL", b"NVTX_EVENTS"])
def test_a_schema_that_is_not_utf_8_is_damage_and_no_fault_of_ours(word: bytes, tmp_path: Path) -> None:
    data = bytearray((DATA / "cuda" / "nsys" / "hostbound.sqlite").read_bytes())
    at = data.find(word, data.find(b"CREATE TABLE"))
    data[at + 2 : at + 4] = b"\xff\xfe"
    path = tmp_path / "r.sqlite"
    path.write_bytes(data)
    with pytest.raises(UnreadableReport, match="damaged or cut short: malformed database schema"):
        summarize_report(path)


def test_a_trace_with_calls_and_without_kernels_is_read(tmp_path: Path) -> None:
    calls = [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 10, "ts": ts, "dur": 4,
         "args": {"correlation": ts}}
        for ts in (110, 120)
    ]  # fmt: skip
    operation = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 10, "tid": 10, "ts": 100, "dur": 50}
    path = tmp_path / "trace.json"
    path.write_text(
        json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": [operation, *calls]})
    )
    document = summarize_report(path)
    assert "trace-of-no-kernel" in {note.code for note in document.notes}


def test_the_rows_that_a_report_tells_twice_are_counted_in_a_note(tmp_path: Path) -> None:
    (case,) = [case for case in IMPOSSIBLE if case.name == "nsys-each-kernel-twice"]
    case.write(tmp_path / "report")
    notes = {note.code: note.numbers for note in summarize_report(tmp_path / "report").notes}
    assert notes["told-twice"] == {"count": 39}
