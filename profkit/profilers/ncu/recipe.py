"""`profkit record --tool ncu`: the counters of a workload's kernels, each launch configuration once, in one report."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from profkit.core.errors import MachineError
from profkit.core.status import status_wrapper
from profkit.core.types import Directive, Machine, Step, Switch
from profkit.profilers.collecting import collect_one
from profkit.profilers.ncu.command import SUFFIX, ncu_argv
from profkit.profilers.ncu.faults import explain
from profkit.profilers.ncu.probe import probe_ncu
from profkit.profilers.ncu.sets import counter_set


def recipe(
    what: Literal["samples", "counters"],  # noqa: ARG001 - ncu counts, and samples where it counts
    command: tuple[str, ...],
    report: Path,  # noqa: ARG001 - ncu adds its own suffix to a name; `collect` brings it
    scratch: Path,
    *,
    marked: bool,
    python: tuple[int, int] | None,  # noqa: ARG001 - every interpreter is counted alike
    machine: Machine,  # noqa: ARG001 - and on every machine
    kernel: str | None = None,
) -> Step:
    """The step after which `collect` makes `report`. Raises MachineError where ncu cannot do it here.

    `kernel`: only kernels in whose name that stands (or which `regex:...` finds), and then with all that explains
    them; without it every kernel, with what classes and judges it.
    """
    ncu = probe_ncu()
    if not ncu.counters_ok:
        raise MachineError(ncu.reason or "ncu does not work here", ncu.fix)
    chip = ncu.chips[0] if ncu.chips else None
    names = ("standard",) if kernel is None else ("standard", "explain")
    sets = [counter_set(name, chip, ncu.version) for name in names]
    status = str(scratch / "status")
    argv = ncu_argv(
        status_wrapper(command, status),
        _own(scratch),
        metrics=tuple(dict.fromkeys(metric for one in sets for metric in one.metrics)),
        sections=tuple(dict.fromkeys(section for one in sets for section in one.sections)),
        only=kernel,
        marked=marked,
        ncu=str(ncu.path),
        version=ncu.version,
    )
    switch = Switch("cuda") if marked else None
    directive = Directive("counters", str(scratch / "region"), switch=switch, iterations=1)
    return Step("record", argv, directive=directive, tool="ncu", workload_status=status)


def collect(scratch: Path, report: Path) -> tuple[str, ...]:
    """Move what ncu left to `report`. Raises MachineError with ncu's own reason where there is nothing."""
    log = scratch / "logs" / "record.log"
    return collect_one(_own(scratch), report, tool="ncu", log=log, explain=explain)


def _own(scratch: Path) -> Path:
    return scratch / f"record{SUFFIX}"
