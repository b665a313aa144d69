"""What a concern in words is made of: a headline, tables, notes; and the small tables that several concerns have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten
from profkit.core.types import Hotspot, Profile, Reading, RunDocument
from profkit.reporting.view import DataTable, TableColumn, Text, plain_text

NAME_WIDTH = 44  # what an 80-column terminal leaves a name beside three columns of numbers
TOP_FUNCTIONS = 10  # functions in a table: more than anybody works on at once, few enough to be seen at once
TOP_KERNELS = 10  # kernels in a table; the rest stands in run.json
NOTHING = "-"


@dataclass(frozen=True)
class ConcernFacts:
    """What the words on one concern are made of: the document, the concern's readings, and all kernels."""

    document: RunDocument
    readings: tuple[Reading, ...]
    rows: tuple[KernelRow, ...]


@dataclass(frozen=True)
class SummaryText:
    """A concern in words. `metrics` are tables of `readings`, for formats that do not show these with their sources.

    `brief` are the titles of the tables that a short screen shows, too.
    """

    concern: str
    headline: str
    readings: tuple[Reading, ...] = ()
    metrics: tuple[DataTable, ...] = ()
    tables: tuple[DataTable, ...] = ()
    notes: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it says no more than that something is not known."""
        return (
            not self.tables and not self.metrics and all(reading.value is None for reading in self.readings)
        )


Texts: TypeAlias = Mapping[str, SummaryText]  # by concern


def summary_text(
    concern: str,
    headline: str,
    readings: Sequence[Reading] = (),
    tables: Sequence[DataTable | None] = (),
    notes: Sequence[str] = (),
    metrics: Sequence[DataTable | None] = (),
    brief: Sequence[str] = (),
) -> SummaryText:
    """The text with those tables that have rows."""
    shown, told = (
        tuple(table for table in some if table is not None and table.rows) for some in (tables, metrics)
    )
    return SummaryText(concern, headline, tuple(readings), told, shown, tuple(notes), tuple(brief))


def named_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Text]],
    note: str | None = None,
    words: Collection[str] = (),
) -> DataTable:
    """A table whose first column holds names and the others numbers, but for those in `words`; none of dashes alone."""
    used = [
        n
        for n in range(len(columns))
        if n == 0 or any(plain_text(row[n]) not in (NOTHING, "") for row in rows)
    ]
    titles = tuple(
        TableColumn(
            columns[n], numeric=n > 0 and columns[n] not in words, kernel=n == 0 and columns[0] != "range"
        )
        for n in used
    )
    return DataTable(titles, tuple(tuple(row[n] for n in used) for row in rows), title, note or "")


def metric_table(title: str, readings: Sequence[Reading], note: str | None = None) -> DataTable | None:
    """One row per reading with a value: what, how much and, unless all is measured, how it is known."""
    known = [r for r in readings if r.value is not None]
    measured = all(r.quality == "measured" for r in known)
    rows = [
        (
            metric(r.metric).title,
            format_quantity(r.value, r.unit),
            NOTHING if measured else quality_text(r),
        )
        for r in known
    ]
    return named_table(title, ("what", "value", "how"), rows, note, ("how",)) if known else None


def quality_text(reading: Reading) -> str:
    """The quality in words, with the share of a multiplexed counter."""
    if reading.quality == "multiplexed" and reading.share is not None:
        return f"multiplexed {format_percent(100 * reading.share)} %"
    return reading.quality


def share_text(part: float, total: float) -> str:
    """`part` of `total` as a percentage; a dash where there is no total."""
    return f"{format_percent(100 * part / total)} %" if total > 0 else NOTHING


def capitalized(text: str) -> str:
    """The text as a sentence begins."""
    return text[:1].upper() + text[1:]


def value_of(readings: Sequence[Reading], name: str) -> float | None:
    """The value of the first reading of a metric."""
    return next((r.value for r in readings if r.metric == name), None)


def first_reason(readings: Sequence[Reading], otherwise: str = "no counter for it was collected") -> str:
    """Why the first reading that says it has no value."""
    return next((reading.reason for reading in readings if reading.reason), otherwise)


def absence_notes(readings: Sequence[Reading]) -> tuple[str, ...]:
    """What is not there, one line per reason with all that it stands in the way of, the fix behind it."""
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for reading in readings:
        if reading.value is None and reading.reason:
            reasons.setdefault((reading.reason, reading.fix), []).append(metric(reading.metric).title)
    return tuple(
        f"{', '.join(dict.fromkeys(titles))}: unavailable, {reason}" + (f" ({fix})" if fix else "")
        for (reason, fix), titles in reasons.items()
    )


def unknown_text(concern: str, what: str, readings: Sequence[Reading]) -> SummaryText:
    """`what` is not known, and the reasons."""
    return summary_text(
        concern, f"{what} not known: {first_reason(readings)}.", readings, (), absence_notes(readings)
    )


def function_place(spot: Hotspot, width: int = NAME_WIDTH) -> str:
    """A function with its file and line, or its library, in at most `width` characters."""
    if spot.file is not None:
        base = spot.file.replace("\\", "/").rpartition("/")[2]
        place = f" {base}:{spot.line}" if spot.line else f" {base}"
    else:
        place = f" [{spot.library}]" if spot.library and spot.library != spot.function else ""
    if len(place) > width - 16:  # the name is worth more than the place
        return shorten(spot.function, width)
    return shorten(spot.function, width - len(place)) + place


def last_parts(path: str) -> str:
    """The last two parts of a file's name: `torch/__init__.py`."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])


