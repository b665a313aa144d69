"""Charts as data: what is drawn, not how. Each says what it is without a drawing: a table, or nothing.

`description` is a chart's text alternative. Where other blocks of a view hold the same numbers, the group of charts
says so (`Charts.repeats`), and a format that cannot draw leaves it out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, log10
from typing import TYPE_CHECKING, Literal, TypeAlias

from profkit.analysis.stacks.files import Flame
from profkit.analysis.summaries.roofline_points import Roofline
from profkit.analysis.summaries.time import SampleDistribution
from profkit.core.formatting import format_percent, format_quantity
from profkit.core.statistics import median
from profkit.reporting.text_plots import Plot, letter_plots, plot, roofline_plot
from profkit.reporting.view import Block, Footnote, Paragraph, Span, Text, table

if TYPE_CHECKING:
    from profkit.core.types import Trend

HOTTEST = 15  # functions beside a flame graph
ALL = 100.0  # %
_PLOT = 76  # characters of a plot where the width of the screen is not known
_PER_DECADE = 2  # sizes that are told apart where a cloud is drawn with letters


@dataclass(frozen=True)
class Mark:
    """A line across a bar: what it is to be held against."""

    value: float
    kind: Literal["peak", "target", "median"]
    hover: str


@dataclass(frozen=True)
class Bar:
    """One bar; `text` is its value as people read it. `value` None: there is none, and `text` says why.

    `hover` are the words that hover over it, `outer` is a wider bar behind it, the whole of it. `doubtful`: estimated,
    or another reading contradicts it.
    """

    label: str
    value: float | None
    text: str
    hover: str
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
    description: str
    bars: tuple[Bar, ...]
    most: float | None = None
    legend: str = ""

    def plain(self) -> Sequence[Block]:
        """A table of the names and values."""
        rows = [(bar.label, Span(bar.text, source=bar.source)) for bar in self.bars]
        return (table(("", "value"), rows, title=self.title, note=self.legend),)


@dataclass(frozen=True)
class Piece:
    """A part of a whole: its share (0..1), and the words that hover over it. In `idle` ones nothing happened."""

    label: str
    share: float
    hover: str
    idle: bool = False
    source: Footnote | None = None


@dataclass(frozen=True)
class StackedBar(Block):
    """One bar that is a whole, cut into its parts."""

    kind: str
    title: str
    description: str
    pieces: tuple[Piece, ...]

    def plain(self) -> Sequence[Block]:
        """A table of the parts."""
        rows = [
            (piece.label, Span(f"{format_percent(100 * piece.share)} %", source=piece.source))
            for piece in self.pieces
        ]
        return (table(("", "share"), rows, title=self.title),)


@dataclass(frozen=True)
class Growth(Block):
    """A value after each iteration: flat, or growing."""

    title: str
    description: str
    points: tuple[tuple[float, float], ...]
    unit: str = "B"

    def plain(self) -> Sequence[Block]:
        """Its first and last value."""
        ends = (self.points[0], self.points[-1]) if len(self.points) > 1 else self.points
        rows = [(f"{at:g}", format_quantity(value, self.unit)) for at, value in ends]
        return (table(("iteration", "value"), rows, title=self.title, note=self.description),)


@dataclass(frozen=True)
class OverTime(Block):
    """Shares over slices of `seconds` in all: `outer` behind `inner`, and below them in which state the device was."""

    title: str
    description: str
    seconds: float
    outer: tuple[float, ...]
    inner: tuple[float, ...]
    states: tuple[str, ...] = ()
    legend: str = ""

    def plain(self) -> Sequence[Block]:
        """The mean of each."""
        named = (("all", self.outer), ("the process", self.inner))
        rows = [(name, f"{format_percent(100 * sum(part) / len(part))} %") for name, part in named if part]
        return (table(("", "mean share"), rows, title=self.title, note=self.description),)


@dataclass(frozen=True)
class Distribution(Block):
    """How the samples of a timing lie, for each process; with `ordered` sample by sample in their order."""

    spread: SampleDistribution
    ordered: bool = False


class CharacterPlot(Block):
    """A chart that can be drawn with characters too."""

    caption: str = ""

    def lines(self, width: int) -> list[str]:
        """The plot, at most `width` characters wide; [] where there is nothing to draw."""
        raise NotImplementedError

    def plain(self) -> Sequence[Block]:
        """The caption, and the plot as wide as a page of text."""
        lines = self.lines(_PLOT)
        if not lines:
            return ()
        caption = (Paragraph(self.caption),) if self.caption else ()
        return (*caption, Paragraph("\n".join(lines), pre=True))


@dataclass(frozen=True)
class TrendChart(CharacterPlot):
    """A series over time with its segments and change points. `band` is what counts as no change."""

    trend: Trend
    band: tuple[float, float] | None = None
    title: str | None = None

    def lines(self, width: int) -> list[str]:
        """The series; nothing of fewer than two valid values."""
        values = [point.value if point.valid else None for point in self.trend.series.points]
        if sum(value is not None for value in values) < 2:
            return []
        return plot(
            values,
            lambda value: format_quantity(value, self.trend.series.unit),
            width=width,
            height=7,
            bars=[epoch.first for epoch in self.trend.epochs[1:]],
            marks=[change.index for change in self.trend.change_points],
        )


@dataclass(frozen=True)
class RooflineChart(Block):
    """Kernels below the ceilings of a device."""

    roofline: Roofline

    def plain(self) -> Sequence[Block]:
        """A table of the points."""
        rows = [
            (
                spot.label,
                format_quantity(spot.intensity, "FLOP/B"),
                format_quantity(spot.rate, "FLOP/s"),
                spot.under,
            )
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
        return f"{format_percent(100 * value / self.flame.total)} %"


@dataclass(frozen=True)
class ChartPoint:
    """A value at a place, the ends of what it may be, and the words that hover over it."""

    at: float
    value: float
    low: float
    high: float
    hover: str


@dataclass(frozen=True)
class LineSeries:
    """One line: its name, its letter, the number of its colour (from 0), its points from left to right.

    `spread`: the ends are the least and the largest of many values and no interval, so they are not drawn.
    """

    name: str
    letter: str
    number: int
    points: tuple[ChartPoint, ...]
    spread: bool = False


@dataclass(frozen=True)
class LineChart(Block):
    """Lines over a size, both axes logarithmic. Values are in `unit`; "x" are ratios, with a line across at 1.

    Of "%" the axis goes evenly from 0 to 100. `counted`: the places are 1, 2, 3, ..., as far from each other.
    `of` is what the chart is about, for those who hear its name.
    """

    title: str
    across: str
    series: tuple[LineSeries, ...]
    unit: str
    of: str = ""
    counted: bool = False

    def plain(self) -> Sequence[Block]:
        """A table: a row for each line, a column for each place."""
        places = sorted({point.at for line in self.series for point in line.points})
        rows = []
        for line in self.series:
            values = {point.at: format_quantity(point.value, self.unit) for point in line.points}
            rows.append((line.name, *(values.get(at, "-") for at in places)))
        return (table((self.across, *(f"{at:g}" for at in places)), rows, title=self.title),)


@dataclass(frozen=True)
class LineCharts(CharacterPlot):
    """Line charts of one unit. As characters they stand side by side on one scale."""

    charts: tuple[LineChart, ...]
    caption: str = ""

    def lines(self, width: int) -> list[str]:
        """A letter for each value."""
        plots = []
        for chart in self.charts:
            places = sorted({point.at for line in chart.series for point in line.points})
            marks = {
                line.letter: tuple({point.at: point.value for point in line.points}.get(at) for at in places)
                for line in chart.series
            }
            plots.append(Plot(chart.across, tuple(f"{at:g}" for at in places), marks))
        unit = self.charts[0].unit
        return letter_plots(plots, lambda value: format_quantity(value, unit), level=unit == "x", width=width)


@dataclass(frozen=True)
class WinnerCell:
    """Who is fastest at a place: a letter, the number of a colour (None: several are alike), the lead, all numbers."""

    letter: str
    number: int | None
    lead: float | None  # the next one's time over the winner's
    hover: str


@dataclass(frozen=True)
class WinnerMap(Block):
    """A grid of who is fastest where; `cells` by (row, column), what is not there was not compared.

    `of` is what the map is about, for those who hear its name.
    """

    title: str
    description: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[int, int], WinnerCell]
    legend: str = ""
    of: str = ""

    def plain(self) -> Sequence[Block]:
        """A table of the letters and leads."""
        rows = [
            (name, *(self._letter(row, column) for column in range(len(self.columns))))
            for row, name in enumerate(self.rows)
        ]
        return (table(("", *self.columns), rows, title=self.title, note=self.legend),)

    def _letter(self, row: int, column: int) -> str:
        cell = self.cells.get((row, column))
        return "." if cell is None else f"{cell.letter} {lead_text(cell.lead)}".rstrip()


def lead_text(lead: float | None) -> str:
    """`1.25`, `12`, `>999`."""
    if lead is None:
        return ""
    return f"{lead:.2f}" if lead < 9.995 else f"{lead:.0f}" if lead < 999.5 else ">999"


@dataclass(frozen=True)
class DotSeries:
    """Dots of one name, as (across, up, row): the row of the sortable table in which the dot's numbers stand."""

    name: str
    letter: str
    number: int  # of its colour, from 0
    dots: tuple[tuple[float, float, int], ...]


