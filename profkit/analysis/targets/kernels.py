"""Verdicts on a whole document: on the run and its regions, on the hottest functions, and on kernels.

A target that speaks of kernels is judged on each launch configuration; its verdict on the run weighs them by GPU time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profkit.analysis.kernel_names import short_name
from profkit.analysis.kernel_names.owner import OWN_CODE, is_initialiser, kernel_owner, owner_title
from profkit.analysis.metrics import metric
from profkit.analysis.summaries.readings import absent_reading
from profkit.analysis.targets.conditions import TargetContext, surest_reading
from profkit.analysis.targets.judge import context_of, evaluate_targets, verdict_on
from profkit.analysis.targets.target import Target, threshold_of
from profkit.core.formatting import format_percent, format_quantity, format_threshold
from profkit.core.types import (
    RUN,
    KernelBottleneck,
    Reading,
    RunDocument,
    Scope,
    Verdict,
    VerdictWord,
)

# Kernels that together take less of the GPU time do not decide over a run. The plan counts what makes up 95 % of it:
# the last 5 % has no say in any case, whichever kernels it is made of.
DECIDING_SHARE = 0.05
LISTED = 50  # kernels that get verdicts of their own; all of them count for the run's
NAMED = 3  # in a sentence
_SET_UP = "it fills tensors with random numbers: the set-up of a program, and not its work"
_NAME = 40  # characters of a kernel's name in a sentence


@dataclass(frozen=True)
class _KernelVerdict:
    """One kernel's verdict on one target, and what share of the GPU time it stands for."""

    verdict: Verdict
    share: float
    counted: bool


def evaluate_kernel_targets(
    document: RunDocument, targets: Sequence[Target], count: str = ""
) -> tuple[Verdict, ...]:
    """For every target that speaks of kernels its verdict on the run, then those on each kernel, largest first.

    A kernel's gain is its share of the GPU time times what could be won of it, times the share of the time in which
    the GPU was busy (taken as all of it where no trace tells, so that the gain stays an upper bound). `count` is the
    line that counts kernels.
    """
    spoken = [target for target in targets if "kernel" in target.scopes]
    if not document.kernels:
        return _verdicts_on_regions(document, spoken) or _verdicts_without_kernels(document, spoken)
    by_scope: dict[Scope, list[Reading]] = {}
    for each in document.readings:
        by_scope.setdefault(each.scope, []).append(each)
    around = [r for r in document.readings if r.scope.kind in ("run", "region")]
    shares = _shares(document.kernels)
    metrics = {r.metric for r in document.readings if r.scope.kind == "kernel"}
    busy = _busy_share(document)
    set_up = all(is_initialiser(kernel.scope.name or "") for kernel in document.kernels)
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
            reading = surest_reading(own, target.metric, [kernel.scope])
            if reading is None and not target.always:
                rest += 0.0 if own else share  # counted and without such a value: that is no open question
                continue
            if reading is None:
                missing = "it is not in the report"
                reading = replace(uncounted, scope=kernel.scope)
                reading = (
                    replace(reading, reason=missing, fix=None, code=None, cause=None) if own else reading
                )
            verdict = verdict_on(target, reading, [*own, *around], TargetContext(kernel=kernel))
            owner = kernel_owner(kernel.scope.name or "")
            if target.own_code and owner not in OWN_CODE and verdict.verdict in ("fail", "unknown"):
                reason = f"a kernel of {owner_title(owner)}: only the call of it can be changed"
                verdict = replace(verdict, verdict="not-applicable", reason=reason, advice=(), gain=None)
            if set_up:
                verdict = replace(verdict, verdict="not-applicable", reason=_SET_UP, advice=(), gain=None)
            known = verdict.gain is not None and kernel.share is not None
            gain = (kernel.share or 0.0) * (verdict.gain or 0.0) * busy if known else None
            verdict = replace(verdict, weight=kernel.share, gain=gain)
            judged.append(_KernelVerdict(verdict, share, bool(own)))
        on_run.append(_verdict_on_run(target, judged, rest, uncounted))
        for result in judged[:LISTED]:
            if result.counted:
                on_kernels.setdefault(result.verdict.scope, []).append(result.verdict)
    return (*on_run, *(verdict for verdicts in on_kernels.values() for verdict in verdicts))


