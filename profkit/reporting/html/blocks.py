"""The blocks of a view as HTML. Every text is escaped; a number that says where it comes from links to its footnote."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from profkit.core.types import Json
from profkit.reporting.chart_blocks import Charts, FlameGraph, StackedBar, WinnerCell, WinnerMap
from profkit.reporting.charts.draw import SERIES, draw, draw_stacked
from profkit.reporting.charts.marks import Chart
from profkit.reporting.columns import SortableTable
from profkit.reporting.forges import Annotations, Cases
from profkit.reporting.html.escape import Html, element, link, prose, text, together
from profkit.reporting.html.graphs import flame_data, flame_html, sortable_html
from profkit.reporting.view import (
    Block,
    Commands,
    DataTable,
    Facts,
    Fold,
    Footnote,
    Item,
    Items,
    Paragraph,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Style,
    Text,
    View,
    between,
    code,
    joined,
    plain_text,
    spans,
)

TONES: dict[Status, str] = {
    Status.FAIL: "fail",
    Status.REFUSED: "fail",
    Status.INVALID: "unknown",
    Status.UNKNOWN: "unknown",
    Status.CHANGED: "unknown",
    Status.BETTER: "pass",
    Status.PASS: "pass",
    Status.NEW: "not-applicable",
    Status.NONE: "not-applicable",
}
_TAGS = {Style.STRONG: "b", Style.CODE: "code", Style.COMMAND: "code"}
_BAR = re.compile(r"[█-▏]+")  # drawn with signs, for terminals


class PageBlocks:
    """What stands in one page: its sections and footnotes, and what its scripts need."""

    def __init__(self) -> None:
        self.footnotes: dict[Footnote, int] = {}
        self.data: dict[str, Json] = {}  # id of a script element -> what it holds
        self.assets: list[str] = ["style", "page"]  # names of files without .css and .js
        self.sections: list[tuple[str, str]] = []  # anchor and title
        self._anchors: set[str] = {"main", "sources", "theme", "tip"}
        self._labels: set[str] = set()  # of regions: each has its own name
        self._level = 2

    def number(self, note: Footnote | None) -> int:
        """The place of a footnote, counted from 1: `#s<number>` on the page; 0 is none."""
        return self.footnotes.setdefault(note, len(self.footnotes) + 1) if note is not None else 0

    def need(self, *names: str) -> None:
        """Take these styles and scripts into the page."""
        self.assets += [name for name in names if name not in self.assets]

    # ---------------------------------------------------------------- texts

    def text(self, text: Text) -> Html:
        """A text with its code, emphasis and links."""
        return together(map(self._span, spans(text)))

    def _span(self, span: Span) -> Html:
        typed = span.style in (Style.CODE, Style.COMMAND) or span.source is not None
        words = span.text if typed else prose(span.text)
        tone = TONES[span.status] if span.status is not None else None
        marks = [
            element("small", mark, class_="mark doubt" if mark == "doubted" else "mark")
            for mark in span.mark.split()
        ]
        inside = [words, *(piece for mark in marks for piece in (" ", mark))]
        if span.source is not None:
            kind = span.source.quality.partition(":")[0]
            return element("a", *inside, class_=f"n {kind}", href=f"#s{self.number(span.source)}")
        if span.link is not None:
            href = span.link if span.link.startswith("#") else link(span.link)
            return element("a", *inside, href=href)
        if span.series is not None:
            return element("span", *inside, class_=f"letter w{span.series % 8 + 1}")
        if span.style in _TAGS:
            return element(_TAGS[span.style], *inside, class_=tone)
        if span.style is Style.SOFT or tone:
            return element("span", *inside, class_=" ".join(filter(None, ("soft" if not tone else "", tone))))
        return together(inside)

    # ---------------------------------------------------------------- blocks

    def head(self, view: View) -> Html:
        """The title, the verdict with its reason, the facts."""
        parts = [element("h1", element("bdi", self.text(view.title)))]
        if view.command:
            typed = element("code", view.command)
            parts.append(element("pre", typed, class_="command", tabindex="0", aria_label="Command"))
        if view.warning:
            parts.append(element("p", self.text(view.warning), class_="state unknown"))
        headline = view.headline
        if view.label is not None:
            word = element("b", f"{view.label.sign} {view.label.word}")
            reason = self.text(headline[0]) if headline else ""
            parts.append(element("p", word, " ", reason, class_=f"state {TONES[view.label.status]}"))
            headline = headline[1:]
        parts += [element("p", element("b", self.text(line)), class_="time") for line in headline]
        if view.facts:
            parts.append(self._facts(Facts(view.facts)))
        return element("header", *parts, class_="top")

    def body(self, blocks: Sequence[Block]) -> Html:
        """The blocks of the view; sections stand in the page's contents."""
        return together(map(self.block, blocks))

    def block(self, block: Block) -> Html:
        """One block, with whatever stands in it."""
        match block:
            case Section():
                return self._section(block)
            case Paragraph(pre=True):
                return _lines(plain_text(block.text).split("\n"))
            case Paragraph():
                return element("p", self.text(block.text))
            case Items():
                kind = "notes ordered" if block.ordered else "notes"
                return element("ol" if block.ordered else "ul", *map(self._item, block.items), class_=kind)
            case Facts():
                return self._facts(block)
            case DataTable():
                return self._table(block)
            case Statuses():
                return self._statuses(block)
            case Commands():
                return _lines(block.lines)
            case Charts():
                return self._charts(block)
            case StackedBar() | WinnerMap():
                return self._charts(Charts((block,)))
            case SortableTable():
                self.need("kernels")
                return sortable_html(block, self.text)
            case FlameGraph():
                self.need("charts", "flame")
                data = self.data.setdefault("flame-data", [])
                assert isinstance(data, list)
                data.append(flame_data(block.flame))
                return flame_html(block)
            case Cases() | Annotations():
                return Html("")
        return together(map(self.block, block.plain()))

    def _section(self, section: Section) -> Html:
        title, level = plain_text(section.title), self._level
        self._level = min(6, level + 1)
        inside = together(map(self.block, section.blocks))
        self._level = level
        if not inside and (section.repeats or not section.headline):
            return Html("")
        if level > 2:
            return self._inner_section(section, inside)
        anchor = self._anchor(section.anchor or title)
        self.sections.append((anchor, title))
        if section.fold is not Fold.OPEN and inside:
            inside = element("details", element("summary", "Show"), inside, class_="fold")
        headline = element("p", self.text(section.headline), class_="headline") if section.headline else ""
        heading = element("h2", title, id=f"{anchor}-title")
        return element("section", heading, headline, inside, id=anchor, aria_labelledby=f"{anchor}-title")

    def _inner_section(self, section: Section, inside: Html) -> Html:
        title, headline = element("b", self.text(section.title)), element("span", self.text(section.headline))
        if section.fold is Fold.OPEN:
            below = element("p", headline, class_="headline") if section.headline else ""
            return together((element("h3", self.text(section.title)), below, inside))
        if not inside:
            return element("p", title, " ", headline, class_="concern alone")
        return element("details", element("summary", title, " ", headline), inside, class_="fold concern")

    def _anchor(self, wanted: str) -> str:
        """An id of letters, digits and dashes that the page does not have yet."""
        name = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:60] or "section"
        free = name if name not in self._anchors else f"{name}-{len(self._anchors)}"
        self._anchors |= {free, f"{free}-title"}
        return free

    def _item(self, item: Text | Item) -> Html:
        known = item if isinstance(item, Item) else Item(item)
        below = [self._line_below(text) for text in known.below]
        return element("li", self.text(known.text), *below)

    def _line_below(self, text: Text) -> Html:
        """A line below an item; where it begins with a soft word that is its label, in a column of its own."""
        first, *rest = spans(text) or (Span(""),)
        if first.style is Style.SOFT and rest and first.text.endswith("  "):
            label = element("span", first.text.strip(), class_="soft")
            return element("div", label, element("span", self.text(tuple(rest))), class_="because labelled")
        return element("div", self.text(text), class_="because")

    def _facts(self, facts: Facts) -> Html:
        rows = [
            element("div", element("dt", name), element("dd", self.text(text))) for name, text in facts.rows
        ]
        title = element("h3", facts.title) if facts.title else ""
        return together((title, element("dl", *rows, class_="facts")))

    def _table(self, table: DataTable) -> Html:
        heads = [
            element(
                "th",
                column.title,
                scope="col",
                class_="num" if column.numeric else None,
                title=column.meaning or None,
            )
            for column in table.columns
        ]
        rows = []
        for row in table.rows:
            cells = [element("th", self._cell(row[0]), scope="row", class_="name")]
            cells += [
                element("td", self._cell(cell), class_="num" if column.numeric else None)
                for column, cell in zip(table.columns[1:], row[1:], strict=True)
            ]
            rows.append(element("tr", *cells))
        caption = element("caption", table.title) if table.title else ""
        head = element("thead", element("tr", *heads))
        note = element("p", self.text(table.note), class_="note") if table.note else ""
        left = (
            element("p", f"{table.left} more are in the JSON document.", class_="note") if table.left else ""
        )
        made = element("table", caption, head, element("tbody", *rows), class_="told")
        return together((self._scroll(made, table.title or "Table"), note, left))

    def _cell(self, text: Text) -> Html:
        """A cell without the bars that are drawn with signs."""
        return self.text(
            tuple(Span(_BAR.sub("", s.text).strip()) if _BAR.search(s.text) else s for s in spans(text))
        )

    def _statuses(self, statuses: Statuses) -> Html:
        """A table of the columns that hold anything; what to try is below each reason."""
        name, limit, value, place = statuses.titles
        columns: list[tuple[str, str, Callable[[StatusRow], Html]]] = [
            (
                statuses.label,
                "word",
                lambda row: together(
                    (element("span", row.status.sign, class_="sign", aria_hidden="true"), f" {row.word}")
                ),
            ),
            (place, "name", lambda row: together((row.place,))),
            (name, "name", lambda row: self.text(joined(*between(", ", map(code, row.names))))),
            (value, "num", lambda row: self.text(row.value)),
            (limit, "nowrap", lambda row: together((prose(row.limit),))),
            (
                "why",
                "why",
                lambda row: together((self.text(row.reason), self._below(row, statuses.below_title))),
            ),
        ]
        made = [[cell(row) for _, _, cell in columns] for row in statuses.rows]
        used = [n for n in range(len(columns)) if any(cells[n] for cells in made)]
        heads = [element("th", columns[n][0].capitalize(), scope="col", class_=columns[n][1]) for n in used]
        rows = []
        for row, cells in zip(statuses.rows, made, strict=True):
            inside = [element("td", cells[n], class_=columns[n][1], data_is=columns[n][0]) for n in used]
            rows.append(element("tr", *inside, class_=TONES[row.status]))
        head, body = element("thead", element("tr", *heads)), element("tbody", *rows)
        kind = "verdicts inner" if any(row.place for row in statuses.rows) else "verdicts"
        return self._scroll(
            element("table", head, body, class_=kind), f"{statuses.label.capitalize()}s by {name}"
        )

    def _below(self, row: StatusRow, title: str) -> Html:
        if not row.below:
            return Html("")
        lines = element("ul", *(element("li", self.text(text)) for text in row.below))
        return element("details", element("summary", title), lines) if title else lines

    def _charts(self, charts: Charts) -> Html:
        self.need("charts")
        others = [self.block(chart) for chart in charts.charts if isinstance(chart, FlameGraph)]
        drawn = [self._winner_map(chart) for chart in charts.charts if isinstance(chart, WinnerMap)]
        boxes = [
            element("figure", Html(svg), class_="chart-box") for svg in map(self._svg, charts.charts) if svg
        ]
        if not boxes and not drawn:
            return together(others)
        note = element("p", prose(charts.note), class_="note") if charts.note else ""
        side_by_side = element("div", *boxes, class_="charts") if boxes else ""
        return together((*drawn, side_by_side, note, *others))

    def _svg(self, chart: Block) -> str | None:
        match chart:
            case Chart():
                return draw(chart, self.number)
            case StackedBar():
                return draw_stacked(chart, self.number)
        return None

    def _winner_map(self, chart: WinnerMap) -> Html:
        """A table of coloured cells. The first is reached by Tab; from it the page's script goes on by arrow keys."""
        heads = [element("th", name, scope="col") for name in ("", *chart.columns)]
        rows, first = [], ",".join(map(str, min(chart.cells, default=())))
        for row, name in enumerate(chart.rows):
            known = ((chart.cells.get((row, n)), f"{row},{n}") for n in range(len(chart.columns)))
            cells = [_winner(cell, at, first=at == first) for cell, at in known]
            rows.append(element("tr", element("th", name, scope="row"), *cells))
        made = element(
            "table",
            element("caption", chart.title),
            element("thead", element("tr", *heads)),
            element("tbody", *rows),
            class_="winners",
        )
        return self._scroll(made, chart.title)

    def _scroll(self, table: Html, title: str) -> Html:
        """A table that scrolls by itself where the screen is narrow."""
        label, number = f"{title} (table)", 1
        while label in self._labels:
            number += 1
            label = f"{title} (table {number})"
        self._labels.add(label)
        return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)

    def sources(self) -> Html:
        """The footnotes as the last section; nothing where no number has one."""
        if not self.footnotes:
            return Html("")
        self.sections.append(("sources", "Sources"))
        how = "Where each number comes from. Hold the mouse on a number above, or focus it, to read it there."
        notes = element("ol", *map(_footnote, self.footnotes, self.footnotes.values()), class_="footnotes")
        return element(
            "section",
            element("h2", "Sources", id="sources-title"),
            element("p", how, class_="headline"),
            element("details", element("summary", f"Show all {len(self.footnotes)}"), notes, class_="fold"),
            id="sources",
            aria_labelledby="sources-title",
        )


