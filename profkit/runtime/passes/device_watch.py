"""How the device is while it is timed: its clock, and whether it slows itself down. Asked between samples only."""

from __future__ import annotations

from ctypes import c_void_p
from typing import NamedTuple

from profkit.hardware.nvml import REASONS, SM_CLOCK, Nvml, NvmlError, open_nvml


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
        try:
            self._library: Nvml = open_nvml()
        except (OSError, NvmlError):
            return
        self._device = self._library.by_bus(address) if address is not None else None

    def look(self) -> State:
        """The device as it is now; some tens of microseconds."""
        if self._device is None:
            return State()
        clock = self._library.number("nvmlDeviceGetClockInfo", self._device, SM_CLOCK)
        return State(clock * 1e6 if clock else None, self._library.slowdowns(self._device))
