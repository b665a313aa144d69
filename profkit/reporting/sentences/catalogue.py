"""All sentences: those of each theme."""

from __future__ import annotations

from profkit.reporting.sentences import (
    causes,
    comparisons,
    generation,
    kernel_tests,
    nights,
)
from profkit.reporting.sentences.table import SentenceTable

SENTENCES = SentenceTable.merged(
    theme.SENTENCES
    for theme in (
        causes,
        comparisons,
        generation,
        kernel_tests,
        nights,
    )
)
