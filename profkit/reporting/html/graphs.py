"""What the page's scripts draw: tables that sort and filter, and flame graphs. Each stands in plain HTML too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

from profkit.analysis.stacks.files import Flame
from profkit.core.formatting import format_quantity
from profkit.core.types import Json
from profkit.reporting.chart_blocks import (
    CellValue,
    FlameGraph,
    RowDetail,
    SortableColumn,
    SortableTable,
    cell_text,
)
from profkit.reporting.charts.svg import Number
from profkit.reporting.html.escape import Html, element, prose, together
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.view import Text


def packed(texts: Sequence[str | None]) -> Json:
    """`{"texts": [...], "at": [...]}`: `at` has the place of each text, -1 for None, without those at its end.

    Every distinct text once, in the order of their characters, as three values: how many characters of the one before
    it begins with, how many of it it ends with, and what stands between.
    """
    distinct = sorted({text for text in texts if text is not None})
    places = {text: number for number, text in enumerate(distinct)}
    pieces: list[Json] = []
    before = ""
    for text in distinct:
        begin, end = _shared(before, text)
        pieces += [begin, end, text[begin : len(text) - end]]
        before = text
    at: list[Json] = [-1 if text is None else places[text] for text in texts]
    return {"texts": pieces, "at": trimmed(at, -1)}


def trimmed(values: list[Json], absent: Json = None) -> list[Json]:
    """Without what is `absent` at the end: of 10,000 kernels the largest, which stand first, were counted."""
    last = next((n for n in range(len(values), 0, -1) if values[n - 1] != absent), 0)
    return values[:last]


def _shared(one: str, other: str) -> tuple[int, int]:
    """How many characters both begin with, and how many of the rest both end with.

    None where a script counts otherwise: to it a character beyond U+FFFF is two.
    """
    if not (one.isascii() and other.isascii()) and max(one + other) > "\uffff":
        return 0, 0
    begin = _largest(min(len(one), len(other)), lambda n: one[:n] == other[:n])
    room = min(len(one), len(other)) - begin
    return begin, _largest(room, lambda n: one[len(one) - n :] == other[len(other) - n :])


def _largest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to `most` for which it holds, of those from 0 on for which it holds."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if holds(middle):
            least = middle
        else:
            most = middle - 1
    return least


PARTS = 1_000_000  # values are whole numbers of these parts: six digits are more than a screen has pixels
KINDS = ("python", "native", "kernel")


def flame_data(flame: Flame) -> Json:
    """What `flame.js` draws: names with their kinds; of each box name, depth and value, in the order of the tree."""
    names: dict[tuple[str, str], int] = {}
    numbers: list[int] = []
    for box in flame.boxes:
        name = names.setdefault((without_control_characters(box.name), box.kind), len(names))
        numbers += [name, box.depth, round(PARTS * box.value / flame.total)]
    return {
        "title": without_control_characters(flame.title),
        "total": format_quantity(flame.total, flame.unit),
        "parts": PARTS,
        "names": [name for name, _ in names],
        "kinds": "".join(str(KINDS.index(kind)) for _, kind in names),
        "boxes": cast(Json, numbers),
    }


_FIGURES = 5  # of a number in the data: two more than are shown, so that sorting is not by chance
_SEEN = 0.001  # of all samples: less that no box shows is not worth a sentence
_KINDS = ("Python", "native", "operating system")
_NAMED = 50  # rows whose whole names stand in the page without a script
_NAME = 1000  # characters of these


# ---------------------------------------------------------------- tables that sort and filter


def table_html(table: SortableTable, number: Number, text: Callable[[Text], Html]) -> Html:
    """The first rows as plain HTML, with places for what the script adds."""
    heads = [
        element(
            "th",
            column.title,
            scope="col",
            class_="num" if column.unit != "text" else None,
            title=column.meaning or None,
        )
        for column in table.columns
    ]
    rows = []
    count = len(table.names)
    for place in range(min(table.shown, count)):
        first, *rest = (_cell(column, place, number) for column in table.columns)
        cells = [
            element("td", cell, class_="num" if column.unit != "text" else None)
            for column, cell in zip(table.columns[1:], rest, strict=True)
        ]
        rows.append(element("tr", element("th", first, scope="row", class_="name"), *cells))
    tools = element(
        "div",
        element("label", "Filter", for_="kernel-filter"),
        element(
            "input",
            type="search",
            id="kernel-filter",
            autocomplete="off",
            spellcheck="false",
            placeholder=table.hint,
            aria_controls="kernel-table",
        ),
        element("span", id="kernel-count", role="status"),
        class_="tools",
        id="kernel-tools",
        hidden="",
    )
    caption = element("caption", table.title, class_="hidden")
    body = element("tbody", *rows, class_="plain")
    kind = "kernels" if table.shapes else "kernels cases"
    made = element(
        "table",
        caption,
        element("thead", element("tr", *heads)),
        body,
        id="kernel-table",
        class_=kind,
        aria_rowcount=str(count + 1),
    )
    left = count - len(rows)
    more = f"{left} more stand in the JSON document, and here where scripts may run."
    return together(
        (
            tools,
            element("div", made, class_="grid", id="kernel-grid"),
            element("p", more, class_="note plain") if left > 0 else "",
            element("p", text(table.note), class_="note") if table.note else "",
            element("div", id="kernel-detail", hidden=""),
            _whole_names(table),
        )
    )


def _whole_names(table: SortableTable) -> Html:
    """Names that the first column shortens, for a page without a script."""
    if not table.shapes:
        return Html("")
    rows: list[str] = []
    for name, shape, label in list(zip(table.names, table.shapes, table.columns[0].values, strict=True))[
        :_NAMED
    ]:
        rows.append(element("dt", f"{label} ", element("span", shape, class_="in")))
        rows.append(element("dd", element("code", name[:_NAME])))
    inside = element(
        "details", element("summary", "Whole names"), element("dl", *rows, class_="names"), class_="fold"
    )
    return element("noscript", inside)


def _cell(column: SortableColumn, row: int, number: Number) -> Html:
    value = column.values[row]
    source, mark = column.sources[row] if column.sources else (None, "")
    place = number(source)
    if value is None:
        return element("a", "–", class_="n unavailable", href=f"#s{place}") if place else Html("")
    small = (" ", element("small", mark, class_="mark")) if mark else ()
    shown = cell_text(value, column.unit)
    return element("a", shown, *small, class_="n", href=f"#s{place}") if place else together((prose(shown),))


def table_data(table: SortableTable, number: Number) -> dict[str, Json]:
    """What `kernels.js` reads, by the ids of its elements."""
    data: dict[str, Json] = {
        "rows": len(table.names),
        "columns": [_column_data(column, number) for column in table.columns],
        "shape": list(map(without_control_characters, table.shapes)),
        "details": {str(row): _detail(detail, number) for row, detail in table.details.items()},
    }
    return {"kernel-data": data, "kernel-names": packed(list(map(without_control_characters, table.names)))}


def _column_data(column: SortableColumn, number: Number) -> Json:
    """Numbers under `values`, words under `words`; what is absent at their end lacks.

    Of its footnotes each column has the commonest, and `odd` those cells that have another.
    """
    sources = [(number(source), mark) for source, mark in column.sources] or [(0, "")] * len(column.values)
    known = (pair for pair, value in zip(sources, column.values, strict=True) if value is not None)
    common = Counter(known).most_common(1)
    source, mark = common[0][0] if common else (0, "")
    odd = {
        str(row): [place, sign]
        for row, (place, sign) in enumerate(sources)
        if (place, sign) != (source, mark) and place
    }
    held: dict[str, Json]
    if column.unit == "text":
        held = {
            "words": packed(
                [None if v is None else without_control_characters(str(v)) for v in column.values]
            )
        }
    else:
        held = {"values": trimmed([_short(value) for value in column.values])}
    width = max(
        [
            len(column.title) + 2,
            *(
                _width(value, column.unit, sign)
                for value, (_, sign) in zip(column.values, sources, strict=True)
            ),
        ]
    )
    return {
        "title": column.title,
        "unit": column.unit,
        "width": width,
        **held,
        "source": source,
        "mark": mark,
        "odd": cast(Json, odd),
    }


def _short(value: CellValue) -> Json:
    if value is None or isinstance(value, int):
        return value
    return without_control_characters(value) if isinstance(value, str) else float(f"{value:.{_FIGURES}g}")


def _width(value: CellValue, unit: str, mark: str) -> int:
    return len(cell_text(value, unit)) + (len(mark) + 1 if mark else 0)


def _detail(detail: RowDetail, number: Number) -> Json:
    """A reading is [text, footnote, mark]; its title is that of the footnote."""
    return {
        "bound": without_control_characters(detail.reason),
        "readings": [[value, number(source), mark] for value, source, mark in detail.readings],
        "verdicts": [list(map(without_control_characters, verdict)) for verdict in detail.verdicts],
    }


# ---------------------------------------------------------------- flame graphs


def flame_html(graph: FlameGraph) -> Html:
    """A place for the graph, its tools, and the hottest functions as a table."""
    flame = graph.flame
    key = [
        piece
        for place, name in enumerate(_KINDS)
        for piece in (element("i", class_=f"k{place}"), element("span", name))
    ]
    tools = element(
        "div",
        element("label", f"Find in {flame.title} ", element("input", type="search", autocomplete="off")),
        element("button", "Show all", type="button"),
        element("span", *key, class_="flame-key"),
        class_="flame-tools",
        hidden="",
    )
    place = element("div", class_="flame", role="group", aria_label=f"{flame.title}, as a flame graph")
    how = "Click or Enter: this box alone. Arrow keys: from box to box. Escape: all."
    left = ""
    if flame.left_out > _SEEN:
        share = format_quantity(100 * flame.left_out, "%")
        left = element("p", f"{share} of it is in boxes too narrow to be drawn.", class_="note")
    heads = [element("th", title) for title in ("function", "own", "with callees")]
    rows = [
        element("tr", element("td", element("bdi", name)), element("td", own), element("td", total))
        for name, own, total in graph.hottest()
    ]
    hottest = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    return element(
        "div",
        element("h3", flame.title),
        tools,
        element("div", place, class_="flame-room"),
        element("p", class_="flame-told", aria_live="polite"),
        element("p", how, class_="flame-tools note", hidden=""),
        left,
        element("details", element("summary", "The hottest functions as a table"), hottest, open=""),
        class_="flame-graph",
    )
