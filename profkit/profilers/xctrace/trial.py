"""Whether xctrace really records: half a second of a Python program under Time Profiler, exported, its samples counted.

Developer mode, a session away from the screen, a program that macOS protects: none of them shows before a recording.
Metal System Trace is not tried, whose document takes up to a minute to be saved.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.core.types import Check
from profkit.profilers.trial import attempt
from profkit.profilers.xctrace.command import CUT, TIME_PROFILER, record_argv, table_argv
from profkit.profilers.xctrace.faults import explain

NAME = "xctrace recording"
_BUSY = "import time; end = time.perf_counter() + 0.5\nwhile time.perf_counter() < end: sum(range(1000))"
_LIMIT = 10.0  # for a program of half a second
_SECONDS = 120.0  # until it is saved
_TABLES = (
    "time-profile",
    "time-sample",
)  # the second is what Instruments 26 leaves where the first is not exported


def recording_check(xctrace: str) -> Check:
    """Record with the xctrace at this path, some ten seconds, and read what it left."""
    with tempfile.TemporaryDirectory(prefix="profkit-") as name:
        return _tried(xctrace, Path(name), sys.executable)


def _tried(xctrace: str, folder: Path, python: str) -> Check:
    document, start = folder / "doctor.trace", time.monotonic()
    argv = record_argv((python, "-c", _BUSY), document, template=TIME_PROFILER, limit=_LIMIT, xctrace=xctrace)
    trial = attempt(argv, seconds=_SECONDS)
    fault = explain(trial.output, 0 if trial.returncode == CUT else trial.returncode)
    if not document.exists() or not (trial.ok or trial.returncode == CUT):
        reason = fault.reason if fault is not None else f"{trial.ending}: {trial.last_line[:160]}"
        return Check(NAME, "refused", reason, fault.fix if fault is not None else None, xctrace)
    rows = 0
    for schema in _TABLES:
        exported = folder / f"{schema}.xml"
        export = attempt(table_argv(document, schema, exported, xctrace=xctrace), seconds=_SECONDS)
        rows = _rows(exported)
        if rows:
            break
        fault = explain(export.output, export.returncode) or fault
    took = time.monotonic() - start
    if not rows:
        reason = (
            fault.reason if fault is not None else "it recorded and exported, but no sample is in its tables"
        )
        return Check(NAME, "limited", reason, fault.fix if fault is not None else None, xctrace)
    return Check(
        NAME,
        "ok",
        f"{rows} samples of half a second of Python, in {took:.0f} s with the export",
        path=xctrace,
    )


def _rows(exported: Path) -> int:
    """How many rows the tables of an export have; 0 for one that is not there, or cannot be read."""
    from profkit.profilers.xctrace.tables import read_tables

    try:
        return sum(
            1 for table in read_tables(exported) for _ in table.rows([c.mnemonic for c in table.columns[:1]])
        )
    except (ProfkitError, OSError):
        return 0
