"""Compute trends over time: of a series with its segments and change points, or of a whole history."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from profkit.analysis.metrics.catalogue import all_metrics
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.files.regular import read_bounded
from profkit.core.types import (
    AcceptedChange,
    ChangePoint,
    HistoryPoint,
    Scope,
    Series,
    SeriesKey,
    Trend,
)
from profkit.regression.change_points import SeriesFindings, examine_series
from profkit.regression.detection.nights import segments_of
from profkit.regression.detection.rules import rule_for
from profkit.regression.history import History, HistoryFilter
from profkit.regression.history.store import ALL

# The metric where none is named, the first that a workload has: of a sweep the times over all shapes, since its cases
# are thousands; of an evaluation the speed-up over all tests.
DEFAULT_METRICS = ("time.geometric_mean", "time.median", "speedup.geometric_mean", "tests.failed")
LARGEST = 2 << 20  # bytes: a hundred thousand values
MISSING = {"", "nan", "na", "n/a", "null", "none", "-", "inf", "-inf", "+inf", "infinity"}
EXPECTED = "give it one value a line: cut -d, -f2 TABLE.csv > FILE takes the second column of a table"


def trends_of(
    history: History, patterns: Sequence[str] = (), chosen: HistoryFilter = ALL
) -> tuple[Trend, ...]:
    """Return the trends of the series that one of the patterns names: `WORKLOAD[:METRIC[:SCOPE]]`.

    Each part may hold `*` and `?`. Without a metric it is the first that the workload has of DEFAULT_METRICS, or
    all if it has none of them. Raises UsageError if a pattern names nothing.
    """
    every = history.series(chosen)
    matches: dict[tuple[SeriesKey, str], Series] = {}
    for pattern in patterns or ("*",):
        matching = _matching_series(every, pattern)
        if not matching:
            names = ", ".join(dict.fromkeys(series.key.workload for series in every)) or "nothing"
            raise UsageError(
                f"no series is called {pattern!r}; the history holds {names[:300]}",
                "profkit history trend 'WORKLOAD:*' shows every metric of a workload",
            )
        matches |= {(series.key, series.unit): series for series in matching}
    return tuple(trend_of(series, history.accepted(series.key.workload)) for series in matches.values())


def trend_of(series: Series, accepted: Sequence[AcceptedChange] = ()) -> Trend:
    """Return a series with its segments and the change points of each; values that are not valid are left out.

    Noise and autocorrelation are those of the last segment.
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
    return Trend(series, segments, tuple(changes), findings.noise, findings.autocorrelation)


def trend_of_file(path: Path) -> Trend:
    """Return the trend of a series in a text file, one value a line; nights without a value keep their place.

    Raises UnreadableReport for anything else.
    """
    values = read_series_file(path)
    points = tuple(
        HistoryPoint(label, label, "", value if value is not None else 0.0, valid=value is not None)
        for label, value in values.items()
    )
    return trend_of(Series(SeriesKey(path.stem, "", "value", Scope("run")), "", "none", points))


def _matching_series(known: Sequence[Series], pattern: str) -> list[Series]:
    """Return the usual metric of the workload with that name, which may hold colons.

    Else whatever the pattern fits.
    """
    of_workload = [series for series in known if series.key.workload == pattern]
    if ":" not in pattern:
        of_workload = of_workload or [s for s in known if fnmatchcase(s.key.workload, pattern)]
    if of_workload:
        measured = {(series.key.workload, series.key.metric) for series in of_workload}
        usual = {
            name: next((m for m in DEFAULT_METRICS if (name, m) in measured), None) for name, _ in measured
        }
        return [s for s in of_workload if usual[s.key.workload] in (None, s.key.metric)]

    def name(series: Series) -> str:
        key = series.key
        return f"{key.workload}:{key.metric}:{key.scope.name or key.scope.kind}"

    return [series for series in known if fnmatchcase(name(series), f"{pattern}*")]


# ---------------------------------------------------------------- a whole history


def gating_metrics() -> frozenset[str]:
    """Return the metrics that can fail a night by themselves, unless a nightly's file says otherwise."""
    return frozenset(info.name for info in all_metrics() if rule_for(info.name).gates)


# ---------------------------------------------------------------- a series in a file


def read_series_file(path: Path) -> dict[str, float | None]:
    """Read the values of a file by the numbers of their lines; None where a line says that there is no value.

    Blank lines, lines that begin with # and a first line that names the series are skipped. Raises
    UnreadableReport if the file cannot be read, or a line is no number.
    """
    try:
        text = read_bounded(path, LARGEST).decode("utf-8-sig")
    except OSError as error:
        fix = f"ls -l {shlex.quote(str(path))}"
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}", fix) from error
    except UnicodeDecodeError as error:
        raise UnreadableReport(f"{path.name} is not text", EXPECTED) from error
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if lines and re.match(r"[^\W\d_][\w .()/%-]*$", lines[0][1]) and lines[0][1].lower() not in MISSING:
        del lines[0]
    values = {str(number): _value(path, number, line) for number, line in lines}
    if all(value is None for value in values.values()):
        raise UnreadableReport(f"{path.name} holds no value", EXPECTED)
    return values


def _value(path: Path, number: int, line: str) -> float | None:
    if line.lower() in MISSING:
        return None
    try:
        value = float(line) if "_" not in line else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise UnreadableReport(f"{path.name}, line {number}: {line[:40]!r} is not a number", EXPECTED)
    return value if math.isfinite(value) else None
