"""Insights on what a library does below a place: its functions in the samples there, and cProfile's counts of them.

The chain of calls tells which function of the library takes the time, a count how often it ran, and samples of its
arguments whether they were the same. Each finding needs at least two of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from profkit.analysis.judge.rules.counted import (
    calls_from,
    counted_function,
    last_name,
    profile_of,
    share_below,
    with_slashes,
)
from profkit.analysis.judge.rules.spots import LOOKS, MIN_CALLS, SEVERAL, Find, count_text, say
from profkit.analysis.judge.rules.work.same import reads_member
from profkit.analysis.judge.words import words
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import CodeSpot, Hotspot, Insight, LineSamples, Profile, RunDocument, SampledTime

CHAIN = 0.3  # of a place's time: a function below it with less is not what the place is about
AGAIN, SPARED = 5, 0.25  # samples of arguments that were seen before; the share of calls with such
LOOKED_UP = 0.5e-3  # seconds: a look-up by hash or in sorted order takes microseconds
WAITED, OF_TASKS = 20, 5.0  # calls of asyncio.wait; callbacks for each task that was made
_LOGGING = ("/logging/__init__.py",)
_TEXTS_OF = ("__str__", "__repr__", "__format__")  # the methods that make a text of an object
DROPPED = 0.1  # of the messages: at most this share was written
SPINS, EACH_SPIN = 10_000, 1e-4  # checks; seconds for each under cProfile
FOUND_NOTHING = 0.03  # of a loop's time: so much of it where it had found nothing
ASKING = 0.1  # of the time of the function under cProfile
TURNING = 0.9  # of a function's processor time is in the lines of its loop that run each time around
BUSY = 0.1  # of the processor time: a thread with less does not compete
MIN_POWER = 0.1  # of the processor time


@dataclass(frozen=True)
class _Repeatable:
    """A function whose result depends on its arguments alone: which calls count, in which files, and what it does."""

    counted: str
    module: str
    says: str
    files: tuple[str, ...]
    calls: int = MIN_CALLS  # fewer are not worth reporting
    looks: int = LOOKS
    of: str = " from the same text"
    of_member: bool = False  # of an archive: a line that names an unchanged one has a finding of its own
    around: str = ""  # its only caller, whose share of a place is known if its own is not


_REPEATABLE: Mapping[str, _Repeatable] = {
    "_compile": _Repeatable(
        "compile", "re", "Regular expressions are compiled", ("/re/_compiler.py", "/sre_compile.py")
    ),
    "realpath": _Repeatable(
        "realpath", "posixpath", "Paths are resolved", ("/posixpath.py", "<frozen posixpath>")
    ),
    "_strptime": _Repeatable("_strptime", "_strptime", "Dates are parsed", ("/_strptime.py",)),
    "urlparse": _Repeatable("urlparse", "urllib.parse", "Addresses are parsed", ("/urllib/parse.py",)),
    "ip_address": _Repeatable("ip_address", "ipaddress", "Addresses are parsed", ("/ipaddress.py",)),
    "ip_network": _Repeatable("ip_network", "ipaddress", "Networks are parsed", ("/ipaddress.py",)),
    "split": _Repeatable("split", "shlex", "Lines are split", ("/shlex.py",)),
    "translate": _Repeatable("translate", "fnmatch", "Patterns are translated", ("/fnmatch.py",)),
    "dedent": _Repeatable("dedent", "textwrap", "Texts are dedented", ("/textwrap.py",)),
    "__getitem__": _Repeatable(
        "__getitem__",
        "numpy",
        "Members of an .npz archive are read and decompressed",
        ("/numpy/lib/npyio.py", "/numpy/lib/_npyio_impl.py"),
        calls=SEVERAL,
        looks=SEVERAL,
        of="",
        of_member=True,
    ),
    # Each call takes long, so that nearly all of them are sampled.
    "_fit_transform_one": _Repeatable(
        "_fit_transform_one",
        "sklearn.pipeline",
        "A step of the pipeline is fitted",
        ("/sklearn/pipeline.py",),
        calls=6,
        looks=6,
        of=" to the same data, with the same parameters",
        around="_fit",
    ),
}


# ------------------------------------------------------------ the same again


def same_again(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a function of the standard library that gets the same arguments again and computes the result anew."""
    sampled = profile_of(document, "sampled-functions")
    for row in sampled.hotspots if sampled is not None else ():
        kept, looks = _REPEATABLE.get(last_name(row.function)), int(row.counters.get("looks", 0))
        again = looks - int(row.counters.get("different", 0))
        if kept is None or looks < kept.looks or again < AGAIN or (kept.of_member and reads_member(spot)):
            continue
        file = with_slashes(row.file)
        below = max(share_below(spot, name, (file,)) for name in (last_name(row.function), kept.around))
        if (
            kept.around
            and sampled is not None
            and any("/sklearn/" in with_slashes(each.file) for each in spot.below)
        ):
            # Only a few functions below a place are kept. All time of this one is there: nothing else calls it.
            below = max(below, min(1.0, (row.total or 0.0) / max(sampled.total * spot.share, 1e-9)))
        counted = counted_function(document, kept.counted, kept.files)
        # Each sample is of another call.
        calls = max(looks, counted.calls or 0) if counted is not None else looks if kept.of_member else 0
        different = likely_different(row.counters)
        # At least the repeats among random samples; likely all calls but one for each argument.
        spared = max(again / looks, 1 - different / max(1, calls))
        if below < CHAIN or calls < kept.calls or spared < SPARED:
            continue
        least = "at least " if spot.partial or counted is None else ""
        return say(
            spot,
            "repeated-work",
            f"{kept.says} again and again{kept.of}: {least}{count_text(calls, 'time')}",
            f"{percent_text(100 * below)} of this is in {kept.counted} of {kept.module}; {again} of "
            f"{count_text(looks)} looks saw arguments that were there before",
            spot.share * below * spared,
            change=words(f"repeated-work.{kept.counted}", "host"),
        )
    return None


