"""What a recording by Instruments is expected to take, in wall seconds, and how long it may be.

Not measured on a Mac by this project. By notes of others: starting takes 1 to 3 s, saving a Metal System Trace of
seconds 5 to 70 s on an M1, and saving 4 s of GPU counters 115 s; each export opens the document anew, in about a second
for one of 50 MB.
"""

from __future__ import annotations

from profkit.backends import Known

SAVE_SECONDS = 25.0  # start, saving, and a dozen exports
COUNTERS_SECONDS = 120.0
PLAIN_SECONDS = 5.0  # of a Python program that imports torch, where none was timed yet
LONGEST = 60.0  # seconds that are recorded at most, beside the start of the program: 50 MB take 8 s
LEAST, MOST = 5, 500  # iterations
LIST_FIX = "xcrun xctrace list templates"
NOTE = "start, saving and export take 10 to 70 s, by notes of others; the recording itself costs 1 to 3 %"


def longest(known: Known) -> float:
    """Seconds after which a recording ends by itself: a document of more than 2 GB can often not be opened."""
    return float(round(LONGEST + (known.start_seconds or 0.0)))


def iterations(known: Known, seconds: float) -> int:
    """How often a benchmark runs while it is recorded, so that its region takes about `seconds`."""
    once = known.iteration_seconds
    if once is None or once <= 0:
        return LEAST
    return max(1, min(MOST, max(LEAST, int(seconds / once)), int(LONGEST / once)))


def recording_seconds(known: Known, seconds: float) -> float:
    """One run of the workload as it is recorded."""
    start = known.start_seconds if known.start_seconds is not None else PLAIN_SECONDS
    if not known.benchmark or known.iteration_seconds is None:
        return min(start, longest(known))
    return min(start + iterations(known, seconds) * known.iteration_seconds, longest(known))


def in_plain_runs(seconds: float, known: Known) -> float:
    """Seconds as a multiple of one plain run."""
    return seconds / (known.plain_seconds or PLAIN_SECONDS)
