"""Kernels in words: the time of each and what limits it, what was counted of them, and what is not known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod
from pathlib import Path, PurePath

from profkit.analysis.function_names import name_in_file
from profkit.analysis.metrics.catalogue import metric
from profkit.analysis.summaries.gpu import lacks_timeline
from profkit.analysis.summaries.kernels import (
    FULL,
    KernelRow,
    bottleneck_title,
    longest_stalls,
    occupancy_limiters,
    stalls,
)
from profkit.analysis.summaries.roofline import (
    TENSOR_PEAK,
    has_hidden_tensor_work,
    tensor_rate,
)
from profkit.backends import backend_named
from profkit.core.formatting import cut_right, format_percent, plural, shorten
from profkit.core.tables import load_yaml
from profkit.core.types import (
    Fact,
    KernelBottleneck,
    Reading,
    RunDocument,
    Scope,
    Source,
)
from profkit.reporting.columns import CellValue, Column, data_table
from profkit.reporting.facts import fact_text, note_text
from profkit.reporting.plain_text import reading_span
from profkit.reporting.view import DataTable, Section, Text, plain_text
from profkit.reporting.views.summaries.parts import (
    TOP_ROWS,
    absence_notes,
    concern_section,
    first_reason,
    readings_of,
)

KernelColumn = Column[KernelRow]
_LONG = 60  # characters of an operation with its shapes


# ---------------------------------------------------------------- all kernels


def kernels_section(document: RunDocument, rows: Sequence[KernelRow]) -> Section | None:
    """Return every kernel with its share of the GPU time, what limits it, and what decides most targets."""
    if not rows:
        return None
    top = rows[0]
    headline = f"{plural(len(rows), 'launch configuration')}; {top.label}"
    if top.share is not None:
        headline += f" takes {format_percent(100 * top.share)} % of the kernel time"
    if top.bound is not None and top.bound.bound != "unknown":
        headline += f", limited by {_bottleneck_text(top.bound)}"
    tables = [
        _table("Kernels by GPU time", rows, kernel_columns(document)),
        _table("What launched them", rows, (_NAME, *_ORIGIN)),
    ]
    return concern_section("kernels", f"{headline}.", tables)


def _table(title: str, rows: Sequence[KernelRow], columns: Sequence[KernelColumn]) -> DataTable:
    """Return one row for each of the largest kernels that has a value in some column after its name."""
    rest = rows[TOP_ROWS:]
    share = format_percent(100 * sum(row.share or 0.0 for row in rest))
    more = f"and {plural(len(rest), 'further configuration')}, {share} % of the GPU time" if rest else ""
    kept = [row for row in rows[:TOP_ROWS] if any(_is_known(column, row) for column in columns[1:])]
    return data_table(columns, kept, screen=True, title=title, note=more)


def _is_known(column: KernelColumn, row: KernelRow) -> bool:
    return plain_text(column.cell(row)) not in ("", "-")


def _bottleneck_text(bound: KernelBottleneck) -> str:
    """Return `FP32 pipe: at 91 % of its peak; ...`: the class, and the evidence without saying it twice."""
    word = bottleneck_title(bound.bound)
    return f"{word}: {fact_text(bound.reason).removeprefix(f'{word} ')}"


# ---------------------------------------------------------------- columns


def _bottleneck(row: KernelRow) -> str | None:
    """Return `DRAM 91 %`, `latency (L2 43 %)`: what limits the kernel, and how near its busiest unit is to its peak."""
    bound = row.bound
    if bound is None or (bound.bound == "unknown" and bound.nearest is None):
        return None
    word, at = bottleneck_title(bound.bound), f" {bound.nearest or 0.0:.0f} %"
    if bound.nearest is None:
        return word
    if bound.busiest in (None, bound.bound):
        return f"{word}{at}"
    return f"{word} ({bottleneck_title(bound.busiest)}{at})"


def limiter(row: KernelRow) -> str | None:
    """Return the limiters: `regs+shared`; `none` where every warp fits; None where it is not known."""
    most = row.value("occupancy.theoretical")
    if most is not None and most >= FULL:
        return "none"
    return "+".join(occupancy_limiters(row.values)).replace("registers", "regs") or None


def _median(row: KernelRow) -> float | None:
    """Return the median of all launches; the mean if the trace has no median (nsys before 2021.4)."""
    time = row.time
    if time is None or time.launches == 0:
        return row.value("time.kernel")
    return time.median if time.median is not None else time.total / time.launches


def _line(row: KernelRow) -> str | None:
    """Return `train.py:12 step`: the file by its name, since a table has little room."""
    time = row.time
    if time is None or time.file is None:
        return None
    function = (
        f" {cut_right(name_in_file(time.function, time.file), 24)}" if time.function is not None else ""
    )
    return f"{PurePath(time.file).name}:{time.line}{function}"


def _launched_by(title: str, name: str) -> KernelColumn:
    def value(row: KernelRow) -> str | None:
        known: str | None = getattr(row.time, name, None)
        return shorten(known, _LONG) if known is not None else None

    return Column(title, value)


def _measured(title: str, name: str, *, rare: bool = False, wide: bool = False) -> KernelColumn:
    """Return the values of one metric, each with its source; a 0 that most kernels have is none where it is `rare`."""

    def value(row: KernelRow) -> float | None:
        known = row.value(name)
        return None if rare and not known else known

    def text(row: KernelRow) -> Text:
        return reading_span(row.readings[name]) if value(row) is not None else "-"

    return Column(title, value, metric(name).unit or "count", text=text, wide=wide)


def _timed(
    source: Source, title: str, unit: str, value: Callable[[KernelRow], CellValue], *, wide: bool = False
) -> KernelColumn:
    """Return times and launches, as in the trace."""

    def text(row: KernelRow) -> Text:
        known = value(row)
        if not isinstance(known, int | float):
            return "-"
        return reading_span(Reading(title, float(known), unit, "measured", Scope("kernel"), source))

    return Column(title, value, unit, text=text, wide=wide)


def _of_launch(title: str, unit: str, meaning: str, name: str) -> KernelColumn:
    """Return what a launch asked for."""

    def value(row: KernelRow) -> CellValue:
        known = getattr(row.time.kernel, name) if row.time is not None else None
        return (prod(known) or None) if isinstance(known, tuple) else known

    return Column(title, value, unit, meaning, wide=True)


def kernel_columns(document: RunDocument) -> tuple[KernelColumn, ...]:
    """Return all columns that a table of kernels may have, in their order; the first is the name. A page has the
    wide ones.
    """
    tool = document.trace.tool if document.trace is not None else "profkit"
    artifact = next((r.artifacts[0] for r in document.passes if r.name == "trace" and r.artifacts), None)
    source = Source(tool, artifact=artifact, formula="of its launches that count")
    return (
        _NAME,
        _timed(source, "launches", "count", lambda row: row.time.launches if row.time else None),
        _timed(source, "GPU time", "%", lambda row: None if row.share is None else 100 * row.share),
        _timed(source, "total", "s", lambda row: row.time.total if row.time else None, wide=True),
        _timed(source, "median", "s", _median),
        Column("limited by", _bottleneck, meaning="the busiest unit, or what the warps wait for"),
        _measured("occupancy", "occupancy.achieved"),
        _measured("possible", "occupancy.theoretical"),
        Column("limiter", limiter, meaning="what allows no more warps on a multiprocessor"),
        _measured("DRAM", "bandwidth.dram.share"),
        _measured("DRAM rate", "bandwidth.dram"),
        _measured("L2", "bandwidth.l2.share", wide=True),
        _measured("L1 misses", "cache.l1.miss_rate", wide=True),
        _measured("L2 misses", "cache.l2.miss_rate", wide=True),
        _measured("SM", "sm.throughput", wide=True),
        _measured("tensor", "tensor.utilization"),
        _measured("warp eff.", "warp.execution_efficiency"),
        _measured("coalesced", "memory.coalescing"),
        _measured("conflicts", "shared.bank_conflicts"),
        _measured("spill loads", "memory.spill.loads", wide=True),
        _of_launch("registers", "count", "per thread", "registers"),
        _of_launch("shared", "B", "per block", "shared"),
        _of_launch("blocks", "count", "of the grid", "grid"),
        _of_launch("threads", "count", "per block", "block"),
    )


_NAME: KernelColumn = Column("kernel", lambda row: row.label, "kernel", hidden_when_empty=False)
_ORIGIN: tuple[KernelColumn, ...] = (
    _launched_by("operation", "operation"),
    _launched_by("backward of", "backward_of"),
    Column("line", _line),
)


# ---------------------------------------------------------------- what was counted


@dataclass(frozen=True)
class _Counted:
    """A concern whose numbers are columns of a table of kernels; the largest kernel's first ones are its headline."""

    title: str
    what: str
    columns: tuple[KernelColumn, ...]


