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

from profkit.core.formatting import plural, shorten
from profkit.reporting.charts.marks import (
    AnyMark,
    Area,
    AxisRule,
    Chart,
    Line,
    Point,
    Points,
    places,
)
from profkit.reporting.html.elements import Html, element, together
from profkit.reporting.plain_text import without_control_characters

FOCUSED = 40  # points of a mark up to which the keyboard reaches each
SERIES = 8  # colours there are
_LEAST_SEEN = 2.5  # units: a shorter interval is inside of its mark
_DOT = 2.4  # units: its radius
_SHAPES = (
    "M{x} {y}m-2.8 0a2.8 2.8 0 1 0 5.6 0a2.8 2.8 0 1 0-5.6 0z",  # disc
    "M{x} {y}m-2.5-2.5h5v5h-5z",  # square
    "M{x} {y}m0-3.4l3.2 5.6h-6.4z",  # triangle
    "M{x} {y}m0-3.6l3.6 3.6l-3.6 3.6l-3.6-3.6z",  # diamond
)

Place = tuple[float, float, float, float]  # left, top, right, bottom


def draw(chart: Chart) -> Html | None:
    """The chart as finished SVG; None where it has no marks."""
    return _Drawing(chart).svg() if chart.marks else None


class _Drawing:
    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        across, up = places(chart.marks)
        self.taken: list[Place] = [(0, 0, width(chart.y.title), LINE)]
        self.ticks = chart.y.marked(chart.y.scale(up, 1.0, 0.0))
        rules = any(isinstance(mark, AxisRule) for mark in chart.marks)
        series = any(isinstance(mark, Points) and mark.letter and mark.joined for mark in chart.marks)
        self.left = max((width(tick.label) for tick in self.ticks), default=0.0) + 8
        self.right = WIDTH - 8 - (1.5 * FONT if series else 0)
        self.top = LINE + 6 + (LINE + 4 if rules else 0)
        below = 8.0 if chart.x.ticks == () else LINE + 6 + (LINE + 4 if chart.x.title else 0)
        self.bottom = chart.height - below
        self.y = chart.y.scale(up, self.bottom, self.top)
        inset = 0 if chart.x.low is not None else 6
        self.x = chart.x.scale(across, self.left + inset, self.right - inset, room=False)

    def svg(self) -> Html:
        chart = self.chart
        drawn = [*self._axes(), *(piece for mark in chart.marks for piece in self._mark(mark))]
        drawn += [piece for mark in chart.marks for piece in self._words(mark)]
        name = f"{chart.title}: {chart.of}" if chart.of else chart.title
        return frame(chart.kind, chart.height, name, chart.description, drawn)

    # ---------------------------------------------------------------- axes

    def _axes(self) -> Iterator[Html]:
        """Lines across with their values at the left, and the lower edge with as many values as stand apart."""
        yield text((2, FONT), fitted(self.chart.y.title, WIDTH - 4), "t")
        for tick in self.ticks:
            y = self.y(tick.value)
            yield line(self.left, y, self.right, y, "grid")
            yield text((self.left - 5, y + FONT * 0.35), tick.label, "e")
        yield line(self.left, self.bottom, self.right, self.bottom, "axis")
        ticks = self.chart.x.marked(self.x)
        used: list[tuple[float, float]] = []
        for tick in [*ticks[:1], *ticks[:0:-1][:1], *ticks[1:-1]]:  # both ends first
            x, half = self.x(tick.value), width(tick.label) / 2
            middle = min(WIDTH - 2 - half, max(2 + half, x))
            if all(middle + half + 4 <= low or middle - half - 4 >= high for low, high in used):
                used.append((middle - half, middle + half))
                yield line(x, self.bottom, x, self.bottom + 4, "axis")
                yield text((middle, self.bottom + FONT + 4), tick.label, "m")
        if title := self.chart.x.title:
            yield text((self.right, self.bottom + FONT + 4 + LINE), fitted(title, WIDTH - 16), "t e")

    # ---------------------------------------------------------------- marks

    def _mark(self, mark: AnyMark) -> Iterator[Html]:
        match mark:
            case Line():
                ends = [(self.x(x), self.y(y)) for x, y in mark.points]
                yield self._group(curve(ends, mark.style), mark.hover)
            case Area():
                upper = [(self.x(x), self.y(high)) for x, _, high in mark.edges]
                lower = [(self.x(x), self.y(low)) for x, low, _ in reversed(mark.edges)]
                yield self._group(curve([*upper, *lower], mark.style, closed=True), mark.hover)
            case AxisRule():
                x = self.x(mark.x)
                yield self._group(line(x, self.top, x, self.bottom, mark.style), mark.hover)
            case Points():
                yield from self._points(mark)

    def _points(self, mark: Points) -> Iterator[Html]:
        body, colour = list[Html](), mark.number % SERIES + 1
        if mark.joined and len(mark.points) > 1:
            body.append(curve([(self.x(p.x), self.y(p.y)) for p in mark.points], f"line l{colour}"))
        alone = not mark.hover and len(mark.points) <= FOCUSED
        for point in mark.points:
            drawn = self._point(point, mark, "" if alone else point.hover)
            if alone:
                yield self._group(drawn, point.hover)
            else:
                body.append(drawn)
        if body:
            yield self._group(together(body), mark.hover or mark.name or plural(len(mark.points), "value"))

    def _point(self, point: Point, mark: Points, words: str) -> Html:
        x, y, colour = self.x(point.x), self.y(point.y), mark.number % SERIES + 1
        title, drawn = hover(words) if words else "", list[Html]()
        if point.low is not None and point.high is not None:
            low, high = self.y(point.low), self.y(point.high)
            drawn = [line(x, low, x, high, f"line l{colour}")] if low - high > _LEAST_SEEN else []
        if mark.joined:
            shape = _SHAPES[mark.number % len(_SHAPES)].format(x=number(x), y=number(y))
            return together((*drawn, tag("path", title, d=shape, class_=f"f{colour}")))
        return together((*drawn, tag("circle", title, cx=x, cy=y, r=_DOT, class_=point.style)))

    def _group(self, body: Html, words: str) -> Html:
        """What the keyboard reaches, with its hover text as its name; without one as it is."""
        if not words:
            return body
        label = clean(shorten(words, LONGEST))
        return element("g", hover(words), body, tabindex="0", role="img", aria_label=label)

    # ---------------------------------------------------------------- words beside marks

    def _words(self, mark: AnyMark) -> Iterator[Html]:
        """Letters at the ends of series, names of rules."""
        match mark:
            case Points():
                if mark.letter and mark.points and mark.joined:
                    last = max(mark.points, key=lambda point: point.x)
                    left = min(max(self.x(last.x) + 7, self.right - 6), WIDTH - width(mark.letter) - 1)
                    y = self.y(last.y) + 0.35 * FONT
                    bases = [y + step * FONT for n in range(8) for step in (0.95 * n, -0.95 * n)]
                    yield from self._placed(
                        mark.letter, f"f{mark.number % SERIES + 1} t", left, bases, mark.name
                    )
            case AxisRule():
                half = width(mark.label) / 2
                middle = min(WIDTH - 2 - half, max(2 + half, self.x(mark.x)))
                yield from self._placed(mark.label, mark.style, middle - half, [self.top - 4], "")

    def _placed(
        self, words: str, kind: str, left: float, bases: Sequence[float], about: str
    ) -> Iterator[Html]:
        """The words at the first base line that is free; nothing where none is."""
        right = left + width(words)
        for base in bases if words and left >= 1 and right <= WIDTH else ():
            top, low = base - 0.75 * FONT, base + 2
            free = not any(left < r and x < right and top < b and y < low for x, y, r, b in self.taken)
            if free and 0.7 * FONT < base < self.bottom - 1 and (left >= self.left - 1 or base < self.top):
                self.taken.append((left, top, right, low))
                yield text((left, base), words, kind, about or None)
                return


