"""Lines that a finding covers beside its own, so that its bound is that of all of them.

Advice not to call a function for each item does away with all lines of that function, with what they call, and with
the line that has it called: with those, too, that are too small for a finding of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.hot_spots import RUNS_CODE
from profkit.analysis.hot_spots.python import is_below
from profkit.analysis.hot_spots.rows import MAJORITY
from profkit.analysis.judge.rules.counted import last_name
from profkit.analysis.judge.rules.spots import called_names, say
from profkit.core.types import CodeSpot, Insight, Place, RunDocument

# What calls a function of the program with each row or group.
_FOR_EACH = re.compile(r"/pandas/core/(apply\.py|groupby/)")
_FOR_EACH_RULES = ("element-wise", "calls-in-loop")
# A state that is written as a whole after each step: what opens the file and puts it in its place goes as well.
_WRITES = frozenset(
    {"dump", "save", "savez", "savetxt", "write", "writelines", "write_text", "to_csv", "to_json"}
)


def with_covered_lines(document: RunDocument, found: Sequence[Insight]) -> tuple[Insight, ...]:
    """Return findings on the places of a run, with one more of the same kind for each further line that they cover."""
    taken = {_line(insight.where) for insight in found}
    kept: list[Insight] = []
    more: list[Insight] = []
    for each in found:
        insight = each
        spot = next((spot for spot in document.hot_spots if _line(spot.where) == _line(insight.where)), None)
        # Written once instead, nearly all of the line's time is saved, and not only that by which it grows.
        if spot is not None and insight.gain is not None and _saves_all(insight, spot):
            insight = replace(insight, gain=replace(insight.gain, at_most=min(1.0, spot.share)))
        kept.append(insight)
        for other in _covered(document, insight, spot) if spot is not None else ():
            if _line(other.where) not in taken and other.kind in RUNS_CODE:
                taken.add(_line(other.where))
                more.append(say(other, insight.rule, insight.title, "", change=insight.change))
    return (*kept, *more)


def _covered(document: RunDocument, insight: Insight, spot: CodeSpot) -> list[CodeSpot]:
    """Return the places of the function that a finding is about, and of what that calls; none if it covers a line."""
    function = (spot.where.file, spot.where.function)
    if insight.rule in _FOR_EACH_RULES and spot.callers and _FOR_EACH.search(_path(spot.callers[0].file)):
        call = _call_of(document, spot)
        return [
            each
            for each in document.hot_spots
            if (each.where.file, each.where.function) == function
            or (call is not None and (_line(each.where) == _line(call) or is_below(document, each, call)))
        ]
    if _saves_all(insight, spot):
        return [each for each in document.hot_spots if (each.where.file, each.where.function) == function]
    return []


def _saves_all(insight: Insight, spot: CodeSpot) -> bool:
    """Return whether a finding is about a function that writes a growing state as a whole in each call."""
    writes = _WRITES & {last_name(name) for name in called_names(spot)}
    return (
        insight.rule == "growing-work" and bool(writes) and spot.code is not None and spot.code.loop is None
    )


def _call_of(document: RunDocument, spot: CodeSpot) -> Place | None:
    """Return the line of the program that has most calls of a place's function made."""
    lines = [
        line
        for sampled in document.sampled
        if not sampled.native
        for line in sampled.lines
        if (line.file, line.line) == (spot.where.file, spot.where.line)
    ]
    around = [
        each
        for line in lines
        for each in line.within
        if each.value > MAJORITY * line.main_wall and each.function != spot.where.function
    ]
    return Place(function=around[-1].function, file=around[-1].file, line=around[-1].line) if around else None


def _line(where: Place) -> tuple[str | None, int | None]:
    return where.file, where.line


def _path(file: str | None) -> str:
    return (file or "").replace("\\", "/")
