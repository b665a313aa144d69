"""Values of a long line, for the script that shows the one under the pointer: a mark for each would be 40 kB a year."""

from __future__ import annotations

import json
from collections.abc import Sequence

from profkit.reporting.charts.axes import Box
from profkit.reporting.charts.dates import DAY
from profkit.reporting.charts.scale import Scale
from profkit.reporting.charts.svg import tag
from profkit.reporting.charts.units import axis_unit

FIGURES = 5  # of each value: two more than are shown elsewhere, since neighbours are to be told apart


def reader(
    box: Box, x: Scale, places: Sequence[float], values: Sequence[float], unit: str, *, dated: bool
) -> str:
    """An empty area over the plot that carries the values: `places` are seconds since 1970 where `dated`, else indices.

    Days between places are left out where there is one for each day, as a nightly has it.
    """
    own = axis_unit(unit, max((abs(value) for value in values), default=0.0))
    told: dict[str, object] = {
        "x": [round(x.start, 1), round(x.end, 1)],
        "u": own.name,
        "v": [float(f"{value / own.factor:.{FIGURES}g}") for value in values],
    }
    if dated:
        days = [round((place - places[0]) / DAY) for place in places]
        told["t"] = round(places[0])
        if days != list(range(len(days))):
            told["d"] = days
    return tag(
        "rect",
        x=box.left,
        y=box.top,
        width=box.right - box.left,
        height=box.bottom - box.top,
        class_="reader",
        data_read=json.dumps(told, separators=(",", ":"), allow_nan=False),
    )
