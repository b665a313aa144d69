"""Any view as one self-contained HTML file: it opens offline, without a script too, and makes no request.

Its policy (Content-Security-Policy) forbids every request, and lets only those scripts and styles run whose hash it
names. So even markup that slipped through could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from profkit.core.codec import valid_text
from profkit.core.types import Json
from profkit.reporting.charts.draw import draw
from profkit.reporting.charts.draw_bar import draw_bar
from profkit.reporting.charts.marks import ChartGroup, FlameGraph
from profkit.reporting.charts.step_bar import StepBar
from profkit.reporting.charts.timeline import TimelineGraph
from profkit.reporting.columns import SortableTable
from profkit.reporting.forges import AnnotationList, CaseList
from profkit.reporting.html.elements import (
    Html,
    element,
    filled,
    flame_data,
    flame_html,
    island,
    link,
    sortable_html,
    table_head,
    table_row,
    text,
    together,
)
from profkit.reporting.html.page_size import PageLimits, next_limits, view_within
from profkit.reporting.html.timeline import timeline_data, timeline_html
from profkit.reporting.view import (
    Block,
    Commands,
    DataTable,
    FieldList,
    Fold,
    Footnote,
    Item,
    ItemList,
    NotOnPage,
    PageOnly,
    Paragraph,
    Section,
    Span,
    Style,
    Text,
    View,
    plain_text,
    spans,
)

FOLDER = Path(__file__).parent
FIRST_SCRIPT = "theme.js"  # before anything is painted: a page in the wrong colours would flash


def render(view: View, *, inline: bool = False) -> str:
    """Return the view as HTML, as text for UTF-8. An `inline` page stands in another one, and begins with the answer.

    A view that has a number of bytes to stay below is shown with as much of it as that takes.
    """
    if inline:
        view = replace(view, facts=tuple(fact for fact in view.facts if fact[0] not in view.wide))
    made = _rendered(view, inline=inline)
    limits: PageLimits | None = None
    while view.page_bytes is not None and (size := len(made.encode())) > view.page_bytes:
        limits = next_limits(limits, size, view.page_bytes)
        if limits is None:
            break
        made = _rendered(view_within(view, limits), inline=inline)
    return made


def _rendered(view: View, *, inline: bool) -> str:
    blocks = PageBlocks()
    head, body = blocks.head(view), together(map(blocks.block, view.blocks))
    sources = blocks.sources()
    style, script = (
        "\n".join(filter(None, (asset(f"{name}.{kind}") for name in blocks.assets))) for kind in ("css", "js")
    )
    first = asset(FIRST_SCRIPT)
    made = filled(
        "view.html.j2",
        title=plain_text(view.title),
        styles=_hash(style),
        scripts=Html(f"{_hash(first)} {_hash(script)}"),
        style=Html(style),
        first=Html(first),
        script=Html(script),
        inline=inline,
        contents=blocks.sections,
        main=together((head, body, sources)),
        islands=[(name, Html(island(data))) for name, data in blocks.data.items()],
    )
    return valid_text(made)


@lru_cache
def asset(name: str) -> str:
    """Return a stylesheet or script of `assets/`, as it stands there; nothing if there is none of this name."""
    path = FOLDER / "assets" / name
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _hash(source: str) -> Html:  # ours: its letters are like those of a secret
    return Html(f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'")


_SERIES = 8  # colours there are
_TAGS = {Style.STRONG: "b", Style.CODE: "code", Style.COMMAND: "code"}


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
        """Return the place of a footnote, counted from 1: `#s<number>` on the page; 0 is none."""
        return self.footnotes.setdefault(note, len(self.footnotes) + 1) if note is not None else 0

    def need(self, *names: str) -> None:
        """Take these styles and scripts into the page."""
        self.assets += [name for name in names if name not in self.assets]

    # ---------------------------------------------------------------- texts

    def text(self, text: Text) -> Html:
        """Return a text with its code, emphasis and links."""
        return together(map(self._span, spans(text)))

    def _span(self, span: Span) -> Html:
        tone = span.status.tone if span.status is not None else None
        marks = [
            element("small", mark, class_="mark doubt" if mark == "doubted" else "mark")
            for mark in span.mark.split()
        ]
        inside = [span.text, *(piece for mark in marks for piece in (" ", mark))]
        if span.source is not None:
            kind = span.source.quality.partition(":")[0]
            return element("a", *inside, class_=f"n {kind}", href=f"#s{self.number(span.source)}")
        if span.link is not None:
            href = span.link if span.link.startswith("#") else link(span.link)
            return element("a", *inside, href=href)
        if span.series is not None:
            return element("span", *inside, class_=f"letter w{span.series % _SERIES + 1}")
        if span.style in _TAGS:
            return element(_TAGS[span.style], *inside, class_=tone)
        if span.style is Style.SOFT or tone:
            return element("span", *inside, class_=" ".join(filter(None, ("soft" if not tone else "", tone))))
        return together(inside)

    # ---------------------------------------------------------------- blocks

    def head(self, view: View) -> Html:
        """Return the title, the verdict with its reason, and those facts that stand nowhere below."""
        facts = tuple(fact for fact in view.facts if fact[0] not in view.below)
        return filled(
            "head.html.j2",
            title=self.text(view.title),
            command=view.command,
            warning=self.text(view.warning),
            label=view.label,
            headline=list(map(self.text, view.headline)),
            facts=self._facts(FieldList(facts)) if facts else "",
        )

    def block(self, block: Block) -> Html:
        """Return one block with everything in it."""
        match block:
            case Section():
                return self._section(block)
            case Paragraph():
                return element("p", self.text(block.text))
            case ItemList():
                kind = "notes ordered" if block.ordered else "notes"
                return element("ol" if block.ordered else "ul", *map(self._item, block.items), class_=kind)
            case FieldList():
                return self._facts(block)
            case DataTable():
                return self._table(block)
            case Commands():
                return _lines(block.lines)
            case ChartGroup():
                return self._charts(block)
            case SortableTable():
                self.need("kernels")
                return sortable_html(block, self.text)
            case FlameGraph():
                self.need("charts", "flame")
                data = self.data.setdefault("flame-data", [])
                assert isinstance(data, list)
                data.append(flame_data(block.flame))
                return flame_html(block)
            case TimelineGraph():
                return self._timeline(block)
            case StepBar():
                self.need("charts")
                return draw_bar(block) or Html("")
            case PageOnly():
                return together(map(self.block, block.blocks))
            case CaseList() | AnnotationList() | NotOnPage():
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
        """Return an id of letters, digits and dashes that the page does not have yet."""
        name = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:60] or "section"
        free = name if name not in self._anchors else f"{name}-{len(self._anchors)}"
        self._anchors |= {free, f"{free}-title"}
        return free

    def _item(self, item: Text | Item) -> Html:
        known = item if isinstance(item, Item) else Item(item)
        below = [element("div", self.text(text), class_="because") for text in known.below]
        return element("li", self.text(known.text), *below)

    def _facts(self, facts: FieldList) -> Html:
        rows = [
            element("div", element("dt", name), element("dd", self.text(text))) for name, text in facts.rows
        ]
        return element("dl", *rows, class_="facts")

    def _table(self, table: DataTable) -> Html:
        """Return a table that scrolls by itself where the screen is narrow."""
        title, number = table.title or "Table", 1
        label = f"{title} (table)"
        while label in self._labels:
            number += 1
            label = f"{title} (table {number})"
        self._labels.add(label)
        parts = {"label": label, "title": table.title, "head": table_head(table), "left": table.left}
        rows = together(
            table_row(table, row, self.text, **_row_id(table.anchor, place))
            for place, row in enumerate(table.rows)
        )
        return filled("table.html.j2", rows=rows, note=self.text(table.note), **parts)

    def _charts(self, charts: ChartGroup) -> Html:
        self.need("charts")
        drawn = [svg for chart in charts.charts if (svg := draw(chart)) is not None]
        return filled("charts.html.j2", drawn=drawn, note=self.text(charts.note)) if drawn else Html("")

    def _timeline(self, graph: TimelineGraph) -> Html:
        self.need("timeline")
        data = self.data.setdefault("timeline-data", [])
        assert isinstance(data, list)
        data.append(timeline_data(graph))
        return timeline_html(graph, self.text(graph.note), self._table(graph.table))

    def sources(self) -> Html:
        """Return the footnotes as the last section; nothing where no number has one."""
        if not self.footnotes:
            return Html("")
        self.sections.append(("sources", "Sources"))
        return filled("sources.html.j2", notes=list(self.footnotes.items()))


def _row_id(anchor: str, place: int) -> dict[str, str]:
    """Return an id to which something of the page leads; what is reached so takes the keyboard's focus."""
    return {"id": f"{anchor}-{place}", "tabindex": "-1"} if anchor else {}


def _lines(lines: Sequence[str]) -> Html:
    """Return the lines unchanged, each in its own element."""
    inside = Html("\n").join(map(text, lines))
    return element("pre", element("code", Html(inside)), class_="command", tabindex="0")
