"""The kernels of a run or report: what the trace timed and the counters counted, joined by launch configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.analysis.kernel_names import labels, narrower, same_name
from profkit.core.tables import load_yaml
from profkit.core.types import KernelBottleneck, KernelTime, Reading, RunDocument, Scope

LABEL = 48  # characters of a kernel's name: those of cuBLAS and CUTLASS fit; a narrow screen shortens it once more
BRIEF = 32  # characters of it in a sentence


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
        """Return the label as a sentence can bear it."""
        return narrower(self.label, BRIEF)

    @property
    def values(self) -> Mapping[str, float]:
        """Return the values that are known, by metric."""
        return {name: r.value for name, r in self.readings.items() if r.value is not None}

    def value(self, metric: str) -> float | None:
        """Return the value of a metric of this kernel, or None."""
        reading = self.readings.get(metric)
        return reading.value if reading is not None else None


def counted_alone(document: RunDocument) -> bool:
    """Return whether a run has counters of kernels and no timeline: each was counted at one launch, replayed by
    itself, and it is not known which of them take the time.
    """
    trace = document.trace
    if not document.passes or (trace is not None and (trace.span is not None or trace.busy is not None)):
        return False
    counted = any(reading.scope.kind == "kernel" for reading in document.readings)
    return counted or (trace is not None and bool(trace.kernels))


def kernel_rows(document: RunDocument) -> tuple[KernelRow, ...]:
    """Return every launch configuration that was timed or counted, the largest share of GPU time first."""
    trace = document.trace
    times = _times_by_scope(trace.kernels if trace is not None else ())
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
    total = sum(time.total for time in times.values()) if not counted_alone(document) else 0.0
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


def _times_by_scope(kernels: Sequence[KernelTime]) -> dict[Scope, KernelTime]:
    """Return the times of the launches of each name with its grid and block.

    A kernel that was compiled for several constants (`tl.constexpr`, template arguments that its name does not have) is
    several kernels of one name, grid and block, which differ by their registers or shared memory: one row has them all.
    """
    same: dict[Scope, list[KernelTime]] = {}
    for time in kernels:
        same.setdefault(time.kernel.scope, []).append(time)
    return {scope: times[0] if len(times) == 1 else _summed(times) for scope, times in same.items()}


def _summed(times: Sequence[KernelTime]) -> KernelTime:
    """Return the launches of several kernels together, as those of the one that took most time."""
    largest = max(times, key=lambda time: time.total)
    operations = {time.operation for time in times if time.launches}
    firsts = [time.first for time in times if time.first is not None]
    leasts = [time.least for time in times if time.least is not None]
    mosts = [time.most for time in times if time.most is not None]
    return replace(
        largest,
        launches=sum(time.launches for time in times),
        total=sum(time.total for time in times),
        median=_median_of_medians(times),
        least=min(leasts, default=None),
        most=max(mosts, default=None),
        first=min(firsts, default=None),
        ranges=tuple(dict.fromkeys(name for time in times for name in time.ranges)),
        setup_launches=sum(time.setup_launches for time in times),
        operation_launches=sum(
            time.operation_launches for time in times if time.operation == largest.operation
        ),
        operations=max(len(operations - {None}), *(time.operations for time in times)),
        # By the shapes, which differ as the kernels do.
        flops=largest.flops if len({time.flops for time in times}) == 1 else None,
        lines=tuple(line for time in times for line in time.lines),
    )


def _median_of_medians(times: Sequence[KernelTime]) -> float | None:
    """Return the median of the kernels' medians, each as often as it was launched.

    The median of all launches is between the least and the largest of them; their single times are not kept.
    """
    known = sorted((time.median, time.launches) for time in times if time.median is not None)
    half, seen = sum(launches for _, launches in known) / 2, 0
    for median, launches in known:
        seen += launches
        if seen >= half:
            return median
    return None


def _same_scopes(counted: Sequence[Scope], timed: Sequence[Scope]) -> dict[Scope, Scope]:
    """Return the trace's scope for scopes of the counters that have another spelling of the same name.

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


LIMITERS = ("registers", "shared", "warps", "blocks", "barriers")  # of the blocks on a multiprocessor
FULL = 99.95  # %; where all warps fit, the warps themselves are the limit and nothing else is


def occupancy_limiters(values: Mapping[str, float]) -> tuple[str, ...]:
    """Return which resources allow the fewest blocks per multiprocessor; ties are all named
    (TheoreticalOccupancy.py).
    """
    limits = {n: v for n in LIMITERS if (v := values.get(f"occupancy.limit.{n}")) is not None and v > 0}
    least = min(limits.values(), default=0.0)
    return tuple(name for name, value in limits.items() if value == least)


STALL = "stall."


def longest_stalls(values: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return what warps of a kernel waited for, longest first: the reason in ncu's word, warps per issued
    instruction.
    """
    stalls = [(name[len(STALL) :], v) for name, v in values.items() if name.startswith(STALL) and v > 0]
    return sorted(stalls, key=lambda pair: -pair[1])


@dataclass(frozen=True)
class Stall:
    """What warps wait for, and what helps against it: a title and the change, empty where nothing is known to help."""

    means: str
    title: str = ""
    change: str = ""


@lru_cache(maxsize=1)
def stalls() -> Mapping[str, Stall]:
    """Return the reasons to wait, by ncu's word."""
    return {name: Stall(**row) for name, row in _limits()["stalls"].items()}


def bottleneck_title(bound: str) -> str:
    """Return what limits a kernel, in words; anything else as it is."""
    return str(_limits()["bounds"].get(bound, bound))


@lru_cache(maxsize=1)
def _limits() -> Mapping[str, Any]:
    limits: Mapping[str, Any] = load_yaml(Path(__file__).with_name("limits.yaml"))
    return limits
