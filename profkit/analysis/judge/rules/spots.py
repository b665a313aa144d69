"""Insights on the hot spots of a run: what pattern a place is, where that is proved there; else the place itself.

A pattern needs its proof at the place: the source says what a line does, samples say what its variables are and how
long one call takes, cProfile says how often. Without proof only the place is reported, which is never wrong.

This module has what all patterns share, and chooses among them; the patterns are in `spot_values` and the modules
beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from profkit.analysis.function_names import called_name, place_name
from profkit.analysis.hot_spots import DOES, RUNS_CODE
from profkit.analysis.hot_spots.python import is_below, outer_spots
from profkit.analysis.judge.rules.counted import last_name, profile_of
from profkit.analysis.judge.words import words
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import CodeSpot, Gain, Insight, Place, RunDocument

FIRST = 0.1  # of the wall time: a place with less cannot be the first answer
OTHER = 0.1  # of the wall time: a pattern at another place is reported from here on
IMPORTS = 0.2  # of the wall time
MIN_CALLS, SEVERAL = 100, 10  # calls
LOOKS = 20  # samples of arguments before their number means anything
REPEATED = 0.5  # different arguments, as a share of their samples: below, arguments are repeated
EXPLAINED = 0.4  # of the time of a place without a finding: the share that comes from a line with one

Find: TypeAlias = Callable[[RunDocument, CodeSpot], "Insight | None"]
# Kinds of waits in which a call does not return.
BLOCKING = ("sleep", "network", "child", "file", "sync")


def count_text(number: int, word: str = "") -> str:
    """Return `1,346,269 calls`."""
    return f"{number:,}" + (f" {word}{'' if number == 1 else 's'}" if word else "")


def say(
    spot: CodeSpot,
    rule: str,
    title: str,
    evidence: str,
    share: float | None = None,
    where: Place | None = None,
    change: str = "",
) -> Insight:
    """Return an insight on a spot: its share and its source line come first in the evidence. Without a `change`
    the rule's.
    """
    text = f"{percent_text(100 * spot.share)} of the time"
    if spot.code is not None and where is None:
        text += f" is in `{spot.code.text}`"
    won = spot.share if share is None else share
    return Insight(
        rule,
        title,
        f"{text}: {evidence}" if evidence else text,
        change or words(rule, "host"),
        where or spot.where,
        Gain(min(1.0, won), "the run time", ""),
    )


def called_names(spot: CodeSpot) -> list[str]:
    """Return the names that the source line of a spot calls."""
    return [construct.name for construct in spot.code.find("call")] if spot.code is not None else []


def say_together(
    spots: Sequence[CodeSpot],
    rule: str,
    title: str,
    evidence: str,
    share: float | None = None,
    change: str = "",
) -> Insight:
    """Return one insight on lines of one loop or function, at the largest of them: the evidence has the share of all.

    For a single line it is the same as `say` returns.
    """
    first = max(spots, key=lambda spot: spot.share)
    taken = sum(spot.share for spot in spots)
    lines = sorted({spot.where.line for spot in spots if spot.where.line is not None})
    if len(lines) < 2:
        return say(first, rule, title, evidence, share, change=change)
    text = f"{percent_text(100 * taken)} of the time is in {place_name(first.where)}, lines {lines[0]} to {lines[-1]}"
    whole = say(first, rule, title, evidence, taken if share is None else share, change=change)
    return replace(whole, evidence=f"{text}: {evidence}")


_CHEAP = frozenset({"append", "add", "len", "float", "int", "abs", "round", "range", "get", "print"})


def takes_the_time(spot: CodeSpot, function: str) -> bool:
    """Return whether a function that is written in C is what a line spends its time in: nothing else there is a
    long call.
    """
    under = spot.under
    if under is not None and under.name and last_name(under.name) not in ("<genexpr>", "<lambda>"):
        return last_name(under.name) == function
    return {last_name(name) for name in called_names(spot)} <= _CHEAP | {function}


def calls_text(spot: CodeSpot) -> str:
    """Return `2,000 calls of Connection.execute of libsqlite3, 0.37 ms each`, as far as it is known."""
    under, least = spot.under, "at least " if spot.partial else ""
    if under is None or not under.name:
        library = f"the work is in {under.library}" if under is not None and under.library else ""
        own = f"called {least}{count_text(spot.calls, 'time')}" if spot.calls and spot.calls > 1 else ""
        return "; ".join(part for part in (own, library) if part)
    name = called_name(under)
    named = (
        under.library
        and not under.library.startswith("<")
        and under.library not in ("built-in", "standard library", re.split("[. ]", name)[0])
    )
    of = f" of {under.library}" if named else ""
    if under.calls is None:
        return f"it calls {name}{of}"
    each = (
        f", {format_quantity(under.seconds_per_call, 's')} each"
        if under.seconds_per_call and under.calls > 1
        else ""
    )
    return f"{least}{count_text(under.calls, 'call')} of {name}{of}{each}"


def unused_import(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return the import that takes most of the time, where nothing that ran uses it."""
    if spot.under is None:
        return None
    unused = _is_unused(spot)
    needing = [] if unused else _functions_that_need(document, spot)
    if not unused and not needing:
        return None
    seconds = (
        format_quantity(spot.under.seconds_per_call, "s") if spot.under.seconds_per_call else "most of it"
    )
    used = (
        "nothing else in the file names it"
        if unused
        else f"{', '.join(needing[:3])} is the only user of it, and was not called"
    )
    return say(
        spot,
        "heavy-imports",
        f"Importing {spot.under.name} takes {percent_text(100 * spot.share)} of the time",
        f"{seconds} in {spot.under.name}; {used}",
    )


