"""Collect what two runs show, and derive the outcome from the metrics that decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from profkit.core.types import (
    RUN,
    Change,
    CodeChange,
    ComparisonOutcome,
    Fact,
    RunDocument,
    Scope,
)
from profkit.regression.compare.kernels import KernelPair, MatchedKernels
from profkit.regression.compare.metrics import LONGER, readings_of

_SHARE = 0.02  # of the GPU time: kernels that take less decide nothing
COLLAPSE = 0.1  # of the time before: an improvement as large as that is not believed
_COURSES = {"worse": 0, "neither": 1, "better": 2}
_WORDS = {"different": 0, "ambiguous": 1, "same": 2}
# The kinds of time and of work, the best first: the first that there is may leave the outcome open.
_PRIMARY = (
    "time.median", "time.geometric_mean", "time.total", "time.gpu", "time.kernel", "time.cpu", "cycles",
    "instructions",
)  # fmt: skip


def deciding_changes(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes that may set the outcome: those that decide, and without sampled times the stand-ins."""
    timed = any(c.role == "decides" and c.metric.startswith("time.") for c in changes)
    roles = ("decides",) if timed else ("decides", "stands-in")
    return tuple(c for c in changes if c.role in roles)


class Decided(NamedTuple):
    """The word for a comparison, why, and what would decide it if it is open."""

    word: ComparisonOutcome
    why: Fact
    fix: Fact | None = None


ALIKE = Decided("same", Fact("one-run"))


@dataclass(frozen=True)
class CompareOptions:
    """How two runs are compared.

    `force`: even if they are not alike. `metrics` are the only ones to look at, and each of them decides; empty:
    those of `rules.yaml`. `floor` is the relative change that counts (0.02 is 2 %) instead of every metric's own.
    `paths`: where the two runs are.
    """

    force: bool = False
    metrics: tuple[str, ...] = ()
    floor: float | None = None
    paths: tuple[str, str] = ("", "")


DEFAULTS = CompareOptions()


def outcome_of(
    changes: Sequence[Change], kernels: Sequence[CodeChange] = (), *, metric_named: bool = False
) -> Decided:
    """Return the outcome, by the metrics that decide.

    `regressed`: a metric that decides is "different" for the worse, whatever became better. `ambiguous`: a time
    (or what stands in for it) is open. `improved`: something better and nothing worse. `changed`: only what is
    neither good nor bad, or decides nothing. Else `same`. A time that fell to a tenth or less is no improvement
    yet, unless the metric was named (`metric_named`): most often the work was not done.
    """
    decisive = deciding_changes(changes)
    different = [change for change in worst_first(decisive) if change.word == "different"]
    worse = [change for change in different if change.course == "worse"]
    if worse:
        return Decided("regressed", _leading(worse))
    # What may leave it open: the times that were sampled, else one kind of time, else one kind of work.
    kinds = ([c for c in decisive if c.metric == metric] for metric in _PRIMARY)
    primary = next(filter(None, kinds), list(decisive))
    undecided = sorted((c for c in primary if c.word == "ambiguous"), key=lambda c: -abs(_size(c)))
    if undecided:
        return Decided("ambiguous", _about("open", undecided[0]), undecided[0].fix or LONGER)
    better = [change for change in different[::-1] if change.course == "better"]
    fallen = [c for c in better if c.unit == "s" and c.ratio is not None and c.ratio <= COLLAPSE]
    if fallen and not metric_named:
        return Decided(
            "ambiguous", _about("collapsed", fallen[0]), Fact.of("accept", metric=fallen[0].metric)
        )
    if better:
        return Decided("improved", _leading(better))
    if not primary:
        return _by_kernels(kernels)
    seen = max((c.detectable for c in primary if c.detectable is not None), default=0.0)
    is_changed = any(c.word == "different" for c in changes) or any(
        k.word not in ("same", "ambiguous") and k.share >= _SHARE for k in kernels
    )
    why = _about("same-but" if is_changed else "same", primary[0], more=len(primary) - 1, detectable=seen)
    return Decided("changed" if is_changed else "same", why)


