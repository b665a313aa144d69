"""The kernels of a run or report: what the trace timed and the counters counted, joined by launch configuration.

`KernelRow` is one of them; `kernel_table` shows them, without the columns in which no kernel has a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from profkit.analysis.kernel_names import labels, narrower, same_name
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten
from profkit.core.types import Bound, KernelBottleneck, KernelTime, Reading, RunDocument, Scope, Table

LABEL = 48  # characters of a kernel's name: those of cuBLAS and CUTLASS fit; a narrow screen shortens it once more
# Metrics that only a device has, and only its counters tell.
OF_DEVICE = (
    "occupancy.achieved",
    "occupancy.theoretical",
    "bandwidth.dram",
    "bandwidth.dram.share",
    "tensor.utilization",
    "shared.bank_conflicts",
    "warp.execution_efficiency",
    "memory.coalescing",
)
BRIEF = 32  # characters of it in a sentence

# What limits a kernel, as it is said in a table and in a sentence.
BOTTLENECK_TITLES: Mapping[Bound, str] = {
    "dram": "DRAM",
    "l2": "L2",
    "l1": "L1",
    "shared": "shared memory",
    "tensor": "tensor cores",
    "fp32": "FP32 pipe",
    "fp64": "FP64 pipe",
    "fp16": "FP16 pipe",
    "integer": "integer pipe",
    "xu": "special functions",
    "compute": "compute",
    "issue": "instruction issue",
    "latency": "latency",
    "launch": "small size",
    "unknown": "not known",
}


@dataclass(frozen=True)
class KernelRow:
    """One launch configuration (a kernel with its grid and block) with all that is known of it.

    `time` is None where no trace timed it, `readings` (by metric, in the metric's unit) is empty where nothing was
    counted, and `bound` is None where nothing says what limits it. `share` is of the time of all kernels, 0..1.
    """

    label: str  # short, and no other row's
    scope: Scope
    time: KernelTime | None  # s, of all its launches
    share: float | None
    readings: Mapping[str, Reading]
    bound: KernelBottleneck | None

    @property
    def brief(self) -> str:
        """The label as a sentence can bear it."""
        return narrower(self.label, BRIEF)

    def value(self, metric: str) -> float | None:
        """The value of a metric of this kernel, or None."""
        reading = self.readings.get(metric)
        return reading.value if reading is not None else None


def kernel_rows(document: RunDocument) -> tuple[KernelRow, ...]:
    """Every launch configuration that was timed or counted, the largest share of GPU time first."""
    trace = document.trace
    times = {time.kernel.scope: time for time in trace.kernels} if trace is not None else {}
    readings: dict[Scope, dict[str, Reading]] = {}
    for reading in document.readings:
        if reading.scope.kind == "kernel":
            known = readings.setdefault(reading.scope, {})
            if reading.metric not in known or known[reading.metric].value is None:
                known[reading.metric] = reading
    bottlenecks = {bottleneck.scope: bottleneck for bottleneck in document.kernels}
    timed_scopes = _same_scopes([*readings, *bottlenecks], list(times))
    scopes = dict.fromkeys([*times, *(timed_scopes.get(scope, scope) for scope in (*readings, *bottlenecks))])
    spellings: dict[Scope, list[Scope]] = {scope: [scope] for scope in scopes}
    for counted, timed in timed_scopes.items():
        spellings[timed].append(counted)
    total = sum(time.total for time in times.values())
    names = labels([(scope.name or "", scope.id or "") for scope in scopes], LABEL)
    rows = []
    for scope in scopes:
        time = times.get(scope)
        bound = next((bottlenecks[name] for name in spellings[scope] if name in bottlenecks), None)
        share = time.total / total if time is not None and total > 0 else bound.share if bound else None
        own = {
            metric: reading for name in spellings[scope] for metric, reading in readings.get(name, {}).items()
        }
        rows.append(KernelRow(names[scope.name or "", scope.id or ""], scope, time, share, own, bound))
    return tuple(sorted(rows, key=lambda row: -(row.share or 0.0)))


def range_rows(document: RunDocument) -> tuple[KernelRow, ...]:
    """What counters tell of regions: ranges that were counted as wholes. Its own times make no region one of them."""
    by_scope: dict[Scope, dict[str, Reading]] = {}
    for reading in document.readings:
        if reading.scope.kind == "region" and reading.metric in OF_DEVICE:
            by_scope.setdefault(reading.scope, {})[reading.metric] = reading
    return tuple(
        KernelRow(shorten(scope.name or "range", LABEL), scope, None, None, readings, None)
        for scope, readings in by_scope.items()
    )


def _same_scopes(counted: Sequence[Scope], timed: Sequence[Scope]) -> dict[Scope, Scope]:
    """For scopes of the counters that the trace has under another spelling of the same name, that of the trace.

    Only where it is the only one of that name and configuration: a wrong join is worse than none.
    """
    known = set(timed)
    unknown = dict.fromkeys(scope for scope in counted if scope not in known)
    configurations = {scope.id for scope in unknown}  # reading 10,000 names for nothing would take seconds
    places: dict[tuple[str, str | None], set[Scope]] = {}
    for scope in timed:
        if scope.id in configurations:
            places.setdefault((same_name(scope.name or ""), scope.id), set()).add(scope)
    keys: dict[tuple[str, str | None], list[Scope]] = {}
    for scope in unknown:
        keys.setdefault((same_name(scope.name or ""), scope.id), []).append(scope)
    return {
        scopes[0]: next(iter(places[key]))
        for key, scopes in keys.items()
        if len(scopes) == 1 and len(places.get(key, ())) == 1
    }


TOP_KERNELS = 10  # kernels in a table: more than anybody works on at once; the rest stands in run.json
NOTHING = "-"

Cell = Callable[[KernelRow], str | None]


@dataclass(frozen=True)
class KernelTableColumn:
    """A title, and what stands below it for a kernel; None where that is not known.

    A column that is not worth a table `alone` is shown only beside others; one of a `rare` metric only where some
    kernel has more than 0 of it.
    """

    title: str
    cell: Cell
    alone: bool = True
    rare: str | None = None


def metric_column(title: str, metric: str, *, bare: bool = False, rare: bool = False) -> KernelTableColumn:
    """A column with the values of one metric, `bare` without their unit, and left out where all are 0 (`rare`)."""

    def cell(row: KernelRow) -> str | None:
        reading = row.readings.get(metric)
        if reading is None or reading.value is None:
            return None
        doubtful = "?" if reading.doubt else ""
        value = reading.value
        text = (
            format_quantity(value, reading.unit)
            if not bare
            else f"{value:.0f}"
            if value == int(value)
            else format_figures(value)
        )
        return text + doubtful

    return KernelTableColumn(title, cell, rare=metric if rare else None)


def kernel_table(title: str, rows: Sequence[KernelRow], columns: Sequence[KernelTableColumn]) -> Table | None:
    """One row for each kernel that has a value in some column; None where none has."""
    shown = list(rows[:TOP_KERNELS])
    cells = [[column.cell(row) for column in columns] for row in shown]
    shown_columns = [
        number
        for number, column in enumerate(columns)
        if any(line[number] for line in cells)
        and (column.rare is None or any(row.value(column.rare) for row in shown))
    ]
    body = tuple(
        (row.label, *(line[number] or NOTHING for number in shown_columns))
        for row, line in zip(shown, cells, strict=True)
        if any(line)
    )
    if not any(columns[number].alone for number in shown_columns):
        return None
    return Table(
        title, ("kernel", *(columns[number].title for number in shown_columns)), body, _rest_note(rows)
    )


def _rest_note(rows: Sequence[KernelRow]) -> str | None:
    rest = rows[TOP_KERNELS:]
    if not rest:
        return None
    share = sum(row.share or 0.0 for row in rest)
    return (
        f"and {plural(len(rest), 'further configuration')}, {format_percent(100 * share)} % of the GPU time"
    )