def _functions_that_need(document: RunDocument, spot: CodeSpot) -> list[str]:
    """Return the functions that alone use what is imported, where cProfile saw the whole run and none of them in it."""
    how = next((construct.how for construct in spot.code.find("import")), "") if spot.code is not None else ""
    counted = profile_of(document, "own-time")
    if not how.startswith("in ") or counted is None or counted.partial:
        return []
    names = how.split()[1:]
    ran = {row.function for row in counted.hotspots if row.file == spot.where.file}
    return [] if ran & set(names) else names


def _is_unused(spot: CodeSpot) -> bool:
    return spot.code is not None and any(construct.how == "unused" for construct in spot.code.find("import"))


def place_alone(spot: CodeSpot) -> Insight:
    """Return the place itself as the insight: where it is, how much time it takes, and what is called there."""
    name = place_name(spot.where)
    name = "the top level" if name in ("", "top level") else name
    does = DOES.get(spot.kind, "waits")
    left = max(0.0, 1 - spot.share)
    called = f"; called from {spot.caller}" if spot.caller else ""
    return say(
        spot,
        "hot-spot",
        f"{name} takes the most time" if spot.kind in RUNS_CODE else f"{name} {does}",
        f"{calls_text(spot)}{called}".lstrip("; "),
        change=f"start here: all other places together take {percent_text(100 * left)} of the time"
        if spot.share >= 0.5
        else "no other line of the program takes more",
    )


def pattern_of(document: RunDocument, spot: CodeSpot, patterns: tuple[Find, ...]) -> Insight | None:
    """Return the pattern that is proved at a spot and explains most of its time; of equals the first."""
    proved = [found for find in patterns if (found := find(document, spot)) is not None]
    return max(
        proved, key=lambda insight: insight.gain.at_most if insight.gain is not None else 0.0, default=None
    )


