"""Runs of many nights without running them: a real document's shape, with other times and another start."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from profkit.core.types import Reading, Revision, RunDocument, SampleSet, Scope, Source, Timing, Workload
from tests.documents import machine as a_machine

FIRST = datetime(2026, 1, 1, 2, tzinfo=timezone.utc)


def document(
    name: str, day: int, seconds: float, *, cpu: str | None = None, hot: bool = False, more: int = 0
) -> RunDocument:
    """A run of the day `day`; `more` further metrics in regions of their own."""
    noise = random.Random(f"{name} {day}")
    samples = tuple(seconds * noise.gauss(1, 0.004) for _ in range(20))
    scope, source = Scope("region", "work"), Source("profkit")
    readings = [Reading("time.median", seconds, "s", "measured", scope, source)]
    for number in range(more):
        value = seconds * noise.gauss(1, 0.01)
        readings.append(Reading("time.median", value, "s", "measured", Scope("region", f"r{number}"), source))
    made = a_machine()
    return RunDocument(
        name=name,
        backend="cpu",
        state="complete",
        workload=Workload(("python", "work.py"), name, "/srv/repository"),
        started=(FIRST + timedelta(days=day)).isoformat(),
        machine=replace(made, cpu=cpu) if cpu is not None else made,
        timings=(
            Timing(
                "work",
                "region",
                (SampleSet(samples, throttle_reasons=("thermal",) if hot else ()),),
                precision=0.01,
            ),
        ),
        readings=tuple(readings),
        revision=Revision(f"{day + 1:040x}", False),
    )
