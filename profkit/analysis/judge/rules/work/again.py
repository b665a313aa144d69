"""Insights on what is computed again from what has changed little or not at all: extremes, sums, hashes, results.

Each is proved by the source, by what the variables hold, and by a count.
"""

from __future__ import annotations

from profkit.analysis.function_names import place_name
from profkit.analysis.judge.rules.counted import counted_function, last_name, profile_of, with_slashes
from profkit.analysis.judge.rules.spot_values import A_SAMPLE, LONG, is_often
from profkit.analysis.judge.rules.spots import (
    LOOKS,
    MIN_CALLS,
    SEVERAL,
    Find,
    calls_text,
    count_text,
    say,
    takes_the_time,
)
from profkit.analysis.judge.words import words
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import CodeSpot, Hotspot, Insight, RunDocument

USELESS = 0.01  # hits for each miss: a cache with fewer is of no use
SMALL = 0.1  # hits for each miss of a full cache
TURNED_OVER = 4  # times that all of its content was replaced
HASHING = 0.3  # of a place's time
LOADER = ("/torch/utils/data/dataloader.py",)
LOADING = 0.3  # of a place's time, in a loader
STARTING = 0.25  # of that time, to start and end its workers
MIN_PASSES, STARTS = 3, 0.05  # passes over the data; share of the time that starts take
FOR_EACH_OBJECT = 4  # hashes and comparisons of each object that was made
_GONE_THROUGH = ("list", "tuple", "dict", "set", "frozenset", "collections.deque")


