"""A chart as inline SVG: its axes, its marks, the words beside them, and a legend below.

Every chart has the same width in its own units and grows with its container; letters are placed as large as they are
on the narrowest screen, so what does not overlap there overlaps nowhere. Words find their places by themselves: each
mark names some, and the first that is free is taken. A word without a place still hovers over its mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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

FEW = 60  # points of a mark up to which each is an element: 365 of them would be 30 kB
FOCUSED = 40  # points of a mark up to which the keyboard reaches each
SERIES = 8  # colours there are
LEAST_SEEN = 2.5  # units: a shorter interval is inside of its mark
SHAPES = (
    "M{x} {y}m-2.8 0a2.8 2.8 0 1 0 5.6 0a2.8 2.8 0 1 0-5.6 0z",  # disc
    "M{x} {y}m-2.5-2.5h5v5h-5z",  # square
    "M{x} {y}m0-3.4l3.2 5.6h-6.4z",  # triangle
    "M{x} {y}m0-3.6l3.6 3.6l-3.6 3.6l-3.6-3.6z",  # diamond
)
_AROUND = ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1))  # where a number may stand
_SIDE = 3.4  # units from one name's dots to the next one's: many stand at one place across
_ALONG = (0.6, 0.45, 0.8, 0.3, 0.95, 0.1)  # of a line, where its name may stand

Place = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class _Word:
    """A word, its classes, and where it may begin, as (left, base line); the best first."""

    words: str
    kind: str
    at: tuple[tuple[float, float], ...]
    hover: str = ""


def draw(chart: Chart, number: Number) -> str | None:
    """The chart as finished SVG; None where it has no marks. `number` gives the place of a footnote."""
    if not chart.marks:
        return None
    return _Drawing(chart, number).svg()


class _Drawing:
    def __init__(self, chart: Chart, number: Number) -> None:
        self.chart, self.number = chart, number
        across, up = places(chart.marks)
        self.taken: list[Place] = []
        ticks, unit = chart.y.marked(chart.y.scale(up, 1.0, 0.0))
        self.title = _titled(chart.y.title, unit)
        rules = any(isinstance(mark, Rule) and mark.x is not None and mark.label for mark in chart.marks)
        series = any(isinstance(mark, Points) and mark.letter and mark.joined for mark in chart.marks)
        self.left = max((width(tick.label) for tick in ticks), default=0.0) + 8
        self.right = WIDTH - 8 - (1.5 * FONT if series else 0)
        self.top = LINE + 6 + (LINE + 4 if rules else 0)
        below = 8.0 if chart.x.ticks == () else LINE + 6 + (LINE + 4 if chart.x.title else 0)
        self.bottom = chart.height - below
        self.y = chart.y.scale(up, self.bottom, self.top)
        inset = 0 if chart.x.low is not None else 6
        self.x = chart.x.scale(across, self.left + inset, self.right - inset, room=False)
        self.ticks = ticks

    def svg(self) -> str:
        chart = self.chart
        drawn = [*self._axes(), *(piece for mark in chart.marks for piece in self._mark(mark))]
        words = sorted(self._words(), key=lambda one: one[0])
        drawn += [piece for _, word in words if (piece := self._placed(word))]
        drawn += self._reader()
        rows, at = legend_rows(chart.legend, chart.height + 4, self.number)
        small, at = small_print(chart.note, at if rows else chart.height)
        name = f"{chart.title}: {chart.of}" if chart.of else chart.title
        height = at + 2 if rows or small else chart.height
        return frame(chart.kind, height, name, chart.description, [*drawn, *rows, *small])

    # ---------------------------------------------------------------- axes

    def _axes(self) -> Iterator[str]:
        """Lines across with their values at the left, and the lower edge with as many values as stand apart."""
        title = fitted(self.title, WIDTH - 4)
        yield text((2, FONT), title, "t")
        for tick in self.ticks:
            y = self.y(tick.value)
            yield line(self.left, y, self.right, y, "grid")
            yield text((self.left - 5, y + FONT * 0.35), tick.label, "e")
        yield line(self.left, self.bottom, self.right, self.bottom, "axis")
        ticks, unit = self.chart.x.marked(self.x)
        used: list[tuple[float, float]] = []
        for tick in [*ticks[:1], *ticks[:0:-1][:1], *ticks[1:-1]]:  # both ends first
            x, half = self.x(tick.value), width(tick.label) / 2
            middle = min(WIDTH - 2 - half, max(2 + half, x))
            if all(middle + half + 4 <= low or middle - half - 4 >= high for low, high in used):
                used.append((middle - half, middle + half))
                yield line(x, self.bottom, x, self.bottom + 4, "axis")
                yield text((middle, self.bottom + FONT + 4), tick.label, "m")
        if title := _titled(self.chart.x.title, unit):
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
            case Points(many=True):
                path = "".join(f"M{number(x)} {number(y)}h0" for x, y, _ in self._dots(mark))
                kind = "cloud unseen" if mark.unseen else f"cloud p{mark.number % SERIES + 1}"
                yield tag("path", d=path, class_=kind)
            case Points():
                yield from self._points(mark)

    def _points(self, mark: Points) -> Iterator[str]:
        body, colour = "", mark.number % SERIES + 1
        if mark.joined and len(mark.points) > 1:
            body = curve([(self.x(p.x), self.y(p.y)) for p in mark.points], f"line l{colour}")
        for point in mark.points:
            alone = not mark.hover and len(mark.points) <= FOCUSED
            drawn = self._point(point, mark, "" if alone else point.hover)
            if alone:
                yield self._group(drawn, point.hover, self.number(point.source))
            else:
                body += drawn
        if body:
            yield self._group(body, mark.hover)

    def _point(self, point: Point, mark: Points, words: str) -> str:
        x, y, colour = self.x(point.x), self.y(point.y), mark.number % SERIES + 1
        title, drawn = hover(words) if words else "", ""
        if point.low is not None and point.high is not None:
            low, high = self.y(point.low), self.y(point.high)
            drawn = line(x, low, x, high, f"line l{colour}") if low - high > LEAST_SEEN else ""
        if mark.letter:
            shape = SHAPES[mark.number % len(SHAPES)].format(x=number(x), y=number(y))
            return drawn + tag("path", title, d=shape, class_=f"f{colour}")
        return drawn + tag("circle", title, cx=x, cy=y, r=point.size, class_=point.style)

    def _group(self, body: str, words: str, source: int = 0) -> str:
        return focusable(body, words, source) if words else body

    def _dots(self, mark: Points) -> list[tuple[float, float, Point]]:
        """Places of many points; of those that would cover each other one. Several names stand side by side."""
        clouds = [one for one in self.chart.marks if isinstance(one, Points) and one.many]
        aside = _SIDE * (clouds.index(mark) - (len(clouds) - 1) / 2)
        found: dict[tuple[int, int], tuple[float, float, Point]] = {}
        for point in mark.points:
            x, y = self.x(point.x) + aside, self.y(point.y)
            place = (round(x), round(y))
            found.setdefault(place, (*place, point) if mark.unseen else (x, y, point))
        return list(found.values())

    def _reader(self) -> Iterator[str]:
        """An area over many points by which a script tells the nearest one: its words, or its row of the table."""
        clouds = [mark for mark in self.chart.marks if isinstance(mark, Points) and mark.many]
        if not clouds:
            return
        dots = [[point for _, _, point in self._dots(cloud)] for cloud in clouds]
        words = (
            "|".join(str(one.hover.replace("|", "/") if one.row is None else one.row) for one in cloud)
            for cloud in dots
        )
        yield tag(
            "rect",
            x=self.left,
            y=self.top,
            width=self.right - self.left,
            height=self.bottom - self.top,
            class_="reader",
            tabindex="0",
            role="img",
            aria_label="Points: arrow keys go from one to the next",
            data_points="||".join(words),
            data_columns="|".join(self.chart.columns),
        )

    # ---------------------------------------------------------------- words beside marks

    def _words(self) -> Iterator[tuple[float, _Word]]:
        """What is to be placed, as (order, word): points are in everybody's way, lines in that of words along them."""
        self.taken.append((0, 0, width(self.title), LINE))
        for mark in self.chart.marks:
            match mark:
                case Points(many=False):
                    yield from self._of_points(mark)
                case Line(label=label) if label:
                    ends = [(self.x(x), self.y(y)) for x, y in mark.points]
                    self.taken += _along(ends[0], ends[-1])
                    yield 1, _Word(label, "note", tuple(_beside(ends[0], ends[-1], width(label))))
                case Rule(label=label) if label and mark.y is not None:
                    y, end = self.y(mark.y), self.right - width(label)
                    at = ((self.left + 3, y - 3), (end, y - 3), (self.left + 3, y + FONT))
                    yield 1, _Word(label, "note", at)
                case Rule(label=label) if label and mark.x is not None:
                    half = width(label) / 2
                    middle = min(WIDTH - 2 - half, max(2 + half, self.x(mark.x)))
                    yield 0, _Word(label, mark.style, ((middle - half, self.top - 4),))
                case Rectangle(label=label) if label:
                    middle, half = self.x(sum(mark.x) / 2), width(label) / 2
                    left = min(self.right - 2 * half, max(self.left, middle - half))
                    yield 0, _Word(label, "", ((left, self.y(max(mark.y)) - 4),))

    def _of_points(self, mark: Points) -> Iterator[tuple[float, _Word]]:
        for point in mark.points:
            x, y, r = self.x(point.x), self.y(point.y), point.size
            if point.label:
                self.taken.append((x - r, y - r, x + r, y + r))
                half = width(point.label) / 2
                at = (
                    (x + right * (r + half + 2) - half, y + 0.35 * FONT + down * (r + 0.6 * FONT))
                    for right, down in _AROUND
                )
                yield 2 - point.size / 100, _Word(point.label, "t", tuple(at))
        if mark.letter and mark.points and mark.joined:
            last = max(mark.points, key=lambda point: point.x)
            x, y = max(self.x(last.x) + 7, self.right - 6), self.y(last.y) + 0.35 * FONT
            left = min(x, WIDTH - width(mark.letter) - 1)
            steps = (0, 0.95, -0.95, 1.9, -1.9, 2.85, -2.85, 3.8, -3.8, 4.75, -4.75, 5.7, -5.7, 6.65, -6.65)
            beside = tuple((left, y + step * FONT) for step in steps)
            yield y, _Word(mark.letter, f"f{mark.number % SERIES + 1} t", beside, mark.name)

    def _placed(self, word: _Word) -> str:
        wide = width(word.words)
        for left, base in word.at:
            area = (left, base - 0.75 * FONT, left + wide, base + 2)
            inside = left >= 1 and left + wide <= WIDTH and 0.7 * FONT < base < self.bottom - 1
            if inside and (left >= self.left - 1 or base < self.top) and not self._is_taken(area):
                self.taken.append(area)
                return text((left, base), word.words, word.kind or None, word.hover or None)
        return ""

    def _is_taken(self, area: Place) -> bool:
        left, top, right, low = area
        return any(left < r and x < right and top < b and y < low for x, y, r, b in self.taken)


