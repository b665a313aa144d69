"""Series by hand: values in, points with nights, machines and commits out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from profkit.core.types import AcceptedChange, Direction, MetricOutcome, Point, Series, SeriesKey
from profkit.regression.detection.decide import _build_outcome
from profkit.regression.detection.late import change_points_of, find_late_regression
from profkit.regression.detection.nights import judge_nights
from profkit.regression.detection.rules import NightRule
from profkit.regression.paired.decide import ConfirmWord

FIRST = datetime(2026, 1, 1, 3, tzinfo=timezone.utc)
# noise of about 1 %, the same for every test, and no two neighbours alike
NOISE = (
    0.3,
    -0.9,
    1.1,
    -0.4,
    0.0,
    0.8,
    -1.2,
    0.5,
    -0.2,
    1.0,
    -0.7,
    0.1,
    -1.0,
    0.6,
    0.2,
    -0.5,
    0.9,
    -0.1,
    0.7,
    -0.8,
)


def date(night: int) -> str:
    return (FIRST + timedelta(days=night)).isoformat()


def noisy(levels: Sequence[float], share: float = 0.008) -> list[float]:
    return [level * (1 + share * NOISE[(7 * i) % 20]) for i, level in enumerate(levels)]


def series_of(
    values: Sequence[float],
    machines: str = "",
    better: Direction = "lower",
    invalid: Mapping[int, str] | None = None,
    metric: str = "time.median",
    unit: str = "s",
) -> Series:
    """`machines`: one letter per night; all "m" where it is empty."""
    return Series(
        SeriesKey("gated_mlp", "cpu", metric),
        unit,
        better,
        tuple(
            Point(
                entry=f"run-{i}",
                started=date(i),
                machine=machines[i] if machines else "m",
                value=value,
                commit=f"{i:07x}",
                valid=i not in (invalid or {}),
                reason=(invalid or {}).get(i),
            )
            for i, value in enumerate(values)
        ),
    )


def every_night(
    series: Series,
    rule: NightRule,
    accepted: Sequence[AcceptedChange] = (),
    words: Mapping[str, ConfirmWord] | None = None,
) -> tuple[MetricOutcome, ...]:
    """What `decide` says of each night, given the nights before it alone: in one pass, since a year of calls is slow.

    An accepted change counts from the night that it was accepted for; a late regression from the night on in which it
    could first be seen. A quiet night has no limits, and so another reason.
    """
    nights = judge_nights(series, rule, accepted, words)
    late = (
        find_late_regression(series, rule, nights, change_points_of(series, nights)) if rule.gates else None
    )
    outcomes = []
    for index, result in enumerate(nights.results):
        cut = replace(series, points=series.points[: index + 1])
        known = late if late is not None and index >= late.seen and index in nights.past else None
        word = (words or {}).get(series.points[index].entry)
        outcomes.append(_build_outcome(cut, rule, nights, result, word, known))
    return tuple(outcomes)
