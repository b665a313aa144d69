"""Charts as data: marks on two axes, what is drawn beside axes (bars, flame graphs, maps), and tables that sort.

`description` is a chart's text alternative. `html/` draws all of them; as text a chart is a plot of characters, and
the others are tables. Charts whose numbers other blocks of a view tell are for a page alone (`Charts.repeats`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, TypeAlias

from profkit.analysis.stacks.files import Flame
from profkit.core.formatting import format_percent, format_quantity
from profkit.reporting.charts.marks import Chart
from profkit.reporting.charts.text_plot import text_plot
from profkit.reporting.view import Block, Footnote, Paragraph, Span, Text, table

HOTTEST = 15  # functions beside a flame graph
_PLOT = 76  # characters of a plot where the width of the screen is not known


# ---------------------------------------------------------------- bars


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


# ---------------------------------------------------------------- flame graphs and maps


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
class WinnerCell:
    """Who is fastest at a place: a letter, the number of a colour (None: several are alike), the lead, all numbers."""

    letter: str
    number: int | None
    lead: float | None = None  # the next one's time over the winner's
    hover: str = ""

    @property
    def text(self) -> str:
        """The letter with the lead: `C 1.25`, `C 12`, `C >999`."""
        if self.lead is None:
            return self.letter
        lead = (
            f"{self.lead:.2f}" if self.lead < 9.995 else f"{self.lead:.0f}" if self.lead < 999.5 else ">999"
        )
        return f"{self.letter} {lead}"


@dataclass(frozen=True)
class WinnerMap(Block):
    """A grid of who is fastest where; `cells` by (row, column), what is not there was not compared."""

    title: str
    description: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[int, int], WinnerCell]
    legend: str = ""

    def plain(self) -> Sequence[Block]:
        """A table of the letters and leads."""
        none = WinnerCell(".", None)
        rows = [
            (name, *(self.cells.get((row, column), none).text for column in range(len(self.columns))))
            for row, name in enumerate(self.rows)
        ]
        return (table(("", *self.columns), rows, title=self.title, note=self.legend),)


# ---------------------------------------------------------------- several charts, or none


@dataclass(frozen=True)
class Charts(Block):
    """Charts side by side with a note below. `repeats`: other blocks of the view hold the same numbers."""

    charts: tuple[Block, ...]
    note: str = ""
    repeats: bool = False

    def plain(self) -> Sequence[Block]:
        """Plots as wide as a page of text, and each of the others in its own simpler form."""
        return () if self.repeats else self.as_text(_PLOT)

    def as_text(self, width: int) -> list[Block]:
        """Plots of at most `width` characters; those of one caption side by side."""
        blocks: list[Block] = []
        plots = [chart for chart in self.charts if isinstance(chart, Chart)]
        order = list(dict.fromkeys(chart.caption for chart in plots))
        plots.sort(key=lambda chart: order.index(chart.caption))
        for caption, group in groupby(plots, key=lambda chart: chart.caption):
            own = list(group)
            for together in [own] if caption else [[one] for one in own]:
                lines = text_plot(together, width)
                blocks += [Paragraph(caption)] if lines and caption else []
                blocks += [Paragraph("\n".join(lines), pre=True)] if lines else []
        return [*blocks, *(chart for chart in self.charts if not isinstance(chart, Chart))]


@dataclass(frozen=True)
class NoChart(Block):
    """Why there is no chart, and what would change that."""

    reason: str
    fix: str | None = None


# ---------------------------------------------------------------- tables that sort


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
