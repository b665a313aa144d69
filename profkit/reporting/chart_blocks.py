"""Charts as data: what is drawn, not how. Each says what it is without a drawing: a table, or nothing.

`told` is a chart's text alternative. Where other blocks of a view hold the same numbers, the group of charts says so
(`Charts.repeats`), and a format that cannot draw leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from profkit.analysis.stacks.files import Flame
from profkit.analysis.summaries.roofline_points import Roofline
from profkit.analysis.summaries.time import SampleDistribution
from profkit.core.formatting import percent, quantity
from profkit.core.types import Trend
from profkit.reporting.text_plots import plot
from profkit.reporting.view import Block, DataTable, Footnote, Paragraph, Span, Text, table

HOTTEST = 15  # functions beside a flame graph


@dataclass(frozen=True)
class Mark:
    """A line across a bar: what it is to be held against."""

    value: float
    kind: Literal["peak", "target", "median"]
    told: str


@dataclass(frozen=True)
class Bar:
    """One bar with its value in words. `value` None: there is none, and `words` say why.

    `outer` is a wider bar behind it, the whole of it. `doubtful`: estimated, or another reading contradicts it.
    """

    label: str
    value: float | None
    words: str
    told: str
    outer: float | None = None
    marks: tuple[Mark, ...] = ()
    doubtful: bool = False
    note: str = ""
    source: Footnote | None = None


@dataclass(frozen=True)
class Bars(Block):
    """Bars below each other, from 0 to `most` (None: the largest). `kind` is a short word for a format's style."""

    kind: str
    title: str
    told: str
    bars: tuple[Bar, ...]
    most: float | None = None
    legend: str = ""

    def plain(self) -> Sequence[Block]:
        """A table of the names and values."""
        rows = [(bar.label, Span(bar.words, source=bar.source)) for bar in self.bars]
        return (table(("", "value"), rows, title=self.title, note=self.legend),)


@dataclass(frozen=True)
class Piece:
    """A part of a whole: its share (0..1), and what is said of it. `idle` ones are time in which nothing happened."""

    label: str
    share: float
    told: str
    idle: bool = False
    source: Footnote | None = None


@dataclass(frozen=True)
class StackedBar(Block):
    """One bar that is a whole, cut into its parts."""

    kind: str
    title: str
    told: str
    pieces: tuple[Piece, ...]

    def plain(self) -> Sequence[Block]:
        """A table of the parts."""
        rows = [
            (piece.label, Span(f"{percent(100 * piece.share)} %", source=piece.source))
            for piece in self.pieces
        ]
        return (table(("", "share"), rows, title=self.title),)


@dataclass(frozen=True)
class Growth(Block):
    """A value after each iteration: flat, or growing."""

    title: str
    told: str
    points: tuple[tuple[float, float], ...]
    unit: str = "B"

    def plain(self) -> Sequence[Block]:
        """Its first and last value."""
        ends = (self.points[0], self.points[-1]) if len(self.points) > 1 else self.points
        rows = [(f"{at:g}", quantity(value, self.unit)) for at, value in ends]
        return (table(("iteration", "value"), rows, title=self.title, note=self.told),)


@dataclass(frozen=True)
class OverTime(Block):
    """Shares over slices of `seconds` in all: `outer` behind `inner`, and below them in which state the device was."""

    title: str
    told: str
    seconds: float
    outer: tuple[float, ...]
    inner: tuple[float, ...]
    states: tuple[str, ...] = ()
    legend: str = ""

    def plain(self) -> Sequence[Block]:
        """The mean of each."""
        named = (("all", self.outer), ("the process", self.inner))
        rows = [(name, f"{percent(100 * sum(part) / len(part))} %") for name, part in named if part]
        return (table(("", "mean share"), rows, title=self.title, note=self.told),)


@dataclass(frozen=True)
class Distribution(Block):
    """How the samples of a timing lie, for each process; with `ordered` sample by sample in their order."""

    spread: SampleDistribution
    ordered: bool = False


