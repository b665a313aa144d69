"""What tests want to know of a chart: its elements, and which of its words overlap."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from profkit.reporting.charts.draw import FONT, draw, width
from profkit.reporting.charts.marks import Chart


def svg(chart: Chart) -> str:
    """The chart as a page draws it."""
    return draw(chart) or ""


def corners(mark: ElementTree.Element) -> list[tuple[float, float]]:
    """The corners of a path."""
    numbers = [float(part) for part in re.findall(r"-?[\d.]+", mark.get("d") or "")]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def parsed(chart: str) -> ElementTree.Element:
    """The chart as XML; it is no XML where something is not escaped."""
    assert "NaN" not in chart
    assert "inf" not in {part.strip('"') for part in chart.split("=")}
    return ElementTree.fromstring(chart)


def words(chart: str) -> list[str]:
    """Everything that stands on the chart, in order."""
    return [element.text or "" for element in parsed(chart).iter("text")]


def hovers(chart: str) -> list[str]:
    """Every hover text but the chart's own name."""
    return [element.text or "" for element in parsed(chart).iter("title")][1:]


def marks(chart: str, name: str, kind: str) -> list[ElementTree.Element]:
    """The elements of that name that have the class `kind`."""
    return [e for e in parsed(chart).iter(name) if kind in (e.get("class") or "").split()]


def boxes(chart: str) -> list[tuple[str, float, float, float, float]]:
    """Of all words: the text, and left, top, right, bottom with letters as large as they ever are."""
    found = []
    for element in parsed(chart).iter("text"):
        kinds = (element.get("class") or "").split()
        x, y, wide = float(element.get("x") or 0), float(element.get("y") or 0), width(element.text or "")
        left = x - wide if "e" in kinds else x - wide / 2 if "m" in kinds else x
        found.append((element.text or "", left, y - 0.75 * FONT, left + wide, y + 0.2 * FONT))
    return found


def overlaps(chart: str) -> list[tuple[str, str]]:
    """Pairs of words that stand on each other."""
    found, all_boxes = [], boxes(chart)
    for i, (one, l1, t1, r1, b1) in enumerate(all_boxes):
        for other, l2, t2, r2, b2 in all_boxes[i + 1 :]:
            if l1 < r2 - 0.5 and l2 < r1 - 0.5 and t1 < b2 - 0.5 and t2 < b1 - 0.5:
                found.append((one, other))
    return found


def outside(chart: str) -> list[str]:
    """Words that leave the chart."""
    _, _, wide, high = map(float, (parsed(chart).get("viewBox") or "").split())
    return [
        t
        for t, left, top, right, low in boxes(chart)
        if left < -1 or right > wide + 1 or top < -1 or low > high + 1
    ]
