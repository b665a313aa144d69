"""Find out why one of two versions is slower: the cheapest evidence first, and no more than is needed.

Of a Python program the calls are counted (cProfile, up to three runs of each version). If they explain the
change, that is all. Else each version is run once under the other instruments, within the time that is left.
Both versions run side by side if there are processors: nothing is timed now. On a device its kernels are the
evidence, in one run of each version after the other.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from profkit.analysis.function_names import brief_name
from profkit.backends import backend_named
from profkit.backends.passes import divide_profile, read_region_work
from profkit.core.errors import Progress, UnreadableReport
from profkit.core.statistics import median
from profkit.core.types import (
    Cause,
    Change,
    CodeChange,
    ComparisonOutcome,
    Fact,
    Frame,
    Hotspot,
    PassName,
    RunDocument,
)
from profkit.hardware.machine import usable_cores
from profkit.profiling.run_steps import at_once
from profkit.regression.paired.checkout import Version
from profkit.regression.profile_process import END_SECONDS, ProfileRequest, ProfileResult, profile_once

MIN_SHARE = 0.01  # of the profiled time: what could explain a change that counts
# Of the change of the time: as much as that must lie in the further calls. cProfile makes Python functions several
# times slower and built-in ones hardly, so that the share of these is too small.
EXPLAINED = 0.25
MAX_CHANGES = 5
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
    """A function that is called more (or less) often.

    `share` of the profiled time is what its further calls take.
    """

    function: Key
    before: float
    after: float
    share: float
    caller: Key | None = None
    line: int | None = None  # where the caller begins, or where that is not known the function

    def fact(self, per: str) -> Fact:
        """Say how often it is called, by whom, and where that is."""
        if self.caller is None and not self.line:
            return self.short(per)
        file, name = self.caller or self.function
        code = "calls-at" if self.caller is None else "calls-from"
        place = f"{file}:{self.line}" if self.line else file
        return Fact.of(code, **self._counts(per), caller=name, place=place)

    def short(self, per: str) -> Fact:
        """Say how often it is called, without the caller."""
        return Fact.of("calls", **self._counts(per))

    def _counts(self, per: str) -> dict[str, float | str]:
        function = brief_name(self.function[1])
        return {"function": function, "before": self.before, "after": self.after, "per": per}


def counts_of(document: RunDocument, root: Path | None, iterations: int = 1) -> FunctionCalls | None:
    """Return the calls in one run, divided by `iterations`; None if it was not under cProfile."""
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
    """Return the calls by caller and callee; calls from a comprehension belong to the function around it."""
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


def steady(runs: Sequence[FunctionCalls], unsteady: set[Key]) -> FunctionCalls:
    """Return the counts of one version without the `unsteady` functions, with the medians of the shares."""
    first = runs[0]
    same = first.calls.keys() - unsteady
    return FunctionCalls(
        {key: calls for key, calls in first.calls.items() if key in same},
        {key: median([run.shares[key] for run in runs]) for key in same},
        {pair: calls for pair, calls in first.edges.items() if pair[1] in same},
        first.lines,
        first.libraries,
    )


def changed_calls(before: FunctionCalls, after: FunctionCalls, *, worse: bool) -> tuple[CallChange, ...]:
    """Return the functions whose further calls take a share of the time, the largest first.

    For a slower version these are the functions called more, for a faster one those called less: the others
    explain nothing. Of a chain of calls only the first is named.
    """
    more, less = (after, before) if worse else (before, after)
    changes = []
    for key, calls in more.calls.items():
        was = less.calls.get(key, 0.0)
        share = (1 - was / calls) * min(1.0, more.shares[key]) if calls > was else 0.0
        if share < MIN_SHARE:
            continue
        caller = _caller(key, more, less)
        if caller is None and key in more.libraries:
            continue
        if caller is not None:
            rise = _rise(caller, more, less) - 1
            if rise > 0 and rise >= _FOLLOWS * (_rise(key, more, less) - 1):
                continue  # it is itself called so much more often that this explains what it calls
        line = more.lines.get(caller or key)
        numbers = (was, calls) if worse else (calls, was)
        changes.append(CallChange(key, *numbers, share, caller, line))
    plain = {change.caller for change in changes if change.function[1] not in _INSIDE}
    kept = [c for c in changes if c.function[1] not in _INSIDE or c.caller not in plain]
    return tuple(sorted(kept, key=lambda change: -change.share)[:MAX_CHANGES])


def explains(changes: Sequence[CallChange], ratio: float | None) -> bool:
    """Return whether the further calls are large enough for `ratio`, the time of candidate over baseline."""
    if ratio is None or ratio <= 0:
        return False
    change = 1 - min(ratio, 1 / ratio)
    return sum(change_of_calls.share for change_of_calls in changes) >= EXPLAINED * change > 0


def _rise(key: Key, more: FunctionCalls, less: FunctionCalls) -> float:
    was = less.calls.get(key, 0.0)
    return more.calls.get(key, 0.0) / was if was else float("inf")


def _caller(key: Key, more: FunctionCalls, less: FunctionCalls) -> Key | None:
    """Return who makes most of the further calls; None if that is unknown, or they come from inside a library."""
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
    """Return the file as git names it; unchanged if it lies elsewhere, empty if none is known."""
    path = Path(file or "")
    if root is not None and path.is_absolute() and path.is_relative_to(root):
        return str(path.relative_to(root))
    return file or ""


def _place(spot: Hotspot | Frame) -> _Place:
    return spot.file, spot.line, spot.function


# ---------------------------------------------------------------- the calls that were counted


MAX_SECONDS = 60.0  # and never more than the pairs may take
# of a program on a device: its start and a trace of it take long, and are what tells most
DEVICE_SECONDS = 240.0
AROUND_SHARE = 0.2  # of a profile's time: its start, the end of a tool, the reports
ROUNDS = 3  # runs of each version under cProfile, for what is not exact
MIN_LEFT = 8.0  # seconds below which no further instrument is started
FURTHER_PASSES: tuple[PassName, ...] = ("stacks", "counters", "trace")
_COUNTED_BY = {"work": "instructions", "bytes": "dram.bytes"}  # the metric that a kind of cause rests on
_INTERPRETER = re.compile(r"(lib)?python[\d.]*t?(\.so[\d.]*)?|libc[.-].*|ld-linux.*")
_SEED = {"PYTHONHASHSEED": "0"}  # so that both versions call the same functions as often


@dataclass(frozen=True)
class Reason:
    """What was found. `profiled`: the runs of both versions under cProfile.

    `documents`: the last run of each version.
    """

    documents: tuple[RunDocument, ...] = ()
    profiled: tuple[tuple[RunDocument, ...], tuple[RunDocument, ...]] = ((), ())
    calls: tuple[CallChange, ...] = ()
    per: str = "run"
    notes: tuple[Fact, ...] = ()

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Return the further calls as causes."""
        how = Fact.of("calls-counted", runs=len(self.profiled[0]))
        return tuple(
            Cause("calls", change.fact(self.per), evidence=(how,) if not number else ())
            for number, change in enumerate(self.calls)
        )