def _verdicts_on_regions(document: RunDocument, targets: Sequence[Target]) -> tuple[Verdict, ...]:
    """What was counted over several kernels together (range replay, whole CUDA graphs) decides on none of them."""
    return tuple(
        Verdict(
            target.name,
            target.metric,
            "unknown",
            f"{format_quantity(reading.value, reading.unit)}, counted over several kernels together",
            threshold_of(target),
            reading.value,
            reading.unit,
            reading.scope,
            reading.quality,
            ("Count the kernels one by one: kernel replay, and --graph-profiling node.",),
        )
        for target in targets
        if target.always
        for reading in document.readings
        if reading.metric == target.metric and reading.scope.kind == "region" and reading.value is not None
    )


def _verdicts_without_kernels(document: RunDocument, targets: Sequence[Target]) -> tuple[Verdict, ...]:
    """A report without any kernel meets no target: nothing is known of it."""
    if document.plan is not None or document.passes:
        return ()  # a run says it of its passes
    if any(timing.group is not None for timing in document.timings):
        return ()  # a sweep times, and counts nothing: its cases have profiles of their own
    return tuple(
        Verdict(
            target.name,
            target.metric,
            "unknown",
            f"{metric(target.metric).title} not known: no kernel is in the report",
            threshold_of(target),
            None,
            target.unit,
            RUN,
            "unavailable",
            cause="no kernel is in the report",
        )
        for target in targets
        if target.always
    )


def _shares(kernels: Sequence[KernelBottleneck]) -> list[float]:
    """Shares of the GPU time; where no kernel's time is known each counts alike."""
    if all(kernel.share is None for kernel in kernels):
        return [1 / len(kernels)] * len(kernels)
    return [kernel.share or 0.0 for kernel in kernels]


