"""Verdicts on the kernels of a document.

A target on kernels is judged for each launch configuration; its verdict on the run weights them by GPU time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profkit.analysis.evidence import main_operation, runs_side_by_side
from profkit.analysis.judge.target import Target, threshold_of
from profkit.analysis.judge.target_checks import TargetContext
from profkit.analysis.judge.verdicts import verdict_on
from profkit.analysis.kernel_names.owner import (
    OWN_CODE,
    is_initialiser,
    launched_owner,
    owner_title,
    runs_own_functions,
)
from profkit.analysis.summaries.gpu import NO_KERNEL
from profkit.analysis.summaries.kernels import counted_alone
from profkit.analysis.summaries.readings import absent_reading, best_reading
from profkit.core.types import (
    RUN,
    Fact,
    KernelBottleneck,
    Reading,
    RunDocument,
    Scope,
    Verdict,
    VerdictWord,
)

# Kernels that together take less of the GPU time than this do not decide the verdict on a run. The plan counts kernels
# that make up 95 % of it, so the last 5 % could not be judged anyway.
DECIDING_SHARE = 0.05
LISTED = 50  # kernels that get verdicts of their own; all of them count for the run's
NAMED = 3  # in a sentence
_SET_UP, _NO_SHARES = Fact("set-up"), Fact("shares-not-known")
# The user cannot change the source of a kernel in a library.
CALL_IT = (
    "This kernel belongs to a library: call it with more work at a time, contiguous tensors or "
    "a smaller type, or fuse it."
)


@dataclass(frozen=True)
class _KernelVerdict:
    """One kernel's verdict on one target, and what share of the GPU time it stands for."""

    verdict: Verdict
    share: float
    counted: bool


def evaluate_kernel_targets(
    document: RunDocument, targets: Sequence[Target], count: str = ""
) -> tuple[Verdict, ...]:
    """Return for every target on kernels its verdict on the run, then those on each kernel, largest first.

    `count` is the line that counts kernels.
    """
    spoken = [target for target in targets if "kernel" in target.scopes]
    if not document.kernels:
        return _verdicts_without_kernels(document, spoken)
    by_scope: dict[Scope, list[Reading]] = {}
    for each in document.readings:
        by_scope.setdefault(each.scope, []).append(each)
    around = [r for r in document.readings if r.scope.kind in ("run", "region")]
    shares = _shares(document.kernels)
    metrics = {r.metric for r in document.readings if r.scope.kind == "kernel"}
    set_up = all(is_initialiser(kernel.scope.name or "") for kernel in document.kernels)
    alone = counted_alone(
        document
    )  # some kernels miss the target, but it is not known how much of the time they take
    times = document.trace.kernels if document.trace is not None else ()
    operations = {time.kernel.scope: main_operation(time) for time in times}
    together = runs_side_by_side(document.trace)
    on_run: list[Verdict] = []
    on_kernels: dict[Scope, list[Verdict]] = {}
    for target in spoken:
        if target.metric not in metrics and not target.always:
            continue
        judged: list[_KernelVerdict] = []
        rest = max(0.0, 1 - sum(shares)) if target.always else 0.0
        uncounted = _uncounted(document, target, RUN, count)
        for kernel, share in zip(document.kernels, shares, strict=True):
            own = by_scope.get(kernel.scope, [])
            reading = best_reading(own, target.metric, [kernel.scope])
            if reading is None and not target.always:
                rest += 0.0 if own else share  # a counted kernel without such a value leaves nothing open
                continue
            if reading is None:
                reading = replace(uncounted, scope=kernel.scope)
                reading = replace(reading, reason=Fact("not-in-report"), fix=None) if own else reading
            verdict = verdict_on(
                target, reading, [*own, *around], TargetContext(kernel=kernel, side_by_side=together)
            )
            owner = launched_owner(kernel.scope.name or "", operations.get(kernel.scope))
            if target.own_code and owner not in OWN_CODE and verdict.verdict in ("fail", "unknown"):
                reason = Fact.of("of-library", owner=owner_title(owner))
                verdict = replace(verdict, verdict="not-applicable", reason=reason, advice=())
            elif (
                verdict.advice
                and verdict.verdict == "fail"
                and not runs_own_functions(kernel.scope.name or "", owner)
            ):
                verdict = replace(verdict, advice=(CALL_IT,))
            if set_up:
                verdict = replace(verdict, verdict="not-applicable", reason=_SET_UP, advice=())
            verdict = replace(verdict, weight=kernel.share)
            judged.append(_KernelVerdict(verdict, share, bool(own)))
        verdict = _verdict_on_run(target, judged, rest, uncounted)
        if alone and verdict.verdict == "fail" and any(other.verdict.verdict != "fail" for other in judged):
            verdict = replace(
                verdict, verdict="unknown", reason=_NO_SHARES, value=None, weight=None, advice=()
            )
        on_run.append(verdict)
        for result in judged[:LISTED]:
            if result.counted:
                on_kernels.setdefault(result.verdict.scope, []).append(result.verdict)
    return (*on_run, *(verdict for verdicts in on_kernels.values() for verdict in verdicts))


