"""Reads the output of `ncu --csv`: one row per launch, whatever else stands between the rows.

The raw page has a column per metric and the units in the row below the names. `--metrics` and the details
page have a row per metric, by its own name or by a label that `labels.yaml` knows. Before, between and after
the rows stand the tool's own lines (`==PROF==`) and the output of the workload.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.tables import load_yaml
from profkit.core.types import Fact, Report
from profkit.profilers.files import lines_of, reading
from profkit.profilers.ncu.launches import (
    DEVICE,
    PASSES,
    LaunchResult,
    Value,
    finite_number,
    is_wanted,
    kernel_of,
    unit_of,
)
from profkit.profilers.ncu.report import ReportSession, report_of
from profkit.profilers.numbers import NumberStyle, whole_number

# Prefixes are decimal: 102,400 bytes of shared memory are printed as 102.400000 Kbyte.
_PREFIXES = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_NANOSECONDS = {
    **dict.fromkeys(("ns", "nsecond", "nanosecond"), 1.0),
    **dict.fromkeys(("us", "usecond", "microsecond"), 1e3),
    **dict.fromkeys(("ms", "msecond", "millisecond"), 1e6),
    **dict.fromkeys(("s", "second", "sec"), 1e9),
}
_PREFIXED = re.compile(r"([KkMGTP]?)(byte|hz|Hz)")
_DIGITS = re.compile(r"[-+]?\d[\d.,]*")
_NAN = {"nan", "-nan", "nan(ind)", "-nan(ind)"}


@lru_cache(maxsize=512)
def unit_factor(unit: str) -> float:
    """Return the factor that converts a value in the printed `unit` to the base unit of `launches.unit_of`.

    Times become nanoseconds, rates per second, `cycle/nsecond` hertz.
    """
    over, _, under = unit.strip().partition("/")
    prefixed = _PREFIXED.fullmatch(over)
    factor = _NANOSECONDS.get(over) or (_PREFIXES[prefixed[1]] if prefixed is not None else 1.0)
    return factor * 1e9 / _NANOSECONDS[under] if under in _NANOSECONDS else factor


# Units of counts; times, bytes and their rates are handled above.
_COUNTED = frozenset(
    (
        "",
        "%",
        "block",
        "branch",
        "cluster",
        "cycle",
        "inst",
        "pass",
        "register",
        "request",
        "sector",
        "SM",
        "thread",
        "warp",
    )
)
# What is printed without decimals in its base unit, so that every sign parts groups.
_UNDIVIDED = frozenset(
    ("ns", "nsecond", "byte", "inst", "sector", "request", "cycle", "thread", "byte/block")
)
_WHOLE = frozenset(("register/thread", "thread", "SM", "cluster", "block"))


@lru_cache(maxsize=512)
def _dimension(unit: str) -> str | None:
    """Return the base unit of a printed unit; None for an unknown one."""
    over, slash, under = unit.strip().partition("/")
    prefixed = _PREFIXED.fullmatch(over)
    base = "ns" if over in _NANOSECONDS else prefixed[2].lower() if prefixed is not None else over
    below = "s" if under in _NANOSECONDS else under
    if base not in ("ns", "byte", "hz", *_COUNTED) or below not in ("s", *_COUNTED):
        return None
    return "hz" if (base, below) == ("cycle", "s") else f"{base}{slash}{below}"


@lru_cache(maxsize=8192)
def _unit_fault(name: str, unit: str) -> Fact | None:
    """Return why the printed `unit` cannot be converted to the base unit of the metric `name`; None if it can."""
    expected, dimension = unit_of(name), _dimension(unit)
    if not expected or (
        dimension is not None and (dimension == expected or expected not in ("ns", "byte", "byte/s", "hz"))
    ):
        return None
    return Fact.of("unit-unknown", unit=unit[:40])


def _parse_number(cell: str, style: NumberStyle) -> float | Fact | None:
    """Parse the number in a cell; None where it is text, a fact where it may be two numbers.

    NaN and infinity are numbers here, because the tool printed them.
    """
    stripped = cell.strip()
    if stripped.lower() in _NAN:
        return float("nan")
    if "_" in stripped:  # Python's own digit separator, which no tool prints
        return None
    if "," not in stripped and "." not in stripped:
        try:
            return float(stripped)
        except ValueError:
            return style.value(stripped)
    value = style.value(stripped)
    if value is None and _DIGITS.fullmatch(stripped) is not None:
        return Fact.of("unclear-number", said=stripped[:40])
    return value


# Columns that say which launch a row is of. Their names have stayed over the versions, their number has not.
_ID, _KERNEL, _BLOCK, _GRID, _DEVICE, _CAPABILITY = (
    "ID",
    "Kernel Name",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
)
_OF = frozenset(
    {_ID, "Process ID", "Process Name", _KERNEL, "Context", "Stream", _BLOCK, _GRID, _DEVICE, _CAPABILITY}
)
_SCALES = ("Kbyte", "Mbyte", "Gbyte", "Tbyte", "us", "ms", "Khz", "Mhz", "Ghz", "cycle/ns", "cycle/us")
_NO_METRIC = _OF | {"Host Name", "Kernel Time"}
_METRIC = ("Metric Name", "Metric Unit", "Metric Value")  # of a table with a row per metric


@lru_cache(maxsize=1)
def _labels() -> Mapping[str, Sequence[str]]:
    labels: Mapping[str, Sequence[str]] = load_yaml(Path(__file__).with_name("labels.yaml"))
    return labels


@lru_cache(maxsize=8192)
def metric_of(label: str, unit: str) -> str | None:
    """Return the metric of a row, by its own name or by its label; None for an unknown label.

    >>> metric_of("Memory Throughput", "Gbyte/second"), metric_of("dram__bytes_read.sum", "Mbyte")
    ('dram__bytes.sum.per_second', 'dram__bytes_read.sum')
    """
    if "__" in label:
        return label
    candidates = _labels().get(label, ())
    fitting = (name for name in candidates if (unit_of(name) == "%") is (unit.strip() == "%"))
    return next((name for name in fitting if _unit_fault(name, unit) is None), None)


@dataclass
class LaunchRow:
    """One launch: the columns that identify it, and its metrics in base units."""

    of: Mapping[str, str]
    values: dict[str, Value] = field(default_factory=dict)


@dataclass
class TableLog:
    """What stood between the rows: the tool's own lines, and how many rows were cut off."""

    lines: list[str] = field(default_factory=list)
    damaged: int = 0
    together: int = 0  # rows of ranges and graphs
    tables: int = 0
    scaled: bool = False  # values were printed in units that fit them, and rounded
    style: NumberStyle = field(default_factory=NumberStyle)  # by the numbers of the whole file
    rows: int = 0  # different ones
    twice: int = 0  # that stood there before