@dataclass(frozen=True)
class TrendChart(Block):
    """A series over time with its segments and change points. `band` is what counts as no change."""

    trend: Trend
    band: tuple[float, float] | None = None
    title: str | None = None

    def plain(self) -> Sequence[Block]:
        """A plot of characters, 64 wide."""
        lines = trend_plot(self.trend)
        return (Paragraph("\n".join(lines), pre=True),) if lines else ()


@dataclass(frozen=True)
class RooflineChart(Block):
    """Kernels below the ceilings of a device."""

    roofline: Roofline

    def plain(self) -> Sequence[Block]:
        """A table of the points."""
        rows = [
            (spot.label, quantity(spot.intensity, "FLOP/B"), quantity(spot.rate, "FLOP/s"), spot.under)
            for spot in self.roofline.points
        ]
        return (table(("", "intensity", "rate", "ceiling"), rows, title="Roofline"),)


@dataclass(frozen=True)
class FlameGraph(Block):
    """Stacks that were sampled, callers above what they call."""

    flame: Flame

    def plain(self) -> Sequence[Block]:
        """The functions with most time of their own."""
        return (table(("function", "own", "with callees"), self.hottest(), title=self.flame.title),)

    def hottest(self) -> list[tuple[str, str, str]]:
        """The functions with most own weight: name, own and total share, each counted once however often it recurs."""
        own: dict[str, float] = {}
        total: dict[str, float] = {}
        path: list[str] = []
        for box in self.flame.boxes:
            del path[box.depth :]
            own[box.name] = own.get(box.name, 0.0) + box.own
            if box.name not in path:
                total[box.name] = total.get(box.name, 0.0) + box.value
            path.append(box.name)
        first = sorted((name for name in own if own[name] > 0), key=lambda name: -own[name])[:HOTTEST]
        return [(name, self._share(own[name]), self._share(total[name])) for name in first]

    def _share(self, value: float) -> str:
        return f"{percent(100 * value / self.flame.total)} %"


@dataclass(frozen=True)
class Dot:
    """A value at a place, the ends of what it may be, and what is said of it."""

    at: float
    value: float
    low: float
    high: float
    told: str


@dataclass(frozen=True)
class LineSeries:
    """One line: its name, its letter, its colour (a number from 0), its dots from left to right.

    `spread`: the ends are no interval but the least and the largest of many, and are told, not drawn.
    """

    name: str
    letter: str
    place: int
    dots: tuple[Dot, ...]
    spread: bool = False


@dataclass(frozen=True)
class LineChart(Block):
    """Lines over a size, both axes logarithmic; `level` is a line across. Values without a unit are ratios."""

    title: str
    across: str
    series: tuple[LineSeries, ...]
    unit: str = ""
    of: str = ""
    level: float | None = None

    def plain(self) -> Sequence[Block]:
        """A table: a row for each line, a column for each place."""
        places = sorted({dot.at for one in self.series for dot in one.dots})
        rows = []
        for one in self.series:
            known = {dot.at: quantity(dot.value, self.unit) for dot in one.dots}
            rows.append((one.name, *(known.get(at, "-") for at in places)))
        return (table((self.across, *(f"{at:g}" for at in places)), rows, title=self.title),)


@dataclass(frozen=True)
class WinnerCell:
    """Who is fastest at a place: a letter, a colour (None where several are alike), the lead, and all numbers."""

    letter: str
    place: int | None
    lead: float | None  # the next one's time over the winner's
    told: str


@dataclass(frozen=True)
class WinnerMap(Block):
    """A grid of who is fastest where; `cells` by (row, column)."""

    title: str
    told: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[int, int], WinnerCell]
    legend: str = ""

    def plain(self) -> Sequence[Block]:
        """A table of the letters."""
        rows = [
            (name, *(self._letter(row, column) for column in range(len(self.columns))))
            for row, name in enumerate(self.rows)
        ]
        return (table(("", *self.columns), rows, title=self.title, note=self.legend),)

    def _letter(self, row: int, column: int) -> str:
        cell = self.cells.get((row, column))
        return cell.letter if cell is not None else "-"


