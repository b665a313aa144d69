"""What surrounds a measurement: who else uses the machine, and what makes its clock wander."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

from profkit.hardware import apple_power, container, tree
from profkit.hardware.jitter import Jitter, measure_jitter
from profkit.hardware.machine import usable_cores

_ROOT = Path("/")


@dataclass(frozen=True)
class Conditions:
    """One look at the machine. None where it does not tell; shares are 0..1 of all cores over the window."""

    cores: int  # usable by this process, before its group's quota
    quota: float | None = None  # cores' worth of time the control group allows
    load: float | None = None  # mean number of runnable tasks over the last minute
    pressure: float | None = None  # % of the last 10 s in which some task waited for a core
    others: float | None = None  # share of the cores that other processes kept busy
    stolen: float | None = None  # share that the hypervisor gave to other guests
    jitter: Jitter | None = None
    governor: str | None = None
    turbo: bool | None = None
    smt: bool | None = None
    aslr: int | None = None  # kernel.randomize_va_space: 0, 1 or 2
    memory: int | None = None  # bytes that may still be taken
    swapped: int | None = None  # pages moved to or from swap in the window
    on_battery: bool | None = None
    slowed: tuple[str, ...] | None = None  # why the system holds all clocks down; None where it does not tell


def read_conditions(root: Path = _ROOT, window: float = 0.5) -> Conditions:
    """Look at the machine for `window` seconds, a part of which measures the jitter of fixed work.

    On a recorded tree nothing moves: what needs two looks (others, stolen, swapped) and the jitter are None.
    """
    live = root == _ROOT
    mac = live and platform.system() == "Darwin"
    power = apple_power.read_power() if mac else None
    before, own, start = _activity(root), _own_seconds(), time.monotonic()
    jitter = measure_jitter(limit=max(window, 0.25)) if live else None
    if live:
        time.sleep(max(0.0, window - (time.monotonic() - start)))
    after = _activity(root)
    passed = after.total - before.total
    ours = (_own_seconds() - own) * _ticks_per_second()
    cores = usable_cores(root)
    first = f"sys/devices/system/cpu/cpu{cores[0] if cores else 0}/cpufreq"
    return Conditions(
        cores=max(1, len(cores)),
        quota=container.read_limits(root).cpus,
        load=load_of(root),
        pressure=pressure_of(root),
        others=min(1.0, max(0.0, after.busy - before.busy - ours) / passed) if passed > 0 else None,
        stolen=min(1.0, max(0, after.stolen - before.stolen) / passed) if passed > 0 and not mac else None,
        jitter=jitter,
        governor=tree.text(root, f"{first}/scaling_governor") or None,
        turbo=_turbo(root),
        smt=_switch(tree.number(root, "sys/devices/system/cpu/smt/active")),
        aslr=tree.number(root, "proc/sys/kernel/randomize_va_space"),
        memory=container.available_memory(root),
        swapped=max(0, after.swapped - before.swapped) if passed > 0 and not mac else None,
        on_battery=_on_battery(root) if power is None else power.source == "battery",
        slowed=None if power is None or power.pressure is None else power.slowed,
    )


@dataclass(frozen=True)
class _Activity:
    """Counters of /proc/stat in clock ticks over all cores, and swapped pages; all since boot."""

    busy: int = 0
    stolen: int = 0
    total: int = 0
    swapped: int = 0


def _activity(root: Path) -> _Activity:
    if root == _ROOT and platform.system() == "Darwin":
        return _activity_macos()
    first = (tree.text(root, "proc/stat") or "").split("\n", 1)[0].split()
    # user nice system idle iowait irq softirq steal (proc(5)); guest time is already inside user
    ticks = [int(word) for word in first[1:9] if word.isdigit()]
    if not first or first[0] != "cpu" or len(ticks) < 8:
        return _Activity()
    pages = tree.fields(tree.text(root, "proc/vmstat"), " ")
    swapped = sum(int(pages[name]) for name in ("pswpin", "pswpout") if pages.get(name, "").isdigit())
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
    return _Activity(user + nice + system + irq + softirq, steal, sum(ticks), swapped)


def _activity_macos() -> _Activity:
    """The same by psutil, from the kernel's host_statistics. What it calls swapped are file pages, too: left out."""
    try:
        import psutil  # here: heavy

        seconds = psutil.cpu_times()
    except (ImportError, OSError, RuntimeError):
        return _Activity()
    ticks, busy = _ticks_per_second(), seconds.user + seconds.nice + seconds.system
    return _Activity(busy=int(busy * ticks), total=int((busy + seconds.idle) * ticks))


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _ticks_per_second() -> int:
    try:
        return os.sysconf("SC_CLK_TCK")
    except (ValueError, OSError):
        return 100


def load_of(root: Path = _ROOT) -> float | None:
    """The mean number of runnable tasks over the last minute."""
    if root == _ROOT and platform.system() == "Darwin":
        with contextlib.suppress(OSError, AttributeError):
            return os.getloadavg()[0]
        return None
    words = (tree.text(root, "proc/loadavg") or "").split()
    try:
        return float(words[0]) if words else None
    except ValueError:
        return None


def pressure_of(root: Path = _ROOT) -> float | None:
    """avg10 of the `some` line of /proc/pressure/cpu, absent before Linux 4.20 or when PSI is off."""
    for line in (tree.text(root, "proc/pressure/cpu") or "").splitlines():
        if line.startswith("some "):
            value = tree.fields(line.replace(" ", "\n"), "=").get("avg10", "")
            try:
                return float(value)
            except ValueError:
                return None
    return None


def _turbo(root: Path) -> bool | None:
    """Whether clocks above the nominal one are allowed; two drivers tell it in two ways."""
    off = _switch(tree.number(root, "sys/devices/system/cpu/intel_pstate/no_turbo"))
    return (
        (not off) if off is not None else _switch(tree.number(root, "sys/devices/system/cpu/cpufreq/boost"))
    )


def _switch(value: int | None) -> bool | None:
    return None if value is None else value != 0


def _on_battery(root: Path) -> bool | None:
    """True on a laptop whose mains adapter is there but not plugged in; None without an adapter to ask."""
    for name in ("AC", "AC0", "ACAD", "ADP0", "ADP1"):
        online = tree.number(root, f"sys/class/power_supply/{name}/online")
        if online is not None:
            return online == 0
    return None