def read_rows(lines: Iterable[str], log: TableLog) -> Iterator[LaunchRow]:
    """Yield every launch of every table in `lines`, in order.

    The tool's own lines go to `log`, all others are the workload's. Below the names of the columns stand the
    units, then a row per launch; or the table has a row per metric.
    """
    names: list[str] = []
    of: list[tuple[int, str]] = []
    metrics: list[tuple[int, str, str]] = []
    seen: dict[tuple[str, ...], int] = {}
    # Of a table with a row per metric: the rows of one launch follow each other.
    launch: LaunchRow | None = None
    for line in lines:
        if line.startswith("=="):
            if len(log.lines) < 100_000:
                log.lines.append(line.rstrip())
        elif line.replace('"', "").startswith("ID,Process ID,"):  # the names of the columns
            log.tables += 1
            names = _cells(line)
            of = [(at, name) for at, name in enumerate(names) if name in _OF]
            metrics = [(at, name, unit_of(name)) for at, name in enumerate(names) if name not in _NO_METRIC]
        elif names and line.strip() and (line[0] == '"' or line[0].isdigit()):
            cells = _cells(line)
            by_metric = set(_METRIC) <= set(names)
            # Behind a metric's value stand the columns of rules, which are not written where they are empty.
            short = len(cells) <= names.index(_METRIC[-1]) if by_metric else len(cells) != len(names)
            if not _is_whole(line) or short:
                log.damaged += len(cells) > 4
            elif by_metric:
                identity = {name: cells[at] for at, name in of}
                if launch is None or launch.of != identity:
                    if launch is not None:
                        yield launch
                    launch = LaunchRow(identity)
                _add_metric(launch, dict(zip(names, cells, strict=False)), log)
            elif not cells[0].strip():  # no launch has an empty ID: these are the units
                metrics = [(at, name, cells[at]) for at, name, _ in metrics]
                log.scaled |= any(cells[at].startswith(_SCALES) for at, _, _ in metrics)
            elif seen.setdefault(tuple(cells[:2]), hash(line)) != hash(line) or len(seen) > log.rows:
                log.rows = len(seen)
                # an empty cell: this launch has no such metric, or instances alone
                values = {
                    name: _value(cells[at], name, unit, log.style) for at, name, unit in metrics if cells[at]
                }
                yield LaunchRow({name: cells[at] for at, name in of}, values)
            else:
                log.twice += 1
    if launch is not None:
        yield launch