@dataclass(frozen=True)
class Cloud:
    """Dots of one implementation, as (across, up, row): the row is that of the table of all cases."""

    name: str
    letter: str
    place: int
    dots: tuple[tuple[float, float, int], ...]


@dataclass(frozen=True)
class CloudChart(Block):
    """Thousands of dots on logarithmic axes, below two ceilings (bytes/s and FLOP/s), or a line at 100 %."""

    title: str
    across: str
    unit: str
    clouds: tuple[Cloud, ...]
    across_unit: str = ""
    ceilings: tuple[float, float] | None = None
    aside: bool = False  # clouds stand beside each other, as many dots have one place


@dataclass(frozen=True)
class Charts(Block):
    """Charts side by side with a note below. `repeats`: other blocks of the view hold the same numbers."""

    charts: tuple[Block, ...]
    note: str = ""
    repeats: bool = False

    def plain(self) -> Sequence[Block]:
        """Each chart in its own simpler form."""
        return () if self.repeats else self.charts


@dataclass(frozen=True)
class NoChart(Block):
    """Why there is no chart, and what would change that."""

    reason: str
    fix: str | None = None


CellValue: TypeAlias = float | str | None


@dataclass(frozen=True)
class SortableColumn:
    """A column of values with a row each. `unit` "text" where they are words, "n" for sizes as they were asked for.

    `sources` hold where each value comes from, and its mark; empty where that is not told.
    """

    title: str
    unit: str
    values: tuple[CellValue, ...]
    meaning: str = ""
    sources: tuple[tuple[Footnote | None, str], ...] = ()


@dataclass(frozen=True)
class RowDetail:
    """What a row shows when it is opened: a sentence, readings as (value, source, mark), and verdicts."""

    reason: str
    readings: tuple[tuple[str, Footnote, str], ...] = ()
    verdicts: tuple[tuple[str, str, str, str], ...] = ()  # class, label, target, reason


@dataclass(frozen=True)
class SortableTable(Block):
    """Thousands of rows that sort and filter. `names` are found by the filter too, `shapes` stand beside them.

    `reference` is the same for a format without scripts; the first `shown` rows stand in the page for paper.
    """

    title: str
    columns: tuple[SortableColumn, ...]
    names: tuple[str, ...]
    shapes: tuple[str, ...] = ()
    details: Mapping[int, RowDetail] = field(default_factory=dict)
    note: Text = ""
    hint: str = "part of a name"
    shown: int = 200
    reference: tuple[Block, ...] = ()

    def plain(self) -> Sequence[Block]:
        """What its maker gave for formats without scripts."""
        return self.reference

    def as_table(self) -> DataTable:
        """Its first rows as a table."""
        rows = [
            tuple(_cell(column, row) for column in self.columns)
            for row in range(min(self.shown, len(self.names)))
        ]
        return table([column.title for column in self.columns], rows, title=self.title, note=self.note)


def _cell(column: SortableColumn, row: int) -> Span:
    value = column.values[row]
    shown = value if isinstance(value, str) else "" if value is None else quantity(value, column.unit)
    source, mark = column.sources[row] if column.sources else (None, "")
    return Span(shown, source=source, mark=mark)


def trend_plot(trend: Trend, width: int = 64, height: int = 7) -> list[str]:
    """The series as a plot of characters; nothing of fewer than two valid values."""
    values = [point.value if point.valid else None for point in trend.series.points]
    if sum(value is not None for value in values) < 2:
        return []
    return plot(
        values,
        lambda value: quantity(value, trend.series.unit),
        width=width,
        height=height,
        bars=[epoch.first for epoch in trend.epochs[1:]],
        marks=[change.index for change in trend.change_points],
    )
