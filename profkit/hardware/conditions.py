"""The conditions around a measurement: who else uses the machine meanwhile."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.tables import judge_rows
from profkit.core.types import Check, Disturbance
from profkit.hardware import machine, system
from profkit.hardware.machine import usable_cores
from profkit.hardware.system import superuser_command

_ROOT = Path("/")


class DisturbanceWatch:
    """A watch on the processor time that other processes than `pids` take, from its construction on.

    It reads one small file twice, which costs 0.1 ms.
    """

    def __init__(self, root: Path = _ROOT, pids: Sequence[int] = ()) -> None:
        self._root, self._pids = root, tuple(pids)
        self._before, self._own = _read_activity(root), self._own_seconds()

    def share(self) -> float | None:
        """Return the share of all cores' time that others had; None where the system does not report it.

        Time that the hypervisor gave to other guests counts as theirs.
        """
        after = _read_activity(self._root)
        passed = after.total - self._before.total
        if passed <= 0:
            return None
        ours = (self._own_seconds() - self._own) * _ticks_per_second()
        taken = after.busy - self._before.busy + after.stolen - self._before.stolen
        return min(1.0, max(0.0, taken - ours) / passed)

    def ended(self, seconds: float, cpu: float, waited: float | None) -> Disturbance:
        """Return what disturbed a process that has ended.

        `seconds` is its wall time, `cpu` its CPU time, and `waited` the time it waited for a core, all in seconds.
        """
        after, second = _read_activity(self._root), _ticks_per_second()
        known = after.total > self._before.total
        # profkit's own time is in neither: it looks at the process a few times a second, and is one of the others
        busy = (after.busy - self._before.busy) / second
        return Disturbance(
            seconds,
            cpu,
            stolen=max(0, after.stolen - self._before.stolen) / second if known else None,
            others=max(0.0, busy - cpu) if known else None,
            waited=waited if platform.system() == "Linux" else None,
        )

    def _own_seconds(self) -> float:
        """Return the CPU seconds that the watched processes have used so far."""
        total = 0.0
        for pid in self._pids:
            import psutil  # here: heavy

            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                total += times.user + times.system
        return total


def lost_shares(disturbances: Sequence[Disturbance]) -> tuple[float, float]:
    """Return the shares of all processes' time that were lost: to the hypervisor, and waiting for a core.

    Each is 0 or more. What a process waited is counted only as far as others were busy.
    """
    seconds = sum(d.seconds for d in disturbances)
    if seconds <= 0:
        return 0.0, 0.0
    stolen = sum(d.stolen or 0.0 for d in disturbances)
    waited = sum(min(d.waited or 0.0, d.others or 0.0) for d in disturbances)
    return max(0.0, stolen / seconds), max(0.0, waited / seconds)


@dataclass(frozen=True)
class _ActivityCounters:
    """Counters of /proc/stat in clock ticks over all cores since boot."""

    busy: int = 0
    stolen: int = 0
    total: int = 0


def _read_activity(root: Path) -> _ActivityCounters:
    """Read the first line of /proc/stat; all counters are 0 where it is missing or of another form."""
    first = (system.read_text(root, "proc/stat") or "").split("\n", 1)[0].split()
    # user nice system idle iowait irq softirq steal (proc(5)); guest time is already inside user
    ticks = [int(word) for word in first[1:9] if word.isdigit()]
    if not first or first[0] != "cpu" or len(ticks) < 8:
        return _ActivityCounters()
    user, nice, kernel, _idle, _iowait, irq, softirq, steal = ticks
    return _ActivityCounters(user + nice + kernel + irq + softirq, steal, sum(ticks))


def _ticks_per_second() -> int:
    return os.sysconf("SC_CLK_TCK")


# ------------------------------------------------------------ the doctor's checks


def noise_checks(root: Path = _ROOT, window: float = 0.5) -> tuple[Check, ...]:
    """Watch for `window` seconds what others take of the processor, then check its clock and a container's quota."""
    watched = DisturbanceWatch(pids=[os.getpid()])
    time.sleep(window)
    cores = usable_cores(root)
    frequency = f"sys/devices/system/cpu/cpu{cores[0] if cores else 0}/cpufreq"
    governor = system.read_text(root, f"{frequency}/scaling_governor") or None
    return judge_noise(watched.share(), governor, machine.read_limits(root).cpus, max(1, len(cores)))


def judge_noise(
    others: float | None, governor: str | None, quota: float | None, cores: int
) -> tuple[Check, ...]:
    """Return one check for each condition that the machine reports; what it does not report has none.

    `others` is the share of the cores (0..1) that others had, `quota` a container's limit in cores' worth of
    time.
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
