"""Series by hand: values in, points with nights, machines and commits out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from profkit.core.types import AcceptedChange, Direction, HistoryPoint, MetricOutcome, Series, SeriesKey
from profkit.regression.detection.nights import judge_last_night, judge_nights, outcome_of
from profkit.regression.detection.rules import NightRule
from tests.spoken import message

LATE = ("change-point",)  # said every night until it is gone or accepted
FIRST = datetime(2026, 1, 1, 3, tzinfo=timezone.utc)
# noise of about 1 %, the same for every test, and no two neighbours alike
NOISE = (
    0.3, -0.9, 1.1, -0.4, 0.0, 0.8, -1.2, 0.5, -0.2, 1.0,
    -0.7, 0.1, -1.0, 0.6, 0.2, -0.5, 0.9, -0.1, 0.7, -0.8,
)  # fmt: skip


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
            HistoryPoint(
                entry=f"run-{i}",
                started=date(i),
                machine=machines[i] if machines else "m",
                value=value,
                commit=f"{i:07x}",
                valid=i not in (invalid or {}),
                reason=message((invalid or {}).get(i)),
            )
            for i, value in enumerate(values)
        ),
    )


def every_night(
    series: Series,
    rule: NightRule,
    accepted: Sequence[AcceptedChange] = (),
) -> tuple[MetricOutcome, ...]:
    """What `judge_last_night` says of each night by those before it: in one pass, since a year of calls is slow.

    An accepted change counts from the night that it was accepted for. What is found late is asked for at the last night
    only, and by halving from which night on it is said. A quiet night has no limits.
    """
    nights = judge_nights(series, rule, accepted)

    def cut(index: int) -> Series:
        return replace(series, points=series.points[: index + 1])

    found = [outcome_of(cut(index), rule, result) for index, result in enumerate(nights.results)]
    last = judge_last_night(series, rule, accepted)
    if last.code in LATE:
        asked = [i for i, p in enumerate(series.points) if p.machine == series.points[-1].machine and p.valid]
        seen = bisect_left(asked, True, key=lambda i: judge_last_night(cut(i), rule, accepted).code in LATE)
        for index in asked[seen:]:
            if found[index].outcome in ("pass", "new", "ambiguous"):
                same = {
                    "outcome": last.outcome,
                    "code": last.code,
                    "expected": last.expected,
                }
                same |= {"since": last.since, "commit": last.commit, "good_commit": last.good_commit}
                found[index] = replace(found[index], **same)
    return tuple(found)
