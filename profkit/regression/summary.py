"""All series of a history in one: the trend of each, whether it gates, its level now and 30 days ago."""

from __future__ import annotations

from bisect import bisect_right
from datetime import timedelta
from statistics import median

from profkit.core.codec import without_collector
from profkit.core.progress import Progress, Silent
from profkit.core.types import HistorySummary, Point, SeriesSummary, Trend
from profkit.core.types.history import SUMMARY_DAYS
from profkit.regression.detection import rule_for
from profkit.regression.history import History, HistoryFilter
from profkit.regression.times import iso_time, microseconds
from profkit.regression.trends import trend_of

LEVEL_NIGHTS = 7  # whose median is a level: as many as a metric needs until it is decided
_DAY = timedelta(days=1) // timedelta(microseconds=1)
_EACH = 20  # series between two words on how far it is


def summarize_history(
    history: History, *, days: int | None = None, progress: Progress | None = None
) -> HistorySummary:
    """The trend of every series with its level; `days`: only runs of the last so many days before the newest run.

    Without the trials of one checkout against itself, which say something of the machine and nothing of a workload.
    It takes 3 ms for a series of a year. Raises UnreadableReport for a damaged history.
    """
    told = progress if progress is not None else Silent()
    with without_collector():
        told.begin("read", str(history.path))
        entries = history.entries()
        chosen = HistoryFilter()
        if days is not None and entries:
            since = iso_time(microseconds(entries[-1].started) - days * _DAY)
            chosen = HistoryFilter(since=since)
            entries = history.entries(chosen)
        known = history.series(chosen, samples=False)
        accepted = history.accepted()
        told.end(f"{len(entries)} runs, {len(known)} series")
        told.begin("look for changes", f"{len(known)} series")
        series = []
        for number, each in enumerate(known):
            if number % _EACH == 0:
                told.move(f"{number} of {len(known)} series")
            series.append(summarize_trend(trend_of(each, accepted)))
        told.end(f"{sum(len(one.trend.change_points) for one in series)} changes")
    return HistorySummary(tuple(series), entries)


def summarize_trend(trend: Trend) -> SeriesSummary:
    """A trend with its level now and before; both are of the machine and the segment of the last valid value."""
    key = trend.series.key
    rule = rule_for(key.metric, scope=key.scope)
    begin = max((segment.first for segment in trend.epochs), default=0)
    alike = [(i, p) for i, p in enumerate(trend.series.points) if i >= begin and p.valid]
    if not alike:
        return SeriesSummary(trend, rule.gates)
    machine = alike[-1][1].machine
    alike = [(i, p) for i, p in alike if p.machine == machine]
    month = iso_time(max(0, microseconds(alike[-1][1].started) - SUMMARY_DAYS * _DAY))
    end = bisect_right([point.started for _, point in alike], month)  # all in UTC: as texts they are in order
    before = _level(trend, alike[:end]) if end else None
    level = _level(trend, alike)
    counts = None
    if trend.detectable is not None and level:
        counts = max(trend.detectable, rule.floor(level) / abs(level))
    return SeriesSummary(trend, rule.gates, level, before, counts)


def _level(trend: Trend, alike: list[tuple[int, Point]]) -> float:
    """The median of the last values since the last change among them."""
    last = alike[-1][0]
    since = max((c.index for c in trend.change_points if c.index <= last), default=0)
    return median(point.value for i, point in alike[-LEVEL_NIGHTS:] if i >= since)
