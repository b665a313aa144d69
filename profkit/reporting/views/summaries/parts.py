"""Parts of the sections of concerns: a headline, tables, notes; and the tables that several concerns have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from profkit.analysis.function_names import name_in_file
from profkit.analysis.metrics.catalogue import title_of as metric_title
from profkit.core.formatting import cut_right, format_percent, format_quantity, joined
from profkit.core.types import Hotspot, Reading, RunDocument
from profkit.reporting.facts import fact_text
from profkit.reporting.plain_text import reading_span
from profkit.reporting.view import Block, DataTable, Fold, ItemList, Section, TableColumn, Text, plain_text
from profkit.reporting.views.run_text import title_of

NAME_WIDTH = 44  # what an 80-column terminal leaves a name beside three columns of numbers
TOP_ROWS = 10  # of a table: more than anybody works on at once; the rest stands in run.json
NOTHING = "-"
_NOTES = 4  # on a short screen


def readings_of(document: RunDocument, concern: str) -> tuple[Reading, ...]:
    """Return the readings of a concern; none if the document has no summary of it."""
    return next((summary.readings for summary in document.summaries if summary.concern == concern), ())


def concern_section(
    concern: str,
    headline: str,
    tables: Sequence[DataTable | None] = (),
    notes: Sequence[str] = (),
) -> Section:
    """Return the section of a concern: its tables that have rows, then its notes."""
    blocks: list[Block] = [table for table in tables if table is not None and table.rows]
    if notes:
        blocks.append(ItemList(tuple(notes), brief=_NOTES))
    return Section(title_of(concern), tuple(blocks), headline, Fold.FOLDED)


def readings_section(
    concern: str,
    title: str,
    readings: Sequence[Reading],
    tables: Sequence[DataTable | None] = (),
    notes: Sequence[str] = (),
    what: str = "",
) -> Section:
    """Return a concern that consists of its readings: the first of them as the headline, and why others are missing.

    `title` is that of their table. `what` is the subject of the headline if no value is known.
    """
    known = [r for r in readings if r.value is not None][:3]
    headline = f"{joined([_reading_text(reading, concern) for reading in known])}."
    if not known:
        headline = f"{what or title} is not known: {first_reason(readings)}."
    doubts = doubt_notes(readings)
    shown = (readings_table(title, readings), *tables)
    return concern_section(concern, headline, shown, (*notes, *doubts, *absence_notes(readings)))


def _reading_text(reading: Reading, concern: str) -> str:
    """Return `L1 data cache misses 9.0 % (simulated)`; without its title where the concern is called so."""
    title = metric_title(reading.metric)
    name = "" if title.lower() == concern else f"{title} "
    quality = f" ({reading.quality})" if reading.quality != "measured" else ""
    return f"{name}{format_quantity(reading.value, reading.unit)}{quality}"


def readings_table(title: str, readings: Sequence[Reading], note: str = "") -> DataTable | None:
    """Return one row for each reading with a value, which leads to its source."""
    rows = [(metric_title(r.metric), reading_span(r)) for r in readings if r.value is not None]
    return named_table(title, ("what", "value"), rows, note) if rows else None


def timeline_table(
    readings: Sequence[Reading], further: Iterable[tuple[str, float | None]]
) -> DataTable | None:
    """Return what is known of a GPU's time: the readings, then times in seconds that are none."""
    known = [(metric_title(r.metric), reading_span(r)) for r in readings if r.value is not None]
    times = [(what, format_quantity(value, "s")) for what, value in further if value is not None]
    return named_table("Timeline", ("what", "value"), [*known, *times])


def named_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Text]],
    note: str = "",
    words: Collection[str] = (),
) -> DataTable:
    """Return a table whose first column holds names and the others numbers, but for those in `words`; none of
    dashes alone.
    """
    used = [
        n
        for n in range(len(columns))
        if n == 0 or any(plain_text(row[n]) not in (NOTHING, "") for row in rows)
    ]
    titles = tuple(TableColumn(columns[n], numeric=n > 0 and columns[n] not in words) for n in used)
    return DataTable(titles, tuple(tuple(row[n] for n in used) for row in rows), title, note)


def share_text(part: float, total: float) -> str:
    """Return `part` of `total` as a percentage; a dash where there is no total."""
    return f"{format_percent(100 * part / total)} %" if total > 0 else NOTHING


def first_reason(readings: Sequence[Reading], otherwise: str = "no counter for it was collected") -> str:
    """Return why the first reading that says it has no value."""
    return next((fact_text(reading.reason) for reading in readings if reading.reason), otherwise)


def doubt_notes(readings: Sequence[Reading]) -> list[str]:
    """Return what contradicts the readings, each once."""
    return [f"Doubtful: {fact_text(doubt)}." for doubt in dict.fromkeys(r.doubt for r in readings if r.doubt)]


def remarks(readings: Sequence[Reading]) -> list[str]:
    """Return what must be known of the values that there are."""
    return [f"{fact_text(r.reason)}." for r in readings if r.value is not None and r.reason]


def absence_notes(readings: Sequence[Reading]) -> tuple[str, ...]:
    """Return what is not there, one line per reason with all that it stands in the way of, the fix behind it."""
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for reading in readings:
        if reading.value is None and reading.reason:
            reasons.setdefault((fact_text(reading.reason), reading.fix), []).append(
                metric_title(reading.metric)
            )
    return tuple(
        f"{', '.join(dict.fromkeys(titles))}: unavailable, {reason}" + (f" ({fix})" if fix else "")
        for (reason, fix), titles in reasons.items()
    )


def unknown_section(concern: str, what: str, readings: Sequence[Reading]) -> Section:
    """Return the sentence that `what` is not known, with the reasons."""
    headline = f"{what} not known: {first_reason(readings)}."
    return concern_section(concern, headline, (), absence_notes(readings))


def function_place(spot: Hotspot, width: int = NAME_WIDTH) -> str:
    """Return a function with its file and line, or its library, in at most `width` characters."""
    if spot.file is not None:
        base = spot.file.replace("\\", "/").rpartition("/")[2]
        place = f" {base}:{spot.line}" if spot.line else f" {base}"
    else:
        place = f" [{spot.library}]" if spot.library and spot.library != spot.function else ""
    name = name_in_file(spot.function, spot.file, spot.library)
    if len(place) > width - 16:  # the name is worth more than the place
        return cut_right(name, width)
    return cut_right(name, width - len(place)) + place
