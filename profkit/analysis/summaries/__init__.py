"""Readings in, summary out: one concern per file, pure functions, no files and no processes."""

from __future__ import annotations

from profkit.analysis.summaries.compose import enrich, summarize

__all__ = ["enrich", "summarize"]