def aggregated_again(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a sum or an extreme that a loop computes for each item over all elements of an unchanged container."""
    for construct in spot.code.find("aggregates") if spot.code is not None else ():
        held = spot.variables.get(construct.name)
        if held is None or held.type not in _GONE_THROUGH or (held.length or 0) < LONG:
            continue
        if not takes_the_time(spot, construct.how):
            continue
        if not is_often(spot, held) or ("." in construct.name and not _is_asked_of_one_object(spot)):
            continue
        return say(
            spot,
            "running-sum",
            f"{construct.how} scans all of {construct.name} again each time",
            f"it is a {held.type} of {count_text(held.length or 0)}; {calls_text(spot)}",
            change=words(f"running-sum.{construct.how}", "host").format(name=construct.name),
        )
    return None


def _is_asked_of_one_object(spot: CodeSpot) -> bool:
    """Return whether the loop that calls a method calls it on the same object each time."""
    code, name = spot.caller_code, last_name((spot.where.function or "").partition(".<locals>")[0])
    return code is not None and any(construct.name == name for construct in code.find("asks"))


def hashed_again(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find keys whose hash or comparison goes through all of their content at each lookup."""
    found = next((name for name in ("__hash__", "__eq__") if _share_of(spot, name) >= HASHING), None)
    if found is None:
        return None
    counted = profile_of(document, "own-time")
    every = counted.hotspots if counted is not None else ()
    method = max((row for row in every if row.function == found), key=_calls, default=None)
    hashes = sum(_calls(row) for row in every if row.function == "__hash__")
    if method is None or _calls(method) < MIN_CALLS or hashes * FOR_EACH_OBJECT < _calls(method):
        return None  # without hashes, the compared objects are not keys
    made = sum(_calls(row) for row in every if row.function == "__init__" and row.file == method.file)
    if made and _calls(method) < FOR_EACH_OBJECT * made:
        return None  # an object is hashed when it is stored, and again when it is looked up
    share = _share_of(spot, found)
    least = "at least " if spot.partial else ""
    return say(
        spot,
        "repeated-work",
        f"The keys are {'hashed' if found == '__hash__' else 'compared'} again and again: "
        f"{least}{count_text(_calls(method), 'call')} of {found}",
        f"{percent_text(100 * share)} of this is in {found}, which visits everything that a key holds"
        + (f"; {count_text(made, 'object')} {'was' if made == 1 else 'were'} made" if made else ""),
        spot.share * share,
        change=words(f"repeated-work.{found.strip('_')}", "host"),
    )


def _calls(row: Hotspot) -> int:
    return row.calls or 0


def _share_of(spot: CodeSpot, method: str) -> float:
    """Return the share (0..1) of a place's time in the hashing or comparing method of the program or of dataclasses."""
    if last_name((spot.where.function or "").partition(".<locals>")[0]) == method:
        return 1.0
    return max(
        (
            frame.value
            for frame in spot.below
            if last_name(frame.function) == method and (frame.file or "").startswith("<")
        ),
        default=0.0,
    )


def useless_cache(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Find a functools cache whose results are never used again, or that is full and drops results that are needed."""
    hits, misses, full = (spot.variables.get(f"[cache {name}]") for name in ("hits", "misses", "full"))
    hit_count, missed = (variable.length or 0 if variable is not None else 0 for variable in (hits, misses))
    keeps = (full.length or 0) if full is not None else 0
    few = keeps > 0 and missed >= TURNED_OVER * keeps and hit_count <= SMALL * missed
    dropped = keeps > 0 and missed >= TURNED_OVER * max(keeps, _different(spot, missed))
    if missed < MIN_CALLS or (hit_count > USELESS * missed and not few and not dropped):
        return None
    cached = place_name(spot.where).partition(".<locals>")[0]
    again = spot.looks - (spot.arguments or 0)
    if hit_count == 0:
        title = f"The cache of {cached} never has the requested result"
    elif few or not dropped:
        title = f"The cache of {cached} hardly ever helps"
    else:
        title = f"The cache of {cached} is too small: it drops results that are needed again"
    return say(
        spot,
        "useless-cache",
        title,
        f"it was asked {count_text(hit_count + missed)} times and had the result only {count_text(hit_count)} times"
        + (f"; it keeps {count_text(keeps)} results, and is full" if few or dropped else "")
        + (
            f"; {again} of {count_text(spot.looks)} looks at misses saw arguments that had been there"
            if dropped
            else ""
        ),
        spot.share * (1 - _different(spot, missed) / missed) if dropped else None,
        change=words(f"useless-cache{'.full' if few or dropped else ''}", "host"),
    )


def _different(spot: CodeSpot, missed: int) -> float:
    """Return with how many different arguments a cached function ran, estimated from the samples of its arguments.

    Of n arguments, two samples are the same in one of n cases: so many pairs of samples, divided by those seen again.
    Each sample has to be of another call. Infinite where too few were the same.
    """
    again = spot.looks - (spot.arguments or 0)
    if spot.arguments is None or again < LOOKS or spot.seconds > A_SAMPLE * missed:
        return float("inf")
    return spot.looks**2 / (2 * again)


def restarted_workers(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a loader of torch whose workers are started and ended each time that a loop begins to go through it."""
    sampled = next((every for every in document.sampled if not every.native), None)
    counts = profile_of(document, "started-workers")
    if counts is not None and sampled is not None and sampled.wall > 0:
        started = next((row for row in counts.hotspots if _is_at(row, spot)), None)
        if started is None or not is_started_again(started, sampled.wall):
            return None
        title, evidence, change = started_again(started, sampled.wall)
        share = min(spot.share, started_share(started, sampled.wall))
        return say(spot, "restarted-workers", title, evidence, share, change=change)
    below = max(
        (frame.value for frame in spot.below if with_slashes(frame.file).endswith(LOADER)), default=0.0
    )
    counted = {
        name: found
        for name in ("_get_iterator", "__next__", "_shutdown_workers", "__del__")
        if (found := counted_function(document, name, LOADER)) is not None
    }
    # Only the iterator of a loader whose workers do not persist ends together with them.
    ended = (counted["__del__"].calls or 0) if len(counted) == 4 else 0
    if below < LOADING or ended < SEVERAL:
        return None
    seconds = {name: row.total or row.own for name, row in counted.items()}
    whole = seconds["_get_iterator"] + seconds["__next__"]  # `__next__` ends the workers after the last batch
    starting = (seconds["_get_iterator"] + seconds["_shutdown_workers"]) / whole if whole > 0 else 0.0
    if starting < STARTING:
        return None
    times = f"{'at least ' if spot.partial else ''}{count_text(ended)} times"
    return say(
        spot,
        "restarted-workers",
        f"The loader's workers are started and ended {times}, once for each pass over the data",
        f"{percent_text(100 * min(1.0, starting))} of the loader's time is starting and ending them, and each pass "
        "waits for its first batch while they start",
        spot.share * below * (1 - 1 / ended),
        change=words("restarted-workers", "host"),
    )


def _is_at(row: Hotspot, spot: CodeSpot) -> bool:
    return (row.file, row.line) == (spot.where.file, spot.where.line)


def is_started_again(started: Hotspot, seconds: float) -> bool:
    """Return whether starting and ending workers, for three passes or more, takes a twentieth of `seconds`."""
    return (started.calls or 0) >= MIN_PASSES and started.own >= STARTS * seconds


def started_share(started: Hotspot, seconds: float) -> float:
    """Return the part (0..1) of `seconds` that passes after the first take until their first batch and at the end."""
    passes = started.calls or 1
    return min(1.0, (started.total or started.own) / seconds) * (1 - 1 / passes)


def started_again(started: Hotspot, seconds: float) -> tuple[str, str, str]:
    """Return title, evidence and change for workers that are started in each pass, of a run of so many seconds."""
    passes, counts = started.calls or 1, started.counters
    batches = counts.get("batches", 0.0) / passes
    first = max(0.0, (started.total or 0.0) - started.own)
    evidence = (
        f"each pass starts {counts.get('workers', 0.0):.0f} of them for {batches:,.0f} batches: starting and ending "
        f"them takes {format_quantity(started.own / passes, 's')}, {percent_text(100 * started.own / seconds)} of the "
        f"time in all, and the first batch comes {format_quantity(first / passes, 's')} after the start"
    )
    title = f"Keep the DataLoader's workers: they are started {count_text(passes)} times, once for each pass"
    anew = counts.get("again", 0.0) < passes / 2
    return title, evidence, words(f"restarted-workers.{'anew' if anew else 'kept'}", "host")


PATTERNS: tuple[Find, ...] = (aggregated_again, hashed_again, useless_cache, restarted_workers)
OF_CALLS: tuple[Find, ...] = (aggregated_again, useless_cache)
