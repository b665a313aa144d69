"""perf of Linux: counts and samples by the kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import Fault, MachineError
from profkit.core.status import status_wrapper
from profkit.core.types import Check, Directive, Machine, Step, Switch
from profkit.profilers.files import copy_lines
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
from profkit.profilers.redact import COMMAND, HOST, Redactor

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

    return script_argv(perf_data, output, perf=find_perf().path or "perf")


# What follows the pattern is private: the kind, what is written instead.
_PRIVATE = (
    (re.compile(r"\s*#\s*(?:hostname|nodename)\s*:\s*"), HOST, "host"),
    (re.compile(r"\s*#\s*cmdline\s*:\s*"), COMMAND, "perf"),
    (re.compile(r"\s*Performance counter stats for (?=.*:\s*$)"), COMMAND, "'program':"),
)


# Of `perf data convert --to-json`: "hostname": "vm", and the command as a list with a word on each line.
_JSON_HOST = re.compile(r'(\s*"(?:hostname|nodename)"\s*:\s*")[^"\n]*')
_JSON_COMMAND = re.compile(r'\s*"cmdline"\s*:\s*\[')


def scrub(source: Path, output: Path, redactor: Redactor) -> None:
    """Copy the text line by line to `output`, which must not be there yet."""
    in_command = False

    def changed(line: str) -> str:
        nonlocal in_command
        if in_command:
            in_command = "]" not in line
            return "" if in_command else line[line.index("]") :]
        if (match := _JSON_COMMAND.match(line)) is not None:
            redactor.note(COMMAND)
            in_command = "]" not in line
            return match[0] + ("" if in_command else line[line.rindex("]") :])
        if (match := _JSON_HOST.match(line)) is not None:
            redactor.note(HOST)
            return match[1] + "host" + redactor.text(line[match.end() :])
        for pattern, kind, instead in _PRIVATE:
            if (match := pattern.match(line)) is not None:
                redactor.note(kind)
                return match[0] + instead + line[len(line.rstrip("\r\n")) :]
        return redactor.text(line)

    copy_lines(source, output, changed)


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
            scrub=None,
            scrub_fix="perf script -i {name} > perf.txt, then scrub that",
            conversion=Conversion(conversion_argv, "converted.txt", "perf script -i {name} > {stem}.txt"),
        ),
        Format(
            "perf-stat-json",
            name,
            "perf stat -j",
            lazy_function("profkit.profilers.perf.stat_text.looks_like_stat_json"),
            lazy_function("profkit.profilers.perf.stat_text.read_stat_json"),
            scrub,
            texts=("names of events",),
        ),
        Format(
            "perf-json",
            name,
            "perf data convert --to-json",
            lazy_function("profkit.profilers.perf.convert_json.looks_like_convert_json"),
            lazy_function("profkit.profilers.perf.convert_json.read_convert_json"),
            scrub,
            texts=(
                "names of functions and of source files",
                "names of processes and threads",
            ),
        ),
        Format(
            "perf-stat-csv",
            name,
            "perf stat -x",
            lazy_function("profkit.profilers.perf.stat_csv.looks_like_stat_csv"),
            lazy_function("profkit.profilers.perf.stat_csv.read_stat_csv"),
            scrub,
            texts=("names of events",),
        ),
        Format(
            "perf-stat-text",
            name,
            "perf stat",
            lazy_function("profkit.profilers.perf.stat_text.looks_like_stat_text"),
            lazy_function("profkit.profilers.perf.stat_text.read_stat_text"),
            scrub,
            texts=("names of events",),
        ),
        Format(
            "perf-report",
            name,
            "perf report --stdio",
            lazy_function("profkit.profilers.perf.report_text.looks_like_report_text"),
            lazy_function("profkit.profilers.perf.report_text.read_report_text"),
            scrub,
            texts=(
                "names of functions and of source files",
                "names of processes and threads",
            ),
        ),
        Format(
            "perf-script",
            name,
            "perf script",
            lazy_function("profkit.profilers.perf.script.looks_like_script"),
            lazy_function("profkit.profilers.perf.script.read_script"),
            scrub,
            has_stacks=True,
            texts=(
                "names of functions and of source files",
                "names of processes and threads",
            ),
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
