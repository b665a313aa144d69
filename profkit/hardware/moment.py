"""One cheap look at the machine beside a measurement: load, waiting, clocks, heat. It measures nothing and waits for
nothing, so that it costs a run some milliseconds."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from profkit.core.types import DeviceMoment, Moment
from profkit.hardware import apple_power, tree
from profkit.hardware.conditions import load_of, pressure_of
from profkit.hardware.gpu import listed, within
from profkit.hardware.gpu_visible import visible_devices
from profkit.hardware.machine import usable_cores
from profkit.hardware.nvml import REASONS, SM_CLOCK, nvml

_ROOT = Path("/")
_CORES = 16  # whose clock is asked: on a large machine a file each would take longer than it is worth
_ZONES = 32
_DEVICE_SECONDS = 2.0  # a driver answers within milliseconds; one in trouble is not waited for
_TEMPERATURE_GPU = 0  # nvmlTemperatureSensors_t


def look(when: str, devices: bool = False, root: Path = _ROOT) -> Moment:
    """The machine as it is now; `devices`: its visible GPUs too. Never raises: what is not told is None."""
    if root == _ROOT and platform.system() == "Darwin":
        return _look_macos(when, devices)
    cores = usable_cores(root)[:_CORES]
    governor = f"sys/devices/system/cpu/cpu{cores[0] if cores else 0}/cpufreq/scaling_governor"
    return Moment(
        when,
        load=load_of(root),
        pressure=pressure_of(root),
        clock=_clock(root, cores),
        governor=tree.text(root, governor) or None,
        temperature=_temperature(root),
        throttled=_throttled(root, cores),
        devices=(within(_DEVICE_SECONDS, lambda: _devices(os.environ)) or ()) if devices else (),
    )


def _look_macos(when: str, devices: bool) -> Moment:
    """macOS tells no clock and no temperature without root, but whether it holds the clocks down.

    It does so for the whole chip: the reasons are those of its GPU, too.
    """
    power = apple_power.read_power()
    device = (DeviceMoment(0, throttle=power.slowed),) if devices else ()
    return Moment(when, load=load_of(), slowed=power.slowed, power=power.source, devices=device)


def _clock(root: Path, cores: tuple[int, ...]) -> float | None:
    """Mean over the cores, in Hz; the files are in kHz."""
    place = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
    told = [tree.number(root, place.format(core)) for core in cores]
    known = [kilohertz * 1e3 for kilohertz in told if kilohertz]
    return sum(known) / len(known) if known else None


def _temperature(root: Path) -> float | None:
    """Of the hottest zone, in degrees Celsius; the files are in thousandths."""
    told = [
        tree.number(root, f"sys/class/thermal/thermal_zone{number}/temp") for number in range(_zones(root))
    ]
    known = [value / 1e3 for value in told if value is not None and 0 < value < 150_000]
    return max(known, default=None)


def _zones(root: Path) -> int:
    number = 0
    while number < _ZONES and (root / f"sys/class/thermal/thermal_zone{number}").is_dir():
        number += 1
    return number


def _throttled(root: Path, cores: tuple[int, ...]) -> int | None:
    """Times that the cores slowed themselves for heat since the machine was started (Intel only)."""
    place = "sys/devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count"
    told = [tree.number(root, place.format(core)) for core in cores]
    known = [count for count in told if count is not None]
    return sum(known) if known else None


def _devices(environ: Mapping[str, str]) -> tuple[DeviceMoment, ...]:
    numbers = {device.uuid: index for index, device in enumerate(visible_devices(listed(None), environ))}
    found = []
    with nvml() as library:
        for handle in library.handles():
            index = numbers.get(library.text("nvmlDeviceGetUUID", handle) or "")
            if index is None:
                continue
            clock = library.number("nvmlDeviceGetClockInfo", handle, SM_CLOCK)
            heat = library.number("nvmlDeviceGetTemperature", handle, _TEMPERATURE_GPU)
            power = library.number("nvmlDeviceGetPowerUsage", handle)  # mW
            bits = library.slowdowns(handle)
            found.append(
                DeviceMoment(
                    index,
                    clock * 1e6 if clock else None,
                    float(heat) if heat else None,
                    power / 1000 if power else None,
                    tuple(word for bit, word in REASONS.items() if bits & bit),
                )
            )
    return tuple(sorted(found, key=lambda device: device.index))
