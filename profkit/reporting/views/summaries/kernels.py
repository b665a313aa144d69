"""Kernels in words: the time of each and what limits it, what was counted of them, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.gpu_time import lacks_timeline
from profkit.analysis.summaries.kernels import (
    BOTTLENECK_TITLES,
    FULL,
    STALL_MEANINGS,
    KernelRow,
    longest_stalls,
    occupancy_limiters,
    range_rows,
)
from profkit.analysis.summaries.roofline_points import (
    TENSOR_PEAK,
    RooflinePlace,
    has_hidden_tensor_work,
    place_kernel,
    tensor_rate,
)
from profkit.backends import backend_named
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten, text_bar
from profkit.core.types import Fact, KernelBottleneck
from profkit.reporting.facts import fact_text, note_text
from profkit.reporting.view import DataTable
from profkit.reporting.views.summaries.parts import (
    Cell,
    ConcernFacts,
    KernelColumns,
    SummaryText,
    absence_notes,
    figures_cell,
    first_reason,
    kernel_table,
    metric_cell,
    summary_text,
)

_BY_TIME = "Kernels by GPU time"
_BAR = 4  # characters of the bar beside a share
_LONG = 60  # characters of an operation with its shapes
_REASONS = 9  # kernels below the first of which it is said why they are in their class


# ---------------------------------------------------------------- all kernels


def kernels_text(facts: ConcernFacts) -> SummaryText | None:
    """Every kernel with its share of the GPU time, what limits it, and what decides most targets."""
    if not facts.rows:
        return None
    top = facts.rows[0]
    headline = f"{plural(len(facts.rows), 'launch configuration')}; {top.label}"
    if top.share is not None:
        headline += f" takes {format_percent(100 * top.share)} % of the kernel time"
    if top.bound is not None and top.bound.bound != "unknown":
        headline += f", limited by {_bottleneck_text(top.bound)}"
    tables = [
        kernel_table(_BY_TIME, facts.rows, KERNEL_COLUMNS, words=("limited by", "limiter")),
        kernel_table("What launched them", facts.rows, _ORIGIN, words=[name for name, _ in _ORIGIN]),
    ]
    notes = _bottleneck_notes(facts.rows)
    return summary_text("kernels", f"{headline}.", (), tables, notes, brief=(_BY_TIME,))


def ranges_text(facts: ConcernFacts) -> SummaryText | None:
    """What was counted over several kernels at once (ranges, graphs as wholes); None where nothing was."""
    rows = range_rows(facts.document)
    table = kernel_table(
        "Counted as wholes", rows, KERNEL_COLUMNS, words=("limited by", "limiter"), first="range"
    )
    if not table.rows:
        return None
    what = plural(len(rows), "range")
    headline = f"{what} of several kernels counted as one: the values of its single kernels are not known."
    return summary_text("ranges", headline, (), [table])


def _bottleneck_notes(rows: Sequence[KernelRow]) -> list[str]:
    """Why each further kernel is in its class; the first one's reason is the headline."""
    notes = [
        f"{row.brief}: {_bottleneck_text(row.bound)}."
        for row in rows[1:]
        if row.bound is not None and row.bound.bound != "unknown" and (row.share is None or row.share >= 0.01)
    ]
    return notes[:_REASONS]


def _bottleneck_text(bound: KernelBottleneck) -> str:
    """`FP32 pipe: at 91 % of its peak; ...`: the class, and the evidence without saying it twice."""
    word = BOTTLENECK_TITLES[bound.bound]
    return f"{word}: {fact_text(bound.reason).removeprefix(f'{word} ')}"


def _share_cell(row: KernelRow) -> str | None:
    if row.share is None:
        return None
    return f"{format_percent(100 * row.share).rjust(5)} % {text_bar(row.share, _BAR)}".rstrip()


def _median_cell(row: KernelRow) -> str | None:
    time = row.time
    if time is None or time.launches == 0:
        value = row.value("time.kernel")
        return format_quantity(value, "s") if value is not None else None
    if time.median is not None or time.launches == 1:
        return format_quantity(time.median if time.median is not None else time.total, "s")
    return f"{format_quantity(time.total / time.launches, 's')} (mean)"  # of nsys before 2021.4, which tells no median


