"""Exports of every schema: what is there is read, what is not is not made up, and nothing ends in a traceback."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import GpuTrace, Kernel
from profkit.profilers.nsys.sqlite import read_sqlite
from profkit.profilers.registry import recognise_format
from tests.profilers.nsys.made import (
    COPY,
    KERNEL,
    KERNEL_325,
    KERNEL_2019,
    NVTX,
    PID,
    RUNTIME,
    STRINGS,
    TID,
    Rows,
    call,
    export,
    kernel,
    ordinary,
)
from tests.spoken import spoken_lines

K, R, N = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
NS = 1e-9


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / 'a report\'s "name" <script>.sqlite'


def trace_of(file: Path) -> GpuTrace:
    trace = read_sqlite(file).trace
    assert trace is not None
    return trace


@pytest.mark.parametrize("columns", [KERNEL, KERNEL_2019, KERNEL_325], ids=["3.24", "2019", "3.25"])
def test_every_schema_of_kernels_is_read(file: Path, columns: list[str]) -> None:
    export(file, ordinary(columns), STRINGS)
    report = recognise_format(file).read(file)
    trace = report.trace
    assert trace is not None
    (found,) = trace.kernels
    mangled = STRINGS[0] if "mangledName" in columns else None
    assert found.kernel == Kernel(STRINGS[0], (4, 2, 1), (128, 1, 1), mangled, 32, 1040)
    assert (found.launches, found.total, found.median) == (
        3,
        pytest.approx(300 * NS),
        pytest.approx(100 * NS),
    )
    assert trace.launch_latency == pytest.approx(50 * NS)
    assert trace.launch_call == pytest.approx(10 * NS)
    assert (report.version, report.gpus) == (None, ())
    assert [(a.name, a.calls) for a in trace.api] == [("cudaLaunchKernel", 3)]


@pytest.mark.parametrize("missing", sorted(set(KERNEL) - {"start", "end"}))
def test_a_column_that_is_missing_costs_what_it_told_and_no_more(file: Path, missing: str) -> None:
    export(file, ordinary([c for c in KERNEL if c != missing]), STRINGS)
    trace = trace_of(file)
    assert trace.launches == 3
    assert trace.kernels[0].kernel.name == STRINGS[0]


def test_an_export_without_any_kernel_says_why(file: Path) -> None:
    export(file, {R: (RUNTIME, [call(10, 20)])}, STRINGS)
    report = read_sqlite(file)
    assert report.trace is not None
    assert report.trace.kernels == ()
    assert report.trace.span is None
    assert "launched 1 kernel, but none was recorded" in spoken_lines(report.warnings)[-1]
    export(file.with_name("empty.sqlite"), {}, STRINGS)
    report = read_sqlite(file.with_name("empty.sqlite"))
    assert "no kernel was recorded" in spoken_lines(report.warnings)[-1]


def test_graphs_traced_as_wholes_are_said_with_the_line_that_shows_their_kernels(file: Path) -> None:
    columns = ["start", "end", "deviceId", "globalPid", "correlationId", "graphId", "graphExecId"]
    row = {"deviceId": 0, "globalPid": PID, "graphExecId": 2}
    rows = [{**row, "start": n * 100, "end": n * 100 + 60, "correlationId": n} for n in range(1, 9)]
    export(file, {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (columns, rows)}, STRINGS)
    report = read_sqlite(file)
    assert report.trace is not None
    assert report.trace.busy == pytest.approx(480 * NS)
    assert report.trace.repeats == 8
    assert report.trace.kernels == ()
    assert "--cuda-graph-trace=node" in spoken_lines(report.warnings)[-1]


# emit_nvtx numbers its entries
TEXTS = [
    ("mlp", None, "mlp"),
    (None, 3, "profkit"),
    (None, 99, "[unnamed]"),
    ("aten::mm, op_id = 314349", None, "aten::mm"),
    ("autograd::AddBackward0, seq = 7, op_id = 12, sizes = [[8]]", None, "autograd::AddBackward0"),
    ("aten::mm, op_id = 31, sizes = [[4, 8], [8, 9]], input_op_ids = [(30,0), (7, 1)]", None, "aten::mm"),
]


@pytest.mark.parametrize(("text", "text_id", "expected"), TEXTS)
def test_the_text_of_a_range_stands_in_its_row_or_in_string_ids(
    file: Path, text: str | None, text_id: int | None, expected: str
) -> None:
    event = {"start": 900, "end": 2500, "eventType": 59, "text": text, "textId": text_id, "globalTid": TID}
    export(file, {**ordinary(), N: (NVTX, [event])}, STRINGS)
    trace = trace_of(file)
    assert [(r.name, r.domain, r.kernels) for r in trace.ranges] == [(expected, None, 2)]
    assert trace.kernels[0].ranges == (() if trace.ranges[0].operation else (expected,))
    assert not trace.marked


def test_a_region_of_profkit_restricts_the_trace_and_a_start_end_range_holds_all_threads(file: Path) -> None:
    events = [
        {"start": 1, "eventType": 75, "textId": 3, "domainId": 7, "globalTid": TID},
        {"start": 1900, "end": 2500, "eventType": 60, "text": "mlp", "domainId": 7, "globalTid": TID + 5},
    ]
    export(file, {**ordinary(), N: (NVTX, events)}, STRINGS)
    trace = trace_of(file)
    assert (trace.marked, trace.launches) == (True, 1)
    assert trace.span == pytest.approx(600 * NS)
    assert trace.kernels[0].ranges == ("mlp",)
    assert trace.kernels[0].setup_launches == 1
    assert (trace.ranges[0].name, trace.ranges[0].domain) == ("mlp", "profkit")


def test_what_is_marked_without_a_domain_is_a_region_by_its_prefix_and_called_without_it(file: Path) -> None:
    """As a sweep marks its cases, in processes that have no package of NVTX but torch's."""
    label = "Triton: GELU forward float32 16x512x64"
    event = {"start": 1900, "end": 2500, "eventType": 59, "text": f"profkit:{label}", "globalTid": TID}
    export(file, {**ordinary(), N: (NVTX, [event])}, STRINGS)
    trace = trace_of(file)
    assert (trace.marked, trace.launches) == (True, 1)
    assert [(r.name, r.domain, r.kernels) for r in trace.ranges] == [(label, "profkit", 1)]


