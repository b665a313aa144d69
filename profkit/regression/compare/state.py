"""How the machine was in both runs: whether its clocks, its heat or other work explain a change by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

from profkit.core.formatting import quantity
from profkit.core.types import Change, RunDocument
from profkit.regression.compare.decide import share, signed
from profkit.regression.compare.metal_state import explains

# % of the time in which tasks of others waited for a core: twice what the doctor calls busy, since 10 s are few.
PRESSURE = 10.0
# How far neighbours alone may move a time. Two runs of one program on a machine with four tasks a core differed by up
# to a factor of 2: a fair scheduler gives each its share, so up to tasks per core, and half as much again to be safe.
MARGIN = 1.5
EXPLAINED = 0.3  # of a change of time (in logarithms) that a change of the work must reach to speak for it
CLOCKS_APART = 0.02


@dataclass(frozen=True)
class Clock:
    """The clock that a run was timed at, in Hz, and what told it."""

    hertz: float
    of: str


def clock_of(document: RunDocument) -> Clock | None:
    """The median clock beside the samples, or what perf counted; None where nothing tells."""
    from profkit.core.statistics import median

    between = [hertz for timing in document.timings for p in timing.processes for hertz in p.clocks]
    if between:
        return Clock(median(between), "the SMs between the samples")
    devices = [d.clock for m in document.moments for d in m.devices if d.clock is not None]
    if devices:
        return Clock(median(devices), "the SMs beside the timing")
    counted = [
        r.value
        for r in document.readings
        if r.metric == "frequency" and r.value is not None and r.scope.kind in ("run", "region")
    ]
    if counted:
        return Clock(median(counted), "the cores, counted by perf")
    return None


def busy(document: RunDocument) -> str | None:
    """What says that other work took part of the machine right before the timing; None where nothing does."""
    for moment in document.moments[:1]:
        if moment.pressure is not None and moment.pressure > PRESSURE:
            return f"tasks waited for a core in {moment.pressure:.0f} % of the 10 s before"
        cores = document.machine.cores if document.machine is not None else None
        if moment.pressure is None and moment.load is not None and cores and moment.load > cores:
            return f"the load was {moment.load:.1f} on {cores} cores"
    return None


def reach(document: RunDocument) -> float:
    """The factor by which the neighbours of a busy run may have changed its times."""
    cores = document.machine.cores if document.machine is not None else 1
    loads = [moment.load for moment in document.moments if moment.load is not None]
    return MARGIN * max(1.0, max(loads, default=1.0) / max(1, cores))


def throttled(document: RunDocument) -> tuple[str, ...]:
    """Why the hardware held its clock down while it was timed."""
    reasons = [r for t in document.timings for p in t.processes for r in p.throttle_reasons]
    reasons += [reason for moment in document.moments for d in moment.devices for reason in d.throttle]
    reasons += [reason for moment in document.moments for reason in moment.slowed]
    counts = [moment.throttled for moment in document.moments if moment.throttled is not None]
    if len(counts) > 1 and counts[-1] > counts[0]:
        reasons.append(f"heat, {counts[-1] - counts[0]} times")
    return tuple(dict.fromkeys(reasons))


def in_cycles(change: Change, before: Clock, after: Clock) -> float | None:
    """The ratio in cycles of a time that the clock alone explains; None where it does not, or hardly moved."""
    if before.of != after.of or change.ratio is None or change.unit != "s":
        return None
    faster = after.hertz / before.hertz
    cycles = change.ratio * faster
    if abs(faster - 1) <= CLOCKS_APART or (change.ratio > 1) == (faster > 1):
        return None
    return cycles if 1 / (1 + change.floor) <= cycles <= 1 + change.floor else None


def doubted(changes: Sequence[Change], baseline: RunDocument, candidate: RunDocument) -> tuple[Change, ...]:
    """The changes, those of times AMBIGUOUS where the state of the machine may have made them.

    A change of seconds that is none in cycles is the clock's. On a busy machine a time decides only where it changed by
    more than neighbours can do, or where the work, which they cannot change, changed with it.
    """
    clocks = clock_of(baseline), clock_of(candidate)
    occupied = [
        (name, reason, reach(document))
        for name, document in (("baseline", baseline), ("candidate", candidate))
        if (reason := busy(document)) is not None
    ]
    work = [
        c for c in changes if c.metric == "instructions" and c.word == "different" and c.ratio is not None
    ]
    told = (_doubted(change, clocks, occupied, work) for change in changes)
    return tuple(_by_state(change, baseline, candidate) for change in told)


def _by_state(change: Change, baseline: RunDocument, candidate: RunDocument) -> Change:
    """A time of an Apple GPU that its performance state may have made what it is."""
    if change.word != "different" or change.unit != "s" or not change.ratio:
        return change
    reason = explains(baseline, candidate, change.ratio)
    return _ambiguous(change, f"{change.reason}; but {reason}") if reason is not None else change


def _doubted(
    change: Change,
    clocks: tuple[Clock | None, Clock | None],
    occupied: Sequence[tuple[str, str, float]],
    work: Sequence[Change],
) -> Change:
    if change.word != "different" or change.unit != "s" or not change.ratio or change.ratio == 1:
        return change
    before, after = clocks
    if before is not None and after is not None and (cycles := in_cycles(change, before, after)) is not None:
        return _ambiguous(
            change,
            f"the clock of {before.of} went from {quantity(before.hertz, 'Hz')} to "
            f"{quantity(after.hertz, 'Hz')}; in cycles it is {signed(cycles - 1)}, within the "
            f"{share(change.floor)} that counts",
        )
    size = abs(log(change.ratio))
    name, reason, most = max(occupied, key=lambda found: found[2], default=("", "", 1.0))
    if not occupied or size > log(most) or any(_speaks(other, change.ratio) for other in work):
        return change
    return _ambiguous(change, f"{change.reason}; but other work disturbed the {name}: {reason}")


def _speaks(work: Change, ratio: float) -> bool:
    """Whether a change of the work explains a good part of one of the time."""
    return work.ratio is not None and work.ratio > 0 and log(work.ratio) / log(ratio) >= EXPLAINED


def _ambiguous(change: Change, reason: str) -> Change:
    return replace(change, word="ambiguous", course="neither", reason=reason)