def bottleneck_cell(row: KernelRow) -> str | None:
    """`DRAM 91 %`, `latency (L2 43 %)`: what limits the kernel, and how near its busiest unit is to its peak."""
    bound = row.bound
    if bound is None or (bound.bound == "unknown" and bound.nearest is None):
        return None
    word, at = BOTTLENECK_TITLES[bound.bound], f" {bound.nearest or 0.0:.0f} %"
    if bound.nearest is None:
        return word
    if bound.busiest in (None, bound.bound):
        return f"{word}{at}"
    return f"{word} ({BOTTLENECK_TITLES[bound.busiest]}{at})"


def _occupancy_cell(row: KernelRow) -> str | None:
    names = ("occupancy.achieved", "occupancy.theoretical")
    achieved, possible = map(row.value, names)
    if achieved is None and possible is None:
        return None
    most = f"/{format_percent(possible)}" if possible is not None else ""
    doubtful = any((r := row.readings.get(n)) and r.doubt for n in names)
    return f"{format_percent(achieved) if achieved is not None else '-'}{most} %{'?' if doubtful else ''}"


def limiter_cell(row: KernelRow) -> str | None:
    """The limiters: `regs+shared`; `none` where every warp fits; None where it is not known."""
    most = row.value("occupancy.theoretical")
    if most is not None and most >= FULL:
        return "none"
    short = {"shared memory": "shared", "registers": "regs"}
    return "+".join(short.get(word, word) for word in occupancy_limiters(row)) or None


def _line_cell(row: KernelRow) -> str | None:
    """`train.py:12 step`: the file by its name, since a table has little room."""
    time = row.time
    if time is None or time.file is None:
        return None
    function = f" {shorten(time.function, 24)}" if time.function is not None else ""
    return f"{PurePath(time.file).name}:{time.line}{function}"


def _name_cell(name: str) -> Cell:
    def cell(row: KernelRow) -> str | None:
        value: str | None = getattr(row.time, name, None)
        return shorten(value, _LONG) if value is not None else None

    return cell


KERNEL_COLUMNS: KernelColumns = (
    ("launches", lambda row: str(row.time.launches) if row.time is not None else None),
    ("GPU time", _share_cell),
    ("median", _median_cell),
    ("limited by", bottleneck_cell),
    ("occupancy", _occupancy_cell),
    ("limiter", limiter_cell),
    ("DRAM", metric_cell("bandwidth.dram.share")),
    ("DRAM rate", metric_cell("bandwidth.dram")),
    ("tensor", metric_cell("tensor.utilization")),
    ("conflicts", metric_cell("shared.bank_conflicts")),
    ("warp eff.", metric_cell("warp.execution_efficiency")),
    ("coalesced", metric_cell("memory.coalescing")),
)
_ORIGIN: KernelColumns = (
    ("operation", _name_cell("operation")),
    ("backward of", _name_cell("backward_of")),
    ("line", _line_cell),
)


# ---------------------------------------------------------------- what was counted


@dataclass(frozen=True)
class _Counted:
    """A concern whose numbers are columns of a table of kernels; the largest kernel's first ones are its headline."""

    title: str
    what: str
    columns: KernelColumns
    words: tuple[str, ...] = ()


def _pair_cell(names: tuple[str, str], unit: str) -> Cell:
    """Loads and stores in one cell: `12/3.4`."""

    def cell(row: KernelRow) -> str | None:
        pair = [row.value(name) for name in names]
        if pair == [None, None]:
            return None
        return "/".join(format_quantity(value, unit) if value is not None else "-" for value in pair)

    return cell


def _rate_cell(row: KernelRow) -> str | None:
    """All FLOP/s that were counted, CUDA and tensor cores together."""
    rates = [value for value in (row.value("flops.rate"), tensor_rate(row)) if value is not None]
    return format_quantity(sum(rates), "FLOP/s") if sum(rates) else None


def _stall_cell(number: int) -> Cell:
    def cell(row: KernelRow) -> str | None:
        stalls = longest_stalls(row)
        if number >= len(stalls):
            return None
        name, value = stalls[number]
        return f"{shorten(name, 20)} {format_percent(100 * value / sum(part for _, part in stalls))} %"

    return cell


