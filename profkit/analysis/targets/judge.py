"""The judge: targets and readings in, verdicts out. Unknown is never pass, not-applicable never fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan

from profkit.analysis.metrics.derive import ALWAYS_ON
from profkit.analysis.summaries.host import HOTTEST, WORTH, counted_profile, simulated_cycles
from profkit.analysis.summaries.readings import best_reading
from profkit.analysis.targets.target import (
    Condition,
    LookedAt,
    RooflineSide,
    Target,
    TargetContext,
    evaluate_condition,
    explain_miss,
    is_met,
    scopes_around,
)
from profkit.core.types import (
    QUALITY_ORDER,
    TOGETHER,
    Fact,
    Reading,
    RunDocument,
    Scope,
    Threshold,
    Verdict,
    VerdictWord,
)

_NOTHING = TargetContext()


def context_of(document: RunDocument) -> TargetContext:
    """The context that an enriched document gives."""
    precision = document.timings[0].precision if document.timings else None
    hottest, share, sampled = _hottest_functions(document)
    return TargetContext(
        roof=_lower_roofline(document.readings),
        precision=100 * precision if precision is not None else None,
        hottest=hottest,
        hottest_share=share,
        hottest_sampled=sampled,
    )


def evaluate_targets(
    targets: Sequence[Target], readings: Sequence[Reading], context: TargetContext = _NOTHING
) -> tuple[Verdict, ...]:
    """For every target a verdict on the run or its region, then one on each of the hottest functions.

    Where a function takes much of the time, the verdict on the run is that on this function: an average over
    functions that differ is true of none of them.
    A target of whose metric no reading speaks, not even an unavailable one, has no verdict.
    The unrounded value is compared; of several readings of one metric in one scope the best known one. A
    multiplexed value so near the threshold that the unseen time could turn it is unknown.
    """
    verdicts: list[Verdict] = []
    for target in targets:
        if "kernel" in target.scopes:
            continue  # of a run it speaks through its kernels: judge_kernels
        place = _reading_of_place(target, readings, context)
        spoken = _readings_of_run(target, readings)
        if place is None or any(_is_surer(reading, place) for reading in spoken):
            verdicts += [verdict_on(target, reading, readings, context) for reading in spoken]
        elif spoken:
            verdict = verdict_on(target, place, readings, context)
            by = "time" if context.hottest_sampled else "simulated work"
            reason = Fact.of("in-function", verdict.reason, name=place.scope.name or "?", by=by)
            scope, share = spoken[0].scope, context.hottest_share
            verdicts.append(replace(verdict, scope=scope, reason=reason, weight=share))
    for scope in context.hottest:
        for target in targets:
            if (
                "function" in target.scopes
                and (reading := best_reading(readings, target.metric, [scope])) is not None
            ):
                verdicts.append(verdict_on(target, reading, readings, context))
    return tuple(verdicts)


# Of the time: a function with less says little of a run whose other functions take as much.
LEAST_PLACE = 0.2


def _reading_of_place(target: Target, readings: Sequence[Reading], context: TargetContext) -> Reading | None:
    """The value of the function that takes most of the time; None where none does, or it has no such value."""
    if "function" not in target.scopes or not context.hottest or context.hottest_share < LEAST_PLACE:
        return None
    reading = best_reading(readings, target.metric, context.hottest[:1])
    return reading if reading is not None and reading.value is not None else None


def _is_surer(of_run: Reading, of_place: Reading) -> bool:
    """Whether the run's own value was counted on the chip, and that of the place is simulated."""
    return of_run.value is not None and QUALITY_ORDER[of_run.quality] < QUALITY_ORDER[of_place.quality]


def _readings_of_run(target: Target, readings: Sequence[Reading]) -> list[Reading]:
    """The reading of every scope that has a value; without any the first that says why."""
    by_scope: dict[Scope, list[Reading]] = {}
    for reading in readings:
        scope = reading.scope
        meant = reading.metric == target.metric and scope.kind in target.scopes and scope.kind != "function"
        if meant and scope.id is None:  # one PMU of a hybrid part: the reading without an id speaks for all
            by_scope.setdefault(scope, []).append(reading)
    best = [
        r for place, own in by_scope.items() if (r := best_reading(own, target.metric, [place])) is not None
    ]
    known = [r for r in best if r.value is not None]
    regions = {
        r.value for r in known if r.scope.kind == "region"
    }  # a run that is its one region is judged once
    return [r for r in known if r.scope.kind != "run" or r.value not in regions] or best[:1]


