"""The judge: targets and readings in, verdicts out. Unknown is never pass, not-applicable never fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.metrics import metric
from profkit.analysis.metrics.derive import ALWAYS_ON
from profkit.analysis.summaries.cpu import HOTTEST, WORTH
from profkit.analysis.targets.conditions import (
    TargetContext,
    applicable_conditions,
    evaluate_condition,
    explain_miss,
    largest_gain,
    scopes_around,
    surest_reading,
)
from profkit.analysis.targets.target import Condition, RooflineSide, Target, is_met
from profkit.core.formatting import format_percent, format_quantity, format_threshold
from profkit.core.types import Reading, ReasonCode, RunDocument, Scope, Threshold, Verdict, VerdictWord

_NOTHING = TargetContext()


def context_of(document: RunDocument) -> TargetContext:
    """The context that an enriched document gives."""
    precision = document.timings[0].precision if document.timings else None
    return TargetContext(
        roof=_lower_roofline(document.readings),
        precision=100 * precision if precision is not None else None,
        hottest=_hottest_functions(document.readings),
    )


def evaluate_targets(
    targets: Sequence[Target], readings: Sequence[Reading], context: TargetContext = _NOTHING
) -> tuple[Verdict, ...]:
    """For every target a verdict on the run or its region, then one on each of the hottest functions.

    A target of whose metric no reading speaks, not even an unavailable one, has no verdict.
    The unrounded value is compared; of several readings of one metric in one scope the best known one. A
    multiplexed value so near the threshold that the unseen time could turn it is unknown.
    """
    verdicts: list[Verdict] = []
    for target in targets:
        if "kernel" in target.scopes:
            continue  # of a run it speaks through its kernels: judge_kernels
        verdicts += [
            verdict_on(target, reading, readings, context) for reading in _readings_of_run(target, readings)
        ]
    for scope in context.hottest:
        for target in targets:
            if (
                "function" in target.scopes
                and (reading := surest_reading(readings, target.metric, [scope])) is not None
            ):
                verdicts.append(verdict_on(target, reading, readings, context))
    return tuple(verdicts)


def _readings_of_run(target: Target, readings: Sequence[Reading]) -> list[Reading]:
    """The reading of every scope that has a value; without any the first that says why."""
    by_scope: dict[Scope, list[Reading]] = {}
    for reading in readings:
        scope = reading.scope
        meant = reading.metric == target.metric and scope.kind in target.scopes and scope.kind != "function"
        if meant and scope.id is None:  # one PMU of a hybrid part: the reading without an id speaks for all
            by_scope.setdefault(scope, []).append(reading)
    best = [
        r for place, own in by_scope.items() if (r := surest_reading(own, target.metric, [place])) is not None
    ]
    known = [r for r in best if r.value is not None]
    regions = {
        r.value for r in known if r.scope.kind == "region"
    }  # a run that is its one region is judged once
    return [r for r in known if r.scope.kind != "run" or r.value not in regions] or best[:1]


def verdict_on(
    target: Target, reading: Reading, readings: Sequence[Reading], context: TargetContext
) -> Verdict:
    """The verdict of one target on one reading; its gain is a share of the time of what the reading speaks of."""
    threshold = target.threshold if target.threshold is not None else context.precision
    limit = Threshold(target.operator, threshold, target.unit) if threshold is not None else None

    def verdict(
        word: VerdictWord,
        reason: str,
        advice: tuple[str, ...] = (),
        gain: float | None = None,
        code: ReasonCode | None = None,
    ) -> Verdict:
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
            gain=gain,
            code=code,
        )

    def first(conditions: Sequence[Condition], *answers: bool | None) -> tuple[Condition, str, str] | None:
        """Of those to be asked the first that is answered so, why, and the value that it looked at."""
        for condition in applicable_conditions(conditions, reading.scope, readings):
            holds, looked_at = evaluate_condition(condition, reading.scope, readings, context)
            if holds in answers:
                return condition, _condition_text(condition, looked_at, context), looked_at
        return None

    applies = [
        (condition, *evaluate_condition(condition, reading.scope, readings, context))
        for condition in target.applies
    ]
    for condition, holds, looked_at in applies:
        if holds is False:
            return verdict("not-applicable", _condition_text(condition, looked_at, context))
    if reading.value is None:
        if (moot := first(target.moot, True)) is not None:
            return verdict("not-applicable", _condition_text(moot[0], "", context))
        if reading.code == "not-python":
            return verdict("not-applicable", reading.reason or "not a Python program")
        fix = tuple(line for line in (reading.fix or target.unknown,) if line)
        reason = f"{metric(target.metric).title} not known: {reading.reason}"
        unknown = verdict("unknown", reason, fix, code=reading.code)
        return replace(unknown, cause=reading.cause or reading.reason)
    value = _value_text(target, reading)
    if reading.doubt is not None:
        doubtful = verdict("unknown", f"{value}, which is uncertain: {reading.doubt}")
        return replace(doubtful, cause=reading.doubt)
    if threshold is None or limit is None:
        return verdict("unknown", "the run does not say what was asked for")
    if any(holds is None for condition, holds, _ in applies if condition.roof is not None):
        return verdict("unknown", f"{value}, but whether memory or compute limits it is not known")
    if target.credible is not None and reading.value > target.credible:
        why = reading.reason or f"more than {target.credible:g} {target.unit} is not possible"
        return verdict("unknown", f"{value}; {why}")
    if (guard := first(target.guard, False)) is not None:
        condition, why, looked_at = guard
        why = why.replace("{why}", _remark_on(condition, readings) or looked_at)
        return verdict("unknown", f"{value}, but {why}", (condition.fix,) * bool(condition.fix))
    warning = _multiplexing_warning(reading, threshold)
    if warning is None and target.timed:
        warning = _noise_warning(reading, threshold, readings)
    if warning is not None:
        return verdict("unknown", f"{value}; {warning}")
    reason = f"{value}; target {format_threshold(target.operator, threshold, target.unit)}"
    if is_met(reading.value, target.operator, threshold):
        return verdict("pass", reason)
    if (tolerated := first(target.tolerated, True)) is not None:
        return verdict("pass", f"{value}, but {tolerated[1]}")
    if (excused := first(target.excused, False)) is not None:
        return verdict("not-applicable", f"{value}, but {excused[1]}")
    limits = tuple(condition for condition in target.excused if condition.where)
    if first(limits, None) or any(holds is None and condition.where for condition, holds, _ in applies):
        why = context.kernel.reason if context.kernel is not None else "it was not counted"
        return replace(verdict("unknown", f"{value}, but what limits it is not known: {why}"), cause=why)
    if (doubted := first(target.doubted, False, None)) is not None:
        condition, why, _ = doubted
        return verdict("unknown", f"{value}, but {why}", (condition.fix,) * bool(condition.fix))
    name = reading.scope.name  # compared first: a sweep has thousands of scopes
    values = {
        r.metric: r.value
        for r in readings
        if r.value is not None and r.scope.name == name and r.scope == reading.scope
    }
    if why := explain_miss(target.metric, values):
        reason += f"; {why}"
    gain = largest_gain(target.gain, values, context.kernel)
    return verdict(target.missed, reason, _advice(target, reading, readings, context), gain)


def _condition_text(condition: Condition, value: str, context: TargetContext) -> str:
    """Why a condition does not hold, with what was looked at."""
    evidence = context.kernel.reason if context.kernel is not None else ""
    return condition.otherwise.replace("{value}", value).replace("{class}", evidence)


def _remark_on(condition: Condition, readings: Sequence[Reading]) -> str | None:
    """The remark of what a condition looks at: why it is so."""
    return next((r.reason for r in readings if r.metric == condition.metric and r.value is not None), None)


def _value_text(target: Target, reading: Reading) -> str:
    says = (target.says or "{value}").replace("{value}", _format_value(reading.value, reading.unit))
    says = says.replace("{what}", reading.reason or "no cause is given")
    return says if reading.quality == "measured" else f"{says} ({_quality_text(reading)})"


def _quality_text(reading: Reading) -> str:
    if reading.quality == "multiplexed" and reading.share is not None:
        return f"multiplexed, counted {format_percent(100 * reading.share)} % of the time"
    return reading.quality


def _format_value(value: float | None, unit: str) -> str:
    return (
        f"{value:.2f}" if unit == "instructions/cycle" and value is not None else format_quantity(value, unit)
    )


def _multiplexing_warning(reading: Reading, threshold: float) -> str | None:
    """Why a multiplexed value decides nothing: what happened while it was not counted could turn the verdict.

    Within (1 - share) of the threshold, relative: a ratio was seen 2.7 times off at a third of the time.
    """
    if reading.value is None or reading.share is None or reading.share >= ALWAYS_ON:
        return None
    if abs(reading.value - threshold) > (1 - reading.share) * abs(threshold):
        return None
    return f"too near {threshold:g} {reading.unit} for a counter that ran part of the time".replace("  ", " ")


def _noise_warning(reading: Reading, threshold: float, readings: Sequence[Reading]) -> str | None:
    """Why a value over the median time decides nothing: the time's interval holds both sides of the threshold."""
    interval = surest_reading(
        [r for r in readings if r.value is not None], "time.interval", scopes_around(reading.scope, readings)
    )
    if interval is None or interval.value is None or reading.value is None:
        return None
    half = interval.value / 100
    high = reading.value / (1 - half) if half < 1 else float("inf")
    if not reading.value / (1 + half) <= threshold <= high:
        return None
    return (
        f"the time is known to ±{format_percent(interval.value)} % only, too little to hold it against "
        f"{threshold:g} {reading.unit}".rstrip()
    )


def _advice(
    target: Target, reading: Reading, readings: Sequence[Reading], context: TargetContext
) -> tuple[str, ...]:
    lines: list[str] = []
    for advice in target.advice:
        if advice.quality is not None and advice.quality != reading.quality:
            continue
        if (
            advice.when is None
            or evaluate_condition(advice.when, reading.scope, readings, context)[0] is True
        ):
            lines.append(advice.text)
    return tuple(lines)


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


def _hottest_functions(readings: Sequence[Reading]) -> tuple[Scope, ...]:
    """Functions by their instructions: at most five, each with a share that is worth a verdict."""
    counts = [r for r in readings if r.metric == "instructions" and r.value is not None]
    functions = sorted((r for r in counts if r.scope.kind == "function"), key=lambda r: -(r.value or 0.0))
    whole = [r.value or 0.0 for r in counts if r.scope.kind in ("run", "region") and r.quality == "simulated"]
    total = max(whole, default=sum(r.value or 0.0 for r in functions))
    return tuple(r.scope for r in functions[:HOTTEST] if (r.value or 0.0) >= WORTH * total)