def test_a_whole_trace_is_restricted_to_where_the_profiler_was_on(file: Path) -> None:
    tables = ordinary()
    switches = [call(1500, 1510, key=70, name=4), call(2500, 2510, key=71, name=5)]
    tables[R] = (RUNTIME, [*tables[R][1], *switches])
    export(file, tables, STRINGS)
    trace = trace_of(file)
    assert (trace.marked, trace.launches) == (True, 1)


def test_copies_and_memsets_are_told_by_kind_and_bytes(file: Path) -> None:
    row = {"deviceId": 0, "globalPid": PID, "bytes": 4}
    kinds = ((10, 1), (20, 2), (30, 1), (40, 77))
    copies = [{**row, "start": n, "end": n + 5, "correlationId": n, "copyKind": kind} for n, kind in kinds]
    sets = [{**row, "start": 50, "end": 60, "bytes": 100, "correlationId": 9}]
    tables = {"CUPTI_ACTIVITY_KIND_MEMCPY": (COPY, copies), "CUPTI_ACTIVITY_KIND_MEMSET": (COPY[:-1], sets)}
    export(file, tables, STRINGS)
    trace = trace_of(file)
    assert {(t.kind, t.count, t.bytes) for t in trace.transfers} == {
        ("host to device", 2, 8),
        ("device to host", 1, 4),
        ("copy", 1, 4),
        ("memset", 1, 100),
    }


# CUPTI's own numbers, where 1 is pageable and 3 the device, tell nothing.
MEMORY = (
    """1 0 2 pageable|1 1 2 pinned|2 2 1 pinned|2 2 0 pageable|1 4 2 managed|3 1 3 pinned|1 1 3|8 2 2|1 7 2"""
)


# ---------------------------------------------------------------- files that are damaged, foreign or hostile


def test_a_table_of_wrong_types_is_refused(file: Path) -> None:
    for wrong in ({"correlationId": "x"}, {"start": None}, {"end": "?"}):
        tables = ordinary()
        tables[K] = (KERNEL, [*tables[K][1], {**kernel(4000, 4100), **wrong}])
        file.unlink(missing_ok=True)
        export(file, tables, STRINGS)
        with pytest.raises(UnreadableReport, match="hold no numbers"):
            read_sqlite(file)


def test_a_view_in_the_place_of_a_table_is_not_run(file: Path) -> None:
    export(file, {}, STRINGS)
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end FROM n"
    )
    with sqlite3.connect(file) as database:
        database.execute(f"CREATE VIEW {K} AS {endless}")
        database.execute(f"CREATE VIEW {R} AS SELECT start, end, 1 AS nameId FROM {K}")
    database.close()
    report = read_sqlite(file)
    assert report.trace is not None
    assert report.trace.kernels == ()


def test_reading_changes_nothing_and_leaves_nothing_beside_it(file: Path) -> None:
    export(file, ordinary(), STRINGS)
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    read_sqlite(file)
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    assert os.listdir(file.parent) == [file.name]


@pytest.mark.parametrize("part", [20, 512, 4096, 5000, 9000])
def test_a_file_that_is_cut_short_is_said_to_be(file: Path, part: int) -> None:
    rows = [kernel(1000 * n, 1000 * n + 100, key=n) for n in range(1, 400)]
    export(file, {K: (KERNEL, rows)}, STRINGS)
    file.write_bytes(file.read_bytes()[:part])
    with pytest.raises(UnreadableReport) as caught:
        recognise_format(file).read(file)
    assert str(file) in caught.value.message


DIAGNOSTIC = ("severity", "text")
EXTERIOR = {"severity": 2, "text": "Error when processing events: Cannot find string for an exterior index"}


def failed(folder: Path, tables: Mapping[str, tuple[Sequence[str], Rows]] | None = None) -> Path:
    """An export that says so."""
    diagnostics = {"DIAGNOSTIC_EVENT": (DIAGNOSTIC, [EXTERIOR])}
    return export(folder / "failed.sqlite", {**(tables or {}), **diagnostics}, STRINGS)


def test_what_nsys_lost_while_it_made_the_report_is_not_said_to_have_never_been(tmp_path: Path) -> None:
    """JAX under --trace=cuda,nvtx: exit code 0, and neither kernels nor calls."""
    report = read_sqlite(failed(tmp_path))
    assert report.fault is not None
    assert report.fault.code == "not-imported"
    assert len(spoken_lines(report.warnings)) == 1
    assert "its importer could not put the events together" in spoken_lines(report.warnings)[0]
    assert "nsys profile --trace=cuda " in spoken_lines(report.warnings)[0]
