"""Readings as text with their sources: a footnote for each way in which a number came about."""

from __future__ import annotations

from functools import lru_cache

from profkit.analysis.metrics import all_metrics
from profkit.core.formatting import format_percent, format_quantity, format_threshold
from profkit.core.types import Reading, Source, Verdict
from profkit.reporting.view import Footnote, Span, Style

# What stands beside a number that was not simply measured, so that colour is never the only carrier.
MARKS = {"simulated": "sim", "estimated": "est", "multiplexed": "mux"}


@lru_cache(maxsize=1)
def _catalogue() -> dict[str, tuple[str, str]]:
    return {metric.name: (metric.title, metric.meaning) for metric in all_metrics()}


def footnote_of(reading: Reading) -> Footnote:
    """Where a reading comes from, in plain texts; readings that came about alike share one."""
    title, meaning = _catalogue().get(reading.metric, (reading.metric, None))
    quality: str = reading.quality
    if reading.quality == "multiplexed" and reading.share is not None:
        quality = f"multiplexed: counted {format_percent(100 * reading.share)} % of the time"
    return Footnote(
        metric=reading.metric,
        title=title,
        meaning=meaning,
        quality=quality,
        tool=reading.source.tool,
        counter=reading.source.counter,
        formula=reading.source.formula,
        artifact=reading.source.artifact,
        reason=reading.reason,
        fix=reading.fix,
        doubt=reading.doubt,
    )


def reading_span(reading: Reading, text: str | None = None, style: Style = Style.PLAIN) -> Span:
    """The reading's value (or `text`), marked where it was not measured, with its source."""
    value_text = text
    if value_text is None:
        value_text = "not known" if reading.value is None else format_quantity(reading.value, reading.unit)
    marks = [MARKS.get(reading.quality, ""), "doubted" if reading.doubt else ""]
    return Span(value_text, style, source=footnote_of(reading), mark=" ".join(filter(None, marks)))


def threshold_text(verdict: Verdict) -> str:
    """`< 5 %`: what the value was held against; `as asked` where the run did not say what it asked for."""
    limit = verdict.threshold
    return format_threshold(limit.operator, limit.value, limit.unit) if limit is not None else "as asked"


def verdict_span(verdict: Verdict) -> Span:
    """The value of a verdict that no single reading holds: a mean or a sum over what it speaks of."""
    assert verdict.value is not None
    how = "sum" if verdict.unit == "count" else "mean by GPU time"
    source = Source("profkit", formula=f"{how} over the kernels that decide the verdict")
    reading = Reading(verdict.metric, verdict.value, verdict.unit, verdict.quality, verdict.scope, source)
    return reading_span(reading)
