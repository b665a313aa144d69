"""A chart as inline SVG: its axes, its marks, the words beside them, and a legend below.

Every chart has the same width in its own units and grows with its container; letters are placed as large as they are
on the narrowest screen, so what does not overlap there overlaps nowhere. A word whose place is taken is left out: it
hovers over its mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from profkit.core.formatting import plural
from profkit.reporting.charts.marks import (
    AnyMark,
    Area,
    Chart,
    Legend,
    Line,
    Point,
    Points,
    Rectangle,
    Rule,
    places,
)
from profkit.reporting.charts.svg import (
    FONT,
    LINE,
    WIDTH,
    Number,
    curve,
    fitted,
    focusable,
    frame,
    hover,
    line,
    linked,
    number,
    rect,
    tag,
    text,
    width,
    wrapped,
)

FOCUSED = 40  # points of a mark up to which the keyboard reaches each
SERIES = 8  # colours there are
_LEAST_SEEN = 2.5  # units: a shorter interval is inside of its mark
_SHAPES = (
    "M{x} {y}m-2.8 0a2.8 2.8 0 1 0 5.6 0a2.8 2.8 0 1 0-5.6 0z",  # disc
    "M{x} {y}m-2.5-2.5h5v5h-5z",  # square
    "M{x} {y}m0-3.4l3.2 5.6h-6.4z",  # triangle
    "M{x} {y}m0-3.6l3.6 3.6l-3.6 3.6l-3.6-3.6z",  # diamond
)

Place = tuple[float, float, float, float]  # left, top, right, bottom


def draw(chart: Chart, number: Number) -> str | None:
    """The chart as finished SVG; None where it has no marks. `number` gives the place of a footnote."""
    if not chart.marks:
        return None
    return _Drawing(chart, number).svg()


class _Drawing:
    def __init__(self, chart: Chart, number: Number) -> None:
        self.chart, self.number = chart, number
        across, up = places(chart.marks)
        self.taken: list[Place] = [(0, 0, width(chart.y.title), LINE)]
        self.ticks = chart.y.marked(chart.y.scale(up, 1.0, 0.0))
        rules = any(isinstance(mark, Rule) and mark.x is not None and mark.label for mark in chart.marks)
        series = any(isinstance(mark, Points) and mark.letter and mark.joined for mark in chart.marks)
        self.left = max((width(tick.label) for tick in self.ticks), default=0.0) + 8
        self.right = WIDTH - 8 - (1.5 * FONT if series else 0)
        self.top = LINE + 6 + (LINE + 4 if rules else 0)
        below = 8.0 if chart.x.ticks == () else LINE + 6 + (LINE + 4 if chart.x.title else 0)
        self.bottom = chart.height - below
        self.y = chart.y.scale(up, self.bottom, self.top)
        inset = 0 if chart.x.low is not None else 6
        self.x = chart.x.scale(across, self.left + inset, self.right - inset, room=False)

    def svg(self) -> str:
        chart = self.chart
        drawn = [*self._axes(), *(piece for mark in chart.marks for piece in self._mark(mark))]
        drawn += [piece for mark in chart.marks for piece in self._words(mark)]
        rows, at = legend_rows(chart.legend, chart.height + 4, self.number)
        small, at = small_print(chart.note, at if rows else chart.height)
        name = f"{chart.title}: {chart.of}" if chart.of else chart.title
        height = at + 2 if rows or small else chart.height
        return frame(chart.kind, height, name, chart.description, [*drawn, *rows, *small])

    # ---------------------------------------------------------------- axes

    def _axes(self) -> Iterator[str]:
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

    def _mark(self, mark: AnyMark) -> Iterator[str]:
        match mark:
            case Line():
                ends = [(self.x(x), self.y(y)) for x, y in mark.points]
                yield self._group(curve(ends, mark.style), mark.hover, self.number(mark.source))
            case Area():
                upper = [(self.x(x), self.y(high)) for x, _, high in mark.edges]
                lower = [(self.x(x), self.y(low)) for x, low, _ in reversed(mark.edges)]
                yield self._group(curve([*upper, *lower], mark.style, closed=True), mark.hover)
            case Rectangle():
                left, right = sorted(map(self.x, mark.x))
                top, low = sorted(map(self.y, mark.y))
                drawn = rect(left, top, max(0.8, right - left), max(0.8, low - top), mark.style)
                yield self._group(drawn, mark.hover)
            case Rule(x=None, y=y) if y is not None and self.y.holds(y):
                yield self._group(line(self.left, self.y(y), self.right, self.y(y), mark.style), mark.hover)
            case Rule(y=None, x=x) if x is not None and self.x.holds(x):
                yield self._group(line(self.x(x), self.top, self.x(x), self.bottom, mark.style), mark.hover)
            case Points():
                yield from self._points(mark)

    def _points(self, mark: Points) -> Iterator[str]:
        body, colour = "", mark.number % SERIES + 1
        if mark.joined and len(mark.points) > 1:
            body = curve([(self.x(p.x), self.y(p.y)) for p in mark.points], f"line l{colour}")
        alone = not mark.hover and len(mark.points) <= FOCUSED
        for point in mark.points if len(mark.points) <= FOCUSED else self._apart(mark.points):
            drawn = self._point(point, mark, "" if alone else point.hover)
            if alone:
                yield self._group(drawn, point.hover, self.number(point.source))
            else:
                body += drawn
        if body:
            yield self._group(body, mark.hover or mark.name or plural(len(mark.points), "value"))

    def _apart(self, points: Sequence[Point]) -> Iterable[Point]:
        """Of many points that would cover each other one."""
        found: dict[tuple[int, int], Point] = {}
        for point in points:
            found.setdefault((round(self.x(point.x)), round(self.y(point.y))), point)
        return found.values()

    def _point(self, point: Point, mark: Points, words: str) -> str:
        x, y, colour = self.x(point.x), self.y(point.y), mark.number % SERIES + 1
        title, drawn = hover(words) if words else "", ""
        if point.low is not None and point.high is not None:
            low, high = self.y(point.low), self.y(point.high)
            drawn = line(x, low, x, high, f"line l{colour}") if low - high > _LEAST_SEEN else ""
        if mark.joined:
            shape = _SHAPES[mark.number % len(_SHAPES)].format(x=number(x), y=number(y))
            return drawn + tag("path", title, d=shape, class_=f"f{colour}")
        style = f"f{colour}" if mark.letter else point.style
        return drawn + tag("circle", title, cx=x, cy=y, r=point.size, class_=style)

    def _group(self, body: str, words: str, source: int = 0) -> str:
        return focusable(body, words, source) if words else body

    # ---------------------------------------------------------------- words beside marks

    def _words(self, mark: AnyMark) -> Iterator[str]:
        """Numbers above points, letters at the ends of series, names of rules."""
        match mark:
            case Points():
                for point in mark.points if len(mark.points) <= FOCUSED else ():
                    half, y = width(point.label) / 2, self.y(point.y) - point.size - 2
                    yield from self._placed(point.label, "t", self.x(point.x) - half, [y], "")
                if mark.letter and mark.points and mark.joined:
                    last = max(mark.points, key=lambda point: point.x)
                    left = min(max(self.x(last.x) + 7, self.right - 6), WIDTH - width(mark.letter) - 1)
                    y = self.y(last.y) + 0.35 * FONT
                    bases = [y + step * FONT for n in range(8) for step in (0.95 * n, -0.95 * n)]
                    yield from self._placed(
                        mark.letter, f"f{mark.number % SERIES + 1} t", left, bases, mark.name
                    )
            case Rule(x=None, y=y) if y is not None:
                at = self.y(y)
                yield from self._placed(mark.label, "note", self.left + 3, [at - 3, at + FONT], "")
            case Rule(x=x) if x is not None:
                half = width(mark.label) / 2
                middle = min(WIDTH - 2 - half, max(2 + half, self.x(x)))
                yield from self._placed(mark.label, mark.style, middle - half, [self.top - 4], "")

    def _placed(
        self, words: str, kind: str, left: float, bases: Sequence[float], about: str
    ) -> Iterator[str]:
        """The words at the first base line that is free; nothing where none is."""
        right = left + width(words)
        for base in bases if words and left >= 1 and right <= WIDTH else ():
            top, low = base - 0.75 * FONT, base + 2
            free = not any(left < r and x < right and top < b and y < low for x, y, r, b in self.taken)
            if free and 0.7 * FONT < base < self.bottom - 1 and (left >= self.left - 1 or base < self.top):
                self.taken.append((left, top, right, low))
                yield text((left, base), words, kind, about or None)
                return


# ---------------------------------------------------------------- below a chart


def legend_rows(rows: Sequence[Legend], y: float, number: Number) -> tuple[list[str], float]:
    """The legend from `y` on, and where it ends."""
    drawn: list[str] = []
    for row in rows:
        left = 18 if row.style else 2
        drawn += [rect(2, y + 2, 11, 11, row.style)] if row.style else []
        name = fitted(row.name, WIDTH - 10 - left - width(row.value))
        drawn.append(text((left, y + FONT), name, None, row.hover if row.hover != name else None))
        value = text((WIDTH - 2, y + FONT), row.value, "e") if row.value else ""
        drawn.append(linked(value, number(row.source), tabindex="-1") if value else "")
        y += LINE
        small, y = small_print(row.small, y - 1, left=18) if row.small else ([], y)
        drawn += small
    return drawn, y


def small_print(words: str, y: float, left: float = 2) -> tuple[list[str], float]:
    """Small print from `y` on, in as many lines as it needs, and where it ends."""
    lines = wrapped(words, WIDTH - left - 2)
    drawn = [text((left, y + FONT + LINE * index), one, "note") for index, one in enumerate(lines)]
    return drawn, y + LINE * len(lines)
