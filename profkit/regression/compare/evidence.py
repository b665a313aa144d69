"""What a rule about causes may look at: both runs, and what was found different between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from profkit.core.types import RUN, Change, Fact, FunctionChange, KernelChange, RunDocument, Scope
from profkit.regression.compare.kernels import KernelPair, MatchedKernels
from profkit.regression.compare.metrics import KERNEL_SHARE, readings_of

Values = Mapping[tuple[str, Scope], float]


@dataclass(frozen=True)
class Evidence:
    """Both runs and their differences."""

    baseline: RunDocument
    candidate: RunDocument
    changes: tuple[Change, ...]
    matched: MatchedKernels
    kernels: tuple[KernelChange, ...]
    functions: tuple[FunctionChange, ...]

    @cached_property
    def before(self) -> Values:
        """The baseline's values of each metric and scope, whatever measured them."""
        return {(r.metric, r.scope): r.value for r in readings_of(self.baseline) if r.value is not None}

    @cached_property
    def after(self) -> Values:
        """The candidate's, its kernels under the scopes that they have in the baseline."""
        same = {pair.candidate.scope: pair.baseline.scope for pair in self.matched.pairs}
        readings = readings_of(self.candidate)
        return {(r.metric, same.get(r.scope, r.scope)): r.value for r in readings if r.value is not None}

    @cached_property
    def _kernel_changes(self) -> Mapping[Scope, KernelChange]:
        """By the baseline's scope."""
        changes = {
            (change.name, change.launch): change for change in self.kernels if change.word != "vanished"
        }
        named = {pair.baseline.scope: (pair.candidate.name, pair.candidate.id) for pair in self.matched.pairs}
        return {scope: changes[name] for scope, name in named.items() if name in changes}

    def different(self, *metrics: str) -> Iterator[Change]:
        """The changes of these metrics that are DIFFERENT."""
        return (c for c in self.changes if c.word == "different" and c.metric in metrics)

    def rose(self, metric: str) -> Change | None:
        """The first DIFFERENT rise of a metric, in any scope."""
        return next((c for c in self.different(metric) if c.candidate.value > c.baseline.value), None)

    def fell(self, metric: str, scope: Scope | None = None) -> Change | None:
        """The first DIFFERENT fall of a metric, in any scope or in one."""
        falls = (c for c in self.different(metric) if c.candidate.value < c.baseline.value)
        return next((c for c in falls if scope is None or c.scope == scope), None)

    def both(self, metric: str, scope: Scope = RUN) -> tuple[float, float] | None:
        """A metric's values in both runs, whether or not they differ."""
        first, second = self.before.get((metric, scope)), self.after.get((metric, scope))
        return None if first is None or second is None else (first, second)

    def main_kernels(self) -> Iterator[KernelPair]:
        """The kernels of both runs that take 1 % of the GPU time or more."""
        for pair in self.matched.pairs:
            change = self.kernel_change(pair.baseline.scope)
            if change is not None and change.share >= KERNEL_SHARE:
                yield pair

    def kernel_change(self, scope: Scope) -> KernelChange | None:
        """The change of a kernel of both runs, by its scope in the baseline."""
        return self._kernel_changes.get(scope)

    def time_changed(self, scope: Scope) -> bool:
        """Whether the kernel of this scope became slower or faster."""
        change = self.kernel_change(scope)
        return change is not None and change.word in ("slower", "faster")


def moved(title: str, before: float, after: float, unit: str = "") -> Fact:
    """A value before and after; `title` is a metric, or another key of the titles in words.yaml."""
    return Fact.of("moved", title=title, before=before, after=after, unit=unit)


def change_fact(change: Change) -> Fact:
    """The same of a change."""
    return moved(change.metric, change.baseline.value, change.candidate.value, change.unit)