def worst_first(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Sort changes: those for the worse first, the largest first.

    Then open, then better ones, unchanged ones last.
    """

    def order(change: Change) -> tuple[int, int, bool, float]:
        course = _COURSES[change.course] if change.word == "different" else 0
        return _WORDS[change.word], course, change.role != "decides", -abs(_size(change))

    return tuple(sorted(changes, key=order))


def _by_kernels(kernels: Sequence[CodeChange]) -> Decided:
    main = [kernel for kernel in kernels if kernel.share >= _SHARE]
    words = [kernel.word for kernel in main]
    # Work without a launch configuration is an encoder of Metal.
    what = "encoder" if kernels and not any(k.launch for k in kernels) else "kernel"
    replaced = words.count("appeared") + words.count("vanished")
    if "slower" in words:
        return Decided("regressed", Fact.of("kernels-slower", count=words.count("slower"), what=what))
    if replaced:
        return Decided("changed", Fact.of("kernels-replaced", count=replaced, what=what))
    if "faster" in words:
        return Decided("improved", Fact.of("kernels-faster", count=words.count("faster"), what=what))
    if "ambiguous" in words:
        return Decided("ambiguous", Fact.of("kernels-open", what=what), LONGER)
    return Decided("same", Fact.of("kernels-same", what=what))


# ---------------------------------------------------------------- what decides, and what is open


def _leading(changes: Sequence[Change]) -> Fact:
    return _about("worse" if changes[0].course == "worse" else "better", changes[0], more=len(changes) - 1)


def _about(code: str, change: Change, **numbers: float) -> Fact:
    """Build a fact about a change of the comparison, with its values."""
    scope = change.scope
    names = {"metric": change.metric, "unit": change.unit, "kind": scope.kind, "scope": scope.name or ""}
    values = {"before": change.baseline.value, "after": change.candidate.value}
    if change.ratio is not None:
        values["ratio"] = change.ratio
    return Fact.of(code, **names, **values, **numbers)


def _size(change: Change) -> float:
    return (change.ratio - 1) if change.ratio is not None else float("inf")


Values = Mapping[tuple[str, Scope], float]


@dataclass(frozen=True)
class Evidence:
    """Both runs and their differences."""

    baseline: RunDocument
    candidate: RunDocument
    changes: tuple[Change, ...]
    matched: MatchedKernels
    main: tuple[KernelPair, ...]  # of those that take 1 % of the GPU time or more
    kernels: tuple[CodeChange, ...]
    functions: tuple[CodeChange, ...]

    @cached_property
    def before(self) -> Values:
        """Return the baseline's values by metric and scope, whatever measured them."""
        return {(r.metric, r.scope): r.value for r in readings_of(self.baseline) if r.value is not None}

    @cached_property
    def after(self) -> Values:
        """Return the candidate's values, with its kernels under the scopes that they have in the baseline."""
        same = {pair.candidate.scope: pair.baseline.scope for pair in self.matched.pairs}
        readings = readings_of(self.candidate)
        return {(r.metric, same.get(r.scope, r.scope)): r.value for r in readings if r.value is not None}

    @cached_property
    def _kernel_changes(self) -> Mapping[Scope, CodeChange]:
        """Index the kernels' changes by the baseline's scope."""
        changes = {
            (change.name, change.launch): change for change in self.kernels if change.word != "vanished"
        }
        named = {pair.baseline.scope: (pair.candidate.name, pair.candidate.id) for pair in self.matched.pairs}
        return {scope: changes[name] for scope, name in named.items() if name in changes}

    def different(self, *metrics: str) -> Iterator[Change]:
        """Yield the changes of these metrics that are "different"."""
        return (c for c in self.changes if c.word == "different" and c.metric in metrics)

    def fell(self, metric: str, scope: Scope | None = None) -> Change | None:
        """Return the first "different" fall of a metric, in any scope or in one."""
        falls = (c for c in self.different(metric) if c.candidate.value < c.baseline.value)
        return next((c for c in falls if scope is None or c.scope == scope), None)

    def both(self, metric: str, scope: Scope = RUN) -> tuple[float, float] | None:
        """Return a metric's values in both runs, whether or not they differ; None if one lacks it."""
        first, second = self.before.get((metric, scope)), self.after.get((metric, scope))
        return None if first is None or second is None else (first, second)

    def kernel_change(self, scope: Scope) -> CodeChange | None:
        """Return the change of a kernel of both runs, by its scope in the baseline."""
        return self._kernel_changes.get(scope)

    def time_changed(self, scope: Scope) -> bool:
        """Return whether the kernel of this scope became slower or faster."""
        change = self.kernel_change(scope)
        return change is not None and change.word in ("slower", "faster")


def moved(title: str, before: float, after: float, unit: str = "") -> Fact:
    """Build a fact of a value before and after; `title` is a metric, or another key of the titles in words.yaml."""
    return Fact.of("moved", title=title, before=before, after=after, unit=unit)


def change_fact(change: Change) -> Fact:
    """Build the fact of a change's values before and after."""
    return moved(change.metric, change.baseline.value, change.candidate.value, change.unit)
