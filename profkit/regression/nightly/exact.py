"""What is counted and not timed, beside the base commit: one value of each decides, from the first night on.

A simulation counts the instructions of the same work alike, and an allocator its bytes. So no control limits are
needed where two counts of one commit agree; where they do not, the past decides.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from profkit.core.inference import Interval, decide
from profkit.core.run_folder import clean_name
from profkit.core.statistics import median
from profkit.core.types import Change, Entry, PassName, Scope, Uncounted, Value
from profkit.regression import profile_process
from profkit.regression.history import entry_of
from profkit.regression.history.rows import COUNTED
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.nightly.session import EXACT_FOLDER, NightSession
from profkit.regression.paired.checkout import Version
from profkit.regression.paired.interleave import change_between

# Exact in a simulation of the same work alone, of which that is told: two of a Python program lay 0.2 % apart.
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
    uncounted: dict[Uncounted, None] = field(default_factory=dict)
    alone: bool = False  # both are counted without a timing pass, of one iteration each
    began: float = field(default_factory=time.monotonic)

    def compare(self) -> tuple[tuple[Change, ...], tuple[Uncounted, ...]]:
        """A change for every count that both have and that is repeatable, and what is not."""
        entry = self.session.history.entry(self.tonight.id)
        values = {
            (value.key.metric, value.key.scope): value
            for value in entry.values
            if _is_exact(value) and self.spec.wants(value.key.metric, value.key.scope)
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
            self.uncounted[Uncounted("unknown", ", ".join(lost))] = None
        changes = [self._change(values[key]) for key in values if self._repeats(key)]
        return tuple(changes), tuple(self.uncounted)

    def _count(self, version: Version, counts: Counts, keys: Sequence[Key], tonight: Entry) -> None:
        """One run of the passes that count these; all of them together have the workload's budget once more."""
        budget = min(self.spec.budget - (time.monotonic() - self.began), self.session.left)
        if budget <= 0:
            self.uncounted[Uncounted("budget-spent", version.name)] = None
            return
        timing: list[PassName] = [] if self.alone else ["timing"]  # it says how many iterations are counted
        passes = tuple(dict.fromkeys([*timing, *(EXACT[metric] for metric, _ in keys)]))
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
            reason = done.reason.splitlines()[0] if done.reason else done.ending
            self.uncounted[Uncounted("failed", version.name, reason)] = None
            return
        entry = entry_of(done.document)
        counted = entry.facts.get(COUNTED)
        if not self.alone and counted not in (None, tonight.facts.get(COUNTED)):
            self._count_alone([key for key in keys if key[0] in _COUNTS], tonight)
            keys = [key for key in keys if key[0] not in _COUNTS]
        _add(counts, entry, keys)

    def _count_alone(self, keys: Sequence[Key], tonight: Entry) -> None:
        """Both anew, of one iteration each: a mean over four is no mean over sixteen."""
        self.alone = True
        for counts, version in ((self.old, self.base), (self.new, self.present)):
            for key in keys:
                counts.pop(key, None)
            self._count(version, counts, keys, tonight)

    def _is_beyond(self, key: Key) -> bool:
        old, new = self.old.get(key), self.new.get(key)
        return bool(old and new) and abs(median(new or []) - median(old or [])) > self._floor(key)

    def _repeats(self, key: Key) -> bool:
        if key not in self.old or key not in self.new:
            return False
        for counts in (self.old[key], self.new[key]):
            apart = max(counts) - min(counts)
            if apart > AGREE * self._floor(key):
                apart = apart / median(counts) if median(counts) else apart
                self.uncounted[Uncounted("scatters", key[0], apart=apart)] = None
                return False
        return True

    def _floor(self, key: Key) -> float:
        return self.spec.rule(*key).floor(median(self.old[key]))

    def _change(self, value: Value) -> Change:
        key = value.key.metric, value.key.scope
        sides, floor = (self.old[key], self.new[key]), self._floor(key)
        shift = Interval(*3 * (median(sides[1]) - median(sides[0]),))
        word = decide(shift, floor, around=0)
        better = self.spec.rule(*key).better or value.better
        change = change_between(sides, shift, word, floor, key[0], better, value.unit, key[1])
        return replace(change, detectable=change.floor or None)


def _add(counts: Counts, entry: Entry, keys: Sequence[Key] | Mapping[Key, Value]) -> None:
    for value in entry.values:
        key = value.key.metric, value.key.scope
        if _is_exact(value) and key in keys:
            counts.setdefault(key, []).append(value.value)


def _is_exact(value: Value) -> bool:
    """Whether it is of the run or a region, nothing contradicts it, and it was counted and not sampled."""
    metric, scope = value.key.metric, value.key.scope
    if metric not in EXACT or scope.kind not in ("run", "region") or value.doubt is not None:
        return False
    return metric not in _COUNTS or value.quality == "simulated"
