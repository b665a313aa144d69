"""Compare counts with those of the base commit; a count is exact if two of one commit agree: one run decides."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from profkit.backends import backend_named
from profkit.core.pairs import change_of_counts
from profkit.core.run_folder import clean_name
from profkit.core.statistics import median
from profkit.core.types import (
    RUN,
    Change,
    Entry,
    Fact,
    PassName,
    Scope,
    Value,
)
from profkit.regression import profile_process
from profkit.regression.detection.rules import NightRule
from profkit.regression.history import entry_of
from profkit.regression.history.rows import COUNTED
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.nightly.session import EXACT_FOLDER, NightSession
from profkit.regression.paired.checkout import Version

# Exact only in a simulation of the same work, which its run states: two of a Python program were 0.2 % apart.
_COUNTS = (
    "instructions",
    "branch.count",
    "dram.bytes",
    "cache.l1.miss_rate",
    "cache.l2.miss_rate",
    "cache.l3.miss_rate",
)
_COUNTING: PassName = "counters"
# By metric the pass that counts it.
EXACT: Mapping[str, PassName] = {
    **dict.fromkeys(_COUNTS, _COUNTING),
    "memory.python_peak": "tracemalloc",
    "memory.device_peak": "timing",
}
AGREE = 1 / 3  # of the floor: counts of one commit that lie further apart are not exact

Key = tuple[str, Scope]
Counts = dict[Key, list[float]]


@dataclass
class ExactCounts:
    """The counts of one workload tonight (`new`) and of the base commit (`old`), as they come in."""

    session: NightSession
    spec: WorkloadSpec
    tonight: Entry
    base: Version
    present: Version
    new: Counts = field(default_factory=dict)
    old: Counts = field(default_factory=dict)
    uncounted: dict[Fact, None] = field(default_factory=dict)  # in their order, each once
    began: float = field(default_factory=time.monotonic)

    def compare(self) -> tuple[tuple[Change, ...], tuple[Fact, ...]]:
        """Return a change for every count that both have and that repeats, and why others do not count."""
        entry = self.session.history.entry(self.tonight.id)
        values = {
            (value.key.metric, value.key.scope): value
            for value in entry.values
            if _is_exact(value) and self.spec.wants(value.key.metric)
        }
        if not values:
            return (), ()
        _add(self.new, entry, values)
        self._count(self.base, self.old, list(values), entry)
        # What would fail the night is counted once more.
        if doubtful := [key for key in values if self._is_beyond(key)]:
            for version, counts in ((self.base, self.old), (self.present, self.new)):
                self._count(version, counts, doubtful, entry)
        lost = sorted({metric for metric, _ in values.keys() - self.old.keys()})
        if lost and not self.uncounted:
            self.uncounted[Fact.of("uncounted unknown", what=", ".join(lost))] = None
        changes = [self._change(values[key]) for key in values if self._repeats(key)]
        return tuple(changes), tuple(self.uncounted)

    def _count(self, version: Version, counts: Counts, keys: Sequence[Key], tonight: Entry) -> None:
        """Run the passes that count these metrics once, in what is left of the workload's budget."""
        budget = min(self.spec.budget - (time.monotonic() - self.began), self.session.left)
        if budget <= 0:
            self.uncounted[Fact.of("uncounted budget-spent", what=version.name)] = None
            return
        counting = (EXACT[metric] for metric, _ in keys)
        passes: tuple[PassName, ...] = tuple(
            dict.fromkeys(["timing", *counting])
        )  # how many iterations are counted
        request = replace(
            self.spec,
            command=version.command,
            cwd=version.cwd,
            env=version.environment(),
            passes=passes,
            targets=None,
            budget=budget,
        )
        into = self.session.folder / EXACT_FOLDER / clean_name(self.spec.name)
        done = profile_process.profile_once(request, into, self.session.progress.tick)
        if not done.ok or done.document is None:
            reason = done.reason or Fact.message(done.ending)
            self.uncounted[Fact.of("uncounted failed", reason, what=version.name)] = None
            return
        entry = entry_of(done.document)
        counted = entry.facts.get(COUNTED)
        if counted not in (None, tonight.facts.get(COUNTED)):  # a mean over four is no mean over sixteen
            self.uncounted[Fact.of("uncounted failed", Fact("other-iterations"), what=version.name)] = None
            keys = [key for key in keys if key[0] not in _COUNTS]
        _add(counts, entry, keys)

    def _is_beyond(self, key: Key) -> bool:
        old, new = self.old.get(key), self.new.get(key)
        return bool(old and new) and abs(median(new or []) - median(old or [])) > self._floor(key)

    def _repeats(self, key: Key) -> bool:
        if key not in self.old or key not in self.new:
            return False
        for counts in (self.old[key], self.new[key]):
            apart = max(counts) - min(counts)
            if apart > AGREE * self._floor(key):
                centre = median(counts)
                scatters = Fact.of(
                    "uncounted scatters" if centre else "uncounted scatters-at-0",
                    what=key[0],
                    apart=apart / (centre or 1.0),
                )
                self.uncounted[scatters] = None
                return False
        return True

    def _floor(self, key: Key) -> float:
        return self.spec.rule(key[0]).floor(median(self.old[key]))

    def _change(self, value: Value) -> Change:
        key = value.key.metric, value.key.scope
        rule = self.spec.rule(key[0])
        rule = replace(rule, better=rule.better or value.better)
        return _exact_change((self.old[key], self.new[key]), key[0], rule, value.unit, key[1])


def _exact_change(
    sides: tuple[list[float], list[float]], metric: str, rule: NightRule, unit: str, scope: Scope = RUN
) -> Change:
    """Build the change from the counts before to those after, which have no interval."""
    floor = rule.floor(median(sides[0]))
    change = change_of_counts(sides, floor, metric, rule.better or "lower", unit, scope)
    return replace(change, detectable=change.floor or None)


def _add(counts: Counts, entry: Entry, keys: Sequence[Key] | Mapping[Key, Value]) -> None:
    for value in entry.values:
        key = value.key.metric, value.key.scope
        if _is_exact(value) and key in keys:
            counts.setdefault(key, []).append(value.value)


def _is_exact(value: Value) -> bool:
    """Return whether a value is of the run or a region, undoubted, and counted rather than sampled."""
    metric, scope = value.key.metric, value.key.scope
    if metric not in EXACT or scope.kind not in ("run", "region") or value.doubt is not None:
        return False
    return metric not in _COUNTS or value.quality == "simulated"


def not_measured(
    session: NightSession, spec: WorkloadSpec, tonight: Entry, exact: Sequence[Change]
) -> Iterator[Fact]:
    """Yield the watched metrics that one count decides and that were not counted, with the pass that counts them."""
    counted = {value.key.metric for value in session.history.entry(tonight.id).values}
    counted |= {change.metric for change in exact}
    for metric in spec.watches:
        of_a_device = metric == "memory.device_peak" and not backend_named(tonight.backend).has_device
        if metric in EXACT and metric not in counted and not of_a_device:
            yield Fact.of("uncounted absent", what=metric, name=EXACT[metric])


def counted_beside(
    changes: Sequence[Change], spec: WorkloadSpec, exact: Sequence[Change]
) -> Iterator[Change]:
    """Yield the change of the instructions that were counted beside the pairs, by the night's own floor."""
    for change in changes:
        if change.metric in EXACT and all(counted.metric != change.metric for counted in exact):
            old, new = (
                [v for group in side.groups for v in group] for side in (change.baseline, change.candidate)
            )
            yield _exact_change((old, new), change.metric, spec.rule(change.metric), change.unit)
