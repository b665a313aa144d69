"""By how much each function takes more in one of two versions: seconds under cProfile, or counted instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.statistics import median
from profkit.core.types import Fact, Hotspot, Profile, RunDocument
from profkit.regression.paired.why import ROUNDS, Reason, is_counted

LEAST_RISE = 0.1  # of the function's own value before: what a tracer's noise does not reach
LEAST_SHARE = 0.01  # of the whole: what could explain a change that counts
Key = tuple[str, str]  # the file (empty where a profile names none), the function


@dataclass(frozen=True)
class Rise:
    """`share` of all by which it rose, with what it calls or (`own`) without; `size`: its share of all now, 0..1."""

    share: float
    why: Fact
    size: float


@dataclass(frozen=True)
class Rises:
    """Functions that rose, without what they call and with it, and who calls whom, where that is known."""

    own: Mapping[Key, Rise]
    whole: Mapping[Key, Rise]
    below: Mapping[Key, frozenset[Key]] | None = None

    def calls(self, caller: Key, callee: Key) -> bool:
        """Whether `callee` runs below `caller`, as far as is known."""
        return self.below is None or callee in self.below.get(caller, frozenset())


def rises_of(reason: Reason, first: Path, second: Path) -> Rises:
    """The functions that take more in the second version; the folders are those of the code of both.

    Seconds only of functions that took longer in each of three runs of the candidate than in each of three of the
    baseline, which ran beside them, since cProfile's seconds are those of a busy machine.
    """
    own: dict[Key, Rise] = {}
    whole: dict[Key, Rise] = {}
    below: Mapping[Key, frozenset[Key]] | None = None
    if all(len(runs) >= ROUNDS for runs in reason.profiled):
        before, after = reason.profiled
        _add(own, _seconds(before, first, own=True), _seconds(after, second, own=True), "own-seconds")
        _add(whole, _seconds(before, first, own=False), _seconds(after, second, own=False), "seconds")
        below = _below(after[-1], second)
    if len(reason.documents) == 2 and all(map(is_counted, reason.documents)):
        found = [
            [_instructions(document, root, own=one) for one in (True, False)]
            for document, root in zip(reason.documents, (first, second), strict=True)
        ]
        if all(measured is not None for pair in found for measured in pair):
            counts = [[m for m in pair if m is not None] for pair in found]
            _add(own, counts[0][:1], counts[1][:1], "own-instructions")
            _add(whole, counts[0][1:], counts[1][1:], "instructions")
            below = None if whole else below
    return Rises(own, whole, below)


_Measured = tuple[float, Mapping[Key, float]]  # the whole, and the value of each function


def _add(rises: dict[Key, Rise], before: Sequence[_Measured], after: Sequence[_Measured], code: str) -> None:
    if not before or not after:
        return
    everything = median([whole for whole, _ in after])
    for key in {key for _, values in after for key in values}:
        lows, highs = ([values.get(key, 0.0) for _, values in side] for side in (before, after))
        was, now = median(lows), median(highs)
        share = (min(highs) - max(lows)) / everything
        rose = share >= LEAST_SHARE and now - was >= LEAST_RISE * was
        if rose and (key not in rises or share > rises[key].share):
            rises[key] = Rise(share, Fact.of(code, before=was, after=now), now / everything)


def _seconds(runs: Sequence[RunDocument], root: Path, *, own: bool) -> list[_Measured]:
    """Of each run, by function: seconds with what it calls, or `own` with built-in functions and libraries alone."""
    found: list[_Measured] = []
    for document in runs:
        for profile in document.profiles:
            if profile.kind == "own-time" and profile.total > 0:
                values = _direct(document, profile, root) if own else _with_calls(profile, root)
                found.append((profile.total, values))
    return found


def _instructions(document: RunDocument, root: Path, *, own: bool) -> _Measured | None:
    """By function of machine code; None where none were counted."""
    for profile in document.profiles:
        if profile.unit == "instructions" and profile.kind != "counted-lines" and profile.total > 0:
            return profile.total, _itself(profile, root) if own else _with_calls(profile, root)
    return None


def _direct(document: RunDocument, own: Profile, root: Path) -> dict[Key, float]:
    """Seconds in each function itself and in what it calls that is none of the program's own functions.

    A function near the top of the program (one that calls all handlers, say) has nearly all of the time below it: what
    was added to the function itself is little of that, and much of this.
    """
    values: dict[Key, float] = {}
    for hotspot in own.hotspots:
        if hotspot.library is None and hotspot.function != "<module>":
            key = path_inside(hotspot.file, root), hotspot.function
            values[key] = values.get(key, 0.0) + hotspot.own
    for profile in document.profiles:
        if profile.kind != "program-calls":
            continue
        for edge in profile.hotspots:
            key = path_inside(edge.file, root), edge.function
            if key in values and edge.callee is not None and edge.callee.library is not None:
                values[key] += edge.total or 0.0
    return values


def _itself(profile: Profile, root: Path) -> dict[Key, float]:
    values: dict[Key, float] = {}
    for hotspot in profile.hotspots:
        key = _key(hotspot, root)
        values[key] = values.get(key, 0.0) + hotspot.own
    return values


def _with_calls(profile: Profile, root: Path) -> dict[Key, float]:
    values: dict[Key, float] = {}
    for hotspot in profile.hotspots:
        # Of a module all that it imports would count: that is not its own.
        total = hotspot.total if hotspot.total is not None and hotspot.function != "<module>" else hotspot.own
        key = _key(hotspot, root)
        values[key] = values.get(key, 0.0) + (total or 0.0)
    return values


def _below(document: RunDocument, root: Path) -> dict[Key, frozenset[Key]] | None:
    """All functions that run below each, by cProfile's calls; None where they are not known."""
    calls: dict[Key, set[Key]] = {}
    for profile in document.profiles:
        if profile.kind == "program-calls":
            for edge in profile.hotspots:
                if edge.callee is not None:
                    callee = path_inside(edge.callee.file, root), edge.callee.function
                    calls.setdefault((path_inside(edge.file, root), edge.function), set()).add(callee)
    if not calls:
        return None
    found = {}
    for caller in calls:
        seen: set[Key] = set()
        left = [caller]
        while left:
            new = calls.get(left.pop(), set()) - seen
            seen |= new
            left.extend(new)
        found[caller] = frozenset(seen)
    return found


def hot_lines(reason: Reason, root: Path) -> dict[tuple[str, int], float]:
    """Of the candidate, by file and line: its share of all counted instructions, 0..1, of the costliest lines."""
    found: dict[tuple[str, int], float] = {}
    if len(reason.documents) == 2 and all(map(is_counted, reason.documents)):
        for profile in reason.documents[1].profiles:
            if profile.kind == "counted-lines" and profile.total > 0:
                for spot in profile.hotspots:
                    if spot.line is not None:
                        place = path_inside(spot.file, root), spot.line
                        found[place] = found.get(place, 0.0) + spot.own / profile.total
    return found


def _key(hotspot: Hotspot, root: Path) -> Key:
    return path_inside(hotspot.file, root), hotspot.function.split("(")[0].rpartition("::")[2]


def path_inside(file: str | None, root: Path) -> str:
    """The file as git names it; as it is where it lies elsewhere, empty where none is known."""
    if file is None:
        return ""
    path = Path(file)
    if path.is_absolute() and path.is_relative_to(root):
        return str(path.relative_to(root))
    return file
