"""Entries for tests of the history: few words, many nights."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from profkit.core.types import Entry, Feature, Scope, SeriesKey, Value

FEATURES = (Feature("gpu.name", "NVIDIA H200", "must"), Feature("machine.kernel", None, "should"))
REGION = Scope("region", "mlp")


def value(
    metric: str = "time.median", number: float = 1e-3, *, workload: str = "mlp", scope: Scope = REGION
) -> Value:
    """A time of a region, or any other metric."""
    return Value(SeriesKey(workload, "cuda", metric, scope), "s", "lower", number, "measured", 0.9, 1.1)


def entry(
    number: int, *values: Value, started: str | None = None, workload: str = "mlp", **more: object
) -> Entry:
    """The run of night `number`, counted from the first of January."""
    night = datetime(2026, 1, 1, 2, tzinfo=timezone.utc) + timedelta(days=number)
    made = Entry(
        id=f"{number:016x}",
        started=started or night.isoformat(),
        workload=workload,
        backend="cuda",
        state="complete",
        source="profkit",
        machine="abcdef012345",
        features=FEATURES,
        commit=f"{number:040x}",
        values=values or (value(number=1e-3 + number * 1e-6, workload=workload),),
    )
    return replace(made, **more)  # type: ignore[arg-type]
