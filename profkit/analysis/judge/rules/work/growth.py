"""Insights on calls that take longer and longer, because each goes through all that the calls before it have left.

cProfile's counts, read while it counts, tell how long the first calls took and how long the last ones; the samples
tell which of the values at the line were longer each time.
"""

from __future__ import annotations

import re
from dataclasses import replace

from profkit.analysis.account.iteration import growth_of, repetitions
from profkit.analysis.judge.rules.counted import last_name, profile_of
from profkit.analysis.judge.rules.spots import Find, count_text, say
from profkit.analysis.judge.words import words
from profkit.core.formatting import format_quantity
from profkit.core.types import (
    FIRST_CALLS,
    LAST_CALLS,
    CodeSpot,
    Hotspot,
    Insight,
    Place,
    RunDocument,
    Variable,
)

MIN_CALL_SHARE = 0.5  # of a place's time must be in the calls that grow
TWICE, LONG = 2, 32  # times as long as the first calls; elements of the value that has grown
TOKENS = "torch.Tensor of integers"  # the name of the type in sampled variables
_QUOTED = re.compile(r"'(\w+)'|\.(\w+)>")


def growing_work(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a line each of whose calls takes longer than those before it."""
    if spot.code is None or spot.kind not in ("python", "library"):
        return None
    found = _growing_calls(document, spot)
    if found is None:
        return None
    call, named = found
    grown = [
        (name, held.first or 0, held.length or 0)
        for name, held in spot.variables.items()
        if _has_grown(held) and re.search(rf"(?<![\w.]){re.escape(name)}\b", spot.code.text)
    ]
    method = any(construct.name == f".{named}" for construct in spot.code.find("call"))
    if not grown and (not method or _cuts(spot.code.text)):
        return None  # the loop may pass more each time
    first, last = call.counters[FIRST_CALLS], call.counters[LAST_CALLS]
    mean = (call.total or call.own) / (call.calls or 1)
    name, before, after = max(grown, key=lambda growth: growth[2], default=("", 0, 0))
    seen = f"; {name} grew from {before:,} to {after:,} elements" if name else ""
    ids = next(
        (variable for variable, held in spot.variables.items() if held.type == TOKENS and _has_grown(held)),
        "",
    )
    key = "tokens" if ids and _is_of_torch(spot) else "value" if name else "object"
    return say(
        spot,
        "growing-work",
        f"Each call of {named} takes longer than those before it: {format_quantity(first, 's')} at first, "
        f"{format_quantity(last, 's')} at the end",
        f"{count_text(call.calls or 0, 'call')} of {named}, longer and longer{seen}",
        spot.share * max(0.0, 1 - first / mean),
        change=words(f"growing-work.{key}", "host").format(name=ids or name),
    )


def grown_search(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a list that a function appends to, and searches in each of its calls, which take longer and longer.

    The time is the function's own: no sample falls into an operator, so nothing is known of the list but the text.
    """
    searches = spot.code.find("grown-search") if spot.code is not None and spot.kind == "python" else ()
    found = _growing_calls(document, spot) if len(searches) == 1 else None
    if found is None or (spot.looks and spot.variables.get(searches[0].name) is not None):
        return None  # where its elements were counted, `linear_search` says it
    call, named = found
    inside = (call.file, named) == (spot.where.file, last_name(spot.where.function or ""))
    if not inside or call.own < MIN_CALL_SHARE * (call.total or call.own):
        return None
    first, last = call.counters[FIRST_CALLS], call.counters[LAST_CALLS]
    name = searches[0].name
    return say(
        spot,
        "linear-search",
        f"{name} is a list that grows: do not search it each time",
        f"each of {count_text(call.calls or 0, 'call')} of {named} takes longer than those before it, "
        f"{format_quantity(first, 's')} at first and {format_quantity(last, 's')} at the end: it looks for a value in "
        f"{name}, to which line {searches[0].how} appends",
        change=words("linear-search.value", "host").format(name=name),
    )


def regrown_input(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a model of torch that gets the whole of a sequence in each iteration that adds an item to it.

    That the iterations take longer and longer is measured: where a call takes as long for all as for the last item,
    there is nothing to win.
    """
    module = (
        spot.under is not None and spot.under.library == "torch" and "Module" in (spot.under.public or "")
    )
    if spot.code is None or not (module or _is_in_module(spot)) or spot.share <= 0:
        return None
    growth = growth_of(repetitions(document, spot.seconds / spot.share))
    if growth is None:
        return None
    if not spot.code.find("given-grown") and spot is next(filter(_is_in_module, document.hot_spots), None):
        spot = _call_in_loop(document, spot, growth.where) or spot
    given = spot.code.find("given-grown") if spot.code is not None else ()
    at_loop = spot.code is not None and (growth.where.file, growth.where.line) == (
        spot.where.file,
        spot.code.loop,
    )
    if not given or not at_loop:
        return None
    name = given[0].how
    return say(
        spot,
        "growing-work",
        f"The model gets all of {name} again in each iteration, although one item is new",
        f"an iteration takes {format_quantity(growth.first, 's')} at first and {format_quantity(growth.last, 's')} at "
        f"the end, since the loop adds to {name}",
        spot.share * max(0.0, 1 - 2 * growth.first / (growth.first + growth.last)),
        change=words("growing-work.items", "host").format(name=name),
    )


_MODULE = "/torch/nn/modules/module.py"


def _is_in_module(spot: CodeSpot) -> bool:
    """Return whether a place is in a method that torch calls for a module: the program's own `forward`."""
    return bool(spot.callers) and (spot.callers[0].file or "").replace("\\", "/").endswith(_MODULE)


def _call_in_loop(document: RunDocument, spot: CodeSpot, loop: Place) -> CodeSpot | None:
    """Return the line of a loop that leads to the place, with all of the time below it."""
    lines = (
        (line, line.main_wall / sampled.wall)
        for sampled in document.sampled
        if sampled.wall > 0
        for line in sampled.outer
    )
    for line, share in lines:
        code = line.code
        if code is not None and (line.file, code.loop) == (loop.file, loop.line) and code.find("given-grown"):
            where = Place(function=line.function, file=line.file, line=line.line)
            return replace(spot, where=where, code=code, share=min(1.0, share))
    return None


def _growing_calls(document: RunDocument, spot: CodeSpot) -> tuple[Hotspot, str] | None:
    """Return the function that a line calls, or else that it is in, if its calls took longer and longer."""
    profile = profile_of(document, "own-time")
    if profile is None or profile.total <= 0 or spot.code is None:
        return None
    called = {last_name(construct.name) for construct in spot.code.find("call")}
    under = last_name(spot.under.name) if spot.under is not None and spot.under.name else ""
    function = last_name(spot.where.function or "")
    candidates = []
    for row in profile.hotspots:
        if LAST_CALLS not in row.counters or (row.total or 0.0) < MIN_CALL_SHARE * spot.share * profile.total:
            continue
        name = _plain_name(row.function)
        calls_it = name in called and (not under or name == under or row.file is not None)
        is_it = (row.file, name) == (spot.where.file, function) and not spot.code.find("coroutine")
        if calls_it or is_it:
            candidates.append((row, name))
    return max(candidates, key=lambda each: (each[1] in called, each[0].total or 0.0), default=None)


def _plain_name(function: str) -> str:
    """Return `execute` of "<method 'execute' of 'sqlite3.Connection' objects>"."""
    found = _QUOTED.search(function) if function.startswith("<") else None
    return (found[1] or found[2]) if found is not None else last_name(function)


def _cuts(text: str) -> bool:
    """Return whether a line passes a part of something, which may be longer each time."""
    return re.search(r"\[[^]]*:[^]]*\]", text) is not None


def _has_grown(held: Variable) -> bool:
    """Return whether a value never became shorter from sample to sample, and is much longer now."""
    return held.first is not None and (held.length or 0) >= max(LONG, TWICE * held.first)


def _is_of_torch(spot: CodeSpot) -> bool:
    """Return whether a line calls a module of torch."""
    return spot.under is not None and (spot.under.public, spot.under.library) == ("Module", "torch")


PATTERNS: tuple[Find, ...] = (grown_search, regrown_input, growing_work)
OF_CALLS = PATTERNS
