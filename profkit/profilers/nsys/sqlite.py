"""Reads the SQLite export of an nsys report, of any schema: what the devices did, and what the host did for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.formatting import plural
from profkit.core.types import GpuTrace, Report
from profkit.profilers.nsys.database import MAGIC, Database, opened
from profkit.profilers.nsys.faults import GRAPH_FIX

# One of them is in every export, however little was recorded.
_OURS = (
    "StringIds",
    "ANALYSIS_DETAILS",
    "ANALYSIS_FILE",
    "TARGET_INFO_SESSION_START_TIME",
    "META_DATA_EXPORT",
    "EXPORT_META_DATA",
)


def looks_like(head: bytes) -> bool:
    """True for a SQLite file: no other tool whose reports are read writes one. Whose it is, its tables tell."""
    return head.startswith(MAGIC)


def read_sqlite(path: Path) -> Report:
    """The trace in the export, restricted to the part that counts.

    Raises UnreadableReport where the file is damaged, or not nsys'.
    """
    with opened(path) as database:
        be_ours(path, database)
        return _read(database)


def be_ours(path: Path, database: Database) -> None:
    """Raise UnreadableReport where the file is SQLite, and no export of nsys."""
    tables = database.tables
    if any(name.startswith("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL") for name in tables):
        raise UnreadableReport(
            f"{path} is a profile of nvprof, which is not read",
            "record it with nsys profile --trace=cuda,nvtx",
        )
    if not tables.intersection(_OURS) and not any(name.startswith("CUPTI_ACTIVITY_KIND") for name in tables):
        seen = ", ".join(sorted(tables)[:4]) or "none"
        raise UnreadableReport(f"{path} is a SQLite file, but no export of nsys (its tables: {seen[:200]})")


def _read(database: Database) -> Report:
    trace, used, warnings = _with_care(database)
    from profkit.profilers.nsys.session import read_complaints, read_facts, read_gpus, read_version

    return Report(
        "nsys",
        "nsys-sqlite",
        read_version(database),
        read_facts(database),
        trace=trace,
        gpus=read_gpus(database, used),
        warnings=(*warnings, *read_complaints(database)),
    )


def _with_care(database: Database) -> tuple[GpuTrace, frozenset[int], tuple[str, ...]]:
    """Read as nsys writes it; where the file is not so, once more with what that takes."""
    from profkit.profilers.nsys.columns import NotNumbers
    from profkit.profilers.nsys.sorted_blocks import OutOfOrder

    sort = careful = False
    while True:
        try:
            return _trace(database, sort=sort, careful=careful)
        except OutOfOrder:
            if sort:
                raise sqlite3.DatabaseError("its rows change while they are read") from None
            sort = True
        except NotNumbers:
            if careful:
                raise sqlite3.DatabaseError("its columns hold no numbers") from None
            careful = True


def _trace(
    database: Database, *, sort: bool, careful: bool
) -> tuple[GpuTrace, frozenset[int], tuple[str, ...]]:
    from profkit.analysis.timeline.records import Columns, Recording, Tables
    from profkit.analysis.timeline.trace import build_trace
    from profkit.profilers.nsys.columns import Activities
    from profkit.profilers.nsys.ranges import read_profiler, read_ranges
    from profkit.profilers.nsys.session import was_captured

    tables = Tables()
    activities = Activities(database, tables, sort, careful)
    ranges, remark = read_ranges(database, activities.processes, activities.threads)
    used: set[int] = set()

    def noted() -> Iterator[Columns]:
        import numpy as np

        for block in activities.blocks():
            used.update(np.unique(block["device"]).tolist())
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
        warnings.append(f"{activities.odd} rows were left out: they end before they begin")
    launched = sum(call.calls for call in trace.api if "Launch" in call.name)
    warnings += _missing(activities.kernels, activities.graphs, launched)
    return trace, frozenset(used), (*notes, *warnings)


def _missing(kernels: int, graphs: int, launched: int) -> Iterator[str]:
    """Why there may be no kernels, or not all."""
    if graphs:
        yield (
            f"{graphs} launches of CUDA graphs were traced as wholes, so their kernels are not in it (fix: {GRAPH_FIX})"
        )
    if kernels or graphs:
        return
    if launched:
        yield (
            f"the host launched {plural(launched, 'kernel')}, but none was recorded: the workload was killed, or "
            "ended by os._exit, before nsys had what it had gathered; or nsys cannot trace this device (WSL, or a "
            "driver that it does not know)"
        )
    else:
        yield (
            "no kernel was recorded: none was launched, or the workload was killed, or ended by os._exit, before nsys "
            "had what it had gathered"
        )