def _add_metric(launch: LaunchRow, cells: Mapping[str, str], log: TableLog) -> None:
    """Add the metric of one row to its launch; the row of a rule has none."""
    label, unit, cell = (cells[name] for name in _METRIC)
    name = metric_of(label, unit) if label and cell else None
    if name is not None:
        log.scaled |= unit.startswith(_SCALES)
        launch.values.setdefault(name, _value(cell, name, unit, log.style))


def _is_whole(line: str) -> bool:
    """Return whether a row is complete, and not cut off in the middle of a cell."""
    return line[0] != '"' or line.rstrip().endswith(('"', ","))


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line.rstrip("\r\n")]), [])
    except csv.Error:  # a cell of more than 128 KiB
        return []


def _value(cell: str, name: str, unit: str, style: NumberStyle) -> Value:
    value = _parse_number(cell, style)
    if isinstance(value, Fact) and unit in _UNDIVIDED and (whole := whole_number(cell.strip())) is not None:
        value = whole
    if value is None:
        return cell
    if isinstance(value, Fact):
        return value
    if (fault := _unit_fault(name, unit)) is not None:
        return fault
    factor = unit_factor(unit)
    if factor == 1.0 and unit in _WHOLE and math.isfinite(value) and not value.is_integer():
        return Fact.of("not-whole", value=value)
    return value if factor == 1.0 else value * factor


def _number_style(path: Path) -> NumberStyle:
    """Find out how the numbers of the file's tables are written; all of them have to be read for that."""
    style = NumberStyle()
    metrics: list[int] = []
    with io.TextIOWrapper(open_regular(path), encoding="utf-8", errors="replace", newline="") as file:
        for line in lines_of(file, path):
            if line.replace('"', "").startswith("ID,Process ID,"):
                names = _cells(line)
                values = _METRIC[-1:] if _METRIC[-1] in names else set(names) - _NO_METRIC
                metrics = [at for at, name in enumerate(names) if name in values]
            elif metrics and (line[0] == '"' or line[0].isdigit()):
                cells = _cells(line)
                for at in metrics if len(cells) > max(metrics) and _is_whole(line) else ():
                    if ("," in cells[at] or "." in cells[at]) and _DIGITS.fullmatch(cells[at]) is not None:
                        style.see(cells[at])
            if len(style.seen) > 1:
                break
    return style


FORMAT = "ncu-csv"
_MAX_WARNINGS = 10
_ATTRIBUTE = "device__attribute_"
_UNLOCKED = "Running with unmodified GPU clocks"
_PROFILED = re.compile(r'==PROF== Profiling ".*" - (\d+).*?(\d+) pass')
_TOGETHER = ("range", "graph")  # what counts several kernels as one has no other name


def looks_like_ncu_csv(head: bytes) -> bool:
    """Return whether a table of `ncu --csv` begins in `head`, the beginning of a file, after any other text."""
    if b"Process ID" not in head or b"Kernel Name" not in head:
        return False
    return any(line.replace(b'"', b"").startswith(b"ID,Process ID,") for line in head.splitlines())


