"""Series by hand: values in, points with nights, machines and commits out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

from profkit.core.types import Direction, Point, Series, SeriesKey

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
