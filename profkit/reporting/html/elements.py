"""HTML of elements, escaped: text from outside is shown and never obeyed; tables that sort, and flame graphs."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from profkit.analysis.stacks.files import FlameTree
from profkit.core.formatting import format_quantity
from profkit.core.types import Json
from profkit.reporting.charts.marks import FlameGraph
from profkit.reporting.columns import CellValue, SortableTable
from profkit.reporting.plain_text import text_for_others
from profkit.reporting.view import DataTable, Text

_VOID = ("input", "br")  # elements without an end
_OUTSIDE = re.compile(r"[<>&\u2028\u2029]")


class Html(str):
    """Finished HTML; any other string is text, and is escaped where it goes into an element or a template."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return the text for templates: it is escaped already."""
        return self


def element(name: str, *children: str, **attributes: str | None) -> Html:
    """Return one element; `class_` becomes class, `_` in names becomes `-`, attributes that are None are left out.

    >>> element("a", "1 < 2", Html("<b>x</b>"), class_="n", href="#s1")
    '<a class="n" href="#s1">1 &lt; 2<b>x</b></a>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Html) else text(child) for child in children)
    return Html(f"<{name}{written}>" if name in _VOID else f"<{name}{written}>{inside}</{name}>")


def filled(template: str, **values: object) -> Html:
    """Return a template with these values; texts in it are escaped as in an element."""
    return Html(_templates().get_template(template).render(values))


def _visible(value: object) -> object:
    return value if isinstance(value, Html) or not isinstance(value, str) else text_for_others(value)


@lru_cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here: only a page needs it

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def together(parts: Iterable[str]) -> Html:
    """Join several pieces of HTML and text."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts))


def text(value: object) -> str:
    """Escape a value for an element or a quoted attribute; control and bidirectional characters become visible.

    >>> text('<b>"\u202e')
    '&lt;b&gt;&quot;�'
    """
    return html.escape(text_for_others(str(value)), quote=True)


def island(data: Json) -> str:
    """Return plain data as JSON that is safe inside a script element, whatever its texts contain.

    `<`, `>`, `&` and the line separators are escaped, so no text can end the element or open a comment in it.
    Raises ValueError for NaN and infinity, which JSON does not know.
    """
    body = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return _OUTSIDE.sub(lambda found: f"\\u{ord(found[0]):04x}", body)


def link(path: str) -> str:
    """Return a path relative to the page as a link: never another scheme, host or script, whatever the file is called.

    >>> link("artifacts/a b?.json"), link("javascript:alert(1)")
    ('./artifacts/a%20b%3F.json', './javascript%3Aalert%281%29')
    """
    try:
        return "./" + quote(path, safe="/", errors="surrogateescape")  # as the file is called on disk
    except UnicodeEncodeError:
        return "./" + quote(path, safe="/", errors="replace")


_PARTS = 1_000_000  # values are whole numbers of these parts: six digits are more than a screen has pixels
_KINDS = {
    "python": "Python",
    "native": "native",
    "kernel": "operating system",
    "thread": "thread",
    "lock": "waits for a lock",
    "io": "waits for input or output",
    "sleep": "sleeps",
    "processor": "waits for a processor",
    "waiting": "waits for something else",
}
_SEEN = 0.001  # of all samples: less that no box shows is not worth a sentence
_FIGURES = 5  # of a number that is sorted by: two more than are shown, so that sorting is not by chance


# ---------------------------------------------------------------- tables that sort and filter


def table_head(table: DataTable) -> Html:
    """Return the titles; what a column means hovers."""
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
    return element("thead", element("tr", *heads))


def table_row(
    table: DataTable,
    row: Sequence[Text],
    text: Callable[[Text], Html],
    values: Sequence[CellValue] | None = None,
    whole_name: str | None = None,
    **attributes: str,
) -> Html:
    """Return a table row: its name, with the full name as a tooltip, then its cells, with the `values` to sort by."""
    cells = [element("th", text(row[0]), scope="row", class_="name", title=whole_name)]
    for place, (column, cell) in enumerate(zip(table.columns[1:], row[1:], strict=True), 1):
        value = _sorted_by(values[place]) if values is not None and column.numeric else None
        cells.append(element("td", text(cell), class_="num" if column.numeric else None, data_v=value))
    return element("tr", *cells, **attributes)


def sortable_html(block: SortableTable, text: Callable[[Text], Html]) -> Html:
    """Return the table, and the field by which a script filters it."""
    table = block.table
    rows = [
        _reached(table_row(table, row, text, values, name, data_row=str(place)), place)
        for place, (row, name, values) in enumerate(
            zip(table.rows, block.names, zip(*block.values, strict=True), strict=True)
        )
    ]
    parts = {"title": table.title, "head": table_head(table), "rows": together(rows), "left": block.others}
    return filled("sortable.html.j2", hint=block.hint, note=text(table.note), **parts)


def _reached(row: Html, place: int) -> Html:
    """Return the row; below the first row the keyboard passes over its links, or nobody would come to the end."""
    return Html(row.replace("<a ", '<a tabindex="-1" ')) if place else row


def _sorted_by(value: CellValue) -> str | None:
    return None if value is None else f"{value:.{_FIGURES}g}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------- flame graphs


def flame_data(flame: FlameTree) -> Json:
    """Return what `flame.js` draws: names with their kinds; for each box name, depth and value, in tree order."""
    names: dict[tuple[str, str], int] = {}
    numbers: list[int] = []
    for box in flame.boxes:
        name = names.setdefault((text_for_others(box.name), box.kind), len(names))
        numbers += [name, box.depth, round(_PARTS * box.value / flame.total)]
    return {
        "title": text_for_others(flame.title),
        "total": format_quantity(flame.total, flame.unit),
        "whole": flame.total,
        "unit": "seconds" if flame.unit == "s" else "bytes" if flame.unit == "B" else "none",
        "parts": _PARTS,
        "names": [name for name, _ in names],
        "kinds": "".join(str(list(_KINDS).index(kind)) for _, kind in names),
        "boxes": cast(Json, numbers),
    }


def flame_html(graph: FlameGraph) -> Html:
    """Return a place for the graph, and its tools."""
    flame = graph.flame
    narrow = format_quantity(100 * flame.left_out, "%") if flame.left_out > _SEEN else ""
    there = {box.kind for box in flame.boxes}
    kinds = [(word, kind in there) for kind, word in _KINDS.items()]
    waits = bool(there - {"python", "native", "kernel", "thread"})
    return filled("flame.html.j2", title=flame.title, kinds=kinds, waits=waits, narrow=narrow)
