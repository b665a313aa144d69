"""Counting in groups: one run of the workload for each group of events, by perf as by Instruments, read together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from profkit.analysis.metrics.formulas import FormulaTable
from profkit.backends import RunContext
from profkit.backends.passes import RegionWork, divide_counters, read_region_work
from profkit.core.errors import UnreadableReport
from profkit.core.types import PassPlan, Reading, Report, Step

NATIVE_SECONDS = 1.0  # of region for each group; of Instruments that is a thousand samples
MOST_ITERATIONS = 1_000_000


def counted_iterations(seconds: float | None) -> int | None:
    """The same number in every group, so that the anchors can be compared; None where nothing was timed yet.

    `seconds` is what one iteration takes.
    """
    if seconds is None or seconds <= 0:
        return None
    return min(MOST_ITERATIONS, max(1, int(NATIVE_SECONDS / seconds)))


@dataclass(frozen=True)
class CountedGroup:
    """What one run counted, and how often it ran the region meanwhile."""

    step: Step
    report: Report
    work: RegionWork

    @cached_property
    def per_iteration(self) -> Report:
        """The report with counters of one iteration."""
        return replace(self.report, counters=divide_counters(self.report.counters, self.work.iterations))


@dataclass(frozen=True)
class CountedGroups:
    """The groups that could be read. `whole`: a region was marked, and a count is of the whole process."""

    groups: tuple[CountedGroup, ...]
    lost: tuple[Step, ...]
    whole: bool

    @property
    def shared(self) -> bool:
        """Whether several processes marked at once, so that the window is not known to be theirs."""
        return any(group.work.shared for group in self.groups)

    @property
    def notes(self) -> list[str]:
        """What the workload's processes remarked."""
        works = [group.work for group in self.groups]
        return [note for work in works for note in (*work.notes, *([work.odd] if work.odd else []))]


def read_groups(
    context: RunContext,
    plan: PassPlan,
    read: Callable[[Step], Report],
    covers_region: Callable[[Step, Report], bool],
) -> CountedGroups:
    """What the steps of `plan` counted; a group that was lost costs its own events only.

    `covers_region`: whether counts are of the marked region alone. Raises UnreadableReport where no group can be read.
    """
    groups: list[CountedGroup] = []
    lost: dict[str, UnreadableReport] = {}
    whole = False
    for step in plan.steps:
        try:
            report, work = read(step), read_region_work(context.folder, step.name)
        except UnreadableReport as error:
            lost[step.name] = error
            continue
        if work.marked and not covers_region(step, report):
            work, whole = RegionWork(), True
        groups.append(CountedGroup(step, report, work))
    if not groups:
        raise next(iter(lost.values()), UnreadableReport("no group of counters was planned"))
    return CountedGroups(tuple(groups), tuple(step for step in plan.steps if step.name in lost), whole)


def with_artifact(reading: Reading, groups: Sequence[CountedGroup], table: FormulaTable) -> Reading:
    """The reading with the artifact of the first group that holds most of its counters."""
    needed = {table.resolve(name) for name in (reading.source.counter or "").split(", ")}
    held = [{table.resolve(counter.name) for counter in group.report.counters} for group in groups]
    place = max(range(len(groups)), key=lambda number: len(needed & held[number]))
    if not needed & held[place]:
        return reading
    return replace(reading, source=replace(reading.source, artifact=groups[place].step.artifacts[-1]))


def as_estimate(reading: Reading, reason: str | None = None) -> Reading:
    """The reading as an estimate, with one more reason."""
    if reading.value is None:
        return reading
    reasons = "; ".join(part for part in (reading.reason, reason) if part) or None
    return replace(reading, quality="estimated", reason=reasons)
