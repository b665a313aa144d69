"""The judge: targets and readings in, verdicts out. Unknown is never pass, not-applicable never fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan

from profkit.analysis.judge.library_code import owner_of, owners_of_misses
from profkit.analysis.judge.target import Target
from profkit.analysis.judge.target_checks import (
    LookedAt,
    RooflineSide,
    TargetCheck,
    TargetContext,
    evaluate_condition,
    is_met,
    scopes_around,
    top_stall,
)
from profkit.analysis.metrics.derive import ALWAYS_ON
from profkit.analysis.summaries.host import HOTTEST, WORTH, counted_profile, simulated_cycles
from profkit.analysis.summaries.kernels import FULL, occupancy_limiters
from profkit.analysis.summaries.readings import best_reading
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
    """Return the context of an enriched document."""
    precision = document.timings[0].precision if document.timings else None
    hottest, share, sampled = _hottest_functions(document)
    return TargetContext(
        roof=_lower_roofline(document.readings),
        precision=100 * precision if precision is not None else None,
        hottest=hottest,
        hottest_share=share,
        hottest_sampled=sampled,
        owners=owners_of_misses(document),
    )


def evaluate_targets(
    targets: Sequence[Target], readings: Sequence[Reading], context: TargetContext = _NOTHING
) -> tuple[Verdict, ...]:
    """Return the verdict of each target on the run or its region, then those on each of the hottest functions.

    If one function takes much of the time, the verdict on the run is that on this function: an average over functions
    that differ describes none of them.
    A target whose metric has no reading, not even an unavailable one, has no verdict.
    The unrounded value is compared; of several readings of one metric in one scope, the most reliable one. A
    multiplexed value is unknown if the time in which it was not counted could turn the verdict.
    """
    verdicts: list[Verdict] = []
    for target in targets:
        if "kernel" in target.scopes:
            continue  # judged for each kernel: evaluate_kernel_targets
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


# Of the time: a function with a smaller share does not represent a run whose other functions take as much.
MIN_PLACE = 0.2


def _reading_of_place(target: Target, readings: Sequence[Reading], context: TargetContext) -> Reading | None:
    """Return the reading of the function that takes most of the time; None if none does, or it has no value."""
    if "function" not in target.scopes or not context.hottest or context.hottest_share < MIN_PLACE:
        return None
    reading = best_reading(readings, target.metric, context.hottest[:1])
    return reading if reading is not None and reading.value is not None else None


def _is_surer(of_run: Reading, of_place: Reading) -> bool:
    """Return whether the run's value was counted by the chip, and that of the place is only simulated."""
    return of_run.value is not None and QUALITY_ORDER[of_run.quality] < QUALITY_ORDER[of_place.quality]


