"""Insights on functions of libraries that cost much more than what they are used for.

They are a table; here is how a row of it is proved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.analysis.judge.rules.counted import counted_function, last_name, with_slashes
from profkit.analysis.judge.rules.spot_loops import is_in_loop
from profkit.analysis.judge.rules.spots import SEVERAL, Find, called_names, calls_text, say
from profkit.core.formatting import percent_text
from profkit.core.tables import load_yaml
from profkit.core.types import CodeLine, HotSpot, Insight, RunDocument

TABLE = Path(__file__).with_name("costly_functions.yaml")


@dataclass(frozen=True)
class CostlyFunction:
    """A row of costly_functions.yaml, which says what each field is."""

    title: str
    change: str
    file: str = ""
    functions: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    text: str = ""
    without: str = ""
    loop: bool = False
    often: int = 0
    elements: int = 0
    least: float = 0.3
    beside: str = ""
    unless: str = ""

    def is_meant(self, function: CodeLine) -> bool:
        """Whether this is one of its functions; a name with a dot is that of a class and its method."""
        if not re.search(_at_end(self.file), with_slashes(function.file)):
            return False
        names = (function.function, last_name(function.function))
        return not self.functions or any(name in names for name in self.functions)

    def fits(self, document: RunDocument, spot: HotSpot) -> bool:
        """Whether the place has what the row asks for beside the time in its functions."""
        text = spot.code.text if spot.code is not None else ""
        files = [with_slashes(one.file) for one in spot.below]
        return (
            (not self.text or re.search(self.text, text) is not None)
            and (not self.without or re.search(self.without, text) is None)
            and (not self.beside or any(re.search(self.beside, file) for file in files))
            and (not self.unless or not any(re.search(self.unless, file) for file in files))
            and (not self.loop or is_in_loop(document, spot))
            and (not self.elements or any(size >= self.elements for size in _sizes(spot, text)))
        )


def _sizes(spot: HotSpot, text: str) -> list[int]:
    """How many elements the variables have that a line names."""
    return [
        held.length or 0
        for name, held in spot.variables.items()
        if re.search(rf"\b{re.escape(name)}\b", text)
    ]


def _at_end(file: str) -> str:
    """A folder is anywhere in the path; a file is its end."""
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


def costly_helper(document: RunDocument, spot: HotSpot) -> Insight | None:
    """The function of the table that takes most of a place's time."""
    proofs = ((row, _share_in(row, spot)) for row in costly_functions())
    found = [(row, *proof) for row, proof in proofs if proof is not None]
    for row, share, function in sorted(found, key=lambda one: -one[1]):
        if not row.fits(document, spot) or _is_rare(document, row, spot, function):
            continue
        proof = (
            f"{percent_text(100 * share)} of this is in {function.function} below it; " if function else ""
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


def _share_in(row: CostlyFunction, spot: HotSpot) -> tuple[float, CodeLine | None] | None:
    """The share of a place's time in functions of a row, with the one that has most; None where that is little.

    A function in C has no samples of its own: the place's time is its, where the place calls nothing else.
    """
    below = max((one for one in spot.below if row.file and row.is_meant(one)), key=_value, default=None)
    if below is not None:
        return (below.value, below) if below.value >= row.least else None
    under = spot.under
    called = {name for name in called_names(spot) if name in row.calls}
    if called and (under is None or last_name(under.name) in map(last_name, called)):
        return 1.0, None
    return None


def _value(one: CodeLine) -> float:
    return one.value


def _is_rare(document: RunDocument, row: CostlyFunction, spot: HotSpot, function: CodeLine | None) -> bool:
    """Whether a count says that it is done a few times alone."""
    calls = spot.under.calls if spot.under is not None else None
    if function is not None:
        path = with_slashes(function.file)
        counted = counted_function(document, last_name(function.function), (path,))
        calls = (counted.calls or 0) if counted is not None else calls
    if row.often:
        return (calls or 0) < row.often
    return calls is not None and calls < SEVERAL and (row.loop or function is None)


PATTERNS: tuple[Find, ...] = (costly_helper,)
