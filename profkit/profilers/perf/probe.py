"""Finds perf, and tries what it can do here: count, record, obey a region."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.errors import Fault, MachineError, UnreadableReport
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.process import status_wrapper
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Counter, Directive, Fact, Machine, Step, Switch
from profkit.hardware import system
from profkit.hardware.system import superuser_command
from profkit.profilers import programs
from profkit.profilers.perf.command import (
    NO_PMU_FIX,
    PARANOID_FIX,
    STAT_ENV,
    explain,
    inject_argv,
    python_frames,
    record_argv,
    record_options,
    script_argv,
    stat_argv,
)
from profkit.profilers.perf.stat_counters import split_name
from profkit.profilers.perf.stat_csv import read_stat_csv
from profkit.profilers.profiler import RecordRequest
from profkit.profilers.programs import CommandTrial, ToolAbility, try_command

_TABLE = Path(__file__).with_name("checks.yaml")
_VERSION = re.compile(r"perf version (\S+)")
# Where Debian and Ubuntu keep one perf for each kernel.
_PLACES = ("usr/lib/linux-tools-*/perf", "usr/lib/linux-tools/*/perf")
MAC_FIX = "--tool xctrace   (on macOS; profkit profile --backend cpu samples and counts by it)"
INSTALL_FIX = "apt-get install linux-perf   (Debian; Ubuntu: linux-tools-generic; Fedora: perf)"


def find_perf(root: Path = Path("/")) -> ToolAbility:
    """Find the perf of PATH, or the one next to this interpreter.

    Where neither exists or starts (a wrapper without a perf for this kernel), the newest one installed: a perf
    made for another kernel works, the system call between them is stable.
    """
    if sys.platform == "darwin":
        return ToolAbility(None, None, False, "perf exists only on Linux", MAC_FIX)
    named = [shutil.which("perf"), shutil.which("perf", path=str(programs.BESIDE_PYTHON))]
    places = (path for pattern in _PLACES for path in root.glob(pattern))
    installed = sorted(places, key=programs.version_key, reverse=True)
    reason = None
    for perf in dict.fromkeys(Path(path) for path in (*named, *installed) if path is not None):
        trial = try_command([str(perf), "--version"])
        if trial.ok and (match := _VERSION.search(trial.output)) is not None:
            return ToolAbility(perf, match[1], True)
        # the first one is the one that the user knows
        reason = reason or _make_fault(trial, f"{perf} --version").reason
    return ToolAbility(None, None, False, reason or "perf is not installed", INSTALL_FIX)


# Two or three events at a time always fit on the counters, so a census never multiplexes.
_CENSUS = (
    ("cycles", "instructions"),
    ("branches", "branch-misses"),
    ("cache-references", "cache-misses"),
    ("L1-dcache-loads", "L1-dcache-load-misses"),
    ("LLC-loads", "LLC-load-misses"),
)
# Some milliseconds of a shell counting: enough that no event of a working counter is 0.
_BUSY = ("sh", "-c", "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done")
_TIMEOUT = 20.0
# The kernel.perf_event_paranoid up to which a user may sample the kernel's part of a program.
_KERNEL_OF_USERS = 1


@dataclass(frozen=True)
class PerfAbility:
    """What perf can do on this machine for this user.

    `census` holds one counter for each hardware event that was tried, with its state. `user_only`: the kernel's
    part is not counted. `paranoid` is None where the kernel does not say. `fault` is why it counts nothing,
    `record_fault` why it makes no recording. `switches_ok`: it samples where threads give up the processor.
    """

    path: str | None
    version: str | None
    software_ok: bool = False
    hardware_ok: bool = False
    record_ok: bool = False
    switches_ok: bool = False
    control_fifo_ok: bool = False
    system_wide_ok: bool = False
    user_only: bool = False
    paranoid: int | None = None
    census: tuple[Counter, ...] = ()
    fault: Fault | None = None
    record_fault: Fault | None = None

    @property
    def rights(self) -> int | None:
        """Return the `kernel.perf_event_paranoid` that holds for this user: -1 if all CPUs may be counted.

        Root and CAP_PERFMON are above the kernel's setting, and a container may be below it.
        """
        return -1 if self.system_wide_ok else self.paranoid

    @property
    def record_options(self) -> tuple[str, ...]:
        """Return the options for `perf record` of this version, whatever it records."""
        return record_options(self.version)

    @property
    def counting(self) -> tuple[str, ...]:
        """Return the names of the hardware events that really count."""
        return tuple(counter.name for counter in self.census if counter.value is not None)


def probe_perf() -> PerfAbility:
    """Try everything that profkit needs of perf; takes about half a second where perf works."""
    tool, paranoid = find_perf(), read_paranoid()
    if tool.path is None:
        fault = Fault(tool.reason or "", tool.fix)
        return PerfAbility(None, None, paranoid=paranoid, fault=fault, record_fault=fault)
    perf = str(tool.path)
    with TemporaryFolder("perf") as name:
        folder = Path(name)
        clock, trial = _count_events(perf, folder, ("task-clock", "page-faults"))
        if all(counter.value is None for counter in clock):
            fault = _make_fault(trial, "perf stat counted nothing: perf")
            return PerfAbility(perf, tool.version, paranoid=paranoid, fault=fault, record_fault=fault)
        census, user_only = _take_census(perf, folder)
        everywhere, _ = _count_events(perf, folder, ("cpu-clock",), system_wide=True)
        system_wide = any(counter.value is not None for counter in everywhere)
        # The switch is in the kernel, whose samples this setting keeps from users: `context-switches:u` has none.
        switches_ok = system_wide or (paranoid is not None and paranoid <= _KERNEL_OF_USERS)
        options = record_options(tool.version)
        record_fault = _try_record(perf, folder, options, switches=switches_ok)
        if record_fault is not None and switches_ok:
            switches_ok, record_fault = False, _try_record(perf, folder, options)
        return PerfAbility(
            path=perf,
            version=tool.version,
            software_ok=True,
            hardware_ok={"cycles", "instructions"} <= {c.name for c in census if c.value is not None},
            record_ok=record_fault is None,
            switches_ok=switches_ok and record_fault is None,
            control_fifo_ok=_obeys_control(perf, folder),
            system_wide_ok=system_wide,
            user_only=user_only,
            paranoid=paranoid,
            census=census,
            record_fault=record_fault,
        )


def read_paranoid(root: Path = Path("/")) -> int | None:
    """Read `kernel.perf_event_paranoid`; None where the kernel has no perf, or /proc is closed."""
    return system.read_number(root, "proc/sys/kernel/perf_event_paranoid")


def has_nmi_watchdog(root: Path = Path("/")) -> bool:
    """Return whether the kernel's watchdog holds one hardware counter of every core."""
    return system.read_number(root, "proc/sys/kernel/nmi_watchdog") == 1


