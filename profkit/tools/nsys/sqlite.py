"""Reads the SQLite export of an nsys report, of any schema."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

from profkit.errors import UnreadableReport
from profkit.model import GpuTrace, Kernel, KernelTime, Report

_MAGIC = b"SQLite format 3\x00"


def looks_like(head: bytes) -> bool:
    """True for a SQLite file: no other tool whose reports are read writes one."""
    return head.startswith(_MAGIC)


def read_sqlite(path: Path) -> Report:
    """The trace that the export holds. Raises UnreadableReport."""
    if not path.is_file():
        raise UnreadableReport(f"{path} does not exist")
    try:
        base = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
        rows = base.execute(
            "SELECT s.value, gridX, gridY, gridZ, blockX, blockY, blockZ, count(*), sum(end - start), "
            "min(end - start), max(end - start), min(registersPerThread), "
            "min(staticSharedMemory + dynamicSharedMemory), min(start), max(end) "
            "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = demangledName "
            "GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 9 DESC"
        ).fetchall()
    except sqlite3.Error as error:
        raise UnreadableReport(f"{path} cannot be read: {error}") from error
    kernels = tuple(
        KernelTime(
            Kernel(row[0], row[1:4], row[4:7], registers=row[11], shared=row[12]),
            row[7],
            row[8] / 1e9,
            least=row[9] / 1e9,
            most=row[10] / 1e9,
        )
        for row in rows
    )
    span = (max(row[14] for row in rows) - min(row[13] for row in rows)) / 1e9 if rows else None
    trace = GpuTrace("nsys", kernels, span, launches=sum(k.launches for k in kernels))
    return Report("nsys", "nsys-sqlite", trace=trace)
