"""What holds the clocks of a Mac down: heat, low power mode, a battery. All of it is readable without root.

None of these is a temperature or a clock: those are for root alone (`powermetrics`), and are left untold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from profkit.hardware.asking import told

# kOSThermalPressureLevel... of macOS (libkern/OSThermalNotification.h); 0 is Nominal.
_PRESSURES = {1: "moderate", 2: "heavy", 3: "trapping", 4: "sleeping"}
_LIMIT = re.compile(r"CPU_Speed_Limit\s*=\s*(\d{1,3})\b")
_WARNING = re.compile(r"(thermal|performance) warning level\s*[=:]\s*(\d+)", re.IGNORECASE)
_MODE = re.compile(r"^\s*(lowpowermode|powermode)\s+(\d)\b", re.MULTILINE)
_SOURCE = re.compile(r"Now drawing from '([^']+)'")


@dataclass(frozen=True)
class Power:
    """One look. `pressure` is the thermal level in words, "nominal" where nothing is held down; None: not told.

    `limit` is the share of its clock (%) that the system allows the processor, which Intel Macs tell.
    """

    pressure: str | None = None
    limit: int | None = None
    low_power: bool | None = None
    source: str | None = None  # "mains", "battery"

    @property
    def slowed(self) -> tuple[str, ...]:
        """Why all clocks are held down, one phrase for each reason; a battery alone is none."""
        found = []
        if self.pressure not in (None, "nominal"):
            found.append(f"thermal pressure: {self.pressure}")
        if self.limit is not None and self.limit < 100:
            found.append(f"processor limited to {self.limit} % of its clock for heat")
        if self.low_power:
            found.append("low power mode")
        return tuple(found)


def read_power() -> Power:
    """The state of this Mac now; takes some 40 ms. All None on another system, or where nothing answers."""
    level = told("notifyutil", "-g", "com.apple.system.thermalpressurelevel", seconds=2.0)
    therm = told("pmset", "-g", "therm", seconds=2.0)
    return Power(
        pressure=pressure_of(level) or warning_of(therm),
        limit=limit_of(therm),
        low_power=low_power_of(told("pmset", "-g", seconds=2.0)),
        source=source_of(told("pmset", "-g", "batt", seconds=2.0)),
    )


def pressure_of(answer: str | None) -> str | None:
    """`com.apple.system.thermalpressurelevel 2`, as notifyutil prints it, in words; None for anything else."""
    digits = (answer or "").split()[-1:]
    if not digits or not digits[0].isdecimal() or len(digits[0]) > 3:
        return None
    level = int(digits[0])
    return "nominal" if level == 0 else _PRESSURES.get(level, f"level {level}")


def warning_of(answer: str | None) -> str | None:
    """The warning that `pmset -g therm` shows; "nominal" where it says that it has recorded none."""
    levels = [(match[1].lower(), int(match[2])) for match in _WARNING.finditer(answer or "")]
    raised = [f"{kind} warning level {level}" for kind, level in levels if level > 0]
    if raised:
        return ", ".join(raised)
    return "nominal" if levels or "No thermal warning level has been recorded" in (answer or "") else None


def limit_of(answer: str | None) -> int | None:
    """CPU_Speed_Limit of `pmset -g therm` in per cent; Apple silicon shows none."""
    match = _LIMIT.search(answer or "")
    return int(match[1]) if match else None


def low_power_of(answer: str | None) -> bool | None:
    """Whether low power mode is on, by `pmset -g`: `lowpowermode 1`, or `powermode 1` on Macs that have a high one."""
    modes = dict(_MODE.findall(answer or ""))
    if not modes:
        return None
    return modes.get("powermode") == "1" or modes.get("lowpowermode") == "1"


def source_of(answer: str | None) -> str | None:
    """`mains` or `battery`, by the first line of `pmset -g batt`."""
    match = _SOURCE.search(answer or "")
    return None if match is None else "battery" if "battery" in match[1].lower() else "mains"
