"""Small tables for 80 columns, made of readings and hotspots."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.metrics import metric
from profkit.core.formatting import percent, quantity, shortened
from profkit.core.types import Hotspot, Reading, Table

NAME_WIDTH = 44  # what an 80-column terminal leaves a name beside three columns of numbers
TOP = 10  # functions in a table: more than anybody works on at once, few enough to be seen at once


def metric_table(title: str, readings: Sequence[Reading], note: str | None = None) -> Table | None:
    """One row per reading with a value: what, how much and, unless all is measured, how it is known.

    None where no reading has a value.
    """
    known = [r for r in readings if r.value is not None]
    if not known:
        return None
    rows = [(metric(r.metric).title, quantity(r.value, r.unit), how(r)) for r in known]
    if all(r.quality == "measured" for r in known):
        return Table(title, ("what", "value"), tuple(row[:2] for row in rows), note)
    return Table(title, ("what", "value", "how"), tuple(rows), note)


def how(reading: Reading) -> str:
    """The quality in words, with the share of a multiplexed counter."""
    if reading.quality == "multiplexed" and reading.share is not None:
        return f"multiplexed {percent(100 * reading.share)} %"
    return reading.quality


def where(spot: Hotspot, width: int = NAME_WIDTH) -> str:
    """A function with its file and line, or its library, in at most `width` characters."""
    if spot.file is not None:
        base = spot.file.replace("\\", "/").rpartition("/")[2]
        place = f" {base}:{spot.line}" if spot.line else f" {base}"
    else:
        place = f" [{spot.library}]" if spot.library and spot.library != spot.function else ""
    if len(place) > width - 16:  # the name is worth more than the place
        return shortened(spot.function, width)
    return shortened(spot.function, width - len(place)) + place


def share(part: float, total: float) -> str:
    """`part` of `total` as a percentage; a dash where there is no total."""
    return f"{percent(100 * part / total)} %" if total > 0 else "-"


def remarks(readings: Sequence[Reading]) -> tuple[str, ...]:
    """What is not there, one line per reason with all that it stands in the way of, the fix behind it."""
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for reading in readings:
        if reading.value is None and reading.reason:
            reasons.setdefault((reading.reason, reading.fix), []).append(metric(reading.metric).title)
    return tuple(
        f"{', '.join(dict.fromkeys(titles))}: unavailable, {reason}" + (f" ({fix})" if fix else "")
        for (reason, fix), titles in reasons.items()
    )