_SECTORS = ("memory.sectors_per_request.load", "memory.sectors_per_request.store")
_COUNTED: Mapping[str, _Counted] = {
    "occupancy": _Counted(
        "Occupancy and launch",
        "Achieved occupancy is",
        (
            ("achieved", metric_cell("occupancy.achieved")),
            ("theoretical", metric_cell("occupancy.theoretical")),
            ("limiter", limiter_cell),
            ("cluster", metric_cell("cluster.occupancy", rare=True)),
            ("registers", figures_cell("launch.registers")),
            ("shared/block", metric_cell("launch.shared")),
            ("waves", figures_cell("launch.waves")),
        ),
        ("limiter",),
    ),
    "bandwidth": _Counted(
        "Bandwidth",
        "DRAM bandwidth is",
        (
            ("DRAM", metric_cell("bandwidth.dram")),
            ("of peak", metric_cell("bandwidth.dram.share")),
            ("read", metric_cell("dram.read")),
            ("written", metric_cell("dram.written")),
            ("L2", metric_cell("bandwidth.l2")),
            ("L2 of peak", metric_cell("bandwidth.l2.share")),
            ("L1", metric_cell("bandwidth.l1")),
            ("L1 of peak", metric_cell("bandwidth.l1.share")),
            ("memory units", metric_cell("memory.throughput")),
            ("NVLink in", metric_cell("nvlink.received", rare=True)),
            ("NVLink out", metric_cell("nvlink.sent", rare=True)),
        ),
    ),
    "cache": _Counted(
        "Caches: share of the sectors that miss",
        "How well the caches serve is",
        (("L1 misses", metric_cell("cache.l1.miss_rate")), ("L2 misses", metric_cell("cache.l2.miss_rate"))),
    ),
    "access": _Counted(
        "Memory access",
        "How accesses are shaped is",
        (
            ("coalesced", metric_cell("memory.coalescing")),
            ("sectors/request ld/st", _pair_cell(_SECTORS, "")),
            ("excess sectors", metric_cell("memory.sectors.excess")),
            ("bank conflicts", metric_cell("shared.bank_conflicts")),
            ("exact", metric_cell("shared.bank_conflicts.excess")),
            ("of shared", metric_cell("shared.bank_conflicts.share")),
            ("spills ld/st", _pair_cell(("memory.spill.loads", "memory.spill.stores"), "count")),
        ),
    ),
    "execution": _Counted(
        "Warps and issue",
        "How many lanes of a warp work is",
        (
            ("lanes", metric_cell("warp.execution_efficiency")),
            ("not predicated off", metric_cell("warp.predicated_efficiency")),
            ("uniform branches", metric_cell("branch.efficiency")),
            ("divergent", metric_cell("branch.divergent", rare=True)),
            ("IPC", figures_cell("ipc")),
            ("issue slots", metric_cell("issue.active")),
            ("eligible warps", figures_cell("warps.eligible")),
            ("SM busy", metric_cell("sm.throughput")),
        ),
    ),
    "arithmetic": _Counted(
        "Arithmetic",
        "What arithmetic it does is",
        (
            ("FLOP/s", _rate_cell),
            ("tensor pipe", metric_cell("tensor.utilization")),
            ("FP32 pipe", metric_cell("pipe.fp32.utilization")),
            ("FP64 pipe", metric_cell("pipe.fp64.utilization", rare=True)),
            ("FP16 pipe", metric_cell("pipe.fp16.utilization", rare=True)),
            ("integer pipe", metric_cell("pipe.alu.utilization")),
            ("load/store pipe", metric_cell("pipe.lsu.utilization")),
            ("special", metric_cell("pipe.xu.utilization", rare=True)),
        ),
    ),
    "stalls": _Counted(
        "What warps wait for",
        "What warps wait for is",
        (("most", _stall_cell(0)), ("then", _stall_cell(1)), ("and", _stall_cell(2))),
        ("most", "then", "and"),
    ),
}
# ncu's --cache-control: what it did to the caches before each replay.
_CACHES = {
    "all": "The caches were flushed before each replay: hit rates are those of a cold cache.",
    "none": "The caches were left as they were: hit rates are those of replays over warm data.",
}