def likely_different(counters: Mapping[str, float]) -> int:
    """Return how many different arguments there are, at least: the sampled ones, and an estimate of the others.

    Estimated from how many were sampled once and how many twice: Chao, Scand. J. Statist. 11 (1984) 265, without
    its bias.
    """
    once, twice = counters.get("[once]", 0.0), counters.get("[twice]", 0.0)
    return round(counters.get("different", 0.0) + once * (once - 1) / (2 * (twice + 1)))


# ------------------------------------------------------------ a known cost below the place


def unsorted_labels(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a look-up by label that goes through the whole index of a frame of pandas."""
    for construct in spot.code.find("lookup") if spot.code is not None else ():
        held, label = spot.variables.get(construct.name), spot.variables.get(construct.how)
        if held is None or not held.type.startswith("pandas.") or (label is not None and label.type != "str"):
            continue  # a list or a mask of many labels
        for function in ("get_indexer_non_unique", "get_loc"):
            below = share_below(spot, function, _INDEXES)
            counted = counted_function(document, function, _INDEXES)
            if below < CHAIN or counted is None or (counted.calls or 0) < MIN_CALLS:
                continue
            each = (counted.total or counted.own) / (counted.calls or 1)
            if each < LOOKED_UP:
                continue
            return say(
                spot,
                "unsorted-labels",
                f"{construct.name}.loc goes through the whole index each time: it is not sorted",
                f"{percent_text(100 * below)} of this is in {function} of pandas, called "
                f"{count_text(counted.calls or 0)} times, {format_quantity(each, 's')} each; a hash or sorted labels "
                "need microseconds",
                spot.share * below,
                change=words("unsorted-labels", "host").format(name=construct.name),
            )
    return None


_INDEXES = ("/pandas/core/indexes/base.py", "/pandas/core/indexes/multi.py")
_ASYNCIO = ("/asyncio/tasks.py",)


def waits_for_all(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find asyncio.wait in a loop over all remaining tasks: each call adds a callback to every task, and removes it."""
    waits = counted_function(document, "wait", _ASYNCIO)
    made = counted_function(document, "create_task", ("/asyncio/base_events.py",))
    added = _calls_of(document, re.compile(r"<method 'add_done_callback' of '_asyncio\.\w+' objects>"))
    below = max(share_below(spot, name, _ASYNCIO) for name in ("wait", "_wait"))
    if waits is None or made is None or below < CHAIN or (waits.calls or 0) < WAITED:
        return None
    if added < OF_TASKS * max(1, made.calls or 0):
        return None
    least = "at least " if spot.partial else ""
    return say(
        spot,
        "waits-for-all",
        "asyncio.wait goes through all tasks that are left each time: the time grows with their square",
        f"{least}{count_text(waits.calls or 0)} calls added {count_text(added)} callbacks, "
        f"{added // (waits.calls or 1):,} at a time, for {count_text(made.calls or 0, 'task')}",
        spot.share * below,
    )


def _calls_of(document: RunDocument, name: re.Pattern[str]) -> int:
    """Return how often cProfile counted the built-in functions of a name."""
    profile = profile_of(document, "own-time")
    return sum(
        row.calls or 0
        for row in (profile.hotspots if profile is not None else ())
        if name.fullmatch(row.function)
    )


# ------------------------------------------------------------ made for nothing


def dropped_messages(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find work for log messages whose level is off, in the line of the message or in functions below it."""
    logged = counted_function(document, "_log", _LOGGING)
    written = (logged.calls or 0) if logged is not None else 0
    for construct in spot.code.find("log") if spot.code is not None else ():
        edges = [
            each
            for each in calls_from(document, spot)
            if each.callee and each.callee.function == construct.name
        ]
        calls, part = (
            sum(each.calls or 0 for each in edges),
            1 - _asking(document, spot, construct.name, edges),
        )
        if spot.kind == "calls":
            called = spot.under.name if spot.under is not None else ""
            if called not in (*construct.how.split(), *_TEXTS_OF):
                continue  # the time is not spent for the message
            level = counted_function(document, "isEnabledFor", _LOGGING)
            # Calls that took little time may be missing: then the function and the loggers' own check ran as often.
            calls = calls or min(spot.calls or 0, (level.calls or 0) if level is not None else 0)
            part = max((each.value for each in spot.below if last_name(each.function) == called), default=0.0)
        if calls < MIN_CALLS or written > DROPPED * calls or part < CHAIN:
            continue  # the message is written, or most of the time is the check itself
        times = f"{_at_least(spot)}{count_text(calls)}"
        return say(
            spot,
            "dropped-messages",
            f"This is made {times} times for a log message that is below the logger's level",
            f"it calls {construct.name} {times} times with what is made for it, and "
            f"{count_text(written)} messages were written",
            spot.share * part,
            change=words("dropped-messages", "host").format(level=construct.name.upper()),
        )
    return None


def _asking(document: RunDocument, spot: CodeSpot, name: str, edges: list[Hotspot]) -> float:
    """Return the share (0..1) of a place's time in the logger itself, which finds that it must not write.

    A text in the line has no call of its own: the sampler sees it where the logger is called, and cProfile does not.
    """
    own = profile_of(document, "own-time")
    asking = sum(edge.total or edge.own for edge in edges)
    whole = spot.share * own.total if own is not None else 0.0
    return min(share_below(spot, name, _LOGGING), asking / whole if whole > 0 else 1.0)


# ------------------------------------------------------------ asking without a pause


def spinning(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find a loop that checks without a pause whether another thread is done, and takes its interpreter lock."""
    spins = spot.code.find("spin") if spot.code is not None else ()
    threads = profile_of(document, "sampled-threads")
    sampled = next((samples for samples in document.sampled if not samples.native), None)
    if not spins or sampled is None or sampled.cpu <= 0 or threads is None:
        return None
    if len([row for row in threads.hotspots if row.own >= BUSY * threads.total]) < 2:
        return None  # no other thread works meanwhile
    calls, seconds = _questions(document, spot, spins[0].name)
    here = (spot.where.file, spot.where.function)
    lines = [
        line
        for line in sampled.lines
        if here == (line.file, line.function)
        or any(here == (each.file, each.function) for each in line.callers[:1])
    ]
    idle = _idle_lines(lines, sampled, here)
    ran = sum(line.main_cpu + line.other_cpu for line in lines)
    turns = _only_turns(sampled, here) or _mostly_asks(document, spot, calls, seconds, ran)
    if idle is None and spins[0].name and not turns:
        return None
    # The interpreter runs one thread at a time: another thread could have the time that the loop takes.
    taken = sum(line.main_cpu + line.other_cpu for line in idle or lines) / sampled.cpu
    places = [
        hot_spot for hot_spot in document.hot_spots if (hot_spot.where.file, hot_spot.where.function) == here
    ]
    if spot is not max([*places, spot], key=lambda hot_spot: hot_spot.share):
        return None
    if idle is not None:
        idle_calls = [
            construct for line in idle if line.code is not None for construct in line.code.find("idle")
        ]
        what = f"{idle_calls[0].name} mostly finds nothing"
    else:
        what = f"asked {count_text(calls)} times" if calls else "does nothing else"
    return say(
        spot,
        "spinning",
        f"{spot.where.function} asks again and again without a pause, and keeps other threads from running",
        f"`while {spins[0].how}`: {what}; it took {percent_text(100 * taken)} of the program's processor time, while "
        "another thread worked",
        min(taken, max(sum(hot_spot.share for hot_spot in places), _starved(sampled, here))),
        change=words(f"spinning{'.queue' if idle is not None else ''}", "host"),
    )


def _only_turns(sampled: SampledTime, here: tuple[str | None, str | None]) -> bool:
    """Return whether a function's time is in the lines of a loop that calls nothing but the question.

    A look, a comparison and a local name take less than a microsecond: nothing else can have taken the time. cProfile
    does not follow the threads that began before it, so their questions may not be counted.
    """
    inside = [line for line in sampled.lines if (line.file, line.function) == here]
    seconds = {line.line: line.main_cpu + line.other_cpu for line in inside}
    turning = sum(
        seconds[line.line] for line in inside if line.code is not None and line.code.find("asks-only")
    )
    return turning > 0 and turning >= TURNING * sum(seconds.values())


def _starved(sampled: SampledTime, here: tuple[str | None, str | None]) -> float:
    """Return the share (0..1) of the time in which the main thread, at other lines, neither waited nor ran."""
    others = [line for line in sampled.lines if (line.file, line.function) != here]
    ready = sum(max(0.0, line.main_wall - line.main_cpu - sum(line.waits.values())) for line in others)
    return ready / sampled.wall if sampled.wall > 0 else 0.0


def _idle_lines(
    lines: Sequence[LineSamples], sampled: SampledTime, here: tuple[str | None, str | None]
) -> list[LineSamples] | None:
    """Return the lines of a loop that takes what is there, if it mostly finds nothing: else working on it would take
    the time.

    None for any other loop, and for one that was never sampled after it had found nothing.
    """
    spins = [line for line in lines if line.code is not None and line.code.find("spin")]
    at = {line.line for line in spins}
    inside = [
        line
        for line in (*lines, *sampled.outer)
        if (line.file, line.function) == here and line.line not in at
    ]
    found = sum(line.main_wall + line.other_wall for line in inside)
    asks = sum(line.main_wall + line.other_wall for line in spins)
    nothing = sum(
        line.main_wall + line.other_wall for line in spins if line.code is not None and line.code.find("idle")
    )
    return spins if nothing > FOUND_NOTHING * asks and found < asks / 2 else None


def _questions(document: RunDocument, spot: CodeSpot, name: str) -> tuple[int, float]:
    """Return how often the place checked under cProfile, and its seconds; the program's total if that is unknown.

    From Python 3.12 on, cProfile takes the calls of all threads for those of one: its callers are mixed up, but its
    counts are right. A loop that does nothing but check is then taken as the caller.
    """
    edges = [edge for edge in calls_from(document, spot) if edge.callee and edge.callee.function == name]
    calls, seconds = sum(edge.calls or 0 for edge in edges), sum(edge.total or edge.own for edge in edges)
    whole = counted_function(document, name, ("",)) if name else None
    if calls < SPINS and whole is not None and (whole.calls or 0) >= SPINS:
        return whole.calls or 0, whole.total or whole.own
    return calls, seconds


def _mostly_asks(document: RunDocument, spot: CodeSpot, calls: int, seconds: float, ran: float) -> bool:
    """Return whether the loop repeats so fast that it can only check; `ran`: its seconds in the samples."""
    own = counted_function(document, last_name(spot.where.function or ""), (with_slashes(spot.where.file),))
    whole = max((own.total or own.own) if own is not None else 0.0, ran)
    return calls >= SPINS and whole < EACH_SPIN * calls and seconds >= ASKING * whole


# ------------------------------------------------------------ the general power of numpy

_POWERS = re.compile(
    r"(__ieee754_|__)?powf?(_fma\w*|_sse\w*|_avx\w*|_finite)?(@+\w[\w.]*)?|\w+_power(_\w+)?|npy_powf?"
)


def general_power(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return an array to the power of a small number, which is a few multiplications, by the function for any power."""
    functions = profile_of(document, "functions")
    if functions is None or functions.total <= 0 or spot.code is None:
        return None
    powers = sum(row.own for row in functions.hotspots if _POWERS.fullmatch(row.function)) / functions.total
    several = [
        hot_spot
        for hot_spot in document.hot_spots
        if hot_spot.code is not None and hot_spot.code.find("power")
    ]
    for construct in spot.code.find("power"):
        held, instead = spot.variables.get(construct.name), _product(construct.name, construct.how)
        if powers < MIN_POWER or held is None or held.type != "numpy.ndarray" or not instead:
            continue
        return say(
            spot,
            "general-power",
            f"{construct.name} ** {construct.how} is computed by the function for any power: multiply instead",
            f"{percent_text(100 * powers)} of the processor time is in {_first_power(functions)}"
            + (f", which {len(several)} places use" if len(several) > 1 else ""),
            change=f"{instead} in its place; numpy itself does so for 2, 0.5 and -1 alone",
        )
    return None


def _first_power(functions: Profile) -> str:
    return next(row.function for row in functions.hotspots if _POWERS.fullmatch(row.function))


def _product(name: str, exponent: str) -> str:
    """Return `x * x * x` for a power that few multiplications, divisions and square roots give; empty for others."""
    number = float(exponent)
    size = abs(number)
    if not 1 < size <= 8 or number == 2 or size % 0.5:
        return ""
    parts = [name] * int(size) + ([f"np.sqrt({name})"] if size % 1 else [])
    if len(parts) > 4:
        parts = [
            f"square = {name} * {name}; {' * '.join(['square'] * (int(size) // 2) + parts[2 * (int(size) // 2) :])}"
        ]
    product = " * ".join(parts)
    return f"1 / ({product})" if number < 0 else product


DEEP = 8  # generators that an item goes up through, on average: a balanced tree of some hundred has fewer


def nested_generators(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a generator that yields from itself: each item goes up through one generator for each level."""
    here = (spot.where.file, spot.where.function)
    lines = [
        hot_spot for hot_spot in document.hot_spots if (hot_spot.where.file, hot_spot.where.function) == here
    ]
    # The first line of a function has no code.
    codes = [hot_spot.code for hot_spot in lines if hot_spot.code is not None]
    again = next((found for code in codes for found in code.find("yields-of-itself")), None)
    if again is None or spot is not max(lines, key=lambda hot_spot: hot_spot.share):
        return None
    counted = counted_function(document, again.name, (with_slashes(spot.where.file),))
    first = counted.counters.get("primitive_calls", 0.0) if counted is not None else 0.0
    if counted is None or not counted.calls or first < MIN_CALLS:
        return None
    depth = counted.calls / first
    if depth < DEEP:
        return None
    return say(
        spot,
        "nested-generators",
        f"Go through it with a stack: each item goes up through {depth:,.0f} generators",
        f"{again.name} yields from itself: {_at_least(spot)}{count_text(counted.calls)} resumptions for "
        f"{count_text(round(first))} items and ends",
        sum(hot_spot.share for hot_spot in lines) * (1 - 1 / depth),
        where=replace(spot.where, line=int(again.how)),
        change=words("nested-generators", "host"),
    )


def _at_least(spot: CodeSpot) -> str:
    return "at least " if spot.partial else ""


PATTERNS: tuple[Find, ...] = (
    nested_generators,
    same_again,
    unsorted_labels,
    waits_for_all,
    dropped_messages,
    spinning,
    general_power,
)
