"""Charts as data: marks on two axes, and what is drawn beside axes: stacked bars, flame graphs, maps.

`description` is a chart's text alternative. `html/` draws all of them; as text a chart is a plot of characters, and
the others are tables. Charts whose numbers other blocks of a view tell are for a page alone (`Charts.repeats`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profkit.analysis.stacks.files import Flame
from profkit.core.formatting import format_percent
from profkit.reporting.charts.marks import Chart
from profkit.reporting.charts.text_plot import text_plot
from profkit.reporting.view import Block, Footnote, Paragraph, Span, table

HOTTEST = 15  # functions beside a flame graph
_PLOT = 76  # characters of a plot where the width of the screen is not known


# ---------------------------------------------------------------- a whole, cut into its parts


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


# ---------------------------------------------------------------- several charts


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
        """Plots of at most `width` characters, those of one caption below it; then what is no chart on axes."""
        blocks: list[Block] = []
        plots = [chart for chart in self.charts if isinstance(chart, Chart)]
        for caption in dict.fromkeys(chart.caption for chart in plots):
            drawn = [text_plot(chart, width) for chart in plots if chart.caption == caption]
            blocks += [Paragraph(caption)] if caption and any(drawn) else []
            blocks += [Paragraph("\n".join(lines), pre=True) for lines in drawn if lines]
        return [*blocks, *(chart for chart in self.charts if not isinstance(chart, Chart))]
