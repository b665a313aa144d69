"""From readings to verdicts: what follows from them, what they say by concern, and how they stand to the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.insights import find_insights
from profkit.analysis.summaries import compose
from profkit.analysis.summaries.bottlenecks import busiest_readings, classify_bottlenecks
from profkit.analysis.summaries.gpu import check_consistency, weigh_coalescing
from profkit.analysis.targets import Target, evaluate_run, load_targets
from profkit.backends import backend_named
from profkit.core.types import RunDocument, Summary, Verdict

ONLY_WAITS = 0.9  # of the wall time: what is left is the start of the process


def targets_for(
    backend: str, override: Path | None = None, workload: str | None = None
) -> tuple[Target, ...]:
    """The default targets of a backend, changed by the user's file and its section for `workload`."""
    return load_targets(backend_named(backend).targets, override, workload)


def judge_document(document: RunDocument, targets: Sequence[Target]) -> RunDocument:
    """The document with derived readings, summaries and verdicts; judging it again changes nothing."""
    enriched = _with_repetition(enrich_document(document))
    kernels = document.trace is not None or any(r.scope.kind == "kernel" for r in document.readings)
    if kernels and backend_named(document.backend).per_kernel:
        enriched = _with_kernel_classes(enriched)
    summarized = replace(enriched, summaries=summarize_document(enriched))
    count = backend_named(document.backend).tool_lines.count
    verdicts = evaluate_run(summarized, targets, count)
    judged = replace(summarized, verdicts=_of_what_works(summarized, verdicts))
    placed = replace(judged, hot_spots=hot_spots(judged))
    return replace(placed, insights=find_insights(placed))


def _with_repetition(document: RunDocument) -> RunDocument:
    """The time split with what the trace tells: an unmarked program that repeats itself is mostly start-up."""
    split, trace = document.time_split, document.trace
    if split is None or trace is None or trace.marked or not trace.repeats or not trace.span:
        return document
    steady = min(trace.span, split.wall)
    known = replace(split, startup=split.wall - steady, steady=steady, gpu=trace.busy, repeats=trace.repeats)
    return replace(document, time_split=known)


def _of_what_works(document: RunDocument, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Verdicts on the host's counters and use of cores do not apply to a program that only waits."""
    split = document.time_split
    if split is None or split.waiting is None or split.waiting < ONLY_WAITS * split.wall or document.gpus:
        return tuple(verdicts)
    reason = f"the program waits for {100 * split.waiting / split.wall:.0f} % of the time"
    return tuple(
        verdict
        if verdict.metric.startswith(("time.", "memory."))
        else replace(verdict, verdict="not-applicable", reason=reason, advice=(), gain=None, code=None)
        for verdict in verdicts
    )


def enrich_document(document: RunDocument) -> RunDocument:
    """The document with all readings that follow from those of its backend."""
    return compose.enrich(document, backend_named(document.backend))


def summarize_document(document: RunDocument) -> tuple[Summary, ...]:
    """One summary for each concern of an enriched document."""
    return compose.summarize(document, backend_named(document.backend))


def _with_kernel_classes(document: RunDocument) -> RunDocument:
    """The document with its kernels' doubtful readings marked, and with what limits each kernel."""
    sound = check_consistency(document)
    sound = replace(sound, readings=weigh_coalescing(sound))
    classes = classify_bottlenecks(sound)
    others = tuple(r for r in sound.readings if r.metric != "throughput.busiest")
    return replace(sound, kernels=classes, readings=(*others, *busiest_readings(classes)))