def hotspot_table(
    title: str,
    profile: Profile,
    columns: Sequence[tuple[str, Callable[[Hotspot], str | None]]],
    *,
    most: int,
    least: float = 0.0,
    by: Callable[[Hotspot], float] = lambda spot: spot.own,
    words: Collection[str] = (),
) -> DataTable:
    """A row for each of the first `most` functions of a profile with more than `least` of it, by what `columns` say."""
    rows = [
        tuple(cell(spot) or NOTHING for _, cell in columns)
        for spot in profile.hotspots[:most]
        if by(spot) > least * profile.total
    ]
    return named_table(title, [name for name, _ in columns], rows, words=words)


# ---------------------------------------------------------------- kernels

Cell = Callable[[KernelRow], "str | None"]


@dataclass(frozen=True)
class KernelTableColumn:
    """A column of a table of kernels. `alone`: worth a table by itself; `rare`: a metric, left out where it is 0."""

    title: str
    cell: Cell
    alone: bool = True
    rare: str | None = None


def metric_column(title: str, name: str, *, bare: bool = False, rare: bool = False) -> KernelTableColumn:
    """A column with the values of one metric, `bare` without their unit, and left out where all are 0 (`rare`)."""

    def cell(row: KernelRow) -> str | None:
        reading = row.readings.get(name)
        if reading is None or reading.value is None:
            return None
        value, doubtful = reading.value, "?" if reading.doubt else ""
        if not bare:
            return format_quantity(value, reading.unit) + doubtful
        return (f"{value:.0f}" if value == int(value) else format_figures(value)) + doubtful

    return KernelTableColumn(title, cell, rare=name if rare else None)


WORDS_OF_KERNELS = (
    "limited by",
    "limiter",
    "grid of block",
    "operation",
    "backward of",
    "line",
    "most",
    "then",
    "and",
)


def kernel_table(
    title: str,
    rows: Sequence[KernelRow],
    columns: Sequence[KernelTableColumn],
    note: str = "",
    first: str = "kernel",
) -> DataTable | None:
    """One row for each kernel that has a value in some column; None where none has."""
    shown = rows[:TOP_KERNELS]
    used = [
        column
        for column in columns
        if any(column.cell(row) for row in shown)
        and (column.rare is None or any(row.value(column.rare) for row in shown))
    ]
    if not any(column.alone for column in used):
        return None
    cells = [(row.label, *(column.cell(row) or NOTHING for column in used)) for row in shown]
    rest = rows[TOP_KERNELS:]
    share = format_percent(100 * sum(row.share or 0.0 for row in rest))
    more = f"and {plural(len(rest), 'further configuration')}, {share} % of the GPU time" if rest else ""
    kept = [line for line in cells if any(cell != NOTHING for cell in line[1:])]
    titles = (first, *(column.title for column in used))
    return named_table(title, titles, kept, "; ".join(filter(None, (more, note))), WORDS_OF_KERNELS)
