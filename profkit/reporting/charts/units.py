"""One prefix for a whole axis: ticks of 4.10 and 4.15 ms share it, and keep as many digits as tell them apart."""

from __future__ import annotations

from typing import NamedTuple

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((1024.0**4, "Ti"), (1024.0**3, "Gi"), (1024.0**2, "Mi"), (1024.0, "Ki"), (1.0, ""))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_RATES = ("B/s", "FLOP", "FLOP/s", "Hz", "J")


class AxisUnit(NamedTuple):
    """What values are divided by before they stand beside a tick, and the unit that they are in then."""

    factor: float
    name: str


def axis_unit(unit: str, size: float) -> AxisUnit:
    """The unit in which the largest value of an axis, `size`, has one to four digits before the point."""
    size = abs(size)
    if unit == "s":
        steps = tuple((factor, name) for factor, name in _TIMES)
        return next((AxisUnit(f, name) for f, name in steps if size >= f * 0.9995), AxisUnit(*_TIMES[-1]))
    if unit.split("/")[0] == "B" and unit != "B/s":
        return _prefixed(unit, size, _BINARY)
    if unit in _RATES:
        return _prefixed(unit, size, _DECIMAL)
    if unit in ("", "count", "samples", "cycles", "instructions") or size >= 1e4:
        found = _prefixed("", size, _DECIMAL)
        rest = "" if unit in ("", "count") else unit
        return AxisUnit(found.factor, f"{found.name} {rest}".strip())
    return AxisUnit(1.0, unit)


def _prefixed(unit: str, size: float, steps: tuple[tuple[float, str], ...]) -> AxisUnit:
    factor, prefix = next((step for step in steps if size >= step[0] * 0.9995), steps[-1])
    return AxisUnit(factor, f"{prefix}{unit}")
