"""All sentences: those of each theme."""

from __future__ import annotations

from profkit.reporting.sentences import (
    causes,
    comparisons,
    conditions,
    formulas,
    generation,
    gpu_traces,
    in_process,
    instruments,
    judged_values,
    kernel_counters,
    kernel_tests,
    nights,
    passes,
    readings,
    reports,
    runs,
    verdicts,
)
from profkit.reporting.sentences.table import SentenceTable

SENTENCES = SentenceTable.merged(
    theme.SENTENCES
    for theme in (
        causes,
        comparisons,
        conditions,
        formulas,
        generation,
        gpu_traces,
        in_process,
        instruments,
        judged_values,
        kernel_counters,
        kernel_tests,
        nights,
        passes,
        readings,
        reports,
        runs,
        verdicts,
    )
)
