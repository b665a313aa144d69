"""Reads the SQLite export of an nsys report, of any schema: the devices' activities and the host's calls."""

from __future__ import annotations

import gc
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profkit.analysis.timeline.range_names import region_name
from profkit.analysis.timeline.records import Columns, Range, Recording, Tables
from profkit.analysis.timeline.trace import build_trace
from profkit.core.errors import UnreadableReport
from profkit.core.types import Fact, GpuTrace, Report
from profkit.profilers.nsys.activities import CALLS, GRAPHS, KERNELS, DeviceActivities, UnorderedTable
from profkit.profilers.nsys.command import GRAPH_FIX
from profkit.profilers.nsys.database import (
    Database,
    open_database,
    read_complaints,
    read_facts,
    read_gpus,
    read_import_fault,
    read_version,
    was_captured,
)

_EVENTS = "NVTX_EVENTS"
_PUSH_POP, _START_END, _DOMAIN = 59, 60, 75  # ENUM_NSYS_EVENT_TYPE
_NVTXT = {70: _PUSH_POP, 71: _START_END}  # the same from a text file
MAX_RANGES = 1 << 20
# By which torch.autograd.profiler.emit_nvtx tells its entries, and where their inputs are from.
_SEQUENCE = re.compile(r", seq = (\d{1,18})\b")
_NUMBERED = re.compile(r", (?:(?:seq|op_id) = \d+|input_op_ids = \[[^\]]*\])")


def read_ranges(
    database: Database, processes: dict[int, int], threads: dict[int, int]
) -> tuple[tuple[Range, ...], Fact | None]:
    """Read all NVTX ranges in order, and a remark where there are too many.

    `processes` and `threads` number what the columns number, so that both mean the same. Of old schemas the text
    may stand in the row, of newer ones in StringIds; a domain is named by an event of its own.
    """
    if not {"start", "eventType"} <= database.columns(_EVENTS):
        return (), None
    number, text = database.number, database.text
    fields = (
        f"{number(_EVENTS, 'start')}, {number(_EVENTS, 'end', -1)}, {number(_EVENTS, 'eventType')}, "
        f"{text(_EVENTS, 'text')}, {number(_EVENTS, 'textId', -1)}, {number(_EVENTS, 'domainId')}, "
        f"{number(_EVENTS, 'globalTid')}"
    )
    domains = _domains(database, fields)
    kinds = ", ".join(map(str, (_PUSH_POP, _START_END, *_NVTXT)))
    query = f"SELECT {fields} FROM {_EVENTS} WHERE eventType IN ({kinds}) ORDER BY 1 LIMIT {MAX_RANGES + 1}"
    texts: dict[int, str] = {}
    ranges: list[Range] = []
    for rows in database.blocks(query):
        texts.update(database.strings(sorted({row[4] for row in rows if row[3] is None} - texts.keys())))
        for start, end, kind, name, text_id, domain, thread in rows:
            whole_process = _NVTXT.get(kind, kind) == _START_END
            process = processes.setdefault(thread >> 24, len(processes))
            plain_name, sequence = _split_numbers(
                name if isinstance(name, str) else texts.get(text_id, "[unnamed]")
            )
            called, of = region_name(
                plain_name,
                domains.get((thread >> 24, domain)) or domains.get((0, domain)) if domain else None,
            )
            ranges.append(
                Range(
                    called,
                    of,
                    start,
                    end if end >= start else None,
                    process,
                    None if whole_process else threads.setdefault(thread, len(threads)),
                    sequence,
                )
            )
    if len(ranges) > MAX_RANGES:
        return tuple(ranges[:MAX_RANGES]), Fact.of("first-ranges", count=MAX_RANGES)
    return tuple(ranges), None


def _split_numbers(name: str) -> tuple[str, int | None]:
    """Split a name into its plain name and its number in autograd's sequence, if it has one.

    `aten::mm, op_id = 314349` is one entry of `aten::mm`.
    """
    if " = " not in name:
        return name, None
    sequence = _SEQUENCE.search(name)
    return _NUMBERED.sub("", name), int(sequence[1]) if sequence is not None else None


def _domains(database: Database, fields: str) -> dict[tuple[int, int], str]:
    """Return the names of the domains, by process and number."""
    rows = database.rows(f"SELECT {fields} FROM {_EVENTS} WHERE eventType = {_DOMAIN} LIMIT 65536")
    texts = database.strings(sorted({row[4] for row in rows}))
    return {
        (thread >> 24, domain): name if isinstance(name, str) else texts.get(text_id, "")
        for _, _, _, name, text_id, domain, thread in rows
    }


