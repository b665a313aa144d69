"""How `profkit record --tool nsys` makes one trace, and how a `.nsys-rep` becomes a file that can be read."""

from __future__ import annotations

from pathlib import Path

from profkit.core.errors import MachineError
from profkit.core.status import status_wrapper
from profkit.core.types import Directive, Step, Switch
from profkit.profilers.faults import collect_file
from profkit.profilers.nsys.command import SUFFIX, export_argv, nsys_argv
from profkit.profilers.nsys.faults import explain
from profkit.profilers.nsys.probe import find_nsys, probe_nsys
from profkit.profilers.profiler import RecordRequest


def conversion_argv(report: Path, output: Path) -> tuple[str, ...]:
    """The command that turns `report` into SQLite for `sqlite.read_sqlite`, to be run where nsys is."""
    return export_argv(report, output, nsys=str(find_nsys() or "nsys"))


SECONDS = 1.0  # of region, where the workload uses profkit.benchmark


def recording_step(request: RecordRequest) -> Step:
    """The step after which `collect` makes the report. Raises MachineError where nsys cannot do it here."""
    nsys = probe_nsys()
    if not nsys.works:
        raise MachineError(nsys.reason or "nsys does not work here", nsys.fix)
    status = str(request.scratch / "status")
    return Step(
        "record",
        nsys_argv(
            status_wrapper(request.command, status),
            _scratch_report(request),
            marked=request.marked,
            nsys=str(nsys.path),
        ),
        directive=Directive(
            "trace",
            str(request.scratch / "region"),
            switch=Switch("cuda") if request.marked else None,
            seconds=SECONDS,
        ),
        tool="nsys",
        workload_status=status,
    )


def collect_report(request: RecordRequest) -> tuple[str, ...]:
    """Copy what nsys left to the report. Raises MachineError with nsys' own reason where there is nothing."""
    left = _scratch_report(request)
    half = "Failed to import the .qdstrm" if left.with_suffix(".qdstrm").is_file() else ""
    return collect_file(request, left, "nsys", explain, half)


def _scratch_report(request: RecordRequest) -> Path:
    return request.scratch / f"trace{SUFFIX}"