def read_ncu_csv(path: Path) -> Report:
    """Read the report in the text at `path`: counters and times by launch configuration, and the log's warnings.

    Values are as precise as they were printed, mostly two decimals. Raises UnreadableReport where there is no
    table.
    """
    log = TableLog()
    session = ReportSession()
    with (
        reading(path, named=False),
        io.TextIOWrapper(open_regular(path), encoding="utf-8", errors="replace", newline="") as file,
    ):
        log.style = _number_style(path)
        rows = read_rows(lines_of(file, path), log)
        report = report_of(session, _read_launches(rows, log, session), FORMAT)
    if not log.tables:
        raise UnreadableReport(f"{path} has no table of `ncu --csv` in it: no line names the columns")
    messages = [
        line.partition("== ")[2] for line in log.lines if line.startswith(("==ERROR==", "==WARNING=="))
    ]
    shown = [text for text in dict.fromkeys(messages) if _UNLOCKED not in text][:_MAX_WARNINGS]
    warnings = list(map(Fact.message, shown))
    if log.scaled:
        warnings.append(Fact("scaled-units"))
    if log.together:
        warnings.append(Fact.of("results-together", count=log.together))
    if log.twice:
        warnings.append(Fact.of("rows-twice", count=log.twice))
    if log.damaged:
        warnings.append(Fact.of("damaged-rows", count=log.damaged))
    return replace(report, warnings=(*report.warnings, *warnings))


def _read_launches(
    rows: Iterable[LaunchRow], log: TableLog, session: ReportSession
) -> Iterator[LaunchResult]:
    passes: dict[str, int] = {}
    lines_read = 0
    unlocked = False
    for row in rows:
        for line in log.lines[lines_read:]:
            unlocked |= _UNLOCKED in line
            if (profiled := _PROFILED.match(line)) is not None:
                passes[profiled[1]] = int(profiled[2])
        lines_read = len(log.lines)
        if row.of.get(_KERNEL, "").strip() in _TOGETHER:
            log.together += 1
            continue
        yield _launch_result(row, passes.get(row.of.get(_ID, "")), unlocked, session)


def _launch_result(
    row: LaunchRow, passes: int | None, unlocked: bool, session: ReportSession
) -> LaunchResult:
    device = _read_device(row, session)
    values = {name: value for name, value in row.values.items() if is_wanted(name)}
    if passes is not None:
        values.setdefault(PASSES, passes)
    return LaunchResult(
        kernel=kernel_of(
            row.of.get(_KERNEL, "").strip() or "kernel without a name",
            None,
            _parse_dimensions(row.of.get(_GRID)),
            _parse_dimensions(row.of.get(_BLOCK)),
            values,
        ),
        values=values,
        device=device,
        lock_requested=False if unlocked else None,
        lock_done=False if unlocked else None,
    )


def _parse_dimensions(cell: str | None) -> tuple[int, ...]:
    """Parse the sides of a grid or block, such as `(256, 256, 1)`."""
    return tuple(int(side) for side in re.findall(r"\d{1,18}", cell or "")[:3])


def _read_device(row: LaunchRow, session: ReportSession) -> int | None:
    cell = row.of.get(_DEVICE, "")
    index = _whole(cell)
    if index is None and (number := finite_number(row.values.get(DEVICE))) is not None:
        index = int(number)
    if (index or 0) not in session.devices and (cell or row.of.get(_CAPABILITY)):
        attributes: dict[str, Value] = {
            name.removeprefix(_ATTRIBUTE): value
            for name, value in row.values.items()
            if name.startswith(_ATTRIBUTE)
        }
        major, _, minor = row.of.get(_CAPABILITY, "").partition(".")
        if major.isdigit():
            attributes.setdefault("compute_capability_major", int(major))
            attributes.setdefault("compute_capability_minor", _whole(minor) or 0)
        shown = attributes.get("display_name")
        name = shown if isinstance(shown, str) else "" if cell.isdigit() else cell
        session.devices[index or 0] = (name, attributes)
    return index


def _whole(cell: str | None) -> int | None:
    return int(cell) if cell is not None and cell.isascii() and cell.isdigit() and len(cell) < 19 else None