@dataclass
class Search:
    """The search for the reason of `change`. `request` makes a request without passes.

    `budget`: seconds of the pairs.
    """

    versions: tuple[Version, Version]
    change: Change
    request: Callable[[Version], ProfileRequest]
    folder: Path
    progress: Progress
    budget: float
    found: Reason = Reason()  # so far: a Ctrl-C leaves it
    _begin: float = field(default_factory=time.monotonic)
    _number: int = 0
    _on_device: bool = False

    @property
    def limit(self) -> float:
        """Return the seconds for the whole search."""
        return DEVICE_SECONDS if self._on_device else min(MAX_SECONDS, self.budget)

    def run(self) -> Reason:
        """Search for the reason and return it, without documents if a version failed under its instruments."""
        self.progress.begin(
            "why", f"both versions under the profilers, at most {self.limit:.0f} s; Ctrl-C ends it"
        )
        reason, explained = self._count_calls()
        left = self.limit - (time.monotonic() - self._begin)
        names = ", ".join(FURTHER_PASSES)
        if explained:
            reason = replace(reason, notes=(Fact.of("calls-told", passes=names),))
        elif left < MIN_LEFT:
            reason = replace(reason, notes=(Fact.of("no-time-left", passes=names),))
        else:
            results = self._profile_both(FURTHER_PASSES, left)
            failed = next((result.reason for result in results if result.reason), None)
            if documents := _documents(results):
                reason = replace(reason, documents=documents)
            elif failed is not None:
                reason = replace(reason, notes=(Fact.of("failed-profiled", failed),))
        self.progress.end(f"{time.monotonic() - self._begin:.1f} s")
        return reason

    def _count_calls(self) -> tuple[Reason, bool]:
        """Run each version up to three times under cProfile.

        Return the reason and whether the counts explain it.
        """
        runs: tuple[list[RunDocument], list[RunDocument]] = [], []
        counted: tuple[list[FunctionCalls], list[FunctionCalls]] = [], []
        reason = Reason()
        for number in range(ROUNDS):
            began = time.monotonic()
            results = self._profile_both(("cprofile",), self.limit - (began - self._begin))
            documents = _documents(results)
            self._on_device = any(backend_named(document.backend).has_device for document in documents)
            iterations = [_iterations(result) for result in results]
            pairs = [
                counts_of(document, version.root, count or 1)
                for document, version, count in zip(documents, self.versions, iterations, strict=False)
            ]
            if len(pairs) < 2 or pairs[0] is None or pairs[1] is None:
                break  # no Python program, or one that ends otherwise under cProfile
            for side, counts in enumerate(pairs):
                parts = (divide_profile(p, iterations[side] or 1) for p in documents[side].profiles)
                runs[side].append(replace(documents[side], profiles=tuple(parts)))
                if counts is not None:
                    counted[side].append(counts)
            calls = _calls_of(counted, worse=self.change.course == "worse")
            per = "iteration" if any(iterations) else "run"
            self.found = reason = Reason(documents, (tuple(runs[0]), tuple(runs[1])), calls, per)
            if self._on_device:
                break
            now = time.monotonic()
            explained = explains(calls, self.change.ratio)
            if (explained and number) or self.limit - (now - self._begin) < 1.5 * (now - began):
                return reason, explained
        return reason, False

    def _profile_both(self, passes: tuple[PassName, ...], seconds: float) -> list[ProfileResult]:
        """Run each version once under these instruments, side by side if there are two processors."""
        self._number += 1
        workers = 2 if len(usable_cores()) > 1 and not self._on_device else 1
        seconds_each = max(1.0, seconds if workers == 2 else seconds / 2)

        def task(side: int, version: Version) -> Callable[[threading.Event], ProfileResult]:
            request, into = (
                self._request(version, passes, seconds_each),
                self.folder / f"why-{side}-{self._number}",
            )
            return lambda cancel: profile_once(request, into, None, cancel)

        tasks = [task(side, version) for side, version in enumerate(self.versions)]
        elapsed = time.monotonic() - self._begin
        return at_once(tasks, workers, lambda seconds: self.progress.tick(elapsed + seconds))

    def _request(self, version: Version, passes: tuple[PassName, ...], seconds: float) -> ProfileRequest:
        request = self.request(version)
        env = {**request.env, **_SEED}
        limit = (1 - AROUND_SHARE) * seconds
        return replace(request, passes=passes, env=env, passes_budget=limit, budget=seconds + END_SECONDS)


