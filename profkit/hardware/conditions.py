"""What surrounds a measurement: who else uses the machine, what its clock does, and one cheap look beside each pass."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.formatting import plural
from profkit.core.tables import judge_rows
from profkit.core.types import Check, DeviceMoment, Disturbance, Moment
from profkit.hardware import machine, system
from profkit.hardware.gpu import call_with_timeout, list_devices, visible_devices
from profkit.hardware.machine import usable_cores
from profkit.hardware.nvml import REASONS, SM_CLOCK, nvml_session
from profkit.hardware.system import superuser_command

_ROOT = Path("/")
# That are asked: on a large machine a file each would take longer than it is worth
_MOST_CORES = 16
_DEVICE_SECONDS = 2.0  # a driver answers within milliseconds; one in trouble is not waited for


@dataclass(frozen=True)
class MachineConditions:
    """One look at the machine. None where it does not tell; shares are 0..1 of all cores over the window."""

    cores: int  # usable by this process, before its group's quota
    quota: float | None = None  # cores' worth of time the control group allows
    load: float | None = None  # mean number of runnable tasks over the last minute
    pressure: float | None = None  # % of the last 10 s in which some task waited for a core
    others: float | None = None  # share of the cores that other processes kept busy
    stolen: float | None = None  # share that the hypervisor gave to other guests
    governor: str | None = None
    memory: int | None = None  # bytes that may still be taken


def read_conditions(root: Path = _ROOT, window: float = 0.5) -> MachineConditions:
    """Look at the machine for `window` seconds. On a recorded tree nothing moves: others and stolen are None."""
    live = root == _ROOT
    before, own = _read_activity(root), _own_cpu_seconds()
    if live:
        time.sleep(window)
    after = _read_activity(root)
    passed = after.total - before.total
    ours = (_own_cpu_seconds() - own) * _ticks_per_second()
    cores = usable_cores(root)
    first = f"sys/devices/system/cpu/cpu{cores[0] if cores else 0}/cpufreq"
    return MachineConditions(
        cores=max(1, len(cores)),
        quota=machine.read_limits(root).cpus,
        load=read_load(root),
        pressure=read_pressure(root),
        others=min(1.0, max(0.0, after.busy - before.busy - ours) / passed) if passed > 0 else None,
        stolen=min(1.0, max(0, after.stolen - before.stolen) / passed) if passed > 0 else None,
        governor=system.read_text(root, f"{first}/scaling_governor") or None,
        memory=machine.available_memory(root),
    )


class OtherProcesses:
    """How busy the machine is with others than the processes `pids`, from when this was made."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = tuple(pids)
        self._before, self._own = _read_activity(_ROOT), self._own_seconds()

    def share(self) -> float | None:
        """The share of all cores' time that others had, other guests of the hypervisor too; None where nobody tells."""
        after = _read_activity(_ROOT)
        passed = after.total - self._before.total
        if passed <= 0:
            return None
        ours = (self._own_seconds() - self._own) * _ticks_per_second()
        taken = after.busy - self._before.busy + after.stolen - self._before.stolen
        return min(1.0, max(0.0, taken - ours) / passed)

    def _own_seconds(self) -> float:
        import psutil  # here: heavy

        total = 0.0
        for pid in self._pids:
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                total += times.user + times.system
        return total


class DisturbanceWatch:
    """What others take from the processor, from when this was made. Two looks at two small files: 0.1 ms."""

    def __init__(self, root: Path = _ROOT) -> None:
        self._root, self._begin = root, time.monotonic()
        self._before, self._stalled = _read_activity(root), _read_stalled(root)

    def ended(self, seconds: float, cpu: float, waited: float | None) -> Disturbance:
        """The process has ended: it took `seconds` of wall and `cpu` seconds of CPU time, and waited for a core."""
        after, stalled, span = _read_activity(self._root), _read_stalled(self._root), self._elapsed()
        second = _ticks_per_second()
        told = after.total > self._before.total
        # profkit's own time is in neither: it looks at the process a few times a second, and is one of the others
        busy = (after.busy - self._before.busy) / second
        pressure = None
        if stalled is not None and self._stalled is not None and span > 0:
            pressure = min(1.0, max(0.0, (stalled - self._stalled) / span))
        return Disturbance(
            seconds,
            cpu,
            stolen=max(0, after.stolen - self._before.stolen) / second if told else None,
            others=max(0.0, busy - cpu) if told else None,
            waited=waited if platform.system() == "Linux" else None,
            pressure=pressure,
        )

    def _elapsed(self) -> float:
        return time.monotonic() - self._begin


def lost_shares(disturbances: Sequence[Disturbance]) -> tuple[float, float]:
    """Of the time of all processes: what the hypervisor gave away, and what they waited for a core; each 0 or more."""
    seconds = sum(d.seconds for d in disturbances)
    if seconds <= 0:
        return 0.0, 0.0
    stolen = sum(d.stolen or 0.0 for d in disturbances)
    waited = sum(map(_seconds_waited, disturbances))
    return max(0.0, stolen / seconds), max(0.0, waited / seconds)


def _seconds_waited(disturbance: Disturbance) -> float:
    """Seconds that it waited for a core because of others.

    What the system counted of a process that it started was read while that ran, so the end is missing. So it is at
    least the time without a core while anybody waited for one, which of a program that sleeps may be too much.
    """
    d = disturbance
    idle = 0.0
    if d.pressure is not None and d.cpu is not None:
        idle = max(0.0, min(d.pressure * d.seconds, d.seconds - d.cpu))
    return min(max(d.waited or 0.0, idle), d.others or 0.0)


