"""Small tables of a Metal run's page, in the order in which they are given; the first column names the row."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.reporting.html.templates import filled


def finished(html: str) -> str:
    """HTML of ours, as a cell that is not escaped once more."""
    from markupsafe import Markup

    return Markup(html)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "", words: int = 1
) -> str:
    """The table as HTML. Cells are plain text, or `finished`. The first `words` columns hold words, others numbers."""
    return filled(
        "metal_table.html.j2",
        title=title,
        columns=[(name, place >= words) for place, name in enumerate(columns)],
        rows=rows,
        note=note,
    )
