"""Kernels in words: the time of each and what limits it, what is not known of them, and what counting cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.gpu import measured_replays, planned_replays
from profkit.analysis.summaries.gpu_time import lacks_timeline
from profkit.analysis.summaries.kernels import (
    BOTTLENECK_TITLES,
    FULL,
    KernelRow,
    occupancy_limiters,
    range_rows,
)
from profkit.backends import backend_named
from profkit.core.formatting import format_percent, format_quantity, plural, shorten, text_bar
from profkit.core.types import KernelBottleneck, RunDocument
from profkit.reporting.views.summaries.parts import (
    Cell,
    ConcernFacts,
    KernelTableColumn,
    SummaryText,
    capitalized,
    kernel_table,
    metric_column,
    summary_text,
)

# ---------------------------------------------------------------- all kernels

# What fills tensors with numbers: the first kernel of a program, and so the one that `ncu --launch-count 1` counts.
_FILLS = re.compile(r"^[^(]*(distribution_(elementwise|nullary)|randperm|generate_seed_pseudo)")
_SHAPES = "in brackets: so many blocks of so many threads"
_BY_TIME = "Kernels by GPU time"
BAR = 4  # characters of the bar beside a share
_LONG = 60  # characters of an operation with its shapes


def kernels_text(facts: ConcernFacts) -> SummaryText | None:
    """Every kernel with its share of the GPU time, what limits it, and what decides most targets."""
    if not facts.rows:
        return None
    names = [row.scope.name for row in facts.rows]
    note = _SHAPES if len(set(names)) < len(names) else ""
    tables = [
        kernel_table(_BY_TIME, facts.rows, KERNEL_COLUMNS, note),
        kernel_table("What launched them", facts.rows, _ORIGIN),
    ]
    notes = (*_filling_note(facts.document, facts.rows), *_bottleneck_notes(facts.rows))
    return summary_text("kernels", _kernels_headline(facts.rows), (), tables, notes, brief=(_BY_TIME,))


def ranges_text(facts: ConcernFacts) -> SummaryText | None:
    """What was counted over several kernels at once (ranges, graphs as wholes); None where nothing was."""
    rows = range_rows(facts.document)
    table = kernel_table("Counted as wholes", rows, KERNEL_COLUMNS, first="range")
    if table is None:
        return None
    what = plural(len(rows), "range")
    headline = f"{what} of several kernels counted as one: the values of its single kernels are not known."
    return summary_text("ranges", headline, (), [table])


def _kernels_headline(rows: Sequence[KernelRow]) -> str:
    top = rows[0]
    what = plural(len(rows), "launch configuration")
    share = f" takes {format_percent(100 * top.share)} % of the kernel time" if top.share is not None else ""
    if top.bound is None or top.bound.bound == "unknown":
        return f"{what}; {top.label}{share or ' is the first'}."
    return f"{what}; {top.label}{share}, limited by {_bottleneck_text(top.bound)}."


def _bottleneck_notes(rows: Sequence[KernelRow]) -> list[str]:
    """Why each further kernel is in its class; the first one's reason is the headline."""
    notes = [
        f"{row.brief}: {_bottleneck_text(row.bound)}."
        for row in rows[1:]
        if row.bound is not None and row.bound.bound != "unknown" and (row.share is None or row.share >= 0.01)
    ]
    return notes[:9]


def _filling_note(document: RunDocument, rows: Sequence[KernelRow]) -> Iterator[str]:
    """A warning where no plan of ours chose what was counted, and it is a kernel that only fills tensors."""
    line = backend_named(document.backend).tool_lines.count_other
    filling = next((row for row in rows if row.readings and _FILLS.search(row.scope.name or "")), None)
    if filling is not None and line and document.plan is None and not document.passes:
        set_up = "draws random numbers. That is more often the set-up of a program than its work"
        yield f"{filling.brief} {set_up} (another kernel: {line})."


def _bottleneck_text(bound: KernelBottleneck) -> str:
    """`FP32 pipe: at 91 % of its peak; ...`: the class, and the evidence without saying it twice."""
    word = BOTTLENECK_TITLES[bound.bound]
    return f"{word}: {bound.reason.removeprefix(f'{word} ')}"


def _share_cell(row: KernelRow) -> str | None:
    if row.share is None:
        return None
    return f"{format_percent(100 * row.share).rjust(5)} % {text_bar(row.share, BAR)}".rstrip()


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


KERNEL_COLUMNS = (
    KernelTableColumn("launches", lambda row: str(row.time.launches) if row.time is not None else None),
    KernelTableColumn("GPU time", _share_cell),
    KernelTableColumn("median", _median_cell),
    KernelTableColumn("limited by", bottleneck_cell),
    KernelTableColumn("occupancy", _occupancy_cell),
    KernelTableColumn("limiter", limiter_cell),
    metric_column("DRAM", "bandwidth.dram.share"),
    metric_column("DRAM rate", "bandwidth.dram"),
    metric_column("tensor", "tensor.utilization"),
    metric_column("conflicts", "shared.bank_conflicts"),
    metric_column("warp eff.", "warp.execution_efficiency"),
    metric_column("coalesced", "memory.coalescing"),
)
_ORIGIN = (
    KernelTableColumn("operation", _name_cell("operation")),
    KernelTableColumn("backward of", _name_cell("backward_of")),
    KernelTableColumn("line", _line_cell),
)


