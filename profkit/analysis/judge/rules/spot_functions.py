"""Insights on functions of libraries for which there is a much cheaper way.

The functions are in a table (`costly_functions.yaml`); this module checks whether a row of it holds at a place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.analysis.judge.rules.counted import counted_function, last_name, profile_of, with_slashes
from profkit.analysis.judge.rules.spot_loops import is_in_loop
from profkit.analysis.judge.rules.spots import LOOKS, REPEATED, SEVERAL, Find, called_names, calls_text, say
from profkit.analysis.stacks.source import LONGEST_TEXT
from profkit.core.formatting import percent_text
from profkit.core.tables import load_yaml
from profkit.core.types import CodeLine, CodeSpot, Hotspot, Insight, LineCode, RunDocument

USES = 3  # of a made object: from here on, it pays to make it in another way
TABLE = Path(__file__).with_name("costly_functions.yaml")


@dataclass(frozen=True)
class CostlyFunction:
    """A row of costly_functions.yaml, which says what each field is."""

    name: str
    title: str
    change: str
    file: str = ""
    functions: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    text: str = ""
    without: str = ""
    loop: bool = False
    again: str = ""
    also: str = ""
    given: str = ""
    outer: bool = False
    often: int = 0
    each: float = 0.0
    elements: int = 0
    least: float = 0.3
    beside: str = ""
    unless: str = ""
    together: bool = False
    made: str = ""

    def is_meant(self, function: CodeLine) -> bool:
        """Return whether this is one of its functions; a name with a dot is that of a class and its method."""
        if not re.search(_at_end(self.file), with_slashes(function.file)):
            return False
        names = (function.function, last_name(function.function))
        return not self.functions or any(name in names for name in self.functions)

    def fits(self, document: RunDocument, spot: CodeSpot) -> bool:
        """Return whether the place meets the row's conditions other than the time in its functions."""
        text = spot.code.text if spot.code is not None else ""
        below = [_in_file(frame) for frame in spot.below]
        return (
            (not self.text or re.search(self.text, text) is not None)
            and (not self.without or _lacks(spot, self.without))
            and (not self.beside or any(re.search(self.beside, name) for name in below))
            and (not self.unless or not any(re.search(self.unless, name) for name in below))
            and (not self.loop or is_in_loop(document, spot))
            and (not self.again or _asks_the_same(spot, self.again))
            and (not self.also or _times(document, self.also) >= SEVERAL)
            and (not self.made or _is_used_again(document, spot, self.made))
            and (not self.given or not _is_given(spot, text, self.given))
            and (not self.each or _seconds_of_each(spot) >= self.each)
            and (not self.elements or any(size >= self.elements for size in _sizes(spot, text)))
        )


def _lacks(spot: CodeSpot, pattern: str) -> bool:
    """Return whether the whole statement of a place is known, and nothing in it matches."""
    text, statement = (spot.code.text, spot.code.statement) if spot.code is not None else ("", "")
    is_cut = len(text) >= LONGEST_TEXT or text.count("(") != text.count(")")
    return (bool(statement) or not is_cut) and re.search(pattern, f"{text}\n{statement}") is None


def _asks_the_same(spot: CodeSpot, named: str) -> bool:
    """Return whether the matching calls of a line have the same arguments each time.

    If they depend on the function's parameters, the loop that calls the function must pass the same values, or few
    different ones were sampled. A line without a call of that name proves nothing.
    """
    code = spot.code
    called = {last_name(name) for name in called_names(spot)} | (
        {"[]"} if code and "[" in code.text else set()
    )
    if code is None or not any(re.fullmatch(named, name) for name in called):
        return False
    varying = {construct.how for construct in code.find("varies") if re.fullmatch(named, construct.name)}
    if "item" in varying:
        return False
    few = spot.arguments is not None and spot.looks >= LOOKS and spot.arguments <= REPEATED * spot.looks
    return not varying or few or _is_given_the_same(spot, code)


def _is_given_the_same(spot: CodeSpot, code: LineCode) -> bool:
    """Return whether the loop that calls the function of a place gives it the same for all parameters that the line
    needs.
    """
    needed = {construct.how for construct in code.find("parameter")}
    given = spot.caller_code.find("gives") if spot.caller_code is not None else ()
    function = last_name(spot.where.function or "")
    return bool(needed) and any(
        construct.name == function and needed <= set(construct.how.split()) for construct in given
    )


def _times(document: RunDocument, named: str) -> int:
    """Return how often a function ran, by cProfile's count; `named` matches its file and name as `file:function`."""
    profile = profile_of(document, "own-time")
    counted = profile.hotspots if profile is not None else ()
    return max((row.calls or 0 for row in counted if re.search(named, _in_file(row))), default=0)


