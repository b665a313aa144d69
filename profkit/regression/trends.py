"""Series over time: the trend of a series with its segments and change points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.types import (
    AcceptedChange,
    ChangePoint,
    Point,
    Scope,
    Segment,
    Series,
    SeriesKey,
    Trend,
)
from profkit.regression.change_points import SeriesFindings, examine_series
from profkit.regression.detection import segments_of
from profkit.regression.history import History, HistoryFilter
from profkit.regression.history.queries import ALL
from profkit.regression.history.series_file import read_series_file

# The metric where none is named, the first that a workload has: of a sweep the times over all shapes, since its cases
# are thousands; of an evaluation the speed-up over all tests.
DEFAULT_METRICS = ("time.geometric_mean", "time.median", "speedup.geometric_mean", "tests.failed")


def trends_of(
    history: History, patterns: Sequence[str] = (), chosen: HistoryFilter = ALL
) -> tuple[Trend, ...]:
    """The trends of the series that one of the patterns names: `WORKLOAD[:METRIC[:SCOPE]]`.

    Each part may hold `*` and `?`. A metric that is left out is `time.median`, of a sweep `time.geometric_mean`, or all
    of them where a workload has no such. Raises UsageError where a pattern names nothing.
    """
    known = history.series(chosen, samples=False)
    matches: dict[tuple[SeriesKey, str], Series] = {}
    for pattern in patterns or ("*",):
        matching = _matching_series(known, pattern)
        if not matching:
            names = ", ".join(dict.fromkeys(series.key.workload for series in known)) or "nothing"
            raise UsageError(
                f"no series is called {pattern!r}; the history holds {names[:300]}",
                "profkit history trend 'WORKLOAD:*' shows every metric of a workload",
            )
        matches |= {(series.key, series.unit): series for series in matching}
    return tuple(trend_of(series, history.accepted(series.key.workload)) for series in matches.values())


def trend_of(series: Series, accepted: Sequence[AcceptedChange] = ()) -> Trend:
    """A series with its segments and the change points of each; values that are not valid are left out.

    Noise, autocorrelation and what one night could show are those of the last segment.
    """
    segments = segments_of(series, accepted)
    changes: list[ChangePoint] = []
    findings = SeriesFindings()
    for segment in segments:
        inside = series.points[segment.first : segment.last + 1]
        findings = examine_series([point.value if point.valid else None for point in inside])
        for change in findings.change_points:
            point = inside[change.index]
            index = change.index + segment.first
            changes.append(replace(change, index=index, started=point.started, commit=point.commit))
    noise = findings.noise, findings.detectable, findings.autocorrelation
    return Trend(series, segments, tuple(changes), *noise)


def trend_of_file(path: Path) -> Trend:
    """The trend of a series in a text file, one value a line; nights without a value keep their place.

    Raises UnreadableReport for what is no such file.
    """
    file = read_series_file(path)
    points = tuple(
        Point(label, label, "", value if value is not None else 0.0, valid=value is not None)
        for label, value in zip(file.labels, file.values, strict=True)
    )
    series = Series(SeriesKey(path.stem, "", file.name, Scope("run")), "", "none", points)
    findings = examine_series(file.values)
    changes = tuple(replace(change, started=file.labels[change.index]) for change in findings.change_points)
    whole = (Segment(0, len(points) - 1, "begin"),)
    return Trend(series, whole, changes, findings.noise, findings.detectable, findings.autocorrelation)


def _matching_series(known: Sequence[Series], pattern: str) -> list[Series]:
    workload, metric, scope = _split_pattern(known, pattern)
    of_workload = [series for series in known if fnmatchcase(series.key.workload, workload)]
    if metric is None:
        measured = {(series.key.workload, series.key.metric) for series in of_workload}
        usual = {
            name: next((m for m in DEFAULT_METRICS if (name, m) in measured), None) for name, _ in measured
        }
        return [s for s in of_workload if usual[s.key.workload] in (None, s.key.metric)]
    return [
        series
        for series in of_workload
        if fnmatchcase(series.key.metric, metric)
        and (scope is None or fnmatchcase(series.key.scope.name or series.key.scope.kind, scope))
    ]


def _split_pattern(known: Sequence[Series], pattern: str) -> tuple[str, str | None, str | None]:
    """Workload, metric and scope of a pattern. A workload's own name may hold colons: then it is taken as a whole."""
    if any(series.key.workload == pattern for series in known):
        return pattern.translate({ord("["): "[[]"}), None, None
    workload, _, rest = pattern.partition(":")
    metric, _, scope = rest.partition(":")
    return workload or "*", metric or ("*" if scope else None), scope or None
