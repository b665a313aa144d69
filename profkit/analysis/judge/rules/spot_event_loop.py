"""Insights on waits that could overlap: calls that hold up an event loop, and waits for one thing after the other."""

from __future__ import annotations

from dataclasses import replace

from profkit.analysis.function_names import called_name, name_in_file, place_name
from profkit.analysis.judge.rules.counted import counted_function
from profkit.analysis.judge.rules.spots import BLOCKING, SEVERAL, calls_text, count_text, is_compiled, say
from profkit.analysis.judge.words import words
from profkit.core.formatting import format_quantity
from profkit.core.types import CodeSpot, Construct, Insight, Place, RunDocument

SEVERAL_HOLDS = 5  # an event loop that was held fewer times was only starting or ending
HELD, LONG_CALL = 0.5, 0.02  # of a place's time, in an event loop; seconds of one call that holds it


def blocked_event_loop(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a call that waits in a coroutine or a function that it calls: until it returns, no other task runs."""
    code = spot.code
    if code is None or spot.kind not in (*BLOCKING, "input"):
        return None
    if spot.kind == "input" and not _is_crowded(document, spot):
        return None  # that is how an event loop waits
    coroutine = "" if code.find("coroutine") else _coroutine_above(document, spot)
    if coroutine == "" and not code.find("coroutine"):
        return None
    called = called_name(spot.under) if spot.under is not None and spot.under.name else ""
    name = called or next((construct.name for construct in code.find("call")), "the call")
    called = f"called from {coroutine}, a coroutine" if coroutine else ""
    return say(
        spot,
        "blocked-event-loop",
        f"{name} blocks the event loop, so no other task can run",
        "; ".join(filter(None, (calls_text(spot), called))),
    )


def _coroutine_above(document: RunDocument, spot: CodeSpot) -> str:
    """Return the coroutine that most of a place's time in the main thread is spent under; empty if there is none.

    Also empty if no other coroutine was seen, and none was ready to run: then nothing waits for the loop.
    """
    sampled = next((samples for samples in document.sampled if not samples.native), None)
    if sampled is None:
        return ""
    coroutines = {
        (line.file, line.function)
        for line in (*sampled.lines, *sampled.outer)
        if line.code is not None and line.code.find("coroutine")
    }
    at = (spot.where.file, spot.where.function, spot.where.line)
    here = [line for line in sampled.lines if (line.file, line.function, line.line) == at]
    above = [each for line in here for each in line.within if (each.file, each.function) in coroutines]
    most = max(above, key=lambda each: each.value, default=None)
    if most is None or most.value < HELD * sum(line.main_wall for line in here):
        return ""
    others = coroutines - {(each.file, each.function) for each in above}
    return name_in_file(most.function, most.file) if others or _is_crowded(document, spot) else ""


def _is_crowded(document: RunDocument, spot: CodeSpot) -> bool:
    """Return whether something else was ready to run in the event loop for a good part of a place's time."""
    at = (spot.where.file, spot.where.function, spot.where.line)
    here = [
        line
        for sampled in document.sampled
        for line in sampled.lines
        if (line.file, line.function, line.line) == at
    ]
    wall = sum(line.main_wall for line in here)
    return wall > 0 and sum(line.crowded for line in here) >= HELD * wall


def held_event_loop(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find work in an event loop that runs for long while something else is ready to run, by the samples."""
    sampled = next((samples for samples in document.sampled if not samples.native), None)
    if sampled is None or sampled.wall <= 0 or spot.kind not in ("python", "library"):
        return None
    here = [
        line for line in sampled.lines if (line.file, line.function) == (spot.where.file, spot.where.function)
    ]
    if spot.kind == "library":
        here = [line for line in here if line.line == spot.where.line]
    times, held = sum(line.holds for line in here), sum(line.held for line in here)
    under = spot.under
    each = (under.seconds_per_call or 0.0) if under is not None else 0.0
    if each >= LONG_CALL:  # a call that keeps the interpreter's lock is seen once, when it has ended
        held = max(held, sum(line.crowded for line in here))
    share = min(spot.share, held / sampled.wall)
    if share < HELD * spot.share or (times < SEVERAL_HOLDS and each < LONG_CALL):
        return None
    calls = (under.calls if under is not None and each >= LONG_CALL else 0) or times
    inside = spot.code is not None and bool(spot.code.find("coroutine"))
    caller = "" if inside or not spot.caller else f"; called from {spot.caller}"
    name = (
        called_name(under)
        if inside and under and under.name and each >= LONG_CALL
        else place_name(spot.where)
    )
    cores = document.machine.cores if document.machine is not None else 1
    long = format_quantity(each if each >= LONG_CALL else held / times, "s")
    ran, whole = format_quantity(held, "s"), format_quantity(sampled.wall, "s")
    return say(
        spot,
        "blocked-event-loop",
        f"{name} holds the event loop for {long} at a time, while other tasks are ready to run",
        f"{'at least ' if spot.partial else ''}{count_text(calls, 'time')}; for {ran} of {whole} it ran while "
        f"something else was ready{caller}",
        share * (1 - 1 / max(2, cores)),
        change=words("blocked-event-loop.computes", "host"),
    )


def sequential_waits(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find waits for one thing after the other while no other task is running."""
    calls = (spot.under.calls if spot.under is not None else None) or spot.calls or 0
    function = spot.where.function
    taken, times = _lock_use(document)
    if spot.kind == "await" and times >= SEVERAL and taken >= CONTENDED * times:
        # One of several tasks holds the lock, so they already run at the same time.
        return _held_lock(document, spot)
    locks = _locks_around(spot)
    if spot.kind == "await" and times < SEVERAL and any("lock" in one.name.lower() for one in locks):
        return None  # it has not been counted yet whether others wait for it
    if spot.kind == "await" and _is_of_the_last(spot):
        return None
    if spot.kind == "await":
        return say(
            spot,
            "sequential-waits",
            f"{function.rpartition('.<locals>.')[0] or function} awaits independent things one after the other"
            if function
            else "Independent things are awaited one after the other",
            "the event loop has nothing else to run meanwhile",
            change=words("sequential-waits.await", "host"),
        )
    # A compiled server waits for requests: it cannot be distinguished from a client.
    if spot.kind == "network" and calls >= SEVERAL and spot.threads <= 1 and not is_compiled(document):
        return say(
            spot,
            "sequential-waits",
            f"{place_name(spot.where)} waits for the network {count_text(calls)} times, one request after the other",
            f"{calls_text(spot)}" + (f"; called from {spot.caller}" if spot.caller else ""),
            spot.share * (1 - 1 / calls),
        )
    return None


def _is_of_the_last(spot: CodeSpot) -> bool:
    """Return whether what is awaited needs the answer before it, or is a pause: nothing of it can begin earlier."""
    codes = [code for code in (spot.code, spot.caller_code) if code is not None]
    carried = any(each.how == "await" for code in codes for each in code.find("carried"))
    return carried or (spot.code is not None and bool(spot.code.find("sleep")))


CONTENDED = 1.5  # resumptions of acquire for each release; without a wait it is 1


def _locks_around(spot: CodeSpot) -> tuple[Construct, ...]:
    """Return the `with` blocks around what is awaited: at the place, or in the coroutine that is awaited there."""
    codes = (code for code in (spot.code, spot.caller_code) if code is not None)
    return next((within for code in codes if (within := tuple(code.find("within")))), ())


def _lock_use(document: RunDocument) -> tuple[int, int]:
    """Return how often `acquire` of asyncio's locks began or went on after a wait, and how often one was released."""
    files = ("/asyncio/locks.py",)
    acquired, released = (counted_function(document, name, files) for name in ("acquire", "release"))
    return (
        (acquired.calls or 0) if acquired is not None else 0,
        (released.calls or 0) if released is not None else 0,
    )


def _held_lock(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return what is awaited while a lock of asyncio is held for which all other tasks wait, as the sampler saw it."""
    within = _locks_around(spot)
    taken, times = _lock_use(document)
    if not within or times < SEVERAL or taken < CONTENDED * times:
        return None
    inner = spot.callers[0] if spot.callers else None
    if inner is not None and not (spot.code is not None and spot.code.find("within")):
        spot = replace(spot, where=Place(function=inner.function, file=inner.file, line=inner.line))
    return say(
        spot,
        "lock-held",
        f"{within[-1].name or 'A lock'} is held while this is awaited, and the other tasks wait for it",
        f"{count_text(taken - times)} of {count_text(times)} times a task had to wait for a lock",
        spot.share * (1 - 1 / times),
        change=words("lock-held.await", "host").format(line=within[-1].how),
    )
