"""A chart as inline SVG: its axes, its marks, and the words beside them.

Every chart has the same width in its own units and grows with its container; letters are placed as large as they are
on the narrowest screen, so what does not overlap there overlaps nowhere. A word whose place is taken is left out: it
hovers over its mark.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import isfinite
from zlib import crc32

from profkit.core.formatting import shorten
from profkit.reporting.charts.marks import (
    AnyMark,
    Area,
    AxisRule,
    Chart,
    Line,
    Point,
    PointGroup,
    TextMark,
    places,
)
from profkit.reporting.html.elements import Html, element, together
from profkit.reporting.plain_text import text_for_others


def draw(chart: Chart) -> Html | None:
    """Return the chart as finished SVG; None where it has no marks."""
    return _Drawing(chart).svg() if chart.marks else None


class _Drawing:
    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        across, up = places(chart.marks)
        self.rules = [mark for mark in chart.marks if isinstance(mark, AxisRule)]
        self.ticks = chart.y.marked(chart.y.scale(up, 1.0, 0.0))
        self.left = max((width(tick.label) for tick in self.ticks), default=0.0) + 8
        self.ends = [mark for mark in chart.marks if isinstance(mark, Line) and mark.label]
        self.right = WIDTH - 8 - max((width(mark.label) for mark in self.ends), default=0.0)
        self.top = LINE + 6 + (LINE + 4 if self.rules else 0)
        self.bottom = HEIGHT - (8.0 if chart.x.ticks == () else LINE + 6)
        self.y = chart.y.scale(up, self.bottom, self.top)
        self.x = chart.x.scale(across, self.left + 6, self.right - 6)

    def svg(self) -> Html:
        chart = self.chart
        drawn = [*self._axes(), *map(self._mark, chart.marks), *self._names()]
        return frame(chart.kind, HEIGHT, chart.title, chart.description, drawn)

    def _axes(self) -> Iterator[Html]:
        """Yield lines across with their values at the left, and the lower edge with as many values as fit."""
        yield text((2, FONT), fitted(self.chart.y.title, WIDTH - 4), "t")
        for tick in self.ticks:
            y = self.y(tick.value)
            yield line(self.left, y, self.right, y, "grid")
            yield text((self.left - 5, y + FONT * 0.35), tick.label, "e")
        yield line(self.left, self.bottom, self.right, self.bottom, "axis")
        ticks = self.chart.x.marked(self.x)
        used: list[tuple[float, float]] = []
        for tick in [*ticks[:1], *ticks[:0:-1][:1], *ticks[1:-1]]:  # both ends first
            x = self.x(tick.value)
            if (middle := _free_place(tick.label, x, used)) is not None:
                yield line(x, self.bottom, x, self.bottom + 4, "axis")
                yield text((middle, self.bottom + FONT + 4), tick.label, "m")

    def _mark(self, mark: AnyMark) -> Html:
        match mark:
            case Line():
                drawn = curve([(self.x(x), self.y(y)) for x, y in mark.points], mark.style)
            case Area():
                upper = [(self.x(x), self.y(high)) for x, _, high in mark.edges]
                lower = [(self.x(x), self.y(low)) for x, low, _ in reversed(mark.edges)]
                drawn = curve([*upper, *lower], mark.style, closed=True)
            case AxisRule():
                drawn = line(self.x(mark.x), self.top, self.x(mark.x), self.bottom, mark.style)
            case TextMark():
                return Html("")  # when all else stands
            case PointGroup():
                drawn = together(map(self._point, mark.points))
        if not mark.hover:
            return drawn
        # What the keyboard reaches, with its hover text as its name.
        label = clean(shorten(mark.hover, LONGEST))
        return element("g", hover(mark.hover), drawn, tabindex="0", role="img", aria_label=label)

    def _point(self, point: Point) -> Html:
        title = hover(point.hover) if point.hover else ""
        return tag("circle", title, cx=self.x(point.x), cy=self.y(point.y), r=point.size, class_=point.style)

    def _names(self) -> Iterator[Html]:
        """Yield the names of rules above them, those that stand apart."""
        used: list[tuple[float, float]] = []
        for rule in self.rules:
            middle = _free_place(rule.label, self.x(rule.x), used) if rule.label else None
            if middle is not None:
                yield text((middle, self.top - 4), rule.label, f"{rule.style} m")
        yield from self._line_names()
        yield from self._labels()

    def _labels(self) -> Iterator[Html]:
        """Yield words beside their places, on the first side without other words or a line's end."""
        dots = (dot for mark in self.chart.marks if isinstance(mark, PointGroup) for dot in mark.points)
        places = ((self.x(dot.x), self.y(dot.y), dot.size) for dot in dots)
        used = [(x - size, y - size, x + size, y + size) for x, y, size in places]
        for mark in self.chart.marks:
            if not isinstance(mark, TextMark):
                continue
            words, high = fitted(mark.text, (self.right - self.left) * 0.6), FONT
            wide = width(words)
            x, y = self.x(mark.x), self.y(mark.y)
            sides = {
                "r": (x + mark.apart, y - high / 2),
                "l": (x - mark.apart - wide, y - high / 2),
                "a": (x - wide / 2, y - mark.apart - high),
                "b": (x - wide / 2, y + mark.apart),
            }
            for left, top in map(sides.__getitem__, mark.sides if words else ""):
                box = left, top, left + wide, top + high
                inside = self.left < left and box[2] < self.right and self.top <= top and box[3] < self.bottom
                if inside and not any(_overlap(box, other) for other in used):
                    used.append(box)
                    yield text((left, top + high * 0.8), words, f"label {mark.style}".strip())
                    break

    def _line_names(self) -> Iterator[Html]:
        """Draw the names of lines after their ends; names that would overlap are moved up and down.

        None where there are more than have room.
        """
        if len(self.ends) * FONT > self.bottom - self.top:
            return
        named = sorted(self.ends, key=lambda mark: self.y(mark.points[-1][1]))
        places = [self.y(mark.points[-1][1]) for mark in named]
        lowest = self.bottom
        for n in reversed(range(len(places))):
            lowest = places[n] = min(places[n], lowest)
            lowest -= FONT
        highest = self.top
        for n, place in enumerate(places):
            highest = places[n] = max(place, highest)
            highest += FONT
        for mark, y in zip(named, places, strict=True):
            yield text((self.right + 4, y + FONT * 0.35), mark.label, f"end {mark.style}")