def _readings_of_run(target: Target, readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings that have a value, one for each scope; if there are none, the first unavailable one."""
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
    """Return the verdict of one target on one reading, from the first of its checks that fires."""
    judged = _JudgedReading(target, reading, readings, context)
    for step in target.checks:
        if step == "known":
            decided = judged.why_unknown()
        elif step == "threshold":
            decided = judged.why_undecided() or judged.met()
        else:
            decided = judged.ask(step)
        if decided is not None:
            return decided
    return judged.missed()


class _JudgedReading:
    """One reading on its way through the checks of a target."""

    def __init__(
        self, target: Target, reading: Reading, readings: Sequence[Reading], context: TargetContext
    ) -> None:
        self._target, self._reading, self._readings, self._context = target, reading, readings, context
        self._threshold = target.threshold if target.threshold is not None else context.precision
        self._value: Fact | None = None  # the value in words, once it is known
        self._open = False  # whether a check depends on the kernel's limit, which is not known

    def why_unknown(self) -> Verdict | None:
        """Return an unknown verdict if there is no value, a doubtful one, or no threshold; else None."""
        reading, target = self._reading, self._target
        if reading.value is None:
            if reading.reason is not None and reading.reason.code == "not-python":
                return self._verdict("not-applicable", reading.reason)
            why = [reading.reason] if reading.reason is not None else []
            fix = tuple(line for line in (reading.fix or target.unknown,) if line)
            return self._verdict("unknown", Fact.of("not-known", *why, metric=target.metric), fix)
        self._value = _value_fact(target, reading)
        if reading.doubt is not None:
            return self._verdict("unknown", Fact("uncertain", parts=(self._value, reading.doubt)))
        return self._verdict("unknown", Fact("nothing-asked")) if self._threshold is None else None

    def ask(self, check: TargetCheck) -> Verdict | None:
        """Return the verdict of one check; None if it does not fire."""
        if check.without is not None and self._knows(check.without):
            return None
        holds, looked_at = evaluate_condition(
            check.condition, self._reading.scope, self._readings, self._context
        )
        if holds is None and check.condition.bound and not check.optional:
            self._open = True
        if not (holds is not True if check.negated else holds is True):
            return None
        why = self._why(check, looked_at)
        reason = why if self._value is None else Fact("but", parts=(self._value, why))
        return self._verdict(check.then, reason, (check.fix,) * bool(check.fix))

    def _knows(self, metric: str) -> bool:
        best = best_reading(self._readings, metric, [self._reading.scope])
        return best is not None and best.value is not None and best.doubt is None

    def why_undecided(self) -> Verdict | None:
        """Return an unknown verdict if the value is not precise enough to tell its side of the threshold."""
        threshold = self._threshold or 0.0
        warning = _multiplexing_warning(self._reading, threshold)
        if warning is None and self._target.timed:
            warning = _noise_warning(self._reading, threshold, self._readings)
        if warning is None or self._value is None:
            return None
        return self._verdict("unknown", Fact(TOGETHER, parts=(self._value, warning)))

    def met(self) -> Verdict | None:
        """Return the verdict if the threshold is met."""
        value, threshold = self._reading.value, self._threshold
        if value is None or threshold is None or not is_met(value, self._target.operator, threshold):
            return None
        return self._verdict("pass", self._against())

    def missed(self) -> Verdict:
        """Return the verdict on a miss that no check explains."""
        context, scope = self._context, self._reading.scope
        if self._open and self._value is not None:
            why = context.kernel.reason if context.kernel is not None else Fact("not-collected")
            return self._verdict("unknown", Fact("limit-unknown", parts=(self._value, why)))
        if (owner := self._owner()) is not None and self._value is not None:
            why = Fact.of("library-code", owner=owner)
            return self._verdict("not-applicable", Fact("but", parts=(self._value, why)))
        # the name is compared first: a sweep has thousands of scopes
        values = {
            r.metric: r.value
            for r in self._readings
            if r.value is not None and r.scope.name == scope.name and r.scope == scope
        }
        reason = self._against(*explain_miss(self._target.metric, values))
        advice = _advice(self._target, self._reading, self._readings, context)
        return self._verdict(self._target.missed, reason, advice)

    def _owner(self) -> str | None:
        """Return who wrote the code that misses the target, if its user cannot change that; None otherwise."""
        scope, target = self._reading.scope, self._target
        if not target.own_code or scope.kind == "kernel":  # kernels: `evaluate_kernel_targets`
            return None
        return owner_of(scope.id) if scope.kind == "function" else self._context.owners.get(target.metric)

    def _against(self, *why: Fact) -> Fact:
        parts = [self._value] if self._value is not None else []
        target = self._target
        values: dict[str, float | str] = {
            "operator": target.operator,
            "limit": self._threshold or 0.0,
            "unit": target.unit,
        }
        return Fact.of("against", *parts, *why, **values)

    def _why(self, check: TargetCheck, looked_at: LookedAt | None) -> Fact:
        """Return why a check fired: with what was looked at, and what limits the kernel or was said of the value."""
        kernel, metric = self._context.kernel, check.condition.metric
        evidence = [kernel.reason] if kernel is not None else []
        # what is said of the value that was tested, such as why it can be more than the peak
        tested = [r for r in self._readings if r.metric == metric and r.value is not None][:1]
        evidence += [r.reason for r in tested if r.reason is not None]
        value, unit = looked_at if looked_at is not None else (nan, "")
        values: dict[str, float | str] = {"value": value, "unit": unit}
        if check.condition.test is not None:
            values["limit"] = check.condition.test[1]
        return Fact.of(check.because, *evidence, **values)

    def _verdict(self, word: VerdictWord, reason: Fact, advice: tuple[str, ...] = ()) -> Verdict:
        target, reading, threshold = self._target, self._reading, self._threshold
        return Verdict(
            target.name,
            target.metric,
            word,
            reason,
            Threshold(target.operator, threshold, target.unit) if threshold is not None else None,
            reading.value,
            reading.unit,
            reading.scope,
            reading.quality,
            advice,
        )


# What keeps a kernel from its threshold, if its own counters show that.


def explain_miss(metric: str, values: Mapping[str, float]) -> list[Fact]:
    """Return what limits the kernel's occupancy, or what its warps wait for; empty if that is not known."""
    theory, names = values.get("occupancy.theoretical"), occupancy_limiters(values)
    if metric == "occupancy.achieved" and theory is not None and theory < FULL and names:
        blocks = values[f"occupancy.limit.{names[0]}"]
        return [Fact.of("occupancy-limited", value=theory, blocks=blocks, limiters=" ".join(names))]
    stall = top_stall(values) if metric in ("bandwidth.dram.share", "throughput.busiest") else None
    return [Fact.of("warps-wait", stall=stall[0], share=stall[1])] if stall is not None else []


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
    """Return why a multiplexed value is undecided: what happened while it was not counted could turn the verdict.

    That is the case within (1 - share) of the threshold, relative: a ratio counted for a third of the time was 2.7
    times off.
    """
    if reading.value is None or reading.share is None or reading.share >= ALWAYS_ON:
        return None
    if abs(reading.value - threshold) > (1 - reading.share) * abs(threshold):
        return None
    return Fact.of("too-near", limit=threshold, unit=reading.unit)


def _noise_warning(reading: Reading, threshold: float, readings: Sequence[Reading]) -> Fact | None:
    """Return why a quotient with the median time is undecided: the time's interval reaches both sides of the
    threshold.
    """
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
        advice.text
        for advice in target.advice
        if advice.quality in (None, reading.quality)
        and (
            advice.when is None
            or evaluate_condition(advice.when, reading.scope, readings, context)[0] is True
        )
    )


def _lower_roofline(readings: Sequence[Reading]) -> RooflineSide | None:
    """Return the lower ceiling: it is the memory's if the share of the roofline exceeds the share of the peak."""
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
    """Return at most five functions worth a verdict, the share (0..1) of the first, and whether it was sampled.

    They are ordered by the cycles that their simulated counts cost. But the function with the most samples comes first
    if it was counted: a library may choose another function for the processor that is simulated.
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
    sampled = next(
        (profile for profile in document.profiles if profile.kind == "functions" and profile.total > 0), None
    )
    if sampled is not None and sampled.hotspots:
        most = max(sampled.hotspots, key=lambda spot: spot.own)
        if (same := next((scope for scope in worth if scope.name == most.function), None)) is not None:
            worth.sort(key=lambda scope: scope is not same)
            return tuple(worth), most.own / sampled.total, True
    return tuple(worth), share, False
