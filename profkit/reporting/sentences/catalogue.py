"""All sentences: those of each theme."""

from __future__ import annotations

from profkit.reporting.sentences import (
    causes,
    comparisons,
    generation,
    gpu_traces,
    in_process,
    instruments,
    kernel_counters,
    kernel_tests,
    nights,
    reports,
    runs,
)
from profkit.reporting.sentences.table import SentenceTable

SENTENCES = SentenceTable.merged(
    theme.SENTENCES
    for theme in (
        causes,
        comparisons,
        generation,
        gpu_traces,
        in_process,
        instruments,
        kernel_counters,
        kernel_tests,
        nights,
        reports,
        runs,
    )
)
