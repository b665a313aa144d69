"""The kernels of a run as a table that sorts and filters; the first of them as plain HTML, for paper and no script."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from profkit.analysis.kernel_names import shape
from profkit.analysis.metrics import all_metrics
from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import plural, quantity
from profkit.core.types import Json, Reading, RunDocument, Scope, Verdict
from profkit.reporting.html.escape import prose, text
from profkit.reporting.html.kernel_columns import Column, Value, columns
from profkit.reporting.html.packed import packed, trimmed
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.sources import MARKS, Sources
from profkit.reporting.html.templates import filled
from profkit.reporting.order import SIGNS, WORDS
from profkit.reporting.plain_text import harmless

PLAIN = 200  # rows that stand in the page as HTML
NAME = 4000  # characters of a whole name: longer ones, which somebody made, are cut
NAMES = 400_000  # characters of all names: what is beyond keeps
SHORTENED = 240  # of each, so that 10,000 templates do not make a page of 40 MB
DETAILED = 300  # kernels whose every number is in the page
FIGURES = 5  # of a number in the data: two more than are shown, so that sorting is not by chance


@dataclass(frozen=True)
class Cell:
    """One value with the footnote it leads to; `source` 0 is none."""

    value: Value
    source: int = 0
    mark: str = ""


def part(document: RunDocument, extras: Extras) -> Part | None:
    """The table; None where no kernel was seen."""
    rows = extras.kernels(document)
    if not rows:
        return None
    shown = [column for column in columns(document) if any(_worth(column.value(row)) for row in rows)]
    cells = [[_cell(column, row, extras.sources) for column in shown] for row in rows]
    units = [_unit(column, rows) for column in shown]
    counted = sum(bool(row.readings) for row in rows)
    told = f"{plural(len(rows), 'launch configuration')}, the largest share of the GPU time first"
    body = filled(
        "kernels.html.j2",
        columns=[(c.title, c.meaning, unit != "text") for c, unit in zip(shown, units, strict=True)],
        rows=[[_shown(cell, unit) for cell, unit in zip(line, units, strict=True)] for line in cells[:PLAIN]],
        number=len(rows),
        left=max(0, len(rows) - PLAIN),
        uncounted=len(rows) - counted,
        names=[(row.label, _name(row.scope)[:1000], row.scope.id or "-") for row in rows[:50]],
    )
    data = {
        "kernel-data": _data(document, rows, shown, units, cells, extras.sources),
        "kernel-names": packed(_names(rows)),
    }
    return Part("kernels", "Kernels", body, headline=f"{told}; {counted} counted.", data=data)


def _worth(value: Value) -> bool:
    return value is not None and value != "not known"


def _unit(column: Column, rows: Sequence[KernelRow]) -> str:
    """The unit of a column, or that of its first reading."""
    readings = (column.reading(row) for row in rows) if not column.unit else ()
    return column.unit or next((r.unit for r in readings if r is not None and r.value is not None), "")


def _cell(column: Column, row: KernelRow, sources: Sources) -> Cell:
    reading = column.reading(row)
    if reading is None:
        return Cell(column.value(row))
    mark = "?" if reading.doubt else MARKS.get(reading.quality, "")
    return Cell(column.value(row), sources.number(reading), mark)


def _shown(cell: Cell, unit: str) -> str:
    """A cell as HTML."""
    if isinstance(cell.value, str):
        return html.escape(prose(cell.value))
    if cell.value is None:
        return f'<a class="n unavailable" href="#s{cell.source}">–</a>' if cell.source else ""
    told = text(quantity(float(cell.value), unit))
    mark = f' <small class="mark">{cell.mark}</small>' if cell.mark else ""
    return f'<a class="n" href="#s{cell.source}">{told}{mark}</a>' if cell.source else told


def _name(scope: Scope) -> str:
    return harmless(scope.name or "?")


# ---------------------------------------------------------------- for the script


def _data(
    document: RunDocument,
    rows: Sequence[KernelRow],
    shown: Sequence[Column],
    units: Sequence[str],
    cells: Sequence[Sequence[Cell]],
    sources: Sources,
) -> Json:
    """The table by columns: numbers under `values`, words under `words`; what is absent at their end lacks.

    Of its footnotes each column has the commonest, and `odd` those cells that have another.
    """
    told: list[Json] = []
    for number, (column, unit) in enumerate(zip(shown, units, strict=True)):
        line = [row[number] for row in cells]
        common = Counter((c.source, c.mark) for c in line if c.value is not None).most_common(1)
        source, mark = common[0][0] if common else (0, "")
        odd = {
            str(n): [c.source, c.mark]
            for n, c in enumerate(line)
            if (c.source, c.mark) != (source, mark) and c.source
        }
        held: dict[str, Json]
        if unit == "text":
            held = {"words": packed([None if c.value is None else harmless(str(c.value)) for c in line])}
        else:
            held = {"values": trimmed([_short(cell.value) for cell in line])}
        width = max([len(column.title) + 2, *(len(_plain(cell, unit)) for cell in line)])
        told.append(
            {
                "title": column.title,
                "unit": unit,
                "width": width,
                **held,
                "source": source,
                "mark": mark,
                "odd": cast(Json, odd),
            }
        )
    return {
        "rows": len(rows),
        "columns": told,
        "shape": [shape(row.scope.id) if row.scope.id else "" for row in rows],
        "details": _details(document, rows, sources),
    }


def _short(value: Value) -> Json:
    if value is None or isinstance(value, int):
        return value
    return harmless(value) if isinstance(value, str) else float(f"{value:.{FIGURES}g}")


def _plain(cell: Cell, unit: str) -> str:
    told = cell.value if isinstance(cell.value, str) else quantity(cell.value, unit)
    return f"{told} {cell.mark}" if cell.mark else told


def _names(rows: Sequence[KernelRow]) -> list[str]:
    """The whole names, as long as the page can bear them."""
    found, used = [], 0
    for row in rows:
        name = _name(row.scope)
        most = NAME if used < NAMES else SHORTENED
        found.append(
            name if len(name) <= most else f"{name[:most]}… ({len(name)} characters, whole in run.json)"
        )
        used += len(found[-1])
    return found


def _details(document: RunDocument, rows: Sequence[KernelRow], sources: Sources) -> Json:
    """Of the first kernels that were counted every number and verdict.

    A reading is [text, footnote, mark]; its title is that of the footnote. They stand in the order of the catalogue.
    """
    order = {one.name: n for n, one in enumerate(all_metrics())}
    verdicts: dict[Scope, list[Verdict]] = {}
    for verdict in document.verdicts:
        if verdict.scope.kind == "kernel" and verdict.verdict in ("fail", "unknown"):
            verdicts.setdefault(verdict.scope, []).append(verdict)
    told: dict[str, Json] = {}
    for number, row in enumerate(rows):
        if len(told) == DETAILED:
            break
        if not (row.readings or row.bound or row.scope in verdicts):
            continue
        bound = row.bound.reason if row.bound is not None else ""
        told[str(number)] = {
            "bound": harmless(bound),
            "readings": [
                _reading(reading, sources)
                for reading in sorted(
                    row.readings.values(), key=lambda r: (r.value is None, order.get(r.metric, len(order)))
                )
            ],
            "verdicts": [
                [v.verdict, f"{SIGNS[v.verdict]} {WORDS[v.verdict]}", harmless(v.target), harmless(v.reason)]
                for v in verdicts.get(row.scope, [])
            ],
        }
    return told


def _reading(reading: Reading, sources: Sources) -> Json:
    mark = "?" if reading.doubt else MARKS.get(reading.quality, "")
    told = "not known" if reading.value is None else quantity(reading.value, reading.unit)
    return [told, sources.number(reading), mark]
