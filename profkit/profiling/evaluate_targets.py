"""From readings to verdicts: what follows from them, what they say by concern, and how they stand to the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.summaries.bottlenecks import busiest_readings, classify_bottlenecks
from profkit.analysis.summaries.compose import enrich, summarize
from profkit.analysis.summaries.gpu import check_consistency, weigh_coalescing
from profkit.analysis.targets import Target, evaluate_run
from profkit.core.types import RunDocument


def judge_document(document: RunDocument, targets: Sequence[Target]) -> RunDocument:
    """The document with derived readings, summaries and verdicts; judging it again changes nothing."""
    enriched = _classed(enrich(document)) if _has_kernels(document) else enrich(document)
    summarized = replace(enriched, summaries=summarize(enriched))
    return replace(summarized, verdicts=evaluate_run(summarized, targets))


def _has_kernels(document: RunDocument) -> bool:
    """Whether there are kernels to class: of an Apple GPU no counter speaks of one encoder or shader alone."""
    if document.backend == "mps":
        return False
    return document.trace is not None or any(r.scope.kind == "kernel" for r in document.readings)


def _classed(document: RunDocument) -> RunDocument:
    """The document with its kernels' doubtful readings marked, and with what limits each kernel."""
    sound = check_consistency(document)
    sound = replace(sound, readings=weigh_coalescing(sound))
    classes = classify_bottlenecks(sound)
    kept = tuple(r for r in sound.readings if r.metric != "throughput.busiest")
    return replace(sound, kernels=classes, readings=(*kept, *busiest_readings(classes)))
