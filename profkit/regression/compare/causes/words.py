"""How causes say their numbers."""

from __future__ import annotations

from profkit.analysis.kernel_names import short_name
from profkit.core.formatting import figures, quantity, work_word
from profkit.regression.compare.view import View


def became(title: str, before: float, after: float, unit: str = "") -> str:
    """`registers per thread 40 -> 64`."""
    return f"{title} {quantity(before, unit)} -> {quantity(after, unit)}"


def by(before: float, after: float) -> str:
    """`12.3 % more`, `8 % less`, `2.4 times as much`."""
    if before <= 0:
        return "more"
    part = after / before - 1
    if part >= 1:
        return f"{figures(after / before)} times as much"
    return f"{figures(abs(100 * part), 2)} % {'more' if part >= 0 else 'less'}"


def kernels(view: View) -> str:
    """What the work of the device is called: `kernels`, on Metal `encoders`."""
    return f"{work_word(view.candidate.backend)}s"


def kernel(name: str) -> str:
    """A kernel's name in a sentence."""
    return short_name(name, 48)
