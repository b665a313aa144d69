"""Two sweeps: the change of each implementation of each operation over all its shapes.

A case was timed in one process of each sweep, and one process does not show how far the next would lie from it. A
thousand cases do: what they differ by from the one sweep to the other is that noise, but for those that changed. So
an implementation over all shapes decides, by the geometric mean of its ratios, and no single case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, inf, log, sqrt

from profkit.analysis.ranking import FRAMEWORK
from profkit.core.formatting import plural
from profkit.core.inference import BETWEEN, Ratio
from profkit.core.statistics import geometric_mean, mad_sigma, median
from profkit.core.types import Change, Fact, RunDocument, Sample, Scope
from profkit.regression.compare.metrics import MetricPair, decide_ratios, rule_of
from profkit.regression.compare.outcome import Decided

MEAN_METRIC = "time.geometric_mean"
# How far all cases of one implementation of one operation move together from one sweep to the next of the same code, as
# a standard deviation of the geometric mean's logarithm. On the device's clock: 0.96 % over 110 of them (11 pairs of
# seven sweeps on three hosts with H200s, 160 to 1,680 cases; 0.25 % within one host and setting), and
GROUP_SIGMA = 0.01
# 0.68 % beside the framework's own, of which most move with them: the clock, the temperature, another chip of the kind.
BESIDE_CONTROLS = 0.0075
NOTABLE = 0.002
LEAST_CONTROLS = 3  # groups of the framework: of fewer no median is taken
# A single case from one sweep to the next, likewise: 1.5 % is the median of 30 such spreads.
CASE_SIGMA = 0.015
LEAST_SPREAD = 0.003  # and never less: two steady chips of one kind differ by as much
ENOUGH = 30  # cases in all: from these on they show their own spread
FIX_SWEEP, RESUME = Fact("larger-budget"), Fact("resume-sweep")
TAIL_FACTOR = 2.0  # standard deviations over robust spreads of such cases: 1.2 to 1.9 in those pairs


@dataclass(frozen=True)
class SweepDecision:
    """The decisions on two sweeps. `controls`: why nothing can be said of the code, since unchanged code changed."""

    changes: tuple[Change, ...]  # of each group
    cases: frozenset[Scope] = frozenset()  # whose times are in them
    controls: Fact | None = None
    lost: tuple[str, ...] = ()  # cases that only the baseline has a time of
    nothing: bool = False  # no case has a time in both
    notes: tuple[Fact, ...] = ()  # which part was attributed to the machine


def is_sweep(document: RunDocument) -> bool:
    """Whether a run is a sweep, whose timings are cases of groups."""
    return any(timing.group is not None for timing in document.timings)


def decide_sweep(
    baseline: RunDocument, candidate: RunDocument, pairs: Sequence[MetricPair], floor: float | None
) -> SweepDecision:
    """Decide the cases of `pairs` together; those that are no case of a group in both runs are passed over."""
    groups = _pairs_by_group(baseline, candidate, pairs)
    if not groups:
        return SweepDecision((), lost=_lost_cases(baseline, candidate), nothing=True)
    known = _control_groups(baseline, candidate, tuple(groups))
    means = {name: sum(map(_log_ratio, group)) / len(group) for name, group in groups.items()}
    shift = median([means[name] for name in known]) if len(known) >= LEAST_CONTROLS else 0.0
    shifts = {name: 0.0 if name in known else shift for name in groups}
    changes = _group_changes(groups, means, shifts, known, floor)
    return SweepDecision(
        changes,
        frozenset(pair.scope for group in groups.values() for pair in group),
        _changed_controls(changes, known),
        _lost_cases(baseline, candidate),
        notes=_shift_notes(shift, known),
    )


def _pairs_by_group(
    baseline: RunDocument, candidate: RunDocument, pairs: Sequence[MetricPair]
) -> Mapping[str, tuple[MetricPair, ...]]:
    groups = [{timing.name: timing.group for timing in run.timings} for run in (baseline, candidate)]
    by_group: dict[str, list[MetricPair]] = defaultdict(list)
    for pair in pairs:
        name = groups[0].get(pair.scope.name or "")
        timed = pair.metric == "time.median" and pair.baseline.value > 0 and pair.candidate.value > 0
        if name is not None and name == groups[1].get(pair.scope.name or "") and timed:
            by_group[name].append(pair)
    return {name: tuple(group) for name, group in by_group.items()}


def _implementation_of(group: str) -> str:
    return group.rpartition(": ")[0]


def _control_groups(baseline: RunDocument, candidate: RunDocument, names: Sequence[str]) -> frozenset[str]:
    """Groups that no change of the code can have touched: the framework's own, of the same versions, beside others."""
    alike = all(baseline.packages.get(word) == candidate.packages.get(word) for word in ("torch", "triton"))
    own = frozenset(name for name in names if _implementation_of(name) in FRAMEWORK)
    known = baseline.packages.get("torch") is not None
    return own if alike and known and len(own) < len(names) else frozenset()