def read_profiler(database: Database) -> tuple[tuple[int, int | None], ...]:
    """Return when the profiler was on, by cudaProfilerStart and Stop; None for an end that was not recorded."""
    if not {"start", "nameId"} <= database.columns(CALLS) or "value" not in database.columns("StringIds"):
        return ()
    names = dict(
        database.rows(
            "SELECT id, value FROM StringIds WHERE value LIKE 'cu%ProfilerSt%' AND length(value) < 64 LIMIT 64"
        )
    )
    if not names:
        return ()
    query = (
        f"SELECT {database.number(CALLS, 'start')}, {database.number(CALLS, 'end')}, nameId FROM {CALLS} "
        f"WHERE nameId IN ({','.join(str(int(n)) for n in names)}) ORDER BY 1 LIMIT 100000"
    )
    periods: list[tuple[int, int | None]] = []
    begun: int | None = None
    for start, end, name in database.rows(query):
        if "ProfilerStart" in str(names.get(name)):
            begun = end if begun is None else begun
        elif begun is not None:
            periods.append((begun, start))
            begun = None
    if begun is not None:
        periods.append((begun, None))
    return tuple(periods)


# One of them is in every export, however little was recorded.
_OURS = (
    "StringIds",
    "ANALYSIS_DETAILS",
    "ANALYSIS_FILE",
    "TARGET_INFO_SESSION_START_TIME",
    "META_DATA_EXPORT",
    "EXPORT_META_DATA",
)


def read_sqlite(path: Path) -> Report:
    """Read the trace in the export, restricted to the part that counts.

    Raises UnreadableReport where the file is damaged, or not an export of nsys.
    """
    with open_database(path) as database, _without_collecting():
        check_export(path, database)
        return _read_report(database)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Turn off Python's garbage collection, which searches a million ranges for cycles and finds none."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


# Tables of others that write SQLite, too: whose they are, and the way on.
_OTHERS = {
    "rocpd_": (
        "rocprofv3",
        "profkit summarize TRACE.json   (a trace of torch.profiler, which has AMD's kernels, too)",
    ),
    "CUPTI_ACTIVITY_KIND_": (
        "nvprof",
        "nsys profile -o trace COMMAND && nsys export --type sqlite trace.nsys-rep && profkit summarize trace.sqlite",
    ),
}


def check_export(path: Path, database: Database) -> None:
    """Raise UnreadableReport where the file is SQLite, but not an export of nsys."""
    tables = database.tables
    if not tables.intersection(_OURS):
        names = ", ".join(sorted(tables)[:4]) or "none"
        for table, (whose, fix) in _OTHERS.items():
            if table in names:
                raise UnreadableReport(f"{path} is a database of {whose}, not an export of nsys", fix)
        raise UnreadableReport(
            f"{path} is a SQLite file, but not an export of nsys (its tables: {names[:200]})"
        )


def _read_report(database: Database) -> Report:
    trace, used, warnings = _read_trace_with_retry(database)
    fault = read_import_fault(database)
    return Report(
        "nsys",
        "nsys-sqlite",
        read_version(database),
        read_facts(database),
        trace=trace,
        gpus=read_gpus(database, used),
        warnings=(*warnings, *read_complaints(database)),
        fault=None if _has_kernels(database) else fault,
    )


def _read_trace_with_retry(database: Database) -> tuple[GpuTrace, frozenset[int], tuple[Fact, ...]]:
    """Read the tables in nsys' own order, and once more with sorting where they are unordered."""
    try:
        return _read_trace(database)
    except UnorderedTable:
        pass
    try:
        return _read_trace(database, sort=True)
    except UnorderedTable:
        raise sqlite3.DatabaseError("its rows change while they are read") from None


def _read_trace(
    database: Database, *, sort: bool = False
) -> tuple[GpuTrace, frozenset[int], tuple[Fact, ...]]:
    tables = Tables()
    activities = DeviceActivities(database, tables, sort)
    ranges, remark = read_ranges(database, activities.processes, activities.threads)
    used: set[int] = set()

    def noted() -> Iterator[Columns]:
        import numpy as np

        for block in activities.blocks():
            used.update(np.flatnonzero(np.bincount(np.maximum(block["device"], 0))).tolist())
            yield block

    trace, notes = build_trace(
        Recording(
            "nsys",
            noted(),
            activities.calls(),
            tables,
            ranges,
            read_profiler(database),
            was_captured(database),
        )
    )
    warnings = [remark] if remark is not None else []
    if activities.odd:
        warnings.append(Fact.of("backward-rows", count=activities.odd))
    launched = sum(call.calls for call in trace.api if "Launch" in call.name)
    if _has_kernels(database) or read_import_fault(database) is None:
        warnings += _explain_missing_kernels(activities.kernels, activities.graphs, launched)
    return trace, frozenset(used), (*notes, *warnings)


def _has_kernels(database: Database) -> bool:
    tables = (table for table in (KERNELS, GRAPHS) if table in database.tables)
    return any(database.rows(f"SELECT 1 FROM {table} LIMIT 1") for table in tables)


def _explain_missing_kernels(kernels: int, graphs: int, launched: int) -> Iterator[Fact]:
    """Yield why kernels may be missing, some or all."""
    if graphs:
        yield Fact.of("graphs-as-wholes", count=graphs, fix=GRAPH_FIX)
    elif launched and not kernels:
        yield Fact.of("launched-not-recorded", count=launched)
    elif not kernels:
        yield Fact("no-kernel-recorded")