def find_refused_events(perf: str, groups: Sequence[Sequence[str]]) -> dict[str, Counter]:
    """Return the events of these groups that cannot be counted here, each with its reason.

    A tiny program is run per group: one event that perf does not know makes it refuse the whole group, and the
    run with it, so it is better known before. An event that was on no counter this time (another kind of core) is
    not refused.
    """
    refused: dict[str, Counter] = {}
    with TemporaryFolder("perf") as name:
        folder = Path(name)
        for group in groups:
            counters, _ = _count_events(perf, folder, group)
            by_name = {(c.name, c.pmu): c for c in counters}
            for event in group:
                parts = split_name(event)
                counter = by_name.get((parts.name, parts.pmu))
                if not counters and (counter := _count_alone(perf, folder, event)).state == "not-supported":
                    counter = replace(counter, name=parts.name, pmu=parts.pmu)
                if counter is not None and counter.state == "not-supported":
                    refused[event] = counter
    return refused


def _refused(event: str, trial: CommandTrial) -> Counter:
    cause = _make_fault(trial, "perf refused it: perf").reason
    return Counter(event, None, "not-supported", reason=Fact.message(cause))


def _count_alone(perf: str, folder: Path, event: str) -> Counter:
    counters, trial = _count_events(perf, folder, (event,))
    if counters:
        return counters[0]
    return _refused(event, trial)


def _take_census(perf: str, folder: Path) -> tuple[tuple[Counter, ...], bool]:
    census: list[Counter] = []
    user_only = False
    for events in _CENSUS:
        counters, trial = _count_events(perf, folder, events)
        if not counters:
            counters = tuple(_refused(event, trial) for event in events)
        user_only = user_only or ":u" in _read_text(folder / "count")
        census += counters
        if events is _CENSUS[0] and all(counter.value is None for counter in counters):
            break  # without cycles and instructions there is no PMU at all
    return tuple(census), user_only


def _count_events(
    perf: str, folder: Path, events: Sequence[str], system_wide: bool = False
) -> tuple[tuple[Counter, ...], CommandTrial]:
    output = folder / "count"
    output.unlink(missing_ok=True)
    trial = _run_perf(stat_argv(_BUSY, output, events, perf=perf, system_wide=system_wide))
    return _read_counts(output), trial


def _read_counts(output: Path) -> tuple[Counter, ...]:
    try:
        return read_stat_csv(output).counters
    except UnreadableReport:
        return ()


def _try_record(perf: str, folder: Path, options: Sequence[str], *, switches: bool = False) -> Fault | None:
    """Return why perf makes no recording; None where it does.

    By cpu-clock, which is a timer: it samples also where there is no PMU.
    """
    output = folder / "perf.data"
    trial = _run_perf(
        record_argv(
            _BUSY,
            output,
            event="cpu-clock",
            call_graph=None,
            perf=perf,
            frequency=999,
            options=options,
            switches=switches,
        )
    )
    with contextlib.suppress(OSError):
        if trial.ok and output.stat().st_size > 0:
            return None
    return _make_fault(trial, "perf record made no recording: perf")


