"""Functions of the libraries of C, C++ and Rust for which there is a much cheaper way.

The functions are in a table (`costly_native.yaml`); this module checks whether a row of it holds at a place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.analysis.judge.rules.spots import Find, say
from profkit.analysis.judge.words import words
from profkit.core.formatting import percent_text
from profkit.core.tables import load_yaml
from profkit.core.types import CodeLine, CodeSpot, Insight, Place, RunDocument

TABLE = Path(__file__).with_name("costly_native.yaml")
MIN_SHARE_OF_RUN, MIN_SECONDS = (
    0.05,
    0.1,
)  # with less, few samples tell it, and nobody would notice that it is gone
BESIDE = 0.1  # of a place's time: for the functions that a row requires beside its own
THERE = 0.01  # of a place's time: enough to tell the type of a container


@dataclass(frozen=True)
class NativeFunctions:
    """A row of costly_native.yaml, which says what each field is."""

    id: str
    functions: str
    title: str
    change: str
    text: str = ""
    without: str = ""
    unless: str = ""
    absent: str = ""
    also: str = ""
    beside: float = BESIDE
    undone: str = ""
    least: float = 0.3
    run: float = 0.0
    direct: bool = False
    in_c: str = ""  # the change for a file of C, where the library of C++ is not available
    not_in_c: str = ""  # what the source line must not have there
    unlined: Mapping[str, Any] = field(default_factory=dict)

    def of_function(self) -> NativeFunctions | None:
        """Return the row for a function whose lines are not known; None where it is proved by lines alone."""
        if not self.unlined:
            return None if self.text or self.without else self
        return replace(self, **{"text": "", "without": "", "unlined": {}, **self.unlined})

    def change_for(self, where: Place) -> str:
        """Return the change in the words of the language of a place."""
        return self.in_c if self.in_c and _is_of_c(where) else self.change

    def most_in(self, below: tuple[CodeLine, ...]) -> CodeLine | None:
        """Return the function of the row that has most of a place's time; None where that is less than `least`."""
        most = _most(self.functions, below)
        return most if most is not None and most.value >= self.least else None

    def share_of(self, spot: CodeSpot) -> float:
        """Return the share (0..1) of a place's time in the row's functions, and in those that undo their work."""
        done, undone = _most(self.functions, spot.below), _most(self.undone, spot.below)
        return min(1.0, sum(frame.value for frame in (done, undone) if frame is not None))

    def fits(self, spot: CodeSpot, source: str) -> bool:
        """Return whether the place's source line has what the row asks for, and nothing else takes the time."""
        other = _most(self.unless, spot.below) if self.unless else None
        beside = _most(self.also, spot.below) if self.also else None
        wrong = _most(self.absent, spot.below) if self.absent else None
        return (
            (not self.text or re.search(self.text, source) is not None)
            and (not self.without or re.search(self.without, source) is None)
            and (not self.not_in_c or not _is_of_c(spot.where) or re.search(self.not_in_c, source) is None)
            and (other is None or other.value < self.least)
            and (wrong is None or wrong.value < THERE)
            and (not self.also or (beside is not None and beside.value >= self.beside))
            and spot.share >= self.run
            and (not self.direct or _is_called_directly(self.functions, spot.below))
        )


def _is_of_c(where: Place) -> bool:
    return (where.file or "").endswith(".c")


def _is_called_directly(pattern: str, below: tuple[CodeLine, ...]) -> bool:
    """Return whether a place itself calls such a function: a caller in between would have as much time."""
    most = _most(pattern, below)
    others = (frame.value for frame in below if not re.fullmatch(pattern, frame.function))
    return most is not None and max(others, default=0.0) < most.value


def _most(pattern: str, below: tuple[CodeLine, ...]) -> CodeLine | None:
    return max(
        (frame for frame in below if re.fullmatch(pattern, frame.function)),
        key=lambda frame: frame.value,
        default=None,
    )


@lru_cache(maxsize=1)
def native_functions() -> tuple[NativeFunctions, ...]:
    """Return the rows of the table, in its order."""
    return tuple(NativeFunctions(**row) for row in load_yaml(TABLE))


@lru_cache(maxsize=1)
def unlined_functions() -> tuple[NativeFunctions, ...]:
    """Return the rows that hold for functions whose lines are not known."""
    return tuple(unlined for row in native_functions() if (unlined := row.of_function()) is not None)


def costly_native(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return the row of the table whose functions take most of a place's time, told once for all places of it."""
    found = costly_row(spot)
    if found is None or (spot.code is not None and spot.code.find("copied-to-grow")):
        return None  # which another rule says of the copy and of what is added to it together
    row, most = found
    alike = [
        (hot_spot, row.share_of(hot_spot))
        for hot_spot in document.hot_spots
        if (of := costly_row(hot_spot)) is not None and of[0] is row
    ]
    taken = sum(hot_spot.share * in_row for hot_spot, in_row in alike)
    seconds = sum(hot_spot.seconds * in_row for hot_spot, in_row in alike)
    if (
        taken < MIN_SHARE_OF_RUN
        or seconds < MIN_SECONDS
        or spot is not max((hot_spot for hot_spot, _ in alike), key=lambda hot_spot: hot_spot.share)
    ):
        return None
    place = "line" if spot.where.file is not None else "function"
    also = (
        f", and at {len(alike) - 1} more {place}s"
        if len(alike) > 2
        else f", and at one more {place}" * (len(alike) - 1)
    )
    evidence, change = (
        f"{percent_text(100 * most.value)} of this is in {most.function} below it{also}",
        row.change_for(spot.where),
    )
    by_value = next(iter(spot.code.find("by-value")), None) if spot.code is not None else None
    if row.id in ("vector-copied", "container-copied") and by_value is not None:
        declared, _, name = by_value.how.rpartition(" ")
        evidence += f"; {by_value.name} takes {by_value.how} by value"
        change = words("copies.argument", "host").format(type=declared, name=name)
    return say(spot, "costly-native", row.title, evidence, taken, change=change)


def costly_row(spot: CodeSpot) -> tuple[NativeFunctions, CodeLine] | None:
    """Return the row whose functions have most of a place's time, with the first of them.

    A place is a line, or a function where the program has no debug information.
    """
    if spot.kind != "native":
        return None
    rows = native_functions() if spot.where.file is not None else unlined_functions()
    source = spot.code.text if spot.code is not None else ""
    proofs = ((row, row.most_in(spot.below)) for row in rows if row.fits(spot, source))
    return max(
        ((row, most) for row, most in proofs if most is not None),
        key=lambda found: found[1].value,
        default=None,
    )


PATTERNS: tuple[Find, ...] = (costly_native,)