def _titled(title: str, unit: str) -> str:
    return f"{title} ({unit})" if unit else title


def _along(begin: tuple[float, float], end: tuple[float, float]) -> list[Place]:
    """A line as small places that no word may cover."""
    (x1, y1), (x2, y2) = begin, end
    count = max(2, int((abs(x2 - x1) + abs(y2 - y1)) / 5))
    steps = [(x1 + (x2 - x1) * i / count, y1 + (y2 - y1) * i / count) for i in range(count + 1)]
    return [(x - 0.5, y - 0.5, x + 0.5, y + 0.5) for x, y in steps]


def _beside(
    begin: tuple[float, float], end: tuple[float, float], room: float
) -> Iterator[tuple[float, float]]:
    """Where the name of a line may begin: above a level one, or below it; left of a rising one, or right of it."""
    (x1, y1), (x2, y2) = begin, end
    if abs(y2 - y1) < 1:
        for base in (y1 - 4.5, y1 + FONT + 1):
            yield from ((left, base) for left in (x2 - room, (x1 + x2 - room) / 2, x1 + 8, x1 - room - 4))
        return
    along = [(x1 + (x2 - x1) * share, y1 + (y2 - y1) * share) for share in _ALONG]
    yield from ((x - 8 - room, y - 5) for x, y in along)
    yield from ((x + 8, y + 8) for x, y in along)


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