def _is_used_again(document: RunDocument, spot: CodeSpot, makes: str) -> bool:
    """Return whether what a line works on was made, by a function that was counted, once for several calls of it."""
    calls = (spot.under.calls if spot.under is not None else None) or spot.calls or 0
    return calls >= SEVERAL and 0 < _times(document, makes) <= calls / USES


def _in_file(function: CodeLine | Hotspot) -> str:
    return f"{with_slashes(function.file)}:{function.function}"


def _is_given(spot: CodeSpot, text: str, types: str) -> bool:
    """Return whether a variable of such a type is an argument of a call, or an index, on the line."""
    return any(
        re.match(types, held.type) and re.search(rf"[\[(,=]\s*{re.escape(name)}\s*[\],)]", text)
        for name, held in spot.variables.items()
    )


def _seconds_of_each(spot: CodeSpot) -> float:
    """Return how long one call at a place takes, 0 where that is not known; cProfile does not see all functions
    in C.
    """
    if spot.under is not None and spot.under.seconds_per_call:
        return spot.under.seconds_per_call
    once = spot.code is not None and spot.code.loop is None  # for each call of the function around it
    times = spot.executions or (spot.calls if once else None)
    return spot.seconds / times if times else 0.0


def _sizes(spot: CodeSpot, text: str) -> list[int]:
    """Return how many elements the variables have that a line names."""
    return [
        held.length or 0
        for name, held in spot.variables.items()
        if re.search(rf"\b{re.escape(name)}\b", text)
    ]


def _at_end(file: str) -> str:
    """Return a pattern for the end of a path: a folder matches anywhere in it, a file only at its end."""
    return file if file.endswith("/") else f"(?:{file})$"


@lru_cache(maxsize=1)
def costly_functions() -> tuple[CostlyFunction, ...]:
    """Return the rows of the table, in its order."""
    rows = load_yaml(TABLE)
    return tuple(
        CostlyFunction(
            **{
                **row,
                "functions": tuple(row.get("functions", ())),
                "calls": tuple(row.get("calls", ())),
            }
        )
        for row in rows
    )


def costly_helper(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return the function of the table that takes most of a place's time."""
    return _costliest(document, spot, costly_functions())


def costly_caller(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return the same of a line whose library calls a function of the program again and again, which takes the time."""
    return _costliest(document, spot, (row for row in costly_functions() if row.outer))


def _costliest(document: RunDocument, spot: CodeSpot, rows: Iterable[CostlyFunction]) -> Insight | None:
    """Return the row that is proved at a place by most of its time."""
    proofs = ((row, _share_in(row, spot)) for row in rows)
    found = [(row, *proof) for row, proof in proofs if proof is not None]
    for row, share, function in sorted(found, key=lambda candidate: -candidate[1]):
        if not row.fits(document, spot) or _is_rare(document, row, spot, function):
            continue
        others = " and others of its kind" if row.together else ""
        proof = (
            f"{percent_text(100 * share)} of this is in {function.function}{others} below it; "
            if function
            else ""
        )
        return say(
            spot,
            "costly-helper",
            row.title,
            f"{proof}{calls_text(spot)}",
            spot.share * share,
            change=row.change,
        )
    return None


def _share_in(row: CostlyFunction, spot: CodeSpot) -> tuple[float, CodeLine | None] | None:
    """Return the share of a place's time in functions of a row, with the one that has most; None where that is little.

    A function in C has no samples of its own: the place's time is its, where the place calls nothing else.
    """
    meant = [frame for frame in spot.below if row.file and row.is_meant(frame)]
    below = max(meant, key=_value, default=None)
    if below is not None:
        share = min(1.0, sum(map(_value, meant))) if row.together else below.value
        return (share, below) if share >= row.least else None
    under = spot.under
    called = {name for name in called_names(spot) if name in row.calls}
    if called and (under is None or last_name(under.name) in map(last_name, called)):
        return 1.0, None
    return None


def _value(frame: CodeLine) -> float:
    return frame.value


def _is_rare(document: RunDocument, row: CostlyFunction, spot: CodeSpot, function: CodeLine | None) -> bool:
    """Return whether a count proves that it is done only a few times."""
    calls = spot.under.calls if spot.under is not None else None
    if function is not None:
        path = with_slashes(function.file)
        counted = counted_function(document, last_name(function.function), (path,))
        calls = (counted.calls or 0) if counted is not None else calls
    if row.often:
        return (calls or 0) < row.often
    return calls is not None and calls < SEVERAL and (row.loop or function is None)


PATTERNS: tuple[Find, ...] = (costly_helper,)
OF_CALLS: tuple[Find, ...] = (costly_caller,)