def spot_insights(
    document: RunDocument,
    patterns: tuple[Find, ...],
    calls: tuple[Find, ...] = (),
    functions: tuple[Find, ...] = (),
) -> Iterator[Insight]:
    """Yield the largest place with what it is, then patterns at others; imports are first only where nothing else is.

    `calls` are patterns of lines that call functions of the program: what explains more than the places below takes
    their place. `functions` are patterns that need no line: of machine code without debug information, and of programs
    that the run starts.
    """
    spots = [spot for spot in document.hot_spots if spot.kind != "rest" and spot.where.file is not None]
    unlined = [spot for spot in document.hot_spots if spot.kind == "native" and spot.where.file is None]
    first = next((spot for spot in spots if spot.kind != "import" and spot.share >= FIRST), None)
    needless = _needless_imports(document, spots)
    imports = next((spot for spot in spots if spot.kind == "import"), None)
    if first is None and imports is not None and imports.share >= FIRST and not needless:
        yield place_alone(imports)
    found = [
        (spot, insight)
        for spot in spots
        if spot.kind != "import"
        for insight in (
            pattern_of(document, spot, patterns) or (place_alone(spot) if spot is first else None),
        )
        # A place that takes little time itself may keep others waiting.
        if insight is not None and max(spot.share, _at_most(insight)) >= OTHER
    ]
    found += [
        (spot, insight)
        for spot in unlined
        if (insight := pattern_of(document, spot, functions)) is not None
        and max(spot.share, _at_most(insight)) >= OTHER
    ]
    found = [*needless, *_joined(found)]
    for outer in outer_spots(document) if calls else ():
        insight = pattern_of(document, outer, calls) if outer.share >= OTHER else None
        if insight is not None:
            insight = _with_own_part(found, outer, insight)
            found = [*_without_smaller(document, found, insight), (outer, insight)]
    yield from (insight for _, insight in sorted(found, key=lambda each: -_at_most(each[1])))


def _needless_imports(document: RunDocument, spots: Sequence[CodeSpot]) -> list[tuple[CodeSpot, Insight]]:
    """Return the imports that can be left out, where importing takes long enough."""
    imports = [spot for spot in spots if spot.kind == "import"]
    if sum(spot.share for spot in imports) < IMPORTS:
        return []
    found = ((spot, unused_import(document, spot)) for spot in imports if spot.share >= OTHER)
    return [(spot, insight) for spot, insight in found if insight is not None]


def _joined(found: list[tuple[CodeSpot, Insight]]) -> list[tuple[CodeSpot, Insight]]:
    """Return the findings without those that say the same of one line because of several places: what they win
    adds up.
    """
    kept: dict[tuple[str, Place], tuple[CodeSpot, Insight]] = {}
    for spot, insight in found:
        before = kept.get((insight.rule, insight.where))
        if before is not None and before[1].gain is not None:
            gain = replace(before[1].gain, at_most=min(1.0, _at_most(before[1]) + _at_most(insight)))
            kept[insight.rule, insight.where] = before[0], replace(before[1], gain=gain)
        else:
            kept[insight.rule, insight.where] = spot, insight
    return list(kept.values())


def _with_own_part(found: list[tuple[CodeSpot, Insight]], outer: CodeSpot, insight: Insight) -> Insight:
    """Return a finding on the calls of a line with what it finds of the rest of the same line: these times add up."""
    same = [
        (spot, each)
        for spot, each in found
        if (each.rule, each.where) == (insight.rule, insight.where)
        and (spot.where.file, spot.where.line) == (outer.where.file, outer.where.line)
    ]
    if not same or insight.gain is None:
        return insight
    share = min(1.0, outer.share + sum(spot.share for spot, _ in same))
    most = min(share, _at_most(insight) + sum(_at_most(each) for _, each in same))
    text = insight.evidence.replace(percent_text(100 * outer.share), percent_text(100 * share), 1)
    return replace(insight, evidence=text, gain=replace(insight.gain, at_most=most))


def _at_most(insight: Insight) -> float:
    return insight.gain.at_most if insight.gain is not None else 0.0


def _without_smaller(
    document: RunDocument, found: list[tuple[CodeSpot, Insight]], outer: Insight
) -> list[tuple[CodeSpot, Insight]]:
    """Return the findings without those below a line whose own finding explains as much, or says the same.

    A place alone, which says no change, goes where the line explains most of it.
    """
    return [
        (spot, insight)
        for spot, insight in found
        if (
            _at_most(insight) * (EXPLAINED if insight.rule == "hot-spot" else 1.0) > _at_most(outer)
            or not is_below(document, spot, outer.where)
        )
        and (insight.rule, insight.where.file, insight.where.line)
        != (outer.rule, outer.where.file, outer.where.line)
    ]


def is_compiled(document: RunDocument) -> bool:
    """Return whether the places are those of machine code."""
    return bool(document.sampled) and all(sampled.native for sampled in document.sampled)
