"""The tables in what `ncu --csv` printed: one row per launch, whatever else stands between them.

Two shapes: the raw page has a column per metric and the units in the row below the names; the details page has a row
per metric. Before, between and behind stand the tool's own lines (`==PROF==`) and whatever the workload printed.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from profkit.profilers.ncu.csv_labels import metric_of
from profkit.profilers.ncu.csv_units import base_unit, decimal_sign, number
from profkit.profilers.ncu.launches import Value

# Columns that say which launch a row is of. Their names have stayed over the versions, their number has not.
ID, PROCESS, PROCESS_NAME, KERNEL = "ID", "Process ID", "Process Name", "Kernel Name"
CONTEXT, STREAM, BLOCK, GRID, DEVICE, CAPABILITY = (
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
)
_LABEL, _UNIT, _VALUE = "Metric Name", "Metric Unit", "Metric Value"
_OF = frozenset({ID, PROCESS, PROCESS_NAME, KERNEL, CONTEXT, STREAM, BLOCK, GRID, DEVICE, CAPABILITY})
_SCALES = ("Kbyte", "Mbyte", "Gbyte", "Tbyte", "us", "ms", "Khz", "Mhz", "Ghz", "cycle/ns", "cycle/us")
_NO_METRIC = _OF | {"Host Name", "Kernel Time"}


@dataclass
class Row:
    """One launch: the columns that say which, and its metrics in base units."""

    of: Mapping[str, str]
    values: dict[str, Value] = field(default_factory=dict)


@dataclass
class Log:
    """What stood between the rows: the tool's own lines, and how many rows were cut off."""

    lines: list[str] = field(default_factory=list)
    damaged: int = 0
    scaled: bool = False  # values were printed in units that fit them, and rounded


def is_header(line: str) -> bool:
    """Whether `line` names the columns of a table."""
    return line.replace('"', "").startswith("ID,Process ID,")


def rows(lines: Iterable[str], log: Log) -> Iterator[Row]:
    """Every launch of every table in `lines`, in order. The tool's own lines go to `log`, others are the workload's."""
    table: _Wide | _Long | None = None
    for line in lines:
        if line.startswith("=="):
            if len(log.lines) < 100_000:
                log.lines.append(line.rstrip())
        elif is_header(line):
            if table is not None:
                yield from table.end()
            names = _cells(line)
            table = _Long(names, log) if _LABEL in names else _Wide(names, log)
        elif table is not None and line.strip() and (line[0] == '"' or line[0].isdigit()):
            cells = _cells(line)
            whole = line[0] != '"' or line.rstrip().endswith(('"', ","))
            if whole and table.fits(cells):
                yield from table.add(cells)
            elif len(cells) > 4:
                log.damaged += 1
    if table is not None:
        yield from table.end()


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line.rstrip("\r\n")]), [])
    except csv.Error:  # a cell of more than 128 KiB
        return []


class _Wide:
    """The raw page: names, units, then a row per launch."""

    def __init__(self, names: Sequence[str], log: Log) -> None:
        self.log = log
        self.names = names
        self.of = [(at, name) for at, name in enumerate(names) if name in _OF]
        self.metrics = [(at, name, 1.0) for at, name in enumerate(names) if name not in _NO_METRIC]
        self.decimal: str | None = None

    def fits(self, cells: Sequence[str]) -> bool:
        return len(cells) == len(self.names)

    def add(self, cells: Sequence[str]) -> Iterator[Row]:
        if not cells[0].strip():  # no launch has an empty ID: these are the units
            self.metrics = [(at, name, base_unit(cells[at])[0]) for at, name, _ in self.metrics]
            self.log.scaled |= any(cells[at].startswith(_SCALES) for at, _, _ in self.metrics)
            return
        self.decimal = self.decimal or decimal_sign(cells[at] for at, _, _ in self.metrics)
        row = Row({name: cells[at] for at, name in self.of})
        for at, name, factor in self.metrics:
            if cells[at]:  # empty: this launch has no such metric, or instances alone
                row.values[name] = _value(cells[at], factor, self.decimal)
        yield row

    def end(self) -> Iterator[Row]:
        return iter(())


class _Long:
    """The details page: a row per metric, those of one launch one after the other."""

    def __init__(self, names: Sequence[str], log: Log) -> None:
        self.log = log
        self.at = {name: at for at, name in enumerate(names)}
        self.of = [(at, name) for at, name in enumerate(names) if name in _OF]
        self.least = 1 + max(self.at.get(name, 0) for name in (_LABEL, _UNIT, _VALUE))
        self.row: Row | None = None
        self.raw: list[tuple[str, str, str]] = []
        self.decimal: str | None = None

    def fits(self, cells: Sequence[str]) -> bool:
        return len(cells) >= self.least

    def add(self, cells: Sequence[str]) -> Iterator[Row]:
        of = {name: cells[at] for at, name in self.of}
        if self.row is None or self.row.of != of:
            yield from self.end()
            self.row = Row(of)
        label, unit = cells[self.at[_LABEL]], cells[self.at.get(_UNIT, 0)] if _UNIT in self.at else ""
        if label:  # a rule's row has none
            self.raw.append((label, unit, cells[self.at.get(_VALUE, 0)]))

    def end(self) -> Iterator[Row]:
        if self.row is None:
            return
        self.decimal = self.decimal or decimal_sign(value for _, _, value in self.raw)
        for label, unit, cell in self.raw:
            self.log.scaled |= unit.startswith(_SCALES)
            if cell:
                self.row.values.setdefault(
                    metric_of(label, unit), _value(cell, base_unit(unit)[0], self.decimal)
                )
        yield self.row
        self.row, self.raw = None, []


def _value(cell: str, factor: float, decimal: str | None) -> Value:
    value = number(cell, decimal or ".")
    return cell if value is None else value if factor == 1.0 else value * factor