def verdict_on(
    target: Target, reading: Reading, readings: Sequence[Reading], context: TargetContext
) -> Verdict:
    """The verdict of one target on one reading."""
    threshold = target.threshold if target.threshold is not None else context.precision
    limit = Threshold(target.operator, threshold, target.unit) if threshold is not None else None

    def verdict(word: VerdictWord, reason: Fact, advice: tuple[str, ...] = ()) -> Verdict:
        return Verdict(
            target.name,
            target.metric,
            word,
            reason,
            limit,
            reading.value,
            reading.unit,
            reading.scope,
            reading.quality,
            advice,
        )

    def first(conditions: Sequence[Condition], *answers: bool | None) -> tuple[Condition, Fact] | None:
        """Of those to be asked the first that is answered so, and why."""
        for condition in conditions:
            told = condition.without and best_reading(readings, condition.without, [reading.scope])
            if told and told.value is not None and told.doubt is None:
                continue
            holds, looked_at = evaluate_condition(condition, reading.scope, readings, context)
            if holds in answers:
                return condition, _condition_fact(condition, looked_at, context)
        return None

    applies = [
        (condition, *evaluate_condition(condition, reading.scope, readings, context))
        for condition in target.applies
    ]
    for condition, holds, looked_at in applies:
        if holds is False:
            return verdict("not-applicable", _condition_fact(condition, looked_at, context))
    if reading.value is None:
        if (moot := first(target.moot, True)) is not None:
            return verdict("not-applicable", moot[1])
        known = [reading.reason] if reading.reason is not None else []
        if known and known[0].code == "not-python":
            return verdict("not-applicable", known[0])
        fix = tuple(line for line in (reading.fix or target.unknown,) if line)
        return verdict("unknown", Fact.of("not-known", *known, metric=target.metric), fix)
    value = _value_fact(target, reading)
    if reading.doubt is not None:
        return verdict("unknown", Fact("uncertain", parts=(value, reading.doubt)))
    if threshold is None or limit is None:
        return verdict("unknown", Fact("nothing-asked"))
    if any(holds is None for condition, holds, _ in applies if condition.roof is not None):
        return verdict("unknown", Fact("but", parts=(value, Fact("roof-unknown"))))
    if target.credible is not None and reading.value > target.credible:
        why = reading.reason or Fact.of("not-possible", limit=target.credible, unit=target.unit)
        return verdict("unknown", Fact(TOGETHER, parts=(value, why)))
    if (guard := first(target.guard, False)) is not None:
        condition, why = guard
        said = [r.reason for r in readings if r.metric == condition.metric and r.value is not None][:1]
        why = replace(why, parts=tuple(remark for remark in said if remark is not None) or why.parts)
        return verdict("unknown", Fact("but", parts=(value, why)), (condition.fix,) * bool(condition.fix))
    warning = _multiplexing_warning(reading, threshold)
    if warning is None and target.timed:
        warning = _noise_warning(reading, threshold, readings)
    if warning is not None:
        return verdict("unknown", Fact(TOGETHER, parts=(value, warning)))
    against: dict[str, float | str] = {"operator": target.operator, "limit": threshold, "unit": target.unit}
    if is_met(reading.value, target.operator, threshold):
        return verdict("pass", Fact.of("against", value, **against))
    if (tolerated := first(target.tolerated, True)) is not None:
        return verdict("pass", Fact("but", parts=(value, tolerated[1])))
    if (excused := first(target.excused, False)) is not None:
        return verdict("not-applicable", Fact("but", parts=(value, excused[1])))
    limits = tuple(condition for condition in target.excused if condition.where)
    if first(limits, None) or any(holds is None and condition.where for condition, holds, _ in applies):
        why = context.kernel.reason if context.kernel is not None else Fact("not-collected")
        return verdict("unknown", Fact("limit-unknown", parts=(value, why)))
    if (doubted := first(target.doubted, False, None)) is not None:
        condition, why = doubted
        return verdict("unknown", Fact("but", parts=(value, why)), (condition.fix,) * bool(condition.fix))
    name = reading.scope.name  # compared first: a sweep has thousands of scopes
    values = {
        r.metric: r.value
        for r in readings
        if r.value is not None and r.scope.name == name and r.scope == reading.scope
    }
    reason = Fact.of("against", value, *explain_miss(target.metric, values), **against)
    return verdict(target.missed, reason, _advice(target, reading, readings, context))


