"""Targets that speak of kernels: a verdict on each launch configuration, and one on the run, weighted by GPU time.

All verdicts on one document: on the run and its regions, on the hottest functions, and on the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profkit.analysis.kernel_names import short_name
from profkit.analysis.metrics import metric
from profkit.analysis.targets.conditions import TargetContext, best_reading
from profkit.analysis.targets.judge import context_of, evaluate_targets, verdict_on
from profkit.analysis.targets.target import Target, format_threshold
from profkit.core.formatting import percent, quantity
from profkit.core.types import (
    RUN,
    KernelBottleneck,
    Reading,
    ReasonCode,
    RunDocument,
    Scope,
    Source,
    Verdict,
    VerdictWord,
)

# Kernels that together take less of the GPU time do not decide over a run. The plan counts what makes up 95 % of it:
# the last 5 % has no say in any case, whichever kernels it is made of.
DECIDING_SHARE = 0.05
LISTED = 50  # kernels that get verdicts of their own; all of them count for the run's
NAMED = 3  # in a sentence
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
    for reading in document.readings:
        by_scope.setdefault(reading.scope, []).append(reading)
    around = [r for r in document.readings if r.scope.kind in ("run", "region")]
    shares = _shares(document.kernels)
    told = {r.metric for r in document.readings if r.scope.kind == "kernel"}
    busy = _busy_share(document)
    why, fix, code = _why_uncounted(document, count)
    whole: list[Verdict] = []
    each: dict[Scope, list[Verdict]] = {}
    for target in spoken:
        if target.metric not in told and not target.always:
            continue
        judged: list[_KernelVerdict] = []
        rest = max(0.0, 1 - sum(shares)) if target.always else 0.0
        for kernel, share in zip(document.kernels, shares, strict=True):
            own = by_scope.get(kernel.scope, [])
            found = best_reading(own, target.metric, [kernel.scope])
            if found is None and not target.always:
                rest += (
                    0.0 if own else share
                )  # nothing to say, or nothing known: only the first is a good sign
                continue
            if found is None:
                missing = "the report does not tell it" if own else why
                found = _absent_reading(target, kernel.scope, missing, None if own else (fix, code))
            verdict = verdict_on(target, found, [*own, *around], TargetContext(kernel=kernel))
            gain = (
                None if verdict.gain is None or kernel.share is None else kernel.share * verdict.gain * busy
            )
            verdict = replace(verdict, weight=kernel.share, gain=gain)
            judged.append(_KernelVerdict(verdict, share, bool(own)))
        whole.append(_verdict_on_run(target, judged, rest, why, code))
        for one in judged[:LISTED]:
            if one.counted:
                each.setdefault(one.verdict.scope, []).append(one.verdict)
    return (*whole, *(verdict for verdicts in each.values() for verdict in verdicts))


def _verdicts_on_regions(document: RunDocument, targets: Sequence[Target]) -> tuple[Verdict, ...]:
    """What was counted over several kernels together (range replay, whole CUDA graphs) decides on none of them."""
    return tuple(
        Verdict(
            target.name,
            target.metric,
            "unknown",
            f"{quantity(reading.value, reading.unit)}, counted over several kernels together",
            format_threshold(target.operator, target.threshold or 0.0, target.unit),
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
    """A report without any kernel keeps no target: the same as one of which nothing is known."""
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
            format_threshold(target.operator, target.threshold or 0.0, target.unit),
            None,
            target.unit,
            RUN,
            "unavailable",
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
    target: Target, judged: Sequence[_KernelVerdict], rest: float, why: str, code: ReasonCode | None
) -> Verdict:
    """The verdict on the run: fail where kernels with 5 % of the GPU time or more miss the target.

    Unknown where counted ones of which it is not known could bring it there, or where more than those 5 % were not
    counted; of its value see `_value`. `rest` is the share of the kernels that are not among `judged`.
    """
    by_word: dict[VerdictWord, list[_KernelVerdict]] = {}
    for one in judged:
        by_word.setdefault(one.verdict.verdict, []).append(one)
    missed, unknown = by_word.get("fail", []), by_word.get("unknown", [])
    kept, silent = by_word.get("pass", []), by_word.get("not-applicable", [])
    lost, unsure = _total_share(missed), _total_share([one for one in unknown if one.counted])
    uncounted = _total_share([one for one in unknown if not one.counted]) + rest
    dark = unsure + uncounted
    words = format_threshold(target.operator, target.threshold or 0.0, target.unit)
    first = judged[0].verdict
    blank = Verdict(target.name, target.metric, "pass", "", words, None, target.unit, RUN, first.quality)
    if lost >= DECIDING_SHARE:
        reason = f"{_share_text(lost)} of the GPU time is in kernels that miss it: {_kernel_list(missed)}"
        gains = [one.verdict.gain for one in missed if one.verdict.gain is not None]
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
    if lost + unsure >= DECIDING_SHARE or uncounted > DECIDING_SHARE + 1e-9:
        seen = [one for one in unknown if one.counted]
        cause = max(seen or unknown, key=lambda one: one.share).verdict if unknown else None
        reason = f"{metric(target.metric).title} not known: {why}"
        if cause is not None and seen:
            reason, code = cause.reason, cause.code
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
        )
    if kept and (_total_share(kept) >= DECIDING_SHARE or not silent):
        part = _share_text(_total_share(kept))
        reason = f"{part} of the GPU time is in kernels that keep it: {_kernel_list(kept)}; target {words}"
        if len(judged) == 1:
            reason = kept[0].verdict.reason
        elif missed:
            reason += f"; too small to count: {_kernel_list(missed)}"
        if silent and silent[0].share >= DECIDING_SHARE:
            reason += f"; not asked of {_short_kernel_name(silent[0].verdict)}: {silent[0].verdict.reason}"
        return replace(
            blank,
            reason=reason,
            value=_deciding_value(target, kept),
            quality=kept[0].verdict.quality,
            weight=_total_share(kept),
        )
    if missed:
        part, least = _share_text(lost), f"{100 * DECIDING_SHARE:.0f} %"
        few = f"the kernels that it speaks of have {part} of the GPU time, less than {least}"
        return replace(blank, verdict="not-applicable", reason=f"{few}: {_kernel_list(missed)}", weight=lost)
    if kept:
        few = f"it speaks of kernels with {_share_text(_total_share(kept))} of the GPU time alone, and these keep it"
        return replace(
            blank, verdict="not-applicable", reason=f"{few}: {_kernel_list(kept)}", weight=_total_share(kept)
        )
    lead = silent[0].verdict if silent else first
    reason = lead.reason if len(judged) == 1 else f"{_short_kernel_name(lead)}: {lead.reason}"
    return replace(blank, verdict="not-applicable", reason=reason, weight=_total_share(silent), value=None)


def _deciding_value(target: Target, judged: Sequence[_KernelVerdict]) -> float | None:
    """Over the kernels that decide (those that miss it, or else those that keep it): the mean weighted by GPU time.

    So it stands on the side of the threshold that the verdict says. Of counts the sum over one launch of each.
    """
    told = [(one.verdict.value, one.share) for one in judged if one.verdict.value is not None]
    if not told:
        return None
    if target.unit == "count":
        return sum(value for value, _ in told)
    weight = sum(share for _, share in told)
    if weight <= 0:
        return told[0][0]
    return sum(value * share for value, share in told) / weight


def _single_kernel_text(one: _KernelVerdict) -> str:
    return (
        f"{_short_kernel_name(one.verdict)} ({_share_text(one.share)} of the GPU time): {one.verdict.reason}"
    )


def _kernel_list(judged: Sequence[_KernelVerdict]) -> str:
    ranked = sorted(judged, key=lambda one: -one.share)
    parts = [
        f"{_short_kernel_name(one.verdict)} ({quantity(one.verdict.value, one.verdict.unit)})"
        for one in ranked[:NAMED]
    ]
    more = f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
    return ", ".join(parts) + more


def _short_kernel_name(verdict: Verdict) -> str:
    return short_name(verdict.scope.name or "?", _NAME)


def _total_share(judged: Sequence[_KernelVerdict]) -> float:
    return sum(one.share for one in judged)


def _share_text(share: float) -> str:
    return f"{percent(100 * min(1.0, share))} %"


def _busy_share(document: RunDocument) -> float:
    trace = document.trace
    if trace is None or trace.busy is None or not trace.span:
        return 1.0
    return min(1.0, trace.busy / trace.span)


def _why_uncounted(document: RunDocument, count: str) -> tuple[str, str | None, ReasonCode | None]:
    """Why there are no counters of a kernel, and the line that would change it."""
    for result in document.passes:
        if result.name == "counters":
            if result.state == "finished":
                return "the counters pass did not count this kernel", None, None
            ended = {"skipped": "was skipped", "failed": "failed"}.get(result.state, "was interrupted")
            return (
                f"the counters pass {ended}" + (f": {result.reason}" if result.reason else ""),
                result.fix,
                None,
            )
    if document.plan is None:
        return (
            "the report has no counters of kernels",
            f"Count its kernels: {count}." if count else None,
            None,
        )
    planned = [one for one in document.plan.passes if one.name == "counters"]
    if planned and planned[0].skipped:
        return f"the counters pass was skipped: {planned[0].skipped}", planned[0].fix, None
    if planned:
        return "the run ended before its counters pass", None, None
    names = ",".join([*(one.name for one in document.plan.passes), "counters"])
    return "the counters pass was not asked for", f"--passes {names}", "not-asked"


def _absent_reading(
    target: Target, scope: Scope, reason: str, remedy: tuple[str | None, ReasonCode | None] | None
) -> Reading:
    fix, code = remedy or (None, None)
    source = Source("profkit")
    return Reading(target.metric, None, target.unit, "unavailable", scope, source, reason, fix=fix, code=code)


def evaluate_run(document: RunDocument, targets: Sequence[Target], count: str = "") -> tuple[Verdict, ...]:
    """The verdicts on an enriched, classed and summarized document.

    Of a run every target has a word, since its summaries say also what was not read; of a report only those of
    which it speaks, and those on kernels that ask for a word always.
    """
    told = [r for s in document.summaries for r in s.readings] if document.plan is not None else []
    readings = [*document.readings, *told]
    trace = document.trace
    if document.plan is None and trace is not None and trace.span is None and trace.kernels:
        # A report of counters has no timeline, whoever asks it how busy the GPU was; a trace without kernels is none.
        readings = [r for r in readings if r.value is not None or not r.metric.startswith("gpu.")]
    return (
        *evaluate_targets(targets, readings, context_of(document)),
        *evaluate_kernel_targets(document, targets, count),
    )
