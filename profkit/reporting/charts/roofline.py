"""The roofline: attainable FLOP/s over arithmetic intensity, both logarithmic, and where kernels stand below it.

Points are numbered, and named below the chart: names would stand on each other where kernels are alike. A point is as
large as its share of the time; a hollow one is estimated or simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from profkit.analysis.summaries.roofline_points import Roofline, RooflineCeiling, RooflinePoint
from profkit.core.formatting import format_percent, format_quantity, plural, shorten
from profkit.reporting.charts.axes import Box, Scale, box_for, logarithmic, ticks, x_axis, y_axis
from profkit.reporting.charts.svg import (
    FONT,
    LINE,
    WIDTH,
    Number,
    fitted,
    focusable,
    frame,
    line,
    no_footnote,
    tag,
    text,
    width,
    wrapped,
)
from profkit.reporting.footnotes import footnote_of

Area = tuple[float, float, float, float]  # left, top, right, bottom
HEIGHT = 300.0
LEAST_RADIUS, LARGEST_RADIUS = 3.5, 10.0
AROUND = (
    (1, 0),
    (-1, 0),
    (0, -1),
    (0, 1),
    (1, -1),
    (-1, -1),
    (1, 1),
    (-1, 1),
)  # where a number may stand by its point


def roofline_chart(roofline: Roofline, number: Number = no_footnote) -> str:
    """Ceilings as lines with their names, spots as numbered points, and a line of text for each spot."""

    def leads(one: RooflineCeiling | RooflinePoint) -> int:
        return number(footnote_of(one.reading)) if one.reading is not None else 0

    x, y, box, drawn = _axes(roofline)
    lines = [(roof, _line(roof, roofline.ceilings, x, y, box)) for roof in roofline.ceilings]
    roofs = [area for _, ends in lines for area in _along(ends)]
    used = [_around(x(spot.intensity), y(spot.rate), _radius(spot)) for spot in roofline.points]
    for roof, ends in sorted(lines, key=lambda pair: not pair[0].main):
        drawn += _roof(roof, ends, box, used, roofs, leads(roof))
    for place, spot in sorted(enumerate(roofline.points, 1), key=lambda pair: -(pair[1].share or 0)):
        drawn.append(_spot(place, spot, x(spot.intensity), y(spot.rate), used, roofs, box, leads(spot)))
    below = HEIGHT + 6
    for place, spot in enumerate(roofline.points, 1):
        legend = _legend(place, spot, below)
        drawn += legend
        below += LINE * (len(legend) - 1)
    for words in _rest(roofline):
        drawn.append(text((2, below + FONT), words, "note"))
        below += LINE
    return frame("roofline", below + 6, "Roofline", _told(roofline), drawn)


def _axes(roofline: Roofline) -> tuple[Scale, Scale, Box, list[str]]:
    memory = [roof.peak for roof in roofline.ceilings if roof.kind == "memory"]
    compute = [roof.peak for roof in roofline.ceilings if roof.kind == "compute"]
    ridges = [one / other for one in compute for other in memory]
    intensities = [spot.intensity for spot in roofline.points]
    across = logarithmic([*intensities, *ridges], 0, 1, room=4)
    rates = [spot.rate for spot in roofline.points]
    # At the left the lowest slope ends at its own rate, which should be on the chart, within reason.
    lowest = max(min(rates) / 30, min([peak * across.low for peak in memory], default=min(rates)))
    down = logarithmic([*rates, *compute, lowest], 0, 1, room=3)
    fine, unit = ticks(down, "FLOP/s", 5)
    box = box_for(fine, HEIGHT, below=2 * LINE + 10)
    x = Scale(across.low, across.high, box.left, box.right, log=True)
    y = Scale(down.low, down.high, box.bottom, box.top, log=True)
    drawn = y_axis(box, y, fine, f"Roofline ({unit.name})")
    drawn += x_axis(box, x, ticks(x, "", 5)[0], "FLOP per byte of memory traffic")
    return x, y, box, drawn


def _line(
    roof: RooflineCeiling, roofs: Sequence[RooflineCeiling], x: Scale, y: Scale, box: Box
) -> Area | None:
    """Where a roof begins and ends: a level from the highest slope on, a slope up to the highest level."""
    if roof.kind == "compute":
        slope = max((other.peak for other in roofs if other.kind == "memory"), default=None)
        begin = max(x.low, roof.peak / slope) if slope else x.low
        return x(begin), y(roof.peak), box.right, y(roof.peak)
    level = max((other.peak for other in roofs if other.kind == "compute"), default=y.high)
    low, high = max(x.low, y.low / roof.peak), min(x.high, level / roof.peak)
    return (x(low), y(low * roof.peak), x(high), y(high * roof.peak)) if high > low else None


def _roof(
    roof: RooflineCeiling, ends: Area | None, box: Box, used: list[Area], roofs: Sequence[Area], source: int
) -> list[str]:
    """The line with its name where there is room; what nothing here stands under is thin."""
    if ends is None:
        return []
    label = f"{roof.name}: {format_quantity(roof.peak, 'FLOP/s' if roof.kind == 'compute' else 'B/s')}"
    label += " (estimated)" if roof.estimated else ""
    mark = line(*ends, "ceiling" + ("" if roof.main else " thin") + (" estimated" if roof.estimated else ""))
    room = width(label)
    for left, base in _beside(roof, ends, room):
        area = (left, base - 0.75 * FONT, left + room, base + 3)
        inside = box.left < left and left + room <= box.right + 1 and box.top - 2 < base < box.bottom - 4
        if inside and not _taken(area, [*used, *roofs]):
            used.append(area)
            mark += text((left, base), label, "note")
            break
    return [focusable(mark, label, source)]


def _beside(roof: RooflineCeiling, ends: Area, room: float) -> list[tuple[float, float]]:
    """Where the name of a roof may begin: above a level, or below; left above a slope, or right below."""
    x1, y1, x2, y2 = ends
    if roof.kind == "compute":
        bases = (y1 - 4.5, y1 + FONT + 1)
        lefts = (x2 - room, (x1 + x2 - room) / 2, x1 + 8, x1 - room - 4)
        return [(left, base) for base in bases for left in lefts]
    shares = (0.6, 0.45, 0.8, 0.3, 0.95, 0.1)
    along = [(x1 + (x2 - x1) * share, y1 + (y2 - y1) * share) for share in shares]
    return [*((x - 8 - room, y - 5) for x, y in along), *((x + 8, y + 8) for x, y in along)]


def _along(ends: Area | None) -> list[Area]:
    """A roof as small areas that no name may cover."""
    if ends is None:
        return []
    x1, y1, x2, y2 = ends
    count = max(2, int((abs(x2 - x1) + abs(y2 - y1)) / 5))
    places = [(x1 + (x2 - x1) * i / count, y1 + (y2 - y1) * i / count) for i in range(count + 1)]
    return [(x - 0.5, y - 0.5, x + 0.5, y + 0.5) for x, y in places]


def _around(x: float, y: float, radius: float) -> Area:
    return x - radius, y - radius, x + radius, y + radius


def _radius(spot: RooflinePoint) -> float:
    """Its area grows with its share of the time."""
    return LEAST_RADIUS + (LARGEST_RADIUS - LEAST_RADIUS) * sqrt(min(1.0, spot.share or 0.0))


def _spot(
    number: int,
    spot: RooflinePoint,
    x: float,
    y: float,
    used: list[Area],
    roofs: Sequence[Area],
    box: Box,
    source: int,
) -> str:
    radius, word = _radius(spot), str(number)
    wide = width(word)
    mark = tag("circle", cx=x, cy=y, r=radius, class_="dot hollow" if spot.quality else "dot")
    # Beside everything else where that goes, else upon a roof: a point without its number says nothing.
    for avoided in ((*used, *roofs), tuple(used)):
        area = next((one for one in _corners(x, y, radius, wide, box) if not _taken(one, avoided)), None)
        if area is not None:
            used.append(area)
            mark += text(((area[0] + area[2]) / 2, area[3] - 2), word, "m t")
            break
    return focusable(mark, f"{number}: {spot.description}{_quality(spot)}", source)


def _corners(x: float, y: float, radius: float, wide: float, box: Box) -> list[Area]:
    """Where a number may stand around its point, inside of the box."""
    found = []
    for right, down in AROUND:
        middle = x + right * (radius + wide / 2 + 2)
        base = y + 0.35 * FONT + down * (radius + 0.6 * FONT)
        if (
            box.left < middle - wide / 2
            and middle + wide / 2 < box.right + 6
            and box.top + 2 < base < box.bottom - 2
        ):
            found.append((middle - wide / 2, base - 0.75 * FONT, middle + wide / 2, base + 2))
    return found


def _taken(area: Area, used: Sequence[Area]) -> bool:
    left, top, right, bottom = area
    return any(left < end and begin < right and top < low and high < bottom for begin, high, end, low in used)


def _legend(number: int, spot: RooflinePoint, y: float) -> list[str]:
    """Two lines for a point, or three: its name, share of the time, rate, and what limits it."""
    share = (
        f"{format_percent(100 * spot.share)} % of the time"
        if spot.share is not None and spot.share < 1
        else ""
    )
    facts = [
        f"{format_quantity(spot.rate, 'FLOP/s')} {spot.under}",
        f"limited by {spot.bound}" if spot.bound else "",
        spot.quality or "",
    ]
    words = wrapped("; ".join(fact for fact in facts if fact), WIDTH - 20)
    return [
        text((2, y + FONT), fitted(f"{number}  {spot.label}", WIDTH - 8 - width(share)), None, spot.label),
        text((WIDTH - 2, y + FONT), share, "e") if share else "",
        *(text((18, y + FONT + LINE * (i + 1) - 1), one, "note") for i, one in enumerate(words)),
    ]


def _quality(spot: RooflinePoint) -> str:
    return f" ({spot.quality})" if spot.quality else ""


def _rest(roofline: Roofline) -> list[str]:
    """What is not on the chart, and why: a kernel that most of the time goes to is missed there."""
    found = []
    if roofline.further:
        found.append(f"and {plural(roofline.further, 'further kernel')}, in the table")
    for one in roofline.left_out[:3]:
        part = f" ({format_percent(100 * one.share)} % of the time)" if one.share else ""
        which = (
            shorten(one.first, 40) if one.count == 1 else f"{shorten(one.first, 32)} and {one.count - 1} more"
        )
        found.append(f"Not placed: {which}{part}: {one.reason}.")
    return [line for words in found for line in wrapped(words, WIDTH - 4)]


def _told(roofline: Roofline) -> str:
    roofs = [
        f"{r.name} {format_quantity(r.peak, 'FLOP/s' if r.kind == 'compute' else 'B/s')}"
        for r in roofline.ceilings
    ]
    spots = [f"{spot.description}{_quality(spot)}" for spot in roofline.points[:5]]
    return " ".join([f"Ceilings: {', '.join(roofs)}.", *(f"{one}." for one in spots), *_rest(roofline)])
