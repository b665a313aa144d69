"""Where the wall time of a run went: waiting or working, on how many threads, by looks at its processor time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profkit.core.types import TimeSplit

if TYPE_CHECKING:
    from profkit.core.process_tree import TreeUse  # psutil behind it costs 20 ms

WINDOW = 0.25  # s: the kernel counts processor time in steps of 10 ms, so a shorter one cannot tell waiting from work
UNSURE = 0.05  # of a window: what is missing to a whole one is no wait


def time_split(
    usage: Sequence[tuple[float, float, float]], startup: float | None = None, use: TreeUse | None = None
) -> TimeSplit | None:
    """The split of one process by looks at it (see `core.process.ProcessOutcome.usage`).

    In a window in which less processor time was used than wall time went by, the difference was spent waiting: for a
    processor as far as threads stood in its queue, else for something else. `startup`: seconds before the part that
    counts, `use`: what else it used. None where nothing was looked at. Of a run shorter than a window nobody knows what
    it waited for: it may have ended before the first look at the queues.
    """
    if not usage or usage[-1][0] <= 0:
        return None
    wall, cpu, _ = usage[-1]
    waiting = queued = 0.0
    before = (0.0, 0.0, 0.0)
    for look in usage:
        gone, spent, stood = (now - then for now, then in zip(look, before, strict=True))
        if gone < WINDOW and look[0] < wall:
            continue
        missing = gone - spent
        if missing > UNSURE * gone:
            for_processor = min(missing, max(0.0, stood))
            queued += for_processor
            waiting += missing - for_processor
        before = look
    known = wall >= WINDOW
    working = max(1e-9, wall - waiting - queued)
    return TimeSplit(
        wall,
        startup=startup,
        steady=max(0.0, wall - startup) if startup is not None else None,
        waiting=min(wall, waiting) if known else None,
        queued=min(wall, queued) if known else None,
        cpu=cpu,
        threads=cpu / working if known and cpu > 0.01 * wall else None,
        thread_count=use.threads or None if use is not None else None,
        read=float(use.read) if use is not None and use.calls else None,
        written=float(use.written) if use is not None and use.calls else None,
        io_calls=use.calls or None if use is not None else None,
    )