def _verdicts_without_kernels(document: RunDocument, targets: Sequence[Target]) -> tuple[Verdict, ...]:
    """Return unknown verdicts for a report without kernels: nothing is known about them."""
    if document.plan is not None or document.passes:
        return ()  # in a run the passes say why
    if any(timing.group is not None for timing in document.timings):
        return ()  # a sweep measures times only; its cases have profiles of their own
    return tuple(
        _unknown(target, Fact.of("not-known", NO_KERNEL, metric=target.metric))
        for target in targets
        if target.always
    )


def _unknown(target: Target, reason: Fact) -> Verdict:
    limit = threshold_of(target)
    return Verdict(
        target.name, target.metric, "unknown", reason, limit, None, target.unit, RUN, "unavailable"
    )


def _shares(kernels: Sequence[KernelBottleneck]) -> list[float]:
    """Return each kernel's share of the GPU time; if no times are known, all kernels count equally."""
    if all(kernel.share is None for kernel in kernels):
        return [1 / len(kernels)] * len(kernels)
    return [kernel.share or 0.0 for kernel in kernels]


def _verdict_on_run(
    target: Target, judged: Sequence[_KernelVerdict], rest: float, uncounted: Reading
) -> Verdict:
    """Return the verdict on the run: fail if kernels with 5 % of the GPU time or more miss the target.

    It is unknown if counted kernels with an unknown verdict could bring the misses to 5 %, or if kernels with more than
    5 % were not counted. Its value comes from `_deciding_value`. `rest` is the share of the kernels that are not in
    `judged`, and `uncounted` is the reason why kernels have no counters.
    """
    by_word: dict[VerdictWord, list[_KernelVerdict]] = {}
    for kernel in judged:
        by_word.setdefault(kernel.verdict.verdict, []).append(kernel)
    missed, unknown = by_word.get("fail", []), by_word.get("unknown", [])
    met, silent = by_word.get("pass", []), by_word.get("not-applicable", [])
    unsure = [kernel for kernel in unknown if kernel.counted]
    lost, dark = _total_share(missed), _total_share(unknown) + rest
    without_counters = dark - _total_share(unsure)
    threshold = threshold_of(target)
    against: dict[str, float | str] = {
        "operator": threshold.operator,
        "limit": threshold.value,
        "unit": threshold.unit,
    }
    first = judged[0].verdict
    blank = replace(first, verdict="pass", value=None, unit=target.unit, scope=RUN, advice=(), weight=None)

    def decided(
        word: VerdictWord, reason: Fact, weight: float, like: Verdict = blank, value: float | None = None
    ) -> Verdict:
        advice = like.advice if word != "pass" else ()
        return replace(
            blank,
            verdict=word,
            reason=reason,
            value=value,
            weight=weight,
            quality=like.quality,
            advice=advice,
        )

    if lost >= DECIDING_SHARE:
        lead = missed[0].verdict
        reason = Fact.of("kernels-miss", _kernel_list(missed), share=lost, **against)
        if len(missed) == 1:
            reason = Fact.of("kernel-misses", lead.reason, kernel=_name(lead), share=lost)
        return decided("fail", reason, lost, lead, _deciding_value(missed))
    if lost + _total_share(unsure) >= DECIDING_SHARE or without_counters > DECIDING_SHARE + 1e-9:
        cause = replace(blank, quality="unavailable")
        if unknown:
            cause = max(unsure or unknown, key=lambda kernel: kernel.share).verdict
        why = [uncounted.reason] if uncounted.reason is not None else []
        reason = cause.reason if unsure else Fact.of("not-known", *why, metric=target.metric)
        if any(kernel.counted for kernel in judged) and not unsure:
            reason = Fact.of("not-known", Fact.of("kernels-not-counted", share=dark), metric=target.metric)
        if unsure and len(judged) > 1:
            reason = Fact.of("unknown-kernels", reason, share=dark, kernel=_name(cause))
        return decided("unknown", reason, dark, cause)
    if met and (_total_share(met) >= DECIDING_SHARE or not silent):
        beside = [Fact("too-small-to-decide", parts=(_kernel_list(missed),))] if missed else []
        if silent and silent[0].share >= DECIDING_SHARE:
            other = silent[0].verdict
            beside.append(Fact.of("not-for-kernel", other.reason, kernel=_name(other)))
        reason = Fact.of("kernels-meet", _kernel_list(met), *beside, share=_total_share(met), **against)
        reason = met[0].verdict.reason if len(judged) == 1 else reason
        return decided("pass", reason, _total_share(met), met[0].verdict, _deciding_value(met))
    if missed:
        reason = Fact.of("few-kernels-miss", _kernel_list(missed), share=lost, limit=DECIDING_SHARE)
        return decided("not-applicable", reason, lost)
    if met:
        reason = Fact.of("few-kernels-meet", _kernel_list(met), share=_total_share(met))
        return decided("not-applicable", reason, _total_share(met))
    lead = silent[0].verdict if silent else first
    reason = lead.reason if len(judged) == 1 else Fact.of("of-kernel", lead.reason, kernel=_name(lead))
    return decided("not-applicable", reason, _total_share(silent))