def _verdict_on_run(
    target: Target, judged: Sequence[_KernelVerdict], rest: float, uncounted: Reading
) -> Verdict:
    """The verdict on the run: fail where kernels with 5 % of the GPU time or more miss the target.

    Unknown where counted ones of which it is not known could bring it there, or where more than those 5 % were not
    counted; of its value see `_deciding_value`. `rest` is the share of the kernels that are not among `judged`, and
    `uncounted` says why kernels have no counters.
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
    words = format_threshold(threshold.operator, threshold.value, threshold.unit)
    first = judged[0].verdict
    blank = Verdict(target.name, target.metric, "pass", "", threshold, None, target.unit, RUN, first.quality)
    if lost >= DECIDING_SHARE:
        reason = f"{_share_text(lost)} of the GPU time is in kernels that miss it: {_kernel_list(missed)}"
        gains = [kernel.verdict.gain for kernel in missed if kernel.verdict.gain is not None]
        lead = missed[0].verdict
        return replace(
            blank,
            verdict="fail",
            reason=f"{reason}; target {words}" if len(missed) > 1 else _single_kernel_text(missed[0]),
            value=_deciding_value(target, missed),
            quality=lead.quality,
            advice=lead.advice,
            weight=lost,
            gain=min(1.0, sum(gains)) if gains else None,
        )
    if lost + _total_share(unsure) >= DECIDING_SHARE or without_counters > DECIDING_SHARE + 1e-9:
        cause = max(unsure or unknown, key=lambda kernel: kernel.share).verdict if unknown else None
        reason, code = f"{metric(target.metric).title} not known: {uncounted.reason}", uncounted.code
        shared = uncounted.cause or uncounted.reason
        if cause is not None and unsure:
            reason, code, shared = cause.reason, cause.code, cause.cause
            if len(judged) > 1:
                reason = f"not known for {_share_text(dark)} of the GPU time: {_short_kernel_name(cause)}: {reason}"
        return replace(
            blank,
            verdict="unknown",
            reason=reason,
            weight=dark,
            quality=cause.quality if cause is not None else "unavailable",
            advice=cause.advice if cause is not None else (),
            code=code,
            cause=shared,
        )
    if met and (_total_share(met) >= DECIDING_SHARE or not silent):
        part = _share_text(_total_share(met))
        reason = f"{part} of the GPU time is in kernels that meet it: {_kernel_list(met)}; target {words}"
        if len(judged) == 1:
            reason = met[0].verdict.reason
        elif missed:
            reason += f"; too small to decide: {_kernel_list(missed)}"
        if silent and silent[0].share >= DECIDING_SHARE:
            reason += (
                f"; does not apply to {_short_kernel_name(silent[0].verdict)}: {silent[0].verdict.reason}"
            )
        return replace(
            blank,
            reason=reason,
            value=_deciding_value(target, met),
            quality=met[0].verdict.quality,
            weight=_total_share(met),
        )
    if missed:
        part, least = _share_text(lost), f"{100 * DECIDING_SHARE:.0f} %"
        few = f"its kernels take {part} of the GPU time, less than {least}"
        return replace(blank, verdict="not-applicable", reason=f"{few}: {_kernel_list(missed)}", weight=lost)
    if met:
        few = f"its kernels take only {_share_text(_total_share(met))} of the GPU time, and they meet it"
        return replace(
            blank, verdict="not-applicable", reason=f"{few}: {_kernel_list(met)}", weight=_total_share(met)
        )
    lead = silent[0].verdict if silent else first
    reason = lead.reason if len(judged) == 1 else f"{_short_kernel_name(lead)}: {lead.reason}"
    return replace(blank, verdict="not-applicable", reason=reason, weight=_total_share(silent), value=None)


def _deciding_value(target: Target, judged: Sequence[_KernelVerdict]) -> float | None:
    """Over the kernels that decide (those that miss it, or else those that keep it): the mean weighted by GPU time.

    So it stands on the side of the threshold that the verdict says. Of counts the sum over one launch of each.
    """
    values = [(kernel.verdict.value, kernel.share) for kernel in judged if kernel.verdict.value is not None]
    if not values:
        return None
    if target.unit == "count":
        return sum(value for value, _ in values)
    weight = sum(share for _, share in values)
    if weight <= 0:
        return values[0][0]
    return sum(value * share for value, share in values) / weight


def _single_kernel_text(kernel: _KernelVerdict) -> str:
    name, share = _short_kernel_name(kernel.verdict), _share_text(kernel.share)
    return f"{name} ({share} of the GPU time): {kernel.verdict.reason}"


def _kernel_list(judged: Sequence[_KernelVerdict]) -> str:
    ranked = sorted(judged, key=lambda kernel: -kernel.share)
    parts = [
        f"{_short_kernel_name(kernel.verdict)} ({format_quantity(kernel.verdict.value, kernel.verdict.unit)})"
        for kernel in ranked[:NAMED]
    ]
    more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
    return ", ".join(parts) + more


def _short_kernel_name(verdict: Verdict) -> str:
    return short_name(verdict.scope.name or "?", _NAME)


def _total_share(judged: Sequence[_KernelVerdict]) -> float:
    return sum(kernel.share for kernel in judged)


def _share_text(share: float) -> str:
    return f"{format_percent(100 * min(1.0, share))} %"


def _busy_share(document: RunDocument) -> float:
    trace = document.trace
    if trace is None or trace.busy is None or not trace.span:
        return 1.0
    return min(1.0, trace.busy / trace.span)


def _uncounted(document: RunDocument, target: Target, scope: Scope, count: str) -> Reading:
    """Why a kernel has no counters: what became of the pass that counts; of a report the line that counts them."""
    missing = absent_reading(document, target.metric, "counters", scope)
    if document.plan is not None or document.passes:
        return missing
    fix = f"Count its kernels: {count}." if count else None
    return replace(missing, reason="the report has no counters of kernels", fix=fix)


def evaluate_run(document: RunDocument, targets: Sequence[Target], count: str = "") -> tuple[Verdict, ...]:
    """The verdicts on an enriched and summarized document; `count` is the line that counts kernels.

    A run has a verdict on every target, since its summaries say also what was not read. A report has verdicts on the
    metrics that are in it, and on kernels for targets that are `always` judged.
    """
    summarized = [r for s in document.summaries for r in s.readings] if document.plan is not None else []
    readings = [*document.readings, *summarized]
    trace = document.trace
    if document.plan is None and trace is not None and trace.span is None and trace.kernels:
        # A report of counters has no timeline, whoever asks it how busy the GPU was; a trace without kernels is none.
        readings = [r for r in readings if r.value is not None or not r.metric.startswith("gpu.")]
    return (
        *evaluate_targets(targets, readings, context_of(document)),
        *evaluate_kernel_targets(document, targets, count),
    )
