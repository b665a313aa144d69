"""What a rule about causes may look at: both runs, and what was found different between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from profkit.analysis.kernel_names import short_name
from profkit.backends import kernel_word
from profkit.core.formatting import figures, quantity
from profkit.core.types import RUN, Change, FunctionChange, KernelChange, RunDocument, Scope
from profkit.regression.compare.kernels import KernelPair, MatchedKernels
from profkit.regression.compare.pairs import readings_of

Values = Mapping[tuple[str, Scope], float]


@dataclass(frozen=True)
class Evidence:
    """Both runs and their differences. `before` and `after` have each metric of each scope, whatever measured it."""

    baseline: RunDocument
    candidate: RunDocument
    changes: tuple[Change, ...]
    matched: MatchedKernels
    kernels: tuple[KernelChange, ...]
    functions: tuple[FunctionChange, ...]
    before: Values = field(default_factory=dict)
    after: Values = field(default_factory=dict)
    fates: Mapping[Scope, KernelChange] = field(default_factory=dict)  # by the baseline's scope

    def different(self, *metrics: str) -> Iterator[Change]:
        """The changes of these metrics that are DIFFERENT."""
        return (c for c in self.changes if c.word == "different" and c.metric in metrics)

    def rose(self, metric: str, scope: Scope | None = None) -> Change | None:
        """The first DIFFERENT rise of a metric, in any scope or in one."""
        return next((c for c in self._in(metric, scope) if c.candidate.value > c.baseline.value), None)

    def fell(self, metric: str, scope: Scope | None = None) -> Change | None:
        """The first DIFFERENT fall of a metric, likewise."""
        return next((c for c in self._in(metric, scope) if c.candidate.value < c.baseline.value), None)

    def both(self, metric: str, scope: Scope = RUN) -> tuple[float, float] | None:
        """A metric's values in both runs, whether or not they differ."""
        first, second = self.before.get((metric, scope)), self.after.get((metric, scope))
        return None if first is None or second is None else (first, second)

    def main_kernels(self, share: float = 0.01) -> Iterator[KernelPair]:
        """The kernels of both runs that take this share of the GPU time or more."""
        for pair in self.matched.pairs:
            change = self.fate(pair.baseline.scope)
            if change is not None and change.share >= share:
                yield pair

    def fate(self, scope: Scope) -> KernelChange | None:
        """What became of the time of a kernel of both runs, by its scope in the baseline."""
        return self.fates.get(scope)

    def retimed(self, scope: Scope) -> bool:
        """Whether the kernel of this scope became slower or faster."""
        change = self.fates.get(scope)
        return change is not None and change.word in ("slower", "faster")

    def _in(self, metric: str, scope: Scope | None) -> Iterator[Change]:
        return (c for c in self.different(metric) if scope is None or c.scope == scope)


def gather_evidence(
    baseline: RunDocument,
    candidate: RunDocument,
    changes: tuple[Change, ...],
    matched: MatchedKernels,
    kernels: tuple[KernelChange, ...],
    functions: tuple[FunctionChange, ...],
) -> Evidence:
    """All of it, with the candidate's kernels under the names that they have in the baseline."""
    same = {pair.candidate.scope: pair.baseline.scope for pair in matched.pairs}
    before = {(r.metric, r.scope): r.value for r in readings_of(baseline) if r.value is not None}
    after = {
        (r.metric, same.get(r.scope, r.scope)): r.value for r in readings_of(candidate) if r.value is not None
    }
    told = {(change.name, change.launch): change for change in kernels if change.word != "vanished"}
    fates = {
        pair.baseline.scope: told[pair.candidate.name, pair.candidate.id]
        for pair in matched.pairs
        if (pair.candidate.name, pair.candidate.id) in told
    }
    return Evidence(baseline, candidate, changes, matched, kernels, functions, before, after, fates)


def transition(title: str, before: float, after: float, unit: str = "") -> str:
    """`registers per thread 40 -> 64`."""
    return f"{title} {quantity(before, unit)} -> {quantity(after, unit)}"


def relative_change(before: float, after: float) -> str:
    """`12.3 % more`, `8 % less`, `2.4 times as much`."""
    if before <= 0:
        return "more"
    part = after / before - 1
    if part >= 1:
        return f"{figures(after / before)} times as much"
    return f"{figures(abs(100 * part), 2)} % {'more' if part >= 0 else 'less'}"


def work_units(view: Evidence) -> str:
    """What the work of the device is called: `kernels`, on Metal `encoders`."""
    return f"{kernel_word(view.candidate.backend)}s"


def kernel_label(name: str) -> str:
    """A kernel's name in a sentence."""
    return short_name(name, 48)