def _deciding_value(judged: Sequence[_KernelVerdict]) -> float | None:
    """Return the value of the largest kernel among those that decide: the ones that miss the target, else all others.

    A mean over kernels that differ would describe none of them.
    """
    return max(judged, key=lambda kernel: kernel.share).verdict.value


def _kernel_list(judged: Sequence[_KernelVerdict]) -> Fact:
    """Return the largest ones with their values, and how many more there are."""
    ranked = sorted(judged, key=lambda kernel: -kernel.share)
    parts = [
        Fact.of(
            "kernel-value",
            kernel=_name(kernel.verdict),
            value=kernel.verdict.value or 0.0,
            unit=kernel.verdict.unit,
        )
        for kernel in ranked[:NAMED]
    ]
    return Fact.of("kernels", *parts, more=max(0, len(ranked) - NAMED))


def _name(verdict: Verdict) -> str:
    return verdict.scope.name or "?"


def _total_share(judged: Sequence[_KernelVerdict]) -> float:
    return sum(kernel.share for kernel in judged)


def _uncounted(document: RunDocument, target: Target, scope: Scope, count: str) -> Reading:
    """Return why a kernel has no counters: the end of the counters pass; for a report, the command that counts
    them.
    """
    missing = absent_reading(document, target.metric, "counters", scope)
    if document.plan is not None or document.passes:
        return missing
    fix = f"Count its kernels: {count}." if count else None
    return replace(missing, reason=Fact("no-kernel-counters"), fix=fix)