# ---------------------------------------------------------------- an implementation over all its shapes


def _group_changes(
    groups: Mapping[str, tuple[MetricPair, ...]],
    means: Mapping[str, float],
    shifts: Mapping[str, float],
    controls: frozenset[str],
    floor: float | None,
) -> tuple[Change, ...]:
    device = all(pair.between < BETWEEN for group in groups.values() for pair in group)
    usual = GROUP_SIGMA if device else BETWEEN * sqrt(2)
    beside = usual * BESIDE_CONTROLS / GROUP_SIGMA if len(controls) >= LEAST_CONTROLS else usual
    spread = _case_spread(groups)
    # A control does not tell its own error.
    errors = {
        name: hypot(usual if name in controls else beside, TAIL_FACTOR * spread / sqrt(len(group)))
        for name, group in groups.items()
    }
    rule = rule_of(MEAN_METRIC, "profkit")
    assert rule is not None
    ratios = []
    for name, group in groups.items():
        scope = Scope("region", f"{name}, {plural(len(group), 'shape')}")
        sides = [
            geometric_mean(pair.baseline.value for pair in group) or 0.0,
            geometric_mean(pair.candidate.value for pair in group) or 0.0,
        ]
        own = replace(rule, role="supports") if name in controls else rule
        pair = MetricPair(
            own, MEAN_METRIC, "s", "lower", scope, "profkit", Sample(sides[0]), Sample(sides[1])
        )
        ratios.append((pair, Ratio(exp(means[name] - shifts[name]), 0.0, errors[name], inf, (), ())))
    changes = decide_ratios(ratios, floor)
    return tuple(replace(c, fix=FIX_SWEEP) if c.word == "ambiguous" else c for c in changes)


def _case_spread(groups: Mapping[str, tuple[MetricPair, ...]]) -> float:
    """How far a case lies from the median of its own group, as a standard deviation over all of them."""
    off: list[float] = []
    for group in groups.values():
        logs = [_log_ratio(pair) for pair in group]
        off += [value - median(logs) for value in logs]
    return max(mad_sigma(off), LEAST_SPREAD) if len(off) >= ENOUGH else CASE_SIGMA


def _changed_controls(changes: Sequence[Change], controls: frozenset[str]) -> Fact | None:
    """Why the machine and not the code is what differs."""
    known = [c for c in changes if c.role == "supports" and c.word == "different" and c.ratio is not None]
    if not known or not controls:
        return None
    largest = max(known, key=lambda c: abs(log(c.ratio or 1.0)))
    share = (largest.ratio or 1.0) - 1
    return Fact.of("controls-changed", name=largest.scope.name or "", more=len(known) - 1, share=share)


def _shift_notes(shift: float, controls: frozenset[str]) -> tuple[Fact, ...]:
    """What is taken out of the changes of all others; nothing where that is next to nothing."""
    if abs(shift) < NOTABLE:
        return ()
    names = ", ".join(sorted({_implementation_of(name) for name in controls}))
    return (Fact.of("controls-moved", names=names, share=exp(shift) - 1, count=len(controls)),)


def _log_ratio(pair: MetricPair) -> float:
    return log(pair.candidate.value / pair.baseline.value)


def _lost_cases(baseline: RunDocument, candidate: RunDocument) -> tuple[str, ...]:
    """Cases with a time in the baseline alone, where the candidate is whole."""
    if candidate.state != "complete":
        return ()
    timed = {timing.name for timing in candidate.timings}
    return tuple(t.name for t in baseline.timings if t.group is not None and t.name not in timed)


def outcome_of_sweep(outcome: Decided, grouped: SweepDecision, changes: Sequence[Change]) -> Decided:
    """The outcome of two sweeps, with what their cases say beside the means."""
    if outcome.word == "regressed" or not (grouped.changes or grouped.nothing):
        return outcome
    if grouped.nothing:
        return Decided("ambiguous", Fact("no-case"), RESUME)
    if grouped.controls is not None:
        return Decided("ambiguous", grouped.controls, FIX_SWEEP)
    if grouped.lost:
        lost = Fact.of(
            "lost-cases", count=len(grouped.lost), first=grouped.lost[0], more=len(grouped.lost) - 1
        )
        return Decided("ambiguous", lost, RESUME)
    if outcome.word not in ("same", "changed"):
        return outcome
    means = [c for c in changes if c.metric == MEAN_METRIC and c.role == "decides"]
    seen = max((c.detectable for c in means if c.detectable is not None), default=0.0)
    why = Fact.of("means-same", count=len(means), detectable=seen)
    return Decided(outcome.word, why, outcome.fix)
