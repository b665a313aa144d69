"""A chart as inline SVG: its axes, its marks, the words beside them, and a legend below.

Every chart has the same width in its own units and grows with its container; letters are placed as large as they are
on the narrowest screen, so what does not overlap there overlaps nowhere. A word whose place is taken is left out: it
hovers over its mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.core.formatting import format_percent
from profkit.reporting.chart_blocks import Piece, StackedBar
from profkit.reporting.charts.marks import (
    AnyMark,
    Area,
    AxisRule,
    Chart,
    Legend,
    Line,
    Point,
    Points,
    Rectangle,
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
_SIDE = 3.4  # units from one name's dots to the next one's: many stand at one place across

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
        rules = any(isinstance(mark, AxisRule) and mark.x is not None and mark.label for mark in chart.marks)
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
        drawn += self._reader()
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
            case AxisRule(x=None, y=y) if y is not None and self.y.holds(y):
                yield self._group(line(self.left, self.y(y), self.right, self.y(y), mark.style), mark.hover)
            case AxisRule(y=None, x=x) if x is not None and self.x.holds(x):
                yield self._group(line(self.x(x), self.top, self.x(x), self.bottom, mark.style), mark.hover)
            case Points(many=True):
                path = "".join(f"M{number(x)} {number(y)}h0" for x, y, _ in self._dots(mark))
                yield tag("path", d=path, class_=f"cloud p{mark.number % SERIES + 1}")
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
            drawn = line(x, low, x, high, f"line l{colour}") if low - high > _LEAST_SEEN else ""
        if mark.letter:
            shape = _SHAPES[mark.number % len(_SHAPES)].format(x=number(x), y=number(y))
            return drawn + tag("path", title, d=shape, class_=f"f{colour}")
        return drawn + tag("circle", title, cx=x, cy=y, r=point.size, class_=point.style)

    def _group(self, body: str, words: str, source: int = 0) -> str:
        return focusable(body, words, source) if words else body

    def _clouds(self) -> list[Points]:
        return [mark for mark in self.chart.marks if isinstance(mark, Points) and mark.many]

    def _dots(self, mark: Points) -> list[tuple[float, float, Point]]:
        """Places of many points; of those that would cover each other one. Several names stand side by side."""
        clouds = self._clouds()
        aside = _SIDE * (clouds.index(mark) - (len(clouds) - 1) / 2)
        found: dict[tuple[int, int], tuple[float, float, Point]] = {}
        for point in mark.points:
            x, y = self.x(point.x) + aside, self.y(point.y)
            found.setdefault((round(x), round(y)), (x, y, point))
        return list(found.values())

    def _reader(self) -> Iterator[str]:
        """An area over many points by which a script tells the nearest one: its words, or its row of the table."""
        dots = [[point for _, _, point in self._dots(cloud)] for cloud in self._clouds()]
        if not dots:
            return
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

    def _words(self, mark: AnyMark) -> Iterator[str]:
        """Numbers above points, letters at the ends of series, names of rules."""
        match mark:
            case Points(many=False):
                for point in mark.points:
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
            case AxisRule(x=None, y=y) if y is not None:
                at = self.y(y)
                yield from self._placed(mark.label, "note", self.left + 3, [at - 3, at + FONT], "")
            case AxisRule(x=x) if x is not None:
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


# ---------------------------------------------------------------- a whole, cut into its parts

COLOURS = 6  # that distinguish parts; numbers do so where there is no colour
_THICK = 26.0  # how high a stacked bar is
_LEFT, _ROOM = 2.0, WIDTH - 4


def draw_stacked(chart: StackedBar, number: Number) -> str:
    """The pieces in their order, at most six and the rest together; shares above a whole are scaled down to one."""
    shown = _gathered(chart.pieces)
    whole = max(1.0, sum(piece.share for piece in shown))
    drawn = [text((_LEFT, FONT), fitted(chart.title, _ROOM), "t")]
    x, y = _LEFT, LINE + 6
    rows = []
    for place, piece in enumerate(shown, 1):
        wide, colour = _ROOM * piece.share / whole, "s0" if piece.idle else f"s{(place - 1) % COLOURS + 1}"
        mark = rect(x, y, wide, _THICK, colour if piece.idle else f"{colour} cut")
        if wide > width(str(place)) + 6:
            at = (x + wide / 2, y + _THICK / 2 + 0.35 * FONT)
            mark += text(at, str(place), "m" if piece.idle else "m on")
        drawn.append(focusable(mark, piece.hover, number(piece.source)))
        share = f"{format_percent(100 * piece.share)} %"
        rows.append(Legend(f"{place}  {piece.label}", share, colour, hover=piece.hover, source=piece.source))
        x += wide
    legend, end = legend_rows(rows, y + _THICK + 6, number)
    return frame(f"stacked {chart.kind}", end + 4, chart.title, chart.description, [*drawn, *legend])


def _gathered(pieces: Sequence[Piece]) -> list[Piece]:
    """At most six: what is small goes together, and what is idle stays by itself."""
    kept = [piece for piece in pieces if piece.share > 0]
    if len(kept) <= COLOURS:
        return kept
    busy = sorted((p for p in kept if not p.idle), key=lambda piece: -piece.share)
    idle = [piece for piece in kept if piece.idle]
    room = COLOURS - 1 - len(idle)
    first, rest = busy[:room], busy[room:]
    words = "; ".join(piece.hover for piece in rest)
    share = sum(piece.share for piece in rest)
    small = Piece(f"others ({len(rest)})", share, words, source=rest[0].source)
    return [*(piece for piece in kept if piece in first), small, *idle]