def _obeys_control(perf: str, folder: Path) -> bool:
    """Return whether perf counts only between the `enable` and `disable` that the workload writes to a pipe."""
    control, ack, output = folder / "control", folder / "ack", folder / "count"
    output.unlink(missing_ok=True)
    try:
        os.mkfifo(control)
        os.mkfifo(ack)
    except OSError:
        return False
    script = (
        f'exec 3>"{control}" 4<"{ack}"; echo enable >&3; read a <&4; {_BUSY[2]}; echo disable >&3; read a <&4'
    )
    _run_perf(stat_argv(("sh", "-c", script), output, ("task-clock",), control=control, ack=ack, perf=perf))
    return any(counter.value for counter in _read_counts(output))


def _run_perf(argv: Sequence[str]) -> CommandTrial:
    return try_command(argv, STAT_ENV, _TIMEOUT)


def _make_fault(trial: CommandTrial, what: str) -> Fault:
    return explain(trial.output, trial.returncode) or Fault(f"{what} {trial.ending}")


def _read_text(path: Path) -> str:
    try:
        return read_bounded(path).decode(errors="replace")
    except OSError:
        return ""


def perf_checks() -> Iterator[Check]:
    """Try perf, and yield what came of it; on other systems one check that says so."""
    if platform.system() != "Linux":
        yield from judge_rows(_TABLE, "elsewhere")
        return
    ability = probe_perf()
    yield from judge_perf(ability)


def judge_perf(ability: PerfAbility, root: Path = Path("/")) -> Iterator[Check]:
    """Return checks of what the probe found. `root` is read for the kernel's version."""
    fault, record = ability.fault or Fault(""), ability.record_fault or Fault("")
    level = "" if ability.paranoid is None else f" (kernel.perf_event_paranoid = {ability.paranoid})"
    more = {
        "reason": fault.reason,
        "fix": fault.fix,
        "level": level,
        "record_reason": record.reason,
        "record_fix": record.fix,
        # A wrapper without a perf for this kernel is cured by the same package as no perf at all.
        "install": INSTALL_FIX,
        "kernel": system.read_text(root, "proc/sys/kernel/osrelease") or platform.release(),
        "states": format_census(ability.census),
        "counting": ability.counting,
        "all_count": len(ability.counting) == len(ability.census),
        "watchdog": has_nmi_watchdog(root),
        "silence_watchdog": superuser_command("sysctl kernel.nmi_watchdog=0"),
        "no_pmu_fix": NO_PMU_FIX,
        "paranoid_fix": PARANOID_FIX,
    }
    return judge_rows(_TABLE, "perf", ability, more)


def format_census(census: tuple[Counter, ...]) -> str:
    """Format which event is in which state: `measured: cycles, instructions; hard-zero: cache-misses`."""
    by_state: dict[str, list[str]] = {}
    for counter in census:
        by_state.setdefault(counter.state, []).append(counter.name)
    return "; ".join(f"{state}: {', '.join(names)}" for state, names in by_state.items())


SECONDS = 2.0  # of region, where the workload uses profkit.benchmark


def recording_step(request: RecordRequest) -> Step:
    """Return the step that writes `report`. Raises MachineError where perf cannot do it here."""
    perf, scratch, report = probe_perf(), request.scratch, request.report.absolute()
    samples = request.what != "counters"
    if not (perf.record_ok if samples else perf.software_ok):
        fault = perf.record_fault if samples else perf.fault
        raise MachineError(fault.reason if fault else "perf does not work here", fault.fix if fault else None)
    control, ack = (str(scratch / "control"), str(scratch / "ack")) if request.marked else (None, None)
    status = str(scratch / "status")
    after: tuple[tuple[str, ...], ...] = ()
    if samples:
        frames = python_frames(request.python)
        env = dict(frames.env)
        argv = record_argv(  # without a shell around the program: see `record_argv`
            request.command,
            report,
            event="cycles" if perf.hardware_ok else "cpu-clock",
            call_graph=frames.call_graph,
            control=control,
            ack=ack,
            perf=str(perf.path),
            options=perf.record_options,
        )
        if frames.inject:
            injected = scratch / "injected.data"
            inject = inject_argv(report, injected, perf=str(perf.path))
            after = (inject, ("mv", "-f", str(injected), str(report)))
    else:
        env = dict(STAT_ENV)
        events = _planned_events(perf.hardware_ok, request.machine)
        wrapped = status_wrapper(request.command, status)
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
        workload_status=None if samples else status,
        after=after,
    )


def _planned_events(hardware_ok: bool, machine: Machine) -> tuple[str, ...]:
    """Return all events that this CPU's table has for one run.

    They may be multiplexed, and the report then says so.
    """
    from profkit.profilers.perf.events import SOFTWARE, plan_groups, table_for

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
    """Return the command that turns `perf_data` into text for `script.read_script`, to be run where perf is."""
    return script_argv(perf_data, output, perf=str(find_perf().path or "perf"))
