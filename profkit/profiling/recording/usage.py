"""What the operating system counted while the workload ran alone: free of charge, and on every machine."""

from __future__ import annotations

from profkit.core.process import ProcessOutcome
from profkit.core.types import RUN, Reading, Source


def usage_readings(outcomes: tuple[ProcessOutcome, ...], *, whole: bool) -> tuple[Reading, ...]:
    """Largest resident set (bytes) and cores kept busy (%) of the timing pass, over its processes.

    `whole`: the process is what counts, and not a region in it, of whose use of cores its process tells nothing.
    The resident set is the sum over the process tree, or getrusage's own maximum of one process, whichever is larger.
    """
    if not outcomes:
        return ()
    peak = max(outcome.peak_rss for outcome in outcomes)
    wall = sum(outcome.seconds for outcome in outcomes)
    cpu = sum(outcome.cpu_seconds for outcome in outcomes)
    busy = 100.0 * cpu / wall if wall > 0 else None
    readings = [Reading("memory.rss_peak", float(peak), "B", "measured", RUN, Source("psutil", "rss"))]
    if whole and busy is not None:
        formula = "100 * (user + system CPU seconds) / wall seconds, start-up included"
        readings.append(
            Reading("cpu.utilization", busy, "%", "measured", RUN, Source("getrusage", formula=formula))
        )
    return tuple(readings)
