"""Which functions are called more often than before, and by whom: cProfile's counts, the same on a busy machine.

A count is used only where all runs of one version agree on it. Seconds of cProfile choose which counts are worth
saying, and are not shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.analysis.insights.host_calls import brief_name
from profkit.core.statistics import median
from profkit.core.types import Fact, Frame, Hotspot, RunDocument

LEAST_SHARE = 0.01  # of the profiled time: what could explain a change that counts
# Of the change of the time: as much as that must lie in the further calls. cProfile makes Python functions several
# times slower and built-in ones hardly, so that the share of these is too small.
EXPLAINED = 0.25
MOST = 5
_FOLLOWS = 0.9  # a caller that is itself called so many times as often as what it calls explains that
_INSIDE = (
    "<listcomp>",
    "<setcomp>",
    "<dictcomp>",
    "<genexpr>",
    "<lambda>",
)  # parts of the function around them
Key = tuple[str, str]  # the file inside the repository, or the library's name; the function
_Place = tuple[str | None, int | None, str]  # file, line, function


@dataclass(frozen=True)
class FunctionCalls:
    """Calls of one version for one run (or one iteration of what it marks); `shares` of the profiled time, 0..1."""

    calls: Mapping[Key, float]
    shares: Mapping[Key, float]
    edges: Mapping[tuple[Key, Key], float]  # caller, callee
    lines: Mapping[Key, int]
    libraries: frozenset[Key]


@dataclass(frozen=True)
class CallChange:
    """A function that is called more (or less) often. `share` of the profiled time is what its further calls take."""

    function: Key
    before: float
    after: float
    share: float
    caller: Key | None = None
    line: int | None = None  # where the caller begins, or where that is not known the function

    def fact(self, per: str) -> Fact:
        """How often it is called, by whom, and where that is."""
        where: dict[str, str] = {}
        code = "calls"
        if self.caller is not None:
            place = f"{self.caller[0]}:{self.line}" if self.line else self.caller[0]
            code, where = "calls-from", {"caller": self.caller[1], "place": place}
        elif self.line:
            code, where = "calls-at", {"place": f"{self.function[0]}:{self.line}"}
        return Fact.of(code, **self._counts(per), **where)

    def short(self, per: str) -> Fact:
        """The same without the caller."""
        return Fact.of("calls", **self._counts(per))

    def _counts(self, per: str) -> dict[str, float | str]:
        function = brief_name(self.function[1])
        return {"function": function, "before": self.before, "after": self.after, "per": per}


def counts_of(document: RunDocument, root: Path | None, iterations: int = 1) -> FunctionCalls | None:
    """The counts of one run, divided by `iterations`; None where it was not under cProfile."""
    profile = next((p for p in document.profiles if p.kind == "own-time"), None)
    if profile is None or profile.total <= 0:
        return None
    calls: dict[Key, float] = defaultdict(float)
    shares: dict[Key, float] = defaultdict(float)
    lines: dict[Key, int] = {}
    libraries = set()
    for spot in profile.hotspots:
        key = _key(spot.file, spot.library, spot.function, root)
        calls[key] += (spot.calls or 0) / iterations
        shares[key] += (spot.total or spot.own) / profile.total
        if spot.line:
            lines.setdefault(key, spot.line)
        if spot.library is not None:
            libraries.add(key)
    return FunctionCalls(calls, shares, _edges(document, root, iterations), lines, frozenset(libraries))


def _edges(document: RunDocument, root: Path | None, iterations: int) -> Mapping[tuple[Key, Key], float]:
    """Calls by caller and callee; what a comprehension calls is called by the function around it."""
    spots = [spot for p in document.profiles if p.kind == "program-calls" for spot in p.hotspots]
    around: dict[_Place, Hotspot] = {}
    for spot in sorted(spots, key=lambda spot: spot.calls or 0):
        if spot.callee is not None and spot.callee.function in _INSIDE:
            around[_place(spot.callee)] = spot
    edges: dict[tuple[Key, Key], float] = defaultdict(float)
    for spot in spots:
        caller, depth = spot, 0
        while _place(caller) in around and depth < len(_INSIDE):
            caller, depth = around[_place(caller)], depth + 1
        if spot.callee is not None:
            first = _key(caller.file, caller.library, caller.function, root)
            second = _key(spot.callee.file, spot.callee.library, spot.callee.function, root)
            edges[first, second] += (spot.calls or 0) / iterations
    return edges


def steady(runs: Sequence[FunctionCalls]) -> FunctionCalls:
    """The counts on which all runs of one version agree; of their shares the median."""
    first = runs[0]
    same = {key for key, calls in first.calls.items() if all(run.calls.get(key) == calls for run in runs)}
    return FunctionCalls(
        {key: calls for key, calls in first.calls.items() if key in same},
        {key: median([run.shares[key] for run in runs]) for key in same},
        {pair: calls for pair, calls in first.edges.items() if pair[1] in same},
        first.lines,
        first.libraries,
    )


def changed_calls(
    before: FunctionCalls, after: FunctionCalls, unsteady: frozenset[Key], *, worse: bool
) -> tuple[CallChange, ...]:
    """The functions whose further calls take a share of the time, the largest first.

    Of a version that is slower those that are called more, of a faster one those that are called less: the others
    explain nothing. Of a chain of calls only the first is named. `unsteady`: functions that a version calls another
    number of times in each run.
    """
    more, less = (after, before) if worse else (before, after)
    found = []
    for key, calls in more.calls.items():
        was = less.calls.get(key, 0.0)
        share = (1 - was / calls) * min(1.0, more.shares[key]) if calls > was else 0.0
        if share < LEAST_SHARE or key in unsteady:
            continue
        caller = _caller(key, more, less)
        if caller is None and key in more.libraries:
            continue
        if caller is not None and _follows(key, caller, more, less):
            continue
        line = more.lines.get(caller or key)
        numbers = (was, calls) if worse else (calls, was)
        found.append(CallChange(key, *numbers, share, caller, line))
    plain = {change.caller for change in found if change.function[1] not in _INSIDE}
    kept = [c for c in found if c.function[1] not in _INSIDE or c.caller not in plain]
    return tuple(sorted(kept, key=lambda change: -change.share)[:MOST])


def explains(changes: Sequence[CallChange], ratio: float | None) -> bool:
    """Whether the further calls are large enough for the change of the time, candidate over baseline."""
    if ratio is None or ratio <= 0:
        return False
    change = 1 - min(ratio, 1 / ratio)
    return sum(one.share for one in changes) >= EXPLAINED * change > 0


def _follows(key: Key, caller: Key, more: FunctionCalls, less: FunctionCalls) -> bool:
    """Whether `caller` is itself called so much more often that this explains what it calls."""
    rise = _rise(caller, more, less) - 1
    return rise > 0 and rise >= _FOLLOWS * (_rise(key, more, less) - 1)


def _rise(key: Key, more: FunctionCalls, less: FunctionCalls) -> float:
    was = less.calls.get(key, 0.0)
    return more.calls.get(key, 0.0) / was if was else float("inf")


def _caller(key: Key, more: FunctionCalls, less: FunctionCalls) -> Key | None:
    """Who makes most of the further calls; None where that is not known, or they come from inside a library."""
    rises = {
        caller: calls - less.edges.get((caller, callee), 0.0)
        for (caller, callee), calls in more.edges.items()
        if callee == key and caller != key and caller not in more.libraries
    }
    return (
        max(rises, key=lambda caller: rises[caller], default=None)
        if max(rises.values(), default=0) > 0
        else None
    )


def _key(file: str | None, library: str | None, function: str, root: Path | None) -> Key:
    if file is None or library is not None:
        return library or "", function
    return path_inside(file, root), function


def path_inside(file: str | None, root: Path | None) -> str:
    """The file as git names it; as it is where it lies elsewhere, empty where none is known."""
    path = Path(file or "")
    if root is not None and path.is_absolute() and path.is_relative_to(root):
        return str(path.relative_to(root))
    return file or ""


def _place(spot: Hotspot | Frame) -> _Place:
    return spot.file, spot.line, spot.function
