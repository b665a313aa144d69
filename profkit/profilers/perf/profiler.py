"""perf of Linux: counts and samples by the kernel."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import Fault, MachineError
from profkit.core.status import status_wrapper
from profkit.core.types import Check, Directive, Machine, Step, Switch
from profkit.profilers.perf.command import (
    STAT_ENV,
    explain,
    inject_argv,
    python_frames,
    record_argv,
    script_argv,
    stat_argv,
)
from profkit.profilers.profiler import Conversion, Format, Recorder, RecordRequest, lazy_function

SECONDS = 2.0  # of region, where the workload uses profkit.benchmark


def recording_step(request: RecordRequest) -> Step:
    """The step that leaves `report`. Raises MachineError where perf cannot do it here."""
    from profkit.profilers.perf.probe import probe_perf

    perf, scratch, report = probe_perf(), request.scratch, request.report.absolute()
    samples = request.what != "counters"
    if not (perf.record_ok if samples else perf.software_ok):
        fault = perf.record_fault if samples else perf.fault
        raise MachineError(fault.reason if fault else "perf does not work here", fault.fix if fault else None)
    control, ack = (str(scratch / "control"), str(scratch / "ack")) if request.marked else (None, None)
    status = str(scratch / "status")
    wrapped = status_wrapper(request.command, status)
    after: tuple[tuple[str, ...], ...] = ()
    if samples:
        frames = python_frames(request.python)
        env = dict(frames.env)
        argv = record_argv(
            wrapped,
            report,
            event="cycles" if perf.hardware_ok else "cpu-clock",
            call_graph=frames.call_graph,
            control=control,
            ack=ack,
            perf=str(perf.path),
        )
        if frames.inject:
            injected = scratch / "injected.data"
            inject = inject_argv(report, injected, perf=str(perf.path))
            after = (inject, ("mv", "-f", str(injected), str(report)))
    else:
        env = dict(STAT_ENV)
        events = _planned_events(perf.hardware_ok, request.machine)
        argv = stat_argv(wrapped, report, events, control=control, ack=ack, perf=str(perf.path))
    return Step(
        "record",
        argv,
        env=env,
        directive=Directive(
            "trace" if samples else "counters",
            str(scratch / "region"),
            switch=Switch("perf-control", control, ack) if request.marked else None,
            seconds=SECONDS,
        ),
        fifos=tuple(path for path in (control, ack) if path is not None),
        tool="perf",
        workload_status=status,
        after=after,
    )


def _planned_events(hardware_ok: bool, machine: Machine) -> tuple[str, ...]:
    """All that this CPU's table has for one run; they may take turns, and the report then says so."""
    from profkit.profilers.perf.counter_groups import plan_groups
    from profkit.profilers.perf.events import SOFTWARE, table_for

    software = tuple(event.code for event in SOFTWARE)
    if not hardware_ok:
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
    from profkit.profilers.perf.probe import find_perf

    return script_argv(perf_data, output, perf=str(find_perf().path or "perf"))


class Perf:
    """perf, and the forms of its output; the form with the most in it first."""

    name = "perf"
    formats = (
        Format(
            "perf-data",
            name,
            "perf.data",
            lazy_function("profkit.profilers.perf.perf_data.is_perf_data"),
            lazy_function("profkit.profilers.perf.script.read_script"),
            as_text="perf script -i {name} > {stem}.txt",
            conversion=Conversion(conversion_argv, "converted.txt", "perf script -i {name} > {stem}.txt"),
        ),
        Format(
            "perf-stat-json",
            name,
            "perf stat -j",
            lazy_function("profkit.profilers.perf.stat_text.looks_like_stat_json"),
            lazy_function("profkit.profilers.perf.stat_text.read_stat_json"),
        ),
        Format(
            "perf-stat-csv",
            name,
            "perf stat -x",
            lazy_function("profkit.profilers.perf.stat_csv.looks_like_stat_csv"),
            lazy_function("profkit.profilers.perf.stat_csv.read_stat_csv"),
        ),
        Format(
            "perf-stat-text",
            name,
            "perf stat",
            lazy_function("profkit.profilers.perf.stat_text.looks_like_stat_text"),
            lazy_function("profkit.profilers.perf.stat_text.read_stat_text"),
        ),
        Format(
            "perf-script",
            name,
            "perf script",
            lazy_function("profkit.profilers.perf.script.looks_like_script"),
            lazy_function("profkit.profilers.perf.script.read_script"),
            has_stacks=True,
        ),
    )
    recorder = Recorder(recording_step)

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What perf's error means."""
        return explain(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether it counts and samples here."""
        from profkit.profilers.perf.probe import perf_checks

        return perf_checks()