@dataclass(frozen=True)
class _ActivityCounters:
    """Counters of /proc/stat in clock ticks over all cores since boot."""

    busy: int = 0
    stolen: int = 0
    total: int = 0


def _read_activity(root: Path) -> _ActivityCounters:
    first = (system.read_text(root, "proc/stat") or "").split("\n", 1)[0].split()
    # user nice system idle iowait irq softirq steal (proc(5)); guest time is already inside user
    ticks = [int(word) for word in first[1:9] if word.isdigit()]
    if not first or first[0] != "cpu" or len(ticks) < 8:
        return _ActivityCounters()
    user, nice, kernel, _idle, _iowait, irq, softirq, steal = ticks
    return _ActivityCounters(user + nice + kernel + irq + softirq, steal, sum(ticks))


def _own_cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _ticks_per_second() -> int:
    try:
        return os.sysconf("SC_CLK_TCK")
    except (ValueError, OSError):
        return 100


def read_load(root: Path = _ROOT) -> float | None:
    """The mean number of runnable tasks over the last minute."""
    if root == _ROOT and platform.system() == "Darwin":
        with contextlib.suppress(OSError, AttributeError):
            return os.getloadavg()[0]
        return None
    return _parse_first_number((system.read_text(root, "proc/loadavg") or "").split())


def read_pressure(root: Path = _ROOT) -> float | None:
    """avg10 of the `some` line of /proc/pressure/cpu, absent before Linux 4.20 or when PSI is off."""
    for line in (system.read_text(root, "proc/pressure/cpu") or "").splitlines():
        if line.startswith("some "):
            return _parse_first_number([word[6:] for word in line.split() if word.startswith("avg10=")])
    return None


def _read_stalled(root: Path) -> float | None:
    """Seconds since boot in which some task waited for a core: `total` of the same line, which is in microseconds."""
    for line in (system.read_text(root, "proc/pressure/cpu") or "").splitlines():
        if line.startswith("some "):
            total = _parse_first_number([word[6:] for word in line.split() if word.startswith("total=")])
            return None if total is None else total / 1e6
    return None


def _parse_first_number(words: list[str]) -> float | None:
    try:
        return float(words[0]) if words else None
    except ValueError:
        return None


def read_moment(devices: bool = False, root: Path = _ROOT) -> Moment:
    """The machine as it is now; `devices`: its visible GPUs too. Never raises: what is not told is None."""
    return Moment(
        throttled=_throttle_count(root, usable_cores(root)[:_MOST_CORES]),
        devices=(call_with_timeout(_DEVICE_SECONDS, lambda: _read_devices(os.environ)) or ())
        if devices
        else (),
    )


def _throttle_count(root: Path, cores: tuple[int, ...]) -> int | None:
    """Times that the cores slowed themselves for heat since the machine was started (Intel only)."""
    place = "sys/devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count"
    answers = [system.read_number(root, place.format(core)) for core in cores]
    counts = [count for count in answers if count is not None]
    return sum(counts) if counts else None


def _read_devices(environ: Mapping[str, str]) -> tuple[DeviceMoment, ...]:
    numbers = {
        device.uuid: index for index, device in enumerate(visible_devices(list_devices(None), environ))
    }
    moments = []
    with nvml_session() as library:
        for handle in library.handles():
            index = numbers.get(library.text("nvmlDeviceGetUUID", handle) or "")
            if index is None:
                continue
            clock = library.number("nvmlDeviceGetClockInfo", handle, SM_CLOCK)
            bits = library.slowdowns(handle)
            moments.append(
                DeviceMoment(
                    index,
                    clock * 1e6 if clock else None,
                    tuple(word for bit, word in REASONS.items() if bits & bit),
                )
            )
    return tuple(sorted(moments, key=lambda device: device.index))


# ------------------------------------------------------------ the doctor's checks

GIB = 1 << 30


def noise_checks(root: Path = Path("/"), window: float = 0.5) -> tuple[Check, ...]:
    """Look at the machine for about `window` seconds and judge what is seen."""
    return judge_conditions(read_conditions(root, window))


def judge_conditions(seen: MachineConditions) -> tuple[Check, ...]:
    """One check for each condition the machine tells; what it does not tell has none."""
    threads = max(1, int(seen.quota or 0))
    more = {
        "load_told": _describe_load(seen),
        "load_share": None if seen.load is None else seen.load / seen.cores,
        "stolen_percent": None if seen.stolen is None else 100 * seen.stolen,
        "quota_share": None if seen.quota is None else seen.quota / seen.cores,
        "threads": threads,
        "core_range": "0" if threads == 1 else f"0-{threads - 1}",
        "gib": None if seen.memory is None else seen.memory / GIB,
        "steady": seen.governor == "performance",
        "fix_clock": superuser_command("cpupower frequency-set -g performance"),
    }
    return tuple(judge_rows(Path(__file__).with_name("checks.yaml"), "noise", seen, more))


def _describe_load(seen: MachineConditions) -> str:
    parts: list[str] = []
    if seen.others is not None:
        parts.append(f"other processes use {100 * seen.others:.0f} % of the cores")
    if seen.pressure is not None:
        parts.append(f"tasks waited for a core in {seen.pressure:.1f} % of the last 10 s")
    if seen.load is not None:
        parts.append(f"load {seen.load:.2f} on {plural(seen.cores, 'core')}")
    return "; ".join(parts)