def _overlap(first: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    """Return whether two boxes (left, top, right, bottom) share a place."""
    return first[0] < other[2] and other[0] < first[2] and first[1] < other[3] and other[1] < first[3]


def _free_place(words: str, x: float, used: list[tuple[float, float]]) -> float | None:
    """Return the middle of words near `x`, on a line on which others have `used` places; None if there is no
    room.
    """
    half = width(words) / 2
    middle = min(WIDTH - 2 - half, max(2 + half, x))
    if any(middle + half + 4 > low and middle - half - 4 < high for low, high in used):
        return None
    used.append((middle - half, middle + half))
    return middle


FONT = 13.0  # in units of a chart: how large letters are where the screen is narrowest; everything is placed for it
LINE = 16.0  # from one line of text to the next
_NARROW, _WIDE = frozenset("iljtfr.,:;'|!()[]{}I/\\ "), frozenset("mwMW@%—…")
LONGEST = 300  # characters of a name that hovers: more hides the page behind it


def clean(text: str) -> str:
    """Return the text on one line, with control characters and changes of text direction made visible."""
    return " ".join(text_for_others(text).split())


def width(text: str, size: float = FONT) -> float:
    """Return how wide a line of text is at most, in the unit of `size`."""
    return size * sum(map(_advance, text))


@lru_cache(maxsize=1024)
def _advance(sign: str) -> float:
    if sign in _NARROW:
        return 0.38
    if sign in _WIDE or unicodedata.east_asian_width(sign) in "WF":
        return 1.02
    if unicodedata.combining(sign):
        return 0.0
    return 0.72 if sign.isupper() else 0.62


def fitted(text: str, room: float, size: float = FONT) -> str:
    """Return the text as it fits into `room`, its middle left out where it is too long; nothing where no three
    letters fit.
    """
    text = clean(text)
    if width(text, size) <= room:
        return text
    lengths = range(min(len(text) - 1, int(room / (0.38 * size)) + 1), 3, -1)
    return next((short for count in lengths if width(short := shorten(text, count), size) <= room), "")


WIDTH, HEIGHT = 400.0, 190.0  # of every chart, in its own units
LONGEST_TEXT = 1500  # characters of a chart's text alternative


def number(value: float) -> str:
    """Return a coordinate with at most one decimal. ValueError where it is none: a chart with NaN in it shows
    nothing.
    """
    if not isfinite(value):
        raise ValueError(f"{value} is not a place on a chart")
    text = f"{value:.1f}"
    short = text[:-2] if text.endswith(".0") else text
    return "0" if short == "-0" else short


def tag(name: str, *children: str, **attributes: float | str | None) -> Html:
    """Return one element, with its numbers as coordinates."""
    words = {key: number(v) if isinstance(v, int | float) else v for key, v in attributes.items()}
    return element(name, *children, **words)


def hover(text: str) -> Html:
    """Return what is shown while the pointer rests on an element, or the keyboard's focus does."""
    return element("title", clean(shorten(text, LONGEST)))


def text(at: tuple[float, float], words: str, kind: str | None = None, hover_text: str | None = None) -> Html:
    """Return words whose baseline begins at `at`; class `e` ends there, `m` has its middle there."""
    return tag("text", words, hover(hover_text) if hover_text else "", x=at[0], y=at[1], class_=kind)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    """Return a straight line as a path, which is the shortest way to write one."""
    return tag("path", d=f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}", class_=kind)


def curve(points: Iterable[tuple[float, float]], kind: str, *, closed: bool = False) -> Html:
    """Return a line through points, or the area inside of it."""
    body = " ".join(f"{number(x)} {number(y)}" for x, y in points)
    return tag("path", d=f"M{body}{'z' if closed else ''}", class_=kind)


def frame(kind: str, height: float, title: str, description: str, body: Sequence[Html]) -> Html:
    """Return a chart: its name and its text alternative, and what is drawn. `kind` is a class for the style."""
    inner = together(body)
    name, words = clean(shorten(title, LONGEST)), clean(shorten(description, LONGEST_TEXT))
    mark = f"c{crc32(f'{kind}{name}{words}{inner}'.encode(errors='replace')):08x}"
    labels = (element("title", name, id=f"{mark}t"), element("desc", words, id=f"{mark}d"))
    box = f"0 0 {number(WIDTH)} {number(height)}"
    return element(
        "svg",
        *labels,
        inner,
        class_=f"chart {kind}",
        viewBox=box,
        role="group",
        aria_labelledby=f"{mark}t {mark}d",
    )