FONT = 13.0  # in units of a chart: how large letters are where the screen is narrowest; everything is placed for it
LINE = 16.0  # from one line of text to the next
_NARROW, _WIDE = frozenset("iljtfr.,:;'|!()[]{}I/\\ "), frozenset("mwMW@%—…")
LONGEST = 300  # characters of a name that hovers: more hides the page behind it


def clean(text: str) -> str:
    """The text on one line: control characters and what turns the direction of the text around it are made visible."""
    return " ".join(without_control_characters(text).split())


def width(text: str, size: float = FONT) -> float:
    """How wide a line of text is at most, in the unit of `size`."""
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
    """The text as it fits into `room`, its middle left out where it is too long; nothing where no three letters fit."""
    text = clean(text)
    if width(text, size) <= room:
        return text
    lengths = range(min(len(text) - 1, int(room / (0.38 * size)) + 1), 3, -1)
    return next((short for count in lengths if width(short := shorten(text, count), size) <= room), "")


WIDTH = 400.0  # of every chart, in its own units
LONGEST_TEXT = 1500  # characters of a chart's text alternative


def number(value: float) -> str:
    """A coordinate with at most one decimal. ValueError where it is none: a chart with NaN in it shows nothing."""
    if not isfinite(value):
        raise ValueError(f"{value} is no place on a chart")
    text = f"{value:.1f}"
    short = text[:-2] if text.endswith(".0") else text
    return "0" if short == "-0" else short


def tag(name: str, *children: str, **attributes: float | str | None) -> Html:
    """One element, its numbers as coordinates."""
    words = {key: number(v) if isinstance(v, int | float) else v for key, v in attributes.items()}
    return element(name, *children, **words)


def hover(text: str) -> Html:
    """What is shown while the pointer rests on an element, or the keyboard's focus does."""
    return element("title", clean(shorten(text, LONGEST)))


def text(at: tuple[float, float], words: str, kind: str | None = None, hover_text: str | None = None) -> Html:
    """Words whose baseline begins at `at`; `kind` names classes: `e` ends there, `m` has its middle there."""
    return tag("text", words, hover(hover_text) if hover_text else "", x=at[0], y=at[1], class_=kind)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    """A straight line as a path, which is the shortest way to write one."""
    return tag("path", d=f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}", class_=kind)


def curve(points: Iterable[tuple[float, float]], kind: str, *, closed: bool = False) -> Html:
    """A line through points, or the area inside of it."""
    body = " ".join(f"{number(x)} {number(y)}" for x, y in points)
    return tag("path", d=f"M{body}{'z' if closed else ''}", class_=kind)


def frame(kind: str, height: float, title: str, description: str, body: Sequence[Html]) -> Html:
    """A chart: its name and its text alternative, and what is drawn. `kind` is a class for the style."""
    inner = together(body)
    name, words = clean(shorten(title, LONGEST)), clean(shorten(description, LONGEST_TEXT))
    mark = f"c{crc32(f'{kind}{name}{words}{inner}'.encode(errors='replace')):08x}"
    told = (element("title", name, id=f"{mark}t"), element("desc", words, id=f"{mark}d"))
    box = f"0 0 {number(WIDTH)} {number(height)}"
    return element(
        "svg",
        *told,
        inner,
        class_=f"chart {kind}",
        viewBox=box,
        role="group",
        aria_labelledby=f"{mark}t {mark}d",
    )