def _documents(results: list[ProfileResult]) -> tuple[RunDocument, ...]:
    """Return the documents of both versions, or none unless both are complete."""
    documents = tuple(result.document for result in results if result.document is not None and result.ok)
    return documents if len(documents) == len(results) else ()


def _iterations(result: ProfileResult) -> int | None:
    """Return the iterations of what the program marks, under cProfile; None if it marks nothing."""
    with contextlib.suppress(UnreadableReport, OSError):
        work = read_region_work(result.folder, "cprofile") if result.folder is not None else None
        return work.iterations if work is not None and work.marked else None
    return None


def _calls_of(
    counted: tuple[list[FunctionCalls], list[FunctionCalls]], *, worse: bool
) -> tuple[CallChange, ...]:
    """Return the changed calls, without functions that a version calls a different number of times in each run."""
    every = {key for runs in counted for run in runs for key in run.calls}
    unsteady = {
        key for key in every if any(len({run.calls.get(key) for run in runs}) > 1 for runs in counted)
    }
    before, after = (steady(runs, unsteady) for runs in counted)
    return changed_calls(before, after, worse=worse)


def exact_functions(
    documents: Sequence[RunDocument], functions: Sequence[CodeChange], outcome: ComparisonOutcome
) -> tuple[CodeChange, ...]:
    """Return the functions that were counted rather than timed, and that changed as the time did.

    If the simulation saw only a part of the program, the parts of both versions are not the same, and none is
    returned.
    """
    for document in documents:  # of a simulation that was cut off the number of instructions is not known
        totals = [
            reading
            for reading in document.readings
            if reading.metric == "instructions" and reading.scope.kind == "run"
        ]
        if all(reading.value is None for reading in totals):
            return ()
    words = {"regressed": ("slower", "appeared"), "improved": ("faster", "vanished")}.get(outcome)
    return tuple(
        function
        for function in functions
        if function.unit == "instructions" and (words is None or function.word in words)
    )


def without_interpreter(document: RunDocument) -> RunDocument:
    """Remove the interpreter's own functions from a Python program's run: they say nothing to its author."""
    if document.workload.python is None:
        return document
    profiles = tuple(
        replace(
            profile,
            hotspots=tuple(
                s for s in profile.hotspots if not _INTERPRETER.fullmatch(PurePath(s.library or "").name)
            ),
        )
        if profile.unit == "instructions"
        else profile
        for profile in document.profiles
    )
    return replace(document, profiles=profiles)


def fitting_causes(
    causes: Sequence[Cause], changes: Sequence[Change], outcome: ComparisonOutcome
) -> tuple[Cause, ...]:
    """Return the causes without those that would change the time the other way: more work is no reason for less.

    `changes` are those of the counts that the causes rest on.
    """
    against = {"regressed": "better", "improved": "worse"}.get(outcome)
    courses = {(change.metric, change.scope): change.course for change in changes}
    return tuple(
        cause
        for cause in causes
        if against is None or courses.get((_COUNTED_BY.get(cause.kind, ""), cause.scope)) != against
    )
