"""Reads how often torch's loaders of data started their workers, as the processes of a workload counted it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.core.files.regular import read_bounded
from profkit.core.types import Hotspot, Profile

MAX_BYTES = 64 << 20
MAX_COUNT = 1 << 40


def read_started_workers(path: Path) -> Profile | None:
    """Return the lines at which workers were started, most time first; None if there is none.

    `calls` says how often, which is once for each pass over the data where they end with it, `own` the seconds of
    starting and ending them, `total` with the waits for the first batch after it; of `counters` `again` says how often
    by a loader that had some before, `workers` how many at once, and `batches` what they gave in all.
    """
    spots = sorted(_spots(path), key=lambda spot: -spot.own)
    every = sum(spot.own for spot in spots)
    return (
        Profile("workers that were started", "s", every, tuple(spots), "started-workers") if every else None
    )


def _spots(path: Path) -> Iterator[Hotspot]:
    """Yield a row for each line; any program may have written that file."""
    try:
        text = read_bounded(path, MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ProfkitError):
        return
    for line in text.splitlines():
        with suppress(ValueError, TypeError, AttributeError, RecursionError, OverflowError):
            for row in json.loads(line).get("workers", ()):
                file, number, function, passes, again, workers, batches, *times = row
                starting, first, ending = (float(time) / 1e6 for time in times)
                counts = {"again": float(again), "workers": float(workers), "batches": float(batches)}
                numbers = (starting, first, ending, *counts.values())
                if min(numbers) < 0 or max(numbers) > MAX_COUNT or not 0 < passes < MAX_COUNT:
                    continue
                own, place = starting + ending, (str(file), int(number))
                yield Hotspot(str(function), own, own + first, int(passes), *place, counters=counts)
