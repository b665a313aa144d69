"""`profkit record --tool ncu`: the counters of a workload's kernels, each launch configuration once, in one report."""

from __future__ import annotations

from pathlib import Path

from profkit.core.errors import MachineError
from profkit.core.status import status_wrapper
from profkit.core.types import Directive, Step, Switch
from profkit.profilers.faults import collect_file
from profkit.profilers.ncu.command import SUFFIX, ncu_argv
from profkit.profilers.ncu.faults import explain
from profkit.profilers.ncu.probe import probe_ncu
from profkit.profilers.ncu.sets import counter_set
from profkit.profilers.profiler import RecordRequest


def recording_step(request: RecordRequest) -> Step:
    """The step after which `collect` makes the report. Raises MachineError where ncu cannot do it here.

    With `request.kernel`: only kernels whose name contains it (or which `regex:...` finds), and all counters that
    explain them. Without: every kernel, with the counters that find its bottleneck.
    """
    ncu = probe_ncu()
    if not ncu.counters_ok:
        raise MachineError(ncu.reason or "ncu does not work here", ncu.fix)
    chip = ncu.chips[0] if ncu.chips else None
    names = ("standard",) if request.kernel is None else ("standard", "explain")
    sets = [counter_set(name, chip, ncu.version) for name in names]
    status = str(request.scratch / "status")
    argv = ncu_argv(
        status_wrapper(request.command, status),
        _scratch_report(request),
        metrics=tuple(dict.fromkeys(metric for one in sets for metric in one.metrics)),
        sections=tuple(dict.fromkeys(section for one in sets for section in one.sections)),
        only=request.kernel,
        marked=request.marked,
        ncu=str(ncu.path),
        version=ncu.version,
    )
    switch = Switch("cuda") if request.marked else None
    directive = Directive("counters", str(request.scratch / "region"), switch=switch, iterations=1)
    return Step("record", argv, directive=directive, tool="ncu", workload_status=status)


def collect_report(request: RecordRequest) -> tuple[str, ...]:
    """Copy what ncu left to the report. Raises MachineError with ncu's own reason where there is nothing."""
    return collect_file(request, _scratch_report(request), "ncu", explain)


def _scratch_report(request: RecordRequest) -> Path:
    return request.scratch / f"record{SUFFIX}"
