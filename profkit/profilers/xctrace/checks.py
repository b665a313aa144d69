"""xctrace as the doctor tells it: is it there, what can it record, and does it.

Both the mps backend and the cpu backend on macOS record through it. A licence, developer mode, a session away from the
screen, a program that macOS protects: none of them shows before a recording, so half a second of a Python program is
recorded under Time Profiler. Metal System Trace is not tried, whose document takes up to a minute to be saved.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from profkit.core.errors import Fault, ProfkitError
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.tables import judge_rows
from profkit.core.types import Check
from profkit.profilers.programs import try_command
from profkit.profilers.xctrace.command import CUT, TIME_PROFILER, explain_fault, record_argv, table_argv
from profkit.profilers.xctrace.find import XctraceAbility, probe_xctrace

_TABLE = Path(__file__).with_name("checks.yaml")
_BUSY = "import time; end = time.perf_counter() + 0.5\nwhile time.perf_counter() < end: sum(range(1000))"
_LIMIT = 10.0  # for a program of half a second
_SECONDS = 120.0  # until it is saved
# The second is what Instruments 26 leaves where the first is not exported.
_SCHEMAS = ("time-profile", "time-sample")


def recording_check(xctrace: str) -> Iterator[Check]:
    """Record with the xctrace at this path, some ten seconds, and read what it left."""
    start = time.monotonic()
    with TemporaryFolder() as name:
        saved, rows, fault = _record_and_count(xctrace, Path(name))
    found = {"path": xctrace, "saved": saved, "rows": rows, "took": time.monotonic() - start}
    return judge_rows(_TABLE, "recording", fault or Fault(""), found)


def _record_and_count(xctrace: str, folder: Path) -> tuple[bool, int, Fault | None]:
    """Whether a document was saved, how many samples are in it, and what xctrace complained of."""
    document, program = folder / "doctor.trace", (sys.executable, "-c", _BUSY)
    argv = record_argv(program, document, template=TIME_PROFILER, limit=_LIMIT, xctrace=xctrace)
    trial = try_command(argv, seconds=_SECONDS)
    fault = explain_fault(trial.output, 0 if trial.returncode == CUT else trial.returncode)
    if not document.exists() or not (trial.ok or trial.returncode == CUT):
        return False, 0, fault or Fault(f"{trial.ending}: {trial.last_line[:160]}")
    for schema in _SCHEMAS:
        exported = folder / f"{schema}.xml"
        export = try_command(table_argv(document, schema, exported, xctrace=xctrace), seconds=_SECONDS)
        if rows := _count_rows(exported):
            return True, rows, None
        fault = explain_fault(export.output, export.returncode) or fault
    return True, 0, fault


def _count_rows(exported: Path) -> int:
    """How many rows the tables of an export have; 0 for one that is not there, or cannot be read."""
    from profkit.profilers.xctrace.tables import read_tables

    try:
        return sum(
            1 for table in read_tables(exported) for _ in table.rows([c.mnemonic for c in table.columns[:1]])
        )
    except (ProfkitError, OSError):
        return 0


# What the backends record with (Instruments 12 and later have them), and what is missing without it.
TEMPLATES = {
    "Metal System Trace": "what the GPU did, and when",
    "Time Profiler": "where the CPU's time goes",
    "CPU Counters": "cycles, instructions and cache misses",
}


def instruments_checks() -> Iterator[Check]:
    """Everything that a recording by Instruments needs on this Mac."""
    xctrace = probe_xctrace()
    yield from judge_xctrace(xctrace)
    if xctrace.works and xctrace.lacks(template="Time Profiler") is None:
        yield from recording_check(str(xctrace.path))


def judge_xctrace(xctrace: XctraceAbility) -> Iterator[Check]:
    """What it answered, check by check."""
    missing = [f"{name} ({what})" for name, what in TEMPLATES.items() if name not in xctrace.templates]
    listed = {"missing": ", ".join(missing), "all": ", ".join(TEMPLATES)}
    return judge_rows(_TABLE, "xctrace", xctrace, listed)