@dataclass(frozen=True)
class CloudChart(CharacterPlot):
    """Thousands of dots on logarithmic axes: below two ceilings (bytes/s and FLOP/s), else with a line at 100.

    `columns` are the titles of the sortable table's columns whose numbers hover over a dot.
    """

    title: str
    across: str
    unit: str
    clouds: tuple[DotSeries, ...]
    caption: str = ""
    ceilings: tuple[float, float] | None = None
    columns: tuple[str, ...] = ()

    def lines(self, width: int) -> list[str]:
        """The dots as letters; without ceilings the medians of each half decade."""
        if self.ceilings is not None:
            clouds = [(cloud.letter, [dot[:2] for dot in cloud.dots]) for cloud in self.clouds]
            return roofline_plot(
                clouds, *self.ceilings, lambda value: format_quantity(value, self.unit), width=width
            )
        values: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for cloud in self.clouds:
            for across, up, _ in cloud.dots:
                values[floor(_PER_DECADE * log10(across))][cloud.letter].append(up / ALL)
        steps = sorted(values)
        ends = [format_quantity(round(10 ** ((step + 1) / _PER_DECADE))) for step in steps]
        marks = {
            cloud.letter: tuple(
                median(own) if (own := values[step].get(cloud.letter)) else None for step in steps
            )
            for cloud in self.clouds
        }
        names = tuple(end.replace(" ", "").replace(".00", "") for end in ends)
        plots = [Plot(self.across, names, marks)]
        return letter_plots(
            plots, lambda value: format_quantity(ALL * value, self.unit), level=True, width=width
        )


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


def cell_text(value: CellValue, unit: str) -> str:
    """The value of a cell as people read it; nothing where there is none."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if unit == "n" else format_quantity(float(value), unit)
