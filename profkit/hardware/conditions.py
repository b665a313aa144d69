"""What surrounds a measurement: who else uses the machine, how far equal runs differ."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from pathlib import Path

from profkit.core.codec import from_plain_data, to_plain_data
from profkit.core.errors import ProfkitError
from profkit.core.files.regular import read_bounded_text
from profkit.core.files.safe_folder import user_cache, write_whole
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Disturbance, Machine, RunSpread
from profkit.hardware import machine, system
from profkit.hardware.machine import usable_cores
from profkit.hardware.system import superuser_command

_ROOT = Path("/")


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
        self._before, self._stalled = _read_activity(root), _read_pressure(root)

    def ended(self, seconds: float, cpu: float, waited: float | None) -> Disturbance:
        """The process has ended: it took `seconds` of wall and `cpu` seconds of CPU time, and waited for a core."""
        after, stalled = _read_activity(self._root), _read_pressure(self._root)
        span = time.monotonic() - self._begin
        second = _ticks_per_second()
        told = after.total > self._before.total
        # profkit's own time is in neither: it looks at the process a few times a second, and is one of the others
        busy = (after.busy - self._before.busy) / second
        pressure = None
        if stalled is not None and self._stalled is not None and span > 0:
            pressure = min(1.0, max(0.0, (stalled - self._stalled) / 1e6 / span))
        return Disturbance(
            seconds,
            cpu,
            stolen=max(0, after.stolen - self._before.stolen) / second if told else None,
            others=max(0.0, busy - cpu) if told else None,
            waited=waited if platform.system() == "Linux" else None,
            pressure=pressure,
        )


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


def _ticks_per_second() -> int:
    return os.sysconf("SC_CLK_TCK")


def _read_pressure(root: Path) -> float | None:
    """Microseconds since boot in which some task waited for a core; None before Linux 4.20 or where PSI is off."""
    some = re.search(
        r"^some .*\btotal=(\d+)", system.read_text(root, "proc/pressure/cpu") or "", re.MULTILINE
    )
    return float(some[1]) if some is not None else None


# ------------------------------------------------------------ the doctor's checks


def noise_checks(root: Path = _ROOT, window: float = 0.5) -> tuple[Check, ...]:
    """Look for `window` seconds at what others take of the processor, then at its clock and a container's share."""
    watched = OtherProcesses([os.getpid()])
    time.sleep(window)
    cores = usable_cores(root)
    frequency = f"sys/devices/system/cpu/cpu{cores[0] if cores else 0}/cpufreq"
    governor = system.read_text(root, f"{frequency}/scaling_governor") or None
    return judge_noise(watched.share(), governor, machine.read_limits(root).cpus, max(1, len(cores)))


def judge_noise(
    others: float | None, governor: str | None, quota: float | None, cores: int
) -> tuple[Check, ...]:
    """One check for each condition the machine tells; what it does not tell has none.

    `others` is the share of the cores (0..1) that others had, `quota` the cores' worth of time of a container.
    """
    threads = max(1, int(quota or 0))
    seen = {
        "others": others,
        "percent": None if others is None else 100 * others,
        "governor": governor,
        "quota": quota,
        "cores": cores,
        "quota_share": None if quota is None else quota / cores,
        "threads": threads,
        "core_range": "0" if threads == 1 else f"0-{threads - 1}",
        "steady": governor == "performance",
        "fix_clock": superuser_command("cpupower frequency-set -g performance"),
    }
    return tuple(judge_rows(Path(__file__).with_name("checks.yaml"), "noise", seen))


# ------------------------------------------------------------ how far runs of an unchanged program lie apart here

# Learned from the runs that are made anyway: each run of a program that was measured here before, and is the same, adds
# the logarithm of its time over the time before, where others took little of either. The last 50 are kept in the user's
# cache folder, in one file for each kind of machine. The file holds digests, times and dates: no command, no path, no
# name. A second machine of the same kind that shares the folder adds to the same file: its runs may be compared with
# those of the first, so what lies between the two counts.

MOST_TRIALS = 50
MOST_PROGRAMS = 200  # whose last time is kept
MOST_LOST = 0.05  # of its time, to others: what they take is counted for each run by itself
MOST_BYTES = 1 << 20  # 50 trials and 200 programs are 30 kB
_DIGITS = 32  # hexadecimal, of a digest


@dataclass(frozen=True)
class _Kept:
    """`times`: of each program, by its digest, when it was measured last and its seconds; the oldest first.

    `trials`: when, and the logarithm of the ratio.
    """

    times: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    trials: tuple[tuple[float, float], ...] = ()


def kept_spread(machine: Machine) -> RunSpread | None:
    """What is known of this kind of machine; None where no program was measured twice."""
    path = _path_of(machine)
    ratios = [ratio for _, ratio in _read_kept(path).trials] if path is not None else []
    if not ratios:
        return None
    rms = sqrt(sum(ratio * ratio for ratio in ratios) / len(ratios))
    return RunSpread(len(ratios), rms, max(map(abs, ratios)))


def keep_time(machine: Machine, program: str, seconds: float, lost: float = 0.0) -> None:
    """A run of `program` (whatever text says what it is and that it is unchanged) took `seconds`.

    `lost` is the share of its time that others took: a run that lost more than 5 % says nothing of the machine.
    Nothing is kept, and nothing said, where that is not possible.
    """
    path = _path_of(machine)
    if path is None or lost > MOST_LOST or not 0 < seconds < float("inf"):
        return
    kept, now, name = _read_kept(path), time.time(), _digest(program)
    times, trials = dict(kept.times), list(kept.trials)
    before = times.pop(name, None)
    if before is not None and before[1] > 0:
        trials.append((now, log(seconds / before[1])))
    times[name] = (now, seconds)  # last: it is the newest
    document = _Kept(dict(list(times.items())[-MOST_PROGRAMS:]), tuple(trials[-MOST_TRIALS:]))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [json.dumps(to_plain_data(document))])


def _read_kept(path: Path) -> _Kept:
    """What the file holds; nothing where it cannot be read or anything in it is odd."""
    try:
        return from_plain_data(_Kept, json.loads(read_bounded_text(path, MOST_BYTES)), "the spread")
    except (OSError, ValueError, RecursionError, ProfkitError):
        return _Kept()


def _path_of(machine: Machine) -> Path | None:
    folder = user_cache("spread")
    kind = [
        machine.system,
        machine.architecture,
        machine.cpu,
        machine.cores,
        machine.virtual,
        machine.governor,
    ]
    return None if folder is None else folder / f"{_digest(json.dumps(kind))}.json"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
