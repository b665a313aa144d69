"""All verdicts on one document: on the run and its regions, on the hottest functions, and on the kernels."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.targets.judge import context_of, judge
from profkit.analysis.targets.kernels import judge_kernels
from profkit.analysis.targets.target import Target
from profkit.core.types import RunDocument, Verdict


def judge_run(document: RunDocument, targets: Sequence[Target]) -> tuple[Verdict, ...]:
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
    return (*judge(targets, readings, context_of(document)), *judge_kernels(document, targets))