STEPS = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0)  # leads from which on a cell of a map is shaded more


def _winner(cell: WinnerCell | None, at: str, *, first: bool) -> Html:
    """A cell of a map in the winner's colour, the stronger the larger its lead."""
    if cell is None:
        return element("td", class_="none")
    kind = "alike"
    if cell.number is not None:
        kind = f"w{cell.number % SERIES + 1} h{sum((cell.lead or 0) >= step for step in STEPS)}"
    text = cell.text if cell.number is not None else cell.letter
    return element("td", text, class_=kind, title=cell.hover, tabindex="0" if first else "-1", data_at=at)


def _footnote(note: Footnote, number: int) -> Html:
    parts: list[str] = [element("b", note.title), " ", element("code", note.metric), " "]
    parts.append(element("span", note.quality, class_="quality"))
    parts += [element("p", prose(note.reason))] if note.reason else []
    parts += [element("p", prose(f"Doubted: {note.doubt}"))] if note.doubt else []
    parts += [element("p", "Fix: ", element("code", note.fix))] if note.fix else []
    parts += [element("p", prose(note.meaning), class_="meaning")] if note.meaning else []
    artifact = together((", ", element("code", note.artifact))) if note.artifact else ""
    facts = [element("dt", "tool"), element("dd", note.tool, artifact)]
    if note.counter and note.counter not in (note.formula or ""):
        facts += [element("dt", "counter"), element("dd", element("code", note.counter or ""))]
    if note.formula and note.formula != note.counter:
        facts += [element("dt", "formula"), element("dd", element("code", note.formula))]
    return element("li", *parts, element("dl", *facts), id=f"s{number}")


def _lines(lines: Sequence[str]) -> Html:
    """Lines as they are, each by itself."""
    inside = Html("\n").join(map(text, lines))
    return element("pre", element("code", Html(inside)), class_="command", tabindex="0")