def counted_text(concern: str, facts: ConcernFacts) -> SummaryText:
    """What was counted of kernels: a table, and the first numbers of the largest kernel that has some."""
    spec, rows = _COUNTED[concern], facts.rows
    tables = [kernel_table(spec.title, rows, spec.columns, words=spec.words)]
    notes: list[str] = []
    if concern == "arithmetic":
        tables.append(_roofline_table(rows))
        notes += _arithmetic_notes(rows)
    if concern == "cache" and tables[0].rows:
        notes += filter(None, [_CACHES.get(facts.document.facts.get("cache control", ""))])
    if concern == "stalls":
        named = {name for row in rows[:5] for name, _ in longest_stalls(row)[:3]}
        notes += [f"{word}: {meaning}." for word, meaning in STALL_MEANINGS.items() if word in named]
    headline = f"{spec.what} not known: {first_reason(facts.readings)}."
    for row in rows:
        known = [f"{name} {text}" for name, cell in spec.columns if (text := cell(row))]
        if known:
            share = f" ({format_percent(100 * row.share)} % of the GPU time)" if row.share is not None else ""
            headline = f"{row.brief}{share}: {', '.join(known[:3])}."
            break
    return summary_text(concern, headline, facts.readings, tables, notes)


def _intensity_text(place: RooflinePlace) -> str | None:
    """Three figures; a kernel that hardly touches DRAM has millions of FLOPs for a byte."""
    if place.intensity is None:
        return None
    return (
        format_figures(place.intensity)
        if place.intensity < 1e4
        else format_quantity(place.intensity, "count")
    )


def _roofline_table(rows: Sequence[KernelRow]) -> DataTable:
    places = {row.scope: place for row in rows if (place := place_kernel(row)) is not None}
    columns: KernelColumns = (
        ("arithmetic", lambda row: places[row.scope].kind),
        ("FLOP/B", lambda row: _intensity_text(places[row.scope])),
        ("FLOP/s", lambda row: format_quantity(places[row.scope].rate, "FLOP/s")),
        (
            "ceiling",
            lambda row: f"{(p := places[row.scope]).ceiling} {format_quantity(p.attainable, 'FLOP/s')}",
        ),
        (
            "of the ceiling",
            lambda row: f"{format_percent(100 * (p := places[row.scope]).rate / p.attainable)} %",
        ),
    )
    return kernel_table("Roofline", [row for row in rows if row.scope in places], columns)


def _arithmetic_notes(rows: Sequence[KernelRow]) -> Iterator[str]:
    hidden = [row.brief for row in rows if has_hidden_tensor_work(row)]
    if hidden:
        where = "are in no counter of this report; those shown are of the CUDA cores"
        yield f"{', '.join(hidden[:3])}: FLOPs of the tensor cores {where}."
    if any(place.estimated for row in rows if (place := place_kernel(row)) is not None):
        yield note_text(TENSOR_PEAK)


# ---------------------------------------------------------------- what is not known

# What most kernels and devices do not have, and nobody misses: no word where there is none of it.
_RARE = ("nvlink.", "cluster.", "memory.sectors_per_request.")


def unknown_kernels_text(facts: ConcernFacts) -> SummaryText | None:
    """Unavailable readings of kernels by their reason, then the doubtful ones; None where there are none."""
    document = facts.document
    lines = backend_named(document.backend).tool_lines
    collect = "--depth full" if document.plan is not None else lines.count_all
    counted = [reading for row in facts.rows for reading in row.readings.values()]
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
    if document.plan is None and facts.rows and not counted:
        what = "Occupancy, bandwidth, conflicts, coalescing and what limits each kernel"
        notes.append(f"{what}: a trace has times and no counters ({lines.count}).")
    if document.plan is None and document.trace is not None and lacks_timeline(document.trace):
        notes.append(f"How busy the GPU was: the report has no timeline (trace it: {lines.trace}).")
    return summary_text("unknown", "What this report cannot tell.", (), (), notes) if notes else None
