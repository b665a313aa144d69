"""Reads what `ncu --csv` printed, with `--page raw` or without, in base units or scaled ones, log lines and all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from profkit.core.errors import UnreadableReport
from profkit.core.types import Report
from profkit.profilers.ncu import csv_table as table
from profkit.profilers.ncu.launches import DEVICE, PASSES, Launch, ResultKind, Value, finite, kernel_of
from profkit.profilers.ncu.report import report_of
from profkit.profilers.ncu.session import Session
from profkit.profilers.ncu.wanted import is_wanted

FORMAT = "ncu-csv"
_LONGEST_LINE = 32 << 20  # characters; eight thousand metrics of a launch are a quarter of a million
_MOST_WARNINGS = 10
_ATTRIBUTE = "device__attribute_"
_UNLOCKED = "Running with unmodified GPU clocks"
_PROFILED = re.compile(r'==PROF== Profiling ".*" - (\d+).*?(\d+) pass')
_CONNECTED = re.compile(r"==PROF== Connected to process (\d+) \((.*)\)")
_KINDS: Mapping[str, tuple[ResultKind, str]] = {"range": ("range", "range"), "graph": ("graph", "CUDA graph")}


def read_ncu_csv(path: Path) -> Report:
    """The report in the text at `path`: counters and times by launch configuration, and what its log lines tell.

    Values are as precise as they were printed, mostly two decimals. Raises UnreadableReport where there is no table.
    """
    log = table.Log()
    session = Session()
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            lines = _Lines(path, file)
            report = report_of(session, _launches(table.rows(lines, log), log, session), FORMAT)
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UnreadableReport(f"{str(path)!r} cannot be read: {error}") from error
    if not lines.headers:
        raise UnreadableReport(f"{path} has no table of `ncu --csv` in it: no line names the columns")
    warnings = [
        line.partition("== ")[2] for line in log.lines if line.startswith(("==ERROR==", "==WARNING=="))
    ]
    warnings = [warning for warning in dict.fromkeys(warnings) if _UNLOCKED not in warning][:_MOST_WARNINGS]
    if log.scaled:
        warnings.append(
            "values were printed in scaled units and rounded: --print-units base keeps what was measured"
        )
    if log.damaged:
        warnings.append(f"{log.damaged} rows are cut off or damaged and were left out")
    return replace(report, warnings=(*report.warnings, *warnings))


class _Lines:
    """The lines of the file, none longer than can be meant; counts the headers among them."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path, self.file, self.headers = path, file, 0

    def __iter__(self) -> Iterator[str]:
        while line := self.file.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise UnreadableReport(
                    f"{self.path} has a line of more than {_LONGEST_LINE >> 20} MiB: no table"
                )
            self.headers += table.is_header(line)
            yield line


def _launches(rows: Iterable[table.Row], log: table.Log, session: Session) -> Iterator[Launch]:
    passes: dict[str, int] = {}
    seen = 0
    unlocked = False
    for row in rows:
        for line in log.lines[seen:]:
            unlocked |= _UNLOCKED in line
            if (profiled := _PROFILED.match(line)) is not None:
                passes[profiled[1]] = int(profiled[2])
            elif (connected := _CONNECTED.match(line)) is not None:
                session.processes[int(connected[1])] = connected[2].rpartition("/")[2]
        seen = len(log.lines)
        yield _launch(row, passes.get(row.of.get(table.ID, "")), unlocked, session)


def _launch(row: table.Row, passes: int | None, unlocked: bool, session: Session) -> Launch:
    device = _device(row, session)
    values = {name: value for name, value in row.values.items() if is_wanted(name)}
    if passes is not None:
        values.setdefault(PASSES, passes)
    name = row.of.get(table.KERNEL, "").strip() or "kernel without a name"
    kind, shown = _KINDS.get(name, ("kernel", name))
    return Launch(
        kernel=kernel_of(
            shown,
            None,
            () if kind != "kernel" else _sides(row.of.get(table.GRID), values, "grid"),
            () if kind != "kernel" else _sides(row.of.get(table.BLOCK), values, "block"),
            values,
        ),
        values=values,
        kind=kind,
        device=device,
        lock_asked=False if unlocked else None,
        lock_done=False if unlocked else None,
    )


def _sides(cell: str | None, values: Mapping[str, Value], what: str) -> tuple[int, ...]:
    """`(256, 256, 1)`; where an older version has no such column, out of the launch attributes."""
    if cell:
        return tuple(int(side) for side in re.findall(r"\d{1,18}", cell)[:3])
    dims = [finite(values.get(f"launch__{what}_dim_{axis}")) for axis in "xyz"]
    if all(side is not None for side in dims):
        return tuple(int(side) for side in dims if side is not None)
    size = finite(values.get(f"launch__{what}_size"))  # all blocks (or threads) in one number
    return () if size is None else (int(size),)


def _device(row: table.Row, session: Session) -> int | None:
    said = row.of.get(table.DEVICE, "")
    index = _whole(said)
    if index is None and (told := finite(row.values.get(DEVICE))) is not None:
        index = int(told)
    if (index or 0) not in session.devices and (said or row.of.get(table.CAPABILITY)):
        attributes: dict[str, Value] = {
            name.removeprefix(_ATTRIBUTE): value
            for name, value in row.values.items()
            if name.startswith(_ATTRIBUTE)
        }
        major, _, minor = row.of.get(table.CAPABILITY, "").partition(".")
        if major.isdigit():
            attributes.setdefault("compute_capability_major", int(major))
            attributes.setdefault("compute_capability_minor", _whole(minor) or 0)
        shown = attributes.get("display_name")
        name = shown if isinstance(shown, str) else "" if said.isdigit() else said
        session.devices[index or 0] = (name, attributes)
    return index


def _whole(cell: str | None) -> int | None:
    return int(cell) if cell is not None and cell.isascii() and cell.isdigit() and len(cell) < 19 else None
