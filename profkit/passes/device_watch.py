"""How the device is while it is timed: its clock, and whether it slows itself down. Asked between samples only."""

from __future__ import annotations

from ctypes import c_void_p
from typing import NamedTuple

from profkit.hardware.nvml import SM_CLOCK, Nvml, NvmlError, open_nvml

# nvml.h, nvmlClocksEventReasons: those by which a device runs slower than it was set to.
REASONS = {
    0x04: "power limit",
    0x08: "hardware slowdown",
    0x20: "temperature, by the driver",
    0x40: "temperature, by the hardware",
    0x80: "power brake",
}


class State(NamedTuple):
    """One look: SM clock in Hz, and the bits of REASONS that hold."""

    clock: float | None = None
    throttle: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        """The reasons in words."""
        return tuple(word for bit, word in REASONS.items() if self.throttle & bit)


class Watch:
    """Looks at one device. Where the driver does not tell, every look is empty."""

    def __init__(self, address: bytes | None) -> None:
        self._device: c_void_p | None = None
        self._reasons = "nvmlDeviceGetCurrentClocksEventReasons"
        try:
            self._library: Nvml = open_nvml()
        except (OSError, NvmlError):
            return
        self._device = self._library.by_bus(address) if address is not None else None
        if self._device is not None and not self._library.has(self._reasons):
            self._reasons = "nvmlDeviceGetCurrentClocksThrottleReasons"  # its name until 2023

    def look(self) -> State:
        """The device as it is now; some tens of microseconds."""
        if self._device is None:
            return State()
        clock = self._library.number("nvmlDeviceGetClockInfo", self._device, SM_CLOCK)
        bits = self._library.number(self._reasons, self._device, wide=True)
        return State(clock * 1e6 if clock else None, (bits or 0) & sum(REASONS))