def _condition_fact(condition: Condition, looked_at: LookedAt | None, context: TargetContext) -> Fact:
    """Why a condition does not hold, with what was looked at and what limits the kernel."""
    value, unit = looked_at if looked_at is not None else (nan, "")
    evidence = [context.kernel.reason] if context.kernel is not None else []
    return Fact.of(condition.otherwise, *evidence, value=value, unit=unit)


def _value_fact(target: Target, reading: Reading) -> Fact:
    why = [reading.reason] if reading.reason is not None else []
    values: dict[str, float | str] = {"value": reading.value or 0.0, "unit": reading.unit}
    if reading.quality != "measured":
        values["quality"] = reading.quality
    if reading.quality == "multiplexed" and reading.share is not None:
        values["counted"] = reading.share
    if not target.says:
        values["metric"] = target.metric
    return Fact.of(f"value {target.says or 'named'}", *why, **values)


def _multiplexing_warning(reading: Reading, threshold: float) -> Fact | None:
    """Why a multiplexed value decides nothing: what happened while it was not counted could turn the verdict.

    Within (1 - share) of the threshold, relative: a ratio was seen 2.7 times off at a third of the time.
    """
    if reading.value is None or reading.share is None or reading.share >= ALWAYS_ON:
        return None
    if abs(reading.value - threshold) > (1 - reading.share) * abs(threshold):
        return None
    return Fact.of("too-near", limit=threshold, unit=reading.unit)


def _noise_warning(reading: Reading, threshold: float, readings: Sequence[Reading]) -> Fact | None:
    """Why a value over the median time decides nothing: the time's interval holds both sides of the threshold."""
    interval = best_reading(
        [r for r in readings if r.value is not None], "time.interval", scopes_around(reading.scope, readings)
    )
    if interval is None or interval.value is None or reading.value is None:
        return None
    half = interval.value / 100
    high = reading.value / (1 - half) if half < 1 else float("inf")
    if not reading.value / (1 + half) <= threshold <= high:
        return None
    return Fact.of("time-too-uncertain", interval=interval.value, limit=threshold, unit=reading.unit)


def _advice(
    target: Target, reading: Reading, readings: Sequence[Reading], context: TargetContext
) -> tuple[str, ...]:
    return tuple(
        one.text
        for one in target.advice
        if one.quality in (None, reading.quality)
        and (one.when is None or evaluate_condition(one.when, reading.scope, readings, context)[0] is True)
    )


def _lower_roofline(readings: Sequence[Reading]) -> RooflineSide | None:
    """The lower ceiling: where the roofline's share is more than the peak's, that of memory is below it."""
    values = {
        r.metric: r.value
        for r in readings
        if r.value is not None and r.scope.kind not in ("function", "kernel")
    }
    under, flat = values.get("roofline.share"), values.get("flops.share")
    if under is None or flat is None:
        return None
    return "memory" if under > flat * (1 + 1e-9) else "compute"


def _hottest_functions(document: RunDocument) -> tuple[tuple[Scope, ...], float, bool]:
    """At most five functions that are worth a verdict, the share (0..1) of the first one, and whether samples tell it.

    By the cycles that what was counted of each costs about; but first the one with most samples, where it was counted:
    a library may choose another function for the processor that was simulated.
    """
    judged = {r.scope for r in document.readings if r.scope.kind == "function"}
    counted = counted_profile(document.profiles)
    cycles: dict[Scope, float] = {}
    total = 0.0
    for spot in counted.hotspots if counted is not None else ():
        scope = Scope("function", spot.function, spot.library or spot.file)
        own = sum(simulated_cycles(document, spot.counters).values())
        total += own
        if scope in judged:
            cycles[scope] = cycles.get(scope, 0.0) + own
    ranked = sorted(cycles, key=lambda scope: -cycles[scope])
    worth = [scope for scope in ranked[:HOTTEST] if cycles[scope] >= WORTH * total]
    if not worth:
        return (), 0.0, False
    share = cycles[worth[0]] / total
    sampled = next((one for one in document.profiles if one.kind == "functions" and one.total > 0), None)
    if sampled is not None and sampled.hotspots:
        most = max(sampled.hotspots, key=lambda spot: spot.own)
        if (same := next((scope for scope in worth if scope.name == most.function), None)) is not None:
            worth.sort(key=lambda scope: scope is not same)
            return tuple(worth), most.own / sampled.total, True
    return tuple(worth), share, False