def _rate(row: KernelRow) -> float | None:
    """Return all FLOP/s that were counted, CUDA and tensor cores together."""
    rates = [value for value in (row.value("flops.rate"), tensor_rate(row)) if value is not None]
    return sum(rates) or None


def _stall(title: str, number: int) -> KernelColumn:
    def value(row: KernelRow) -> str | None:
        stalls = longest_stalls(row.values)
        if number >= len(stalls):
            return None
        name, longest = stalls[number]
        return f"{shorten(name, 20)} {format_percent(100 * longest / sum(part for _, part in stalls))} %"

    return Column(title, value)


@lru_cache(maxsize=1)
def _counted() -> Mapping[str, _Counted]:
    """Return the concerns of counted.yaml."""
    table = load_yaml(Path(__file__).with_name("counted.yaml"))
    made: Mapping[str, Callable[[str], KernelColumn]] = {
        "limiter": lambda title: Column(title, limiter),
        "rate": lambda title: Column(title, _rate, "FLOP/s"),
        **{f"stall {number}": partial(_stall, number=number) for number in range(3)},
    }
    rare = table.pop("rare")
    return {
        concern: _Counted(
            row["title"],
            row["what"],
            tuple(
                made[name](title) if name in made else _measured(title, name, rare=name in rare)
                for title, name in row["columns"].items()
            ),
        )
        for concern, row in table.items()
    }