# ---------------------------------------------------------------- what is not known, and what measuring cost

# What most kernels and devices do not have, and nobody misses: no word where there is none of it.
_RARE = ("nvlink.", "cluster.", "memory.sectors_per_request.")
NAMED = 12  # metrics named in one line


def unknown_kernels_text(facts: ConcernFacts) -> SummaryText | None:
    """Unavailable readings of kernels grouped by reason, then the doubtful ones; None where there are none."""
    lines = backend_named(facts.document.backend).tool_lines
    counted = [row for row in facts.rows if row.readings]
    collect = "--depth full" if facts.document.plan is not None else lines.count_all
    grouped: dict[tuple[str, str | None], dict[str, list[str]]] = {}
    contradicted: dict[str, list[str]] = {}
    nothing: dict[str, None] = {}
    with_value = {n for row in counted for n, r in row.readings.items() if r.value is not None}
    for row in counted:
        for name, reading in row.readings.items():
            if reading.value is not None:
                if reading.doubt is not None:
                    contradicted.setdefault(f"{metric(name).title}: {reading.doubt}", []).append(row.brief)
            elif reading.code == "nothing-to-measure":
                if name not in with_value and not name.startswith(_RARE):  # else the table shows which has it
                    nothing[f"{metric(name).title} ({reading.reason})"] = None
            else:
                why = reading.reason or "", reading.fix
                if reading.code in ("not-collected", "deeper"):
                    why = "not collected", reading.fix or collect
                grouped.setdefault(why, {}).setdefault(name, []).append(row.brief)
    notes = [_reason_line(*why, metrics, len(counted)) for why, metrics in grouped.items()]
    for text, labels in contradicted.items():
        notes.append(f"Contradicted: {text} (in {_kernels_clause(labels, len(counted))}).")
    if nothing:
        notes.append(f"Nothing to measure: {'; '.join(nothing)}.")
    if not counted and facts.rows and facts.document.plan is None:
        what = "Occupancy, bandwidth, conflicts, coalescing and what limits each kernel"
        notes.append(f"{what}: a trace has times and no counters ({lines.count}).")
    if (
        facts.document.plan is None
        and facts.document.trace is not None
        and lacks_timeline(facts.document.trace)
    ):
        why_not = "the report has single kernels and no timeline"
        notes.append(f"How busy the GPU was: {why_not} (trace it: {lines.trace}).")
    if not notes:
        return None
    names = {name for metrics in grouped.values() for name in metrics}
    counts = [plural(len(names), "metric")] if names else []
    counts += [plural(len(contradicted), "contradicted reading")] if contradicted else []
    headline = f"{' and '.join(counts)} of the kernels." if counts else "What this report cannot tell."
    return summary_text("unknown", capitalized(headline), (), (), notes)


def _reason_line(reason: str, fix: str | None, kernels_by_metric: dict[str, list[str]], counted: int) -> str:
    titles = list(dict.fromkeys(metric(name).title for name in kernels_by_metric))
    more = f" and {len(titles) - NAMED} more" if len(titles) > NAMED else ""
    labels = list(dict.fromkeys(label for kernels in kernels_by_metric.values() for label in kernels))
    where = f" (in {_kernels_clause(labels, counted)})" if len(labels) < counted else ""
    return f"{', '.join(titles[:NAMED])}{more}: {reason}{where}" + (f" ({fix})" if fix else "") + "."


def _kernels_clause(labels: Sequence[str], counted: int) -> str:
    return " and ".join(labels) if len(labels) <= 2 else f"{len(labels)} of {counted} kernels"


ON_DEVICE = ("trace", "counters", "explain")


def cost_text(facts: ConcernFacts) -> SummaryText | None:
    """Replay passes as planned and as they were, and the wall time of what was measured; None for neither."""
    planned, counted = planned_replays(facts.document), measured_replays(facts.document, facts.rows)
    columns = (
        KernelTableColumn("planned", lambda row: str(planned[row.scope]) if row.scope in planned else None),
        KernelTableColumn("replay passes", lambda row: f"{counted[row.scope]:.0f}"),
        metric_column("replayed for", "time.replayed"),
    )
    parts = []
    if counted:
        passes = plural(round(sum(counted.values())), "replay pass", "replay passes")
        parts.append(f"{plural(len(counted), 'launch configuration')} counted in {passes}")
    for result in facts.document.passes:
        if result.name in ON_DEVICE and result.state == "finished":
            runs = f" ({result.cost:.1f} plain runs)" if result.cost is not None else ""
            parts.append(f"{result.name} took {format_quantity(result.seconds, 's')}{runs}")
    table = kernel_table("Replays", [row for row in facts.rows if row.scope in counted], columns)
    return summary_text("cost", f"{capitalized('; '.join(parts))}.", (), [table]) if parts else None
