"""`profkit record --tool perf`: one recording or one count of a workload in one file, and its text."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from profkit.core.errors import MachineError
from profkit.core.status import status_wrapper
from profkit.core.types import Directive, Machine, Step, Switch
from profkit.profilers.perf.command import (
    STAT_ENV,
    inject_argv,
    python_frames,
    record_argv,
    script_argv,
    stat_argv,
)
from profkit.profilers.perf.counter_groups import plan_groups
from profkit.profilers.perf.events import SOFTWARE, table_for
from profkit.profilers.perf.probe import PerfAbility, find_perf, probe_perf
from profkit.profilers.profiler import RecordRequest

SECONDS = 2.0  # of region, where the workload uses profkit.benchmark


def recording_step(request: RecordRequest) -> Step:
    """The step that leaves `report`. Raises MachineError where perf cannot do it here."""
    perf, scratch, report = probe_perf(), request.scratch, request.report.absolute()
    if not (perf.record_ok if request.what == "samples" else perf.software_ok):
        fault = perf.record_fault if request.what == "samples" else perf.fault
        raise MachineError(fault.reason if fault else "perf does not work here", fault.fix if fault else None)
    control, ack = (str(scratch / "control"), str(scratch / "ack")) if request.marked else (None, None)
    switch = Switch("perf-control", control, ack) if request.marked else None
    status = str(scratch / "status")
    wrapped = status_wrapper(request.command, status)
    after: tuple[tuple[str, ...], ...] = ()
    if request.what == "counters":
        argv = stat_argv(
            wrapped,
            report,
            _planned_events(perf, request.machine),
            control=control,
            ack=ack,
            perf=str(perf.path),
        )
        env = dict(STAT_ENV)
    else:
        frames = python_frames(request.python)
        event: Literal["cycles", "cpu-clock"] = "cycles" if perf.hardware_ok else "cpu-clock"
        graph = frames.call_graph
        argv = record_argv(
            wrapped, report, event=event, call_graph=graph, control=control, ack=ack, perf=str(perf.path)
        )
        env = dict(frames.env)
        if frames.inject:
            injected = scratch / "injected.data"
            after = (
                inject_argv(report, injected, perf=str(perf.path)),
                ("mv", "-f", str(injected), str(report)),
            )
    return Step(
        "record",
        argv,
        env=env,
        directive=Directive(
            "trace" if request.what == "samples" else "counters",
            str(scratch / "region"),
            switch=switch,
            seconds=SECONDS,
        ),
        fifos=tuple(path for path in (control, ack) if path is not None),
        tool="perf",
        workload_status=status,
        after=after,
    )


def _planned_events(perf: PerfAbility, machine: Machine) -> tuple[str, ...]:
    """All that this CPU's table has for one run; they may take turns, and the report then says so."""
    software = tuple(event.code for event in SOFTWARE)
    if not perf.hardware_ok:
        return ("task-clock", *software)
    metrics = (
        "branch.miss_rate",
        "cache.l1.miss_rate",
        "cache.l2.miss_rate",
        "cache.l3.miss_rate",
        "simd.utilization",
    )
    groups = plan_groups(table_for(machine), metrics)
    return tuple(dict.fromkeys(event for group in groups for event in group))


def conversion_argv(perf_data: Path, output: Path) -> tuple[str, ...]:
    """The command that turns `perf_data` into text for `script.read_script`, to be run where perf is."""
    return script_argv(perf_data, output, perf=find_perf().path or "perf")
