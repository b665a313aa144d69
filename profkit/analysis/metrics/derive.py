"""Raw counters in, readings out: for each metric the best formula whose counters can all be used.

A reading is only as good as its worst counter. What cannot be computed, or comes out where no value can lie,
is unavailable with the names of the counters and what was wrong with each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from profkit.analysis.metrics.catalogue import MetricInfo, impossible, metric
from profkit.analysis.metrics.formula import Formula, Sum
from profkit.analysis.metrics.formulas import FormulaTable
from profkit.core.formatting import joined
from profkit.core.types import RUN, Counter, Fact, Quality, Reading, Scope, Source, together

# A group that ran 99 % of the time is as good as one that ran all of it: perf truncates 99.99 % to 99.00.
ALWAYS_ON = 0.99
# Anchors that differ by 2 % between runs say that the runs were not the same work.
DRIFT_LIMIT = 0.02

# What tools print a count in -> the base unit that formulas are written in (s, B, J, Hz).
_BASE_UNITS: Mapping[str, float] = {
    "ns": 1e-9,
    "us": 1e-6,
    "usec": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "KiB": 1024.0,
    "MiB": 1024.0**2,
    "GiB": 1024.0**3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
}
# Units that are base units, or that no formula turns into another. One that is neither may mean anything.
_PLAIN_UNITS = re.compile(
    r"(|%|B|bytes?|Bytes|J|Joules|hz|Hz|SM|(cluster|register|thread|block|warp|inst|branch|sector|request|cycle|pass|byte)"
    r"(/(thread|block|s|cycle))?)"
)
_COUNTER_LIMIT = 2.0**63  # counters have 64 bits, and the largest number of them is what -1 looks like


@dataclass(frozen=True)
class _Context:
    """What stays the same for all readings of one call."""

    table: FormulaTable
    tool: str
    artifact: str | None
    groups: tuple[frozenset[str], ...]
    drift: float | None


def derive(
    counters: Sequence[Counter],
    table: FormulaTable,
    tool: str,
    artifact: str | None = None,
    *,
    groups: Sequence[Sequence[str]] = (),
    drift: float | None = None,
) -> tuple[Reading, ...]:
    """Return readings of every metric of `table`, in its order, for every scope that the counters have.

    `groups` are the counters that were collected together, and `drift` how far their anchors lie apart
    (0..1): a metric whose counters come from several runs says so, and is an estimate where these differed by
    2 % or more.

    Of the run, a region and a kernel every metric is reported, also as unavailable (with the tables' exceptions,
    `FormulaTable.optional`); of a function only what has a value.
    On a hybrid part nothing is summed across PMUs: readings are those of the PMU that did most cycles, and say so.
    Cycles and not perf's run time decide that: a system-wide counter also runs on an idle core.
    """
    context = _Context(
        table=table,
        tool=tool,
        artifact=artifact,
        groups=tuple(frozenset(table.resolve(name) for name in group) for group in groups),
        drift=drift,
    )
    scopes: dict[Scope, list[Counter]] = {}
    for counter in map(_as_counted, counters):
        scopes.setdefault(counter.scope, []).append(counter)
    if not scopes:
        scopes[RUN] = []
    readings: list[Reading] = []
    for scope, members in scopes.items():
        readings += _one_scope(members, scope, context)
    return tuple(readings)


def _as_counted(counter: Counter) -> Counter:
    """Return the counter, without its value where nothing can have been counted so."""
    value, fault = counter.value, None
    if value is None:
        return counter
    if counter.unit not in _BASE_UNITS and _PLAIN_UNITS.fullmatch(counter.unit) is None:
        fault = Fact.of("unit-unknown", unit=counter.unit[:40])
    elif value >= _COUNTER_LIMIT:
        fault = Fact.of("beyond-64-bits", value=value)
    elif value < 0:
        fault = Fact.of("less-than", value=value, limit=0.0, unit=counter.unit)
    return counter if fault is None else replace(counter, value=None, state="not-counted", reason=fault)


def _one_scope(members: Sequence[Counter], scope: Scope, context: _Context) -> Iterable[Reading]:
    pmus = sorted({c.pmu for c in members if c.pmu is not None})
    if len(pmus) > 1:
        return _hybrid_readings(members, pmus, scope, context)
    readings = _all_metrics(_index(members, context.table), scope, context)
    return [r for r in readings if scope.kind != "function" or r.value is not None]


def _hybrid_readings(
    members: Sequence[Counter], pmus: Sequence[str], scope: Scope, context: _Context
) -> list[Reading]:
    """Return those of the PMU that did most; what needs none of its counters is of the whole machine."""
    main, share = _main_pmu(members, pmus, context.table)
    of = Fact.of("of-pmu", pmu=main, share=share or 0.0)
    index = _index([c for c in members if c.pmu in (main, None)], context.table)
    with_main = {r.metric: r for r in _all_metrics(index, scope, context)}
    alone = _all_metrics(_index([c for c in members if c.pmu is None], context.table), scope, context)
    return [
        without
        if without.value is not None or (chosen := with_main.get(without.metric, without)) == without
        else replace(chosen, reason=together(of, chosen.reason))
        for without in alone
    ]


def _main_pmu(
    members: Sequence[Counter], pmus: Sequence[str], table: FormulaTable
) -> tuple[str, float | None]:
    """Return the PMU with most cycles (or, without cycles, most instructions) and its share of them."""
    for anchor in ("cycles", "instructions"):
        work = {
            c.pmu: c.value
            for c in members
            if c.pmu is not None and c.value is not None and table.resolve(c.name) == anchor
        }
        total = sum(work.values())
        if total > 0:
            main = max(pmus, key=lambda pmu: work.get(pmu, 0.0))
            return main, work.get(main, 0.0) / total
    return pmus[-1], None


def _index(members: Iterable[Counter], table: FormulaTable) -> dict[str, Counter]:
    """Return counters by the name used in formulas; of two with the same name the usable one, then the first."""
    index: dict[str, Counter] = {}
    for counter in members:
        name = table.resolve(counter.name)
        if name not in index or (index[name].value is None and counter.value is not None):
            index[name] = counter
    return index


def _all_metrics(index: Mapping[str, Counter], scope: Scope, context: _Context) -> list[Reading]:
    table = context.table
    formulas = {
        name: ways
        for name, ways in table.formulas.items()
        if name not in table.optional or _collected(ways, index, table)
    }
    index = _doubted(formulas, index, scope, context)
    readings = [_reading(metric(name), ways, index, scope, context) for name, ways in formulas.items()]
    for name, code in table.absent.items():
        readings.append(_unavailable(metric(name), Fact(code), scope=scope, context=context))
    return readings


def _doubted(
    formulas: Mapping[str, Sequence[Formula]], index: Mapping[str, Counter], scope: Scope, context: _Context
) -> Mapping[str, Counter]:
    """Return the counters, marked as doubtful if a metric computed from them is impossible (`MetricInfo.inputs`)."""
    doubted = dict(index)
    for name, ways in formulas.items():
        if not metric(name).inputs:
            continue
        reading = _reading(metric(name), ways, index, scope, context)
        if reading.reason is None or reading.reason.code not in ("more-than", "less-than"):
            continue
        why = Fact.of("not-together", reading.reason, metric=name)
        for counter in (reading.source.counter or "").split(", "):
            counted = index[context.table.resolve(counter)]
            doubted[context.table.resolve(counter)] = replace(counted, doubt=counted.doubt or why)
    return doubted


def _reading(
    info: MetricInfo, ways: Sequence[Formula], index: Mapping[str, Counter], scope: Scope, context: _Context
) -> Reading:
    usable = [
        way for way in ways if all(_value(index, name, context.table) is not None for name in way.names)
    ]
    if not usable:
        why, nearest = _why_not(ways, index, context.table)
        above = (context.table.resolve(name) for way in ways for name in way.over.names)
        if info.name in context.table.missing and not any(name in index for name in above):
            why = Fact(context.table.missing[info.name])
        return _unavailable(info, why, nearest, scope=scope, context=context)
    # `max` keeps the first of equals, so the order in the table decides. Counters that ran all the time beat a better
    # formula whose counters were multiplexed, since a multiplexed ratio can be far off.
    best = max(usable, key=lambda way: min(1.0, _share(way, index, context.table) / ALWAYS_ON))
    counts = {name: _value(index, name, context.table) or 0.0 for name in best.names}
    if best.unless_zero is not None and best.unless_zero.value(counts) == 0:
        return _unavailable(info, _zero(best, best.unless_zero), best, scope=scope, context=context)
    over = best.above(counts) * best.scale
    if best.under is None:
        value = over
    else:
        under = best.under.value(counts)
        if under == 0:
            return _unavailable(info, _zero(best, best.under), best, scope=scope, context=context)
        value = over / under
    if (fault := impossible(info, value)) is not None:
        return _unavailable(info, fault, best, scope=scope, context=context)
    # What passes its bound by a hair is at it: two simulations of one program never have quite the same accesses.
    value = value if info.most is None else min(value, info.most)
    value = value if info.least is None else max(value, info.least)
    used = [index[context.table.resolve(name)] for name in best.names]
    share = _share(best, index, context.table)
    quality, remark = _quality(best, share, context)
    return Reading(
        metric=info.name,
        value=value,
        unit=info.unit,
        quality=quality,
        scope=scope,
        source=_source(best, context),
        reason=together(Fact(best.note) if best.note else None, remark),
        share=share if any(counter.share is not None for counter in used) else None,
        doubt=next((counter.doubt for counter in used if counter.doubt is not None), None),
    )


def _quality(way: Formula, share: float, context: _Context) -> tuple[Quality, Fact | None]:
    names = {context.table.resolve(name) for name in way.names}
    in_one_group = not context.groups or any(names <= group for group in context.groups)
    if share < ALWAYS_ON:
        return "multiplexed", Fact.of("multiplexed", share=share)
    drift = context.drift or 0.0
    if drift >= DRIFT_LIMIT and (not in_one_group or sum(names <= group for group in context.groups) > 1):
        return "estimated", Fact.of("unstable-runs", drift=drift)
    return way.quality or context.table.quality, None if in_one_group else Fact("different-runs")


def _collected(ways: Sequence[Formula], index: Mapping[str, Counter], table: FormulaTable) -> bool:
    """Return whether all counters above the line of one formula were requested: a clock alone is no arithmetic
    rate.
    """
    return any(all(table.resolve(name) in index for name in way.over.names) for way in ways)


def _value(index: Mapping[str, Counter], name: str, table: FormulaTable) -> float | None:
    """Return the count of `name` in base units, or None if there is no usable count."""
    counter = index.get(table.resolve(name))
    if counter is None or counter.value is None or counter.state not in ("measured", "multiplexed"):
        return None
    return counter.value * _BASE_UNITS.get(counter.unit, 1.0)


def _share(way: Formula, index: Mapping[str, Counter], table: FormulaTable) -> float:
    shares = (index[table.resolve(name)].share for name in way.names)
    return min((share for share in shares if share is not None), default=1.0)


def _why_not(
    ways: Sequence[Formula], index: Mapping[str, Counter], table: FormulaTable
) -> tuple[Fact, Formula | None]:
    """Return what stood in the way of the formula that came closest, counter by counter."""
    if not ways:
        return Fact("no-event"), None

    def present(way: Formula) -> float:
        return sum(table.resolve(name) in index for name in way.names) / len(way.names)

    nearest = max(ways, key=present)
    if present(nearest) == 0:
        if table.chip is None and len(ways) > 1:  # any report: no use in listing one vendor's events
            return Fact("not-collected"), None
        return Fact.of("not-collected", counters=joined(nearest.names)), nearest
    missing = [name for name in nearest.names if table.resolve(name) not in index]
    faults = [Fact.of("not-collected", counters=joined(missing))] if missing else []
    for name in nearest.names:
        counter = index.get(table.resolve(name))
        if counter is not None and counter.value is None:
            faults.append(Fact.of(counter.state, *filter(None, [counter.reason]), counter=counter.name))
    return together(*faults) or Fact("not-collected"), nearest


def _zero(way: Formula, counts: Sum) -> Fact:
    """Return what it says that these counts are 0."""
    return Fact(way.zero) if way.zero else Fact.of("is-zero", counts=counts.text)


def _source(way: Formula | None, context: _Context) -> Source:
    names, text = (", ".join(way.names), way.text) if way is not None else (None, None)
    return Source(context.tool, names, context.artifact, text)


def _unavailable(
    info: MetricInfo, reason: Fact, way: Formula | None = None, *, scope: Scope, context: _Context
) -> Reading:
    return Reading(info.name, None, info.unit, "unavailable", scope, _source(way, context), reason)
