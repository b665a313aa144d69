"""What the page's scripts work on: tables that sort and filter, and flame graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from profkit.analysis.stacks.files import Flame
from profkit.core.formatting import format_quantity
from profkit.core.types import Json
from profkit.reporting.charts.blocks import FlameGraph
from profkit.reporting.columns import CellValue, SortableTable
from profkit.reporting.html.escape import Html, element
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.view import Text

_PARTS = 1_000_000  # values are whole numbers of these parts: six digits are more than a screen has pixels
_KINDS = {"python": "Python", "native": "native", "kernel": "operating system"}
_SEEN = 0.001  # of all samples: less that no box shows is not worth a sentence
_FIGURES = 5  # of a number that is sorted by: two more than are shown, so that sorting is not by chance


# ---------------------------------------------------------------- tables that sort and filter


def sortable_html(block: SortableTable, text: Callable[[Text], Html]) -> Html:
    """The table, and the field by which a script filters it."""
    table = block.table
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
    for place, (row, name) in enumerate(zip(table.rows, block.names, strict=True)):
        cells = [element("th", text(row[0]), scope="row", class_="name", title=name)]
        cells += [
            element(
                "td",
                _reached(text(cell), place),
                class_="num" if column.numeric else None,
                data_v=_sorted_by(values[place]) if column.numeric else None,
            )
            for column, cell, values in zip(table.columns[1:], row[1:], block.values[1:], strict=True)
        ]
        rows.append(element("tr", *cells, data_row=str(place), data_name=name))
    tools = element(
        "div",
        element("label", "Filter", for_="kernel-filter"),
        element(
            "input",
            type="search",
            id="kernel-filter",
            autocomplete="off",
            spellcheck="false",
            placeholder=block.hint,
            aria_controls="kernel-table",
        ),
        element("span", id="kernel-count", role="status"),
        class_="tools",
        id="kernel-tools",
        hidden="",
    )
    caption = element("caption", table.title, class_="hidden")
    head, body = element("thead", element("tr", *heads)), element("tbody", *rows)
    made = element("table", caption, head, body, id="kernel-table", class_="kernels")
    left = f"{table.left} more stand in the JSON document. " if table.left else ""
    note = element("p", left, text(table.note), class_="note")
    grid = element("div", made, class_="grid", tabindex="0", role="region", aria_label=table.title)
    return Html(tools + grid + (note if left or table.note else ""))


def _reached(cell: Html, place: int) -> Html:
    """The cell; below the first row the keyboard passes over its links, or nobody would come to the end."""
    return Html(cell.replace("<a ", '<a tabindex="-1" ')) if place else cell


def _sorted_by(value: CellValue) -> str | None:
    return None if value is None else f"{value:.{_FIGURES}g}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------- flame graphs


def flame_data(flame: Flame) -> Json:
    """What `flame.js` draws: names with their kinds; of each box name, depth and value, in the order of the tree."""
    names: dict[tuple[str, str], int] = {}
    numbers: list[int] = []
    for box in flame.boxes:
        name = names.setdefault((without_control_characters(box.name), box.kind), len(names))
        numbers += [name, box.depth, round(_PARTS * box.value / flame.total)]
    return {
        "title": without_control_characters(flame.title),
        "total": format_quantity(flame.total, flame.unit),
        "parts": _PARTS,
        "names": [name for name, _ in names],
        "kinds": "".join(str(list(_KINDS).index(kind)) for _, kind in names),
        "boxes": cast(Json, numbers),
    }


def flame_html(graph: FlameGraph) -> Html:
    """A place for the graph, and its tools."""
    flame = graph.flame
    key = [
        piece
        for place, name in enumerate(_KINDS.values())
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
    return element(
        "div",
        element("h3", flame.title),
        tools,
        element("div", place, class_="flame-room"),
        element("p", class_="flame-told", aria_live="polite"),
        element("p", how, class_="flame-tools note", hidden=""),
        left,
        class_="flame-graph",
    )
