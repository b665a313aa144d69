"""From readings to verdicts: what follows from them, what they say by concern, and how they stand to the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.model import RunDocument
from profkit.summaries.compose import enrich, summarize
from profkit.targets import Target, judge_run


def judge_document(document: RunDocument, targets: Sequence[Target]) -> RunDocument:
    """The document with derived readings, summaries and verdicts; judging it again changes nothing."""
    enriched = enrich(document)
    summarized = replace(enriched, summaries=summarize(enriched))
    return replace(summarized, verdicts=judge_run(summarized, targets))