# ncu's --cache-control: what it did to the caches before each replay.
_CACHES = {
    "all": "The caches were flushed before each replay: hit rates are those of a cold cache.",
    "none": "The caches were left as they were: hit rates are those of replays over warm data.",
}


def counted_section(concern: str, document: RunDocument, rows: Sequence[KernelRow]) -> Section:
    """Return what was counted of kernels: a table, and the first numbers of the largest kernel that has some."""
    spec = _counted()[concern]
    tables = [_table(spec.title, rows, (_NAME, *spec.columns))]
    notes: list[str] = []
    if concern == "arithmetic":
        notes += _arithmetic_notes(rows)
    if concern == "cache" and tables[0].rows:
        notes += filter(None, [_CACHES.get(document.facts.get("cache control", ""))])
    if concern == "stalls":
        named = {name for row in rows[:5] for name, _ in longest_stalls(row.values)[:3]}
        notes += [f"{word}: {stall.means}." for word, stall in stalls().items() if word in named]
    headline = f"{spec.what} not known: {first_reason(readings_of(document, concern))}."
    for row in rows:
        known = [f"{c.title} {plain_text(c.cell(row))}" for c in spec.columns if _is_known(c, row)]
        if known:
            share = f" ({format_percent(100 * row.share)} % of the GPU time)" if row.share is not None else ""
            headline = f"{row.brief}{share}: {', '.join(known[:3])}."
            break
    return concern_section(concern, headline, tables, notes)


def _arithmetic_notes(rows: Sequence[KernelRow]) -> Iterator[str]:
    hidden = [row.brief for row in rows if has_hidden_tensor_work(row)]
    if hidden:
        where = "are in no counter of this report; those shown are of the CUDA cores"
        yield f"{', '.join(hidden[:3])}: FLOPs of the tensor cores {where}."
    reasons = [share.reason for row in rows if (share := row.readings.get("roofline.share")) is not None]
    if any(reason is not None and reason.code == TENSOR_PEAK.code for reason in reasons):
        yield note_text(TENSOR_PEAK)


# ---------------------------------------------------------------- what is not known

# What most kernels and devices do not have, and nobody misses: no word if there is none of it.
_RARE = ("nvlink.", "cluster.", "memory.sectors_per_request.")


def unknown_kernels_section(document: RunDocument, rows: Sequence[KernelRow]) -> Section | None:
    """Return unavailable readings of kernels by their reason, then the doubtful ones; None without any."""
    document = document
    lines = backend_named(document.backend).tool_lines
    collect = "--depth full" if document.plan is not None else lines.count_all
    counted = [reading for row in rows for reading in row.readings.values()]
    known = {reading.metric for reading in counted if reading.value is not None}
    missing = [
        replace(reading, reason=Fact("not-collected"), fix=reading.fix or collect)
        if reading.reason is not None and reading.reason.root.code in ("not-collected", "deeper")
        else reading
        for reading in counted
        if reading.value is None and reading.metric not in known and not reading.metric.startswith(_RARE)
    ]
    doubts = dict.fromkeys(f"{metric(r.metric).title}: {fact_text(r.doubt)}" for r in counted if r.doubt)
    notes = [*absence_notes(missing), *(f"Contradicted: {doubt}." for doubt in doubts)]
    if document.plan is None and rows and not counted:
        what = "Occupancy, bandwidth, conflicts, coalescing and what limits each kernel"
        notes.append(f"{what}: a trace has times and no counters ({lines.count}).")
    if document.plan is None and document.trace is not None and lacks_timeline(document.trace):
        notes.append(f"How busy the GPU was: the report has no timeline (trace it: {lines.trace}).")
    return concern_section("unknown", "What this report cannot tell.", (), notes) if notes else None
