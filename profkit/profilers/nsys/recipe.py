"""`profkit record --tool nsys`: one trace of a workload, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from profkit.core.errors import MachineError
from profkit.core.status import status_wrapper
from profkit.core.types import Directive, Machine, Step, Switch
from profkit.profilers.collecting import collect_one
from profkit.profilers.nsys.command import SUFFIX, nsys_argv
from profkit.profilers.nsys.faults import explain
from profkit.profilers.nsys.probe import probe_nsys

SECONDS = 1.0  # of region, where the workload uses profkit.benchmark


def recipe(
    what: Literal["samples", "counters"],  # noqa: ARG001 - a trace is neither
    command: tuple[str, ...],
    report: Path,  # noqa: ARG001 - nsys adds its own suffix to a name; `collect` brings it
    scratch: Path,
    *,
    marked: bool,
    python: tuple[int, int] | None,  # noqa: ARG001 - every interpreter is traced alike
    machine: Machine,  # noqa: ARG001 - and every machine
) -> Step:
    """The step after which `collect` makes `report`. Raises MachineError where nsys cannot do it here."""
    nsys = probe_nsys()
    if not nsys.works:
        raise MachineError(nsys.reason or "nsys does not work here", nsys.fix)
    status = str(scratch / "status")
    return Step(
        "record",
        nsys_argv(status_wrapper(command, status), _own(scratch), marked=marked, nsys=str(nsys.path)),
        directive=Directive(
            "trace", str(scratch / "region"), switch=Switch("cuda") if marked else None, seconds=SECONDS
        ),
        tool="nsys",
        workload_status=status,
    )


def collect(scratch: Path, report: Path) -> tuple[str, ...]:
    """Move what nsys left to `report`. Raises MachineError with nsys' own reason where there is nothing."""
    left, log = _own(scratch), scratch / "logs" / "record.log"
    half = "Failed to import the .qdstrm" if left.with_suffix(".qdstrm").is_file() else ""
    return collect_one(left, report, tool="nsys", log=log, explain=explain, remark=half)


def _own(scratch: Path) -> Path:
    return scratch / f"trace{SUFFIX}"
