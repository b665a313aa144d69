"""Makes nsys exports of any schema: the tables and columns that are asked for, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

PID = 281483700862976
TID = PID + 2949
# Of schema 3.24 (2025). 3.25 added the last ones, 2019's exports end before graphNodeId and have no mangledName.
KERNEL = [
    *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"),
    *("demangledName", "shortName", "mangledName", "launchType", "registersPerThread"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("staticSharedMemory", "dynamicSharedMemory", "graphNodeId"),
]
KERNEL_2019 = [c for c in KERNEL if c not in ("mangledName", "graphNodeId", "launchType")]
KERNEL_325 = [*KERNEL, "greenContextId", "graphId", "clusterX", "clusterY", "tensorSizeMinusOneElements"]
RUNTIME = ["start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue"]
NVTX = ["start", "end", "eventType", "text", "textId", "domainId", "globalTid"]
COPY = ["start", "end", "deviceId", "globalPid", "correlationId", "bytes", "copyKind"]
Rows = Sequence[Mapping[str, Any]]


def export(
    path: Path, tables: Mapping[str, tuple[Sequence[str], Rows]], strings: Sequence[str] | None = ()
) -> Path:
    """`strings` become StringIds, numbered from 1; None: there is no such table."""
    with closing(sqlite3.connect(path)) as database, database:
        if strings is not None:
            database.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
            database.executemany("INSERT INTO StringIds VALUES (?, ?)", list(enumerate(strings, 1)))
        for name, (columns, rows) in tables.items():
            database.execute(f'CREATE TABLE "{name}" ({", ".join(columns)})')
            marks = ",".join("?" * len(columns))
            database.executemany(
                f'INSERT INTO "{name}" VALUES ({marks})',
                [[row.get(column) for column in columns] for row in rows],
            )
    return path


def kernel(start: int, end: int, *, key: int = 1, name: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": key,
        "globalPid": PID, "demangledName": name, "shortName": name, "mangledName": name, "launchType": 1,
        "registersPerThread": 32, "gridX": 4, "gridY": 2, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1,
        "staticSharedMemory": 16, "dynamicSharedMemory": 1024, **more,
    }  # fmt: skip


def call(start: int, end: int, *, key: int = 1, name: int = 2, thread: int = TID) -> dict[str, Any]:
    return {"start": start, "end": end, "eventClass": 0, "globalTid": thread, "correlationId": key, "nameId": name,
            "returnValue": 0}  # fmt: skip


def ordinary(columns: Sequence[str] = KERNEL) -> dict[str, tuple[Sequence[str], Rows]]:
    """Three launches of one kernel, 100 ns each, with their calls 50 ns before."""
    kernels = [kernel(1000 * n, 1000 * n + 100, key=n) for n in (1, 2, 3)]
    calls = [call(1000 * n - 50, 1000 * n - 40, key=n) for n in (1, 2, 3)]
    return {"CUPTI_ACTIVITY_KIND_KERNEL": (columns, kernels), "CUPTI_ACTIVITY_KIND_RUNTIME": (RUNTIME, calls)}


STRINGS = (
    "void add<float>(float*)",
    "cudaLaunchKernel_v7000",
    "profkit",
    "cuProfilerStart",
    "cudaProfilerStop_v4000",
)
