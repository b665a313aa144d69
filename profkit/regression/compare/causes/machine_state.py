"""How the machine was in both runs: clocks, throttling and other work, and which changes they explain by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from profkit.analysis.comparability.fingerprint import holds_down
from profkit.core.formatting import percent, plural, quantity
from profkit.core.types import Cause, Change, KernelChange, MetalState, RunDocument
from profkit.regression.compare.causes.evidence import Evidence, transition
from profkit.regression.compare.decisions import percent_text, signed_percent

# Of the time that is told. A device that changes its state with its load is in each for some of it, and what it is in
# for most of it is what a mean of the times speaks of.
MAIN_STATE_SHARE = 0.6
THROTTLED_SHARE = 0.1
# From slow to fast, as Instruments names them; of other names the order is not known.
STATE_ORDER = ("Minimum", "Low", "Medium", "High", "Maximum")


@dataclass(frozen=True)
class PerformanceState:
    """The state that the GPU was in for most of the work of the process, and its share of it, 0..1."""

    name: str
    share: float

    def __str__(self) -> str:
        return f"{self.name} {percent(100 * self.share)} % of its work"


def performance_state(document: RunDocument) -> PerformanceState | None:
    """The performance state that it mostly worked in; None where none is that, or none is told while it worked."""
    states = document.metal.performance if document.metal is not None else ()
    worked = [(one.name, one.busy) for one in states if one.busy]
    total = sum(seconds for _, seconds in worked)
    found = max(worked, key=lambda one: one[1], default=None)
    if found is None or found[1] < MAIN_STATE_SHARE * total:
        return None
    return PerformanceState(found[0], found[1] / total)


def thermal_throttling(document: RunDocument) -> str | None:
    """`thermal state Fair in 43 % of the trace`, where another one than Nominal held for a tenth of it or more."""
    states: Sequence[MetalState] = document.metal.thermal if document.metal is not None else ()
    total = sum(one.seconds for one in states)
    hot = [one for one in states if holds_down(one.name)]
    share = sum(one.seconds for one in hot) / total if total > 0 else 0.0
    if share < THROTTLED_SHARE:
        return None
    longest = max(hot, key=lambda one: one.seconds)
    return f"thermal state {longest.name} in {percent(100 * share)} % of the trace"


def without_state_effects(
    changes: Sequence[KernelChange], baseline: RunDocument, candidate: RunDocument
) -> tuple[KernelChange, ...]:
    """The encoders' changes, not decided where the state of the GPU may have made them."""
    return tuple(_weigh_kernel_state(change, baseline, candidate) for change in changes)


def _weigh_kernel_state(change: KernelChange, baseline: RunDocument, candidate: RunDocument) -> KernelChange:
    if change.word not in ("slower", "faster"):
        return change
    reason = state_change(baseline, candidate, 2.0 if change.word == "slower" else 0.5)
    if reason is None:
        return change
    return replace(change, word="ambiguous", reason=f"{change.reason}; but {reason}")


def state_change(baseline: RunDocument, candidate: RunDocument, ratio: float) -> str | None:
    """Why a time that became `ratio` times what it was may be the state's doing; None where it cannot be.

    Only where the state is another one and a faster one does not come with a longer time.
    """
    before, after = performance_state(baseline), performance_state(candidate)
    if before is None or after is None or before.name == after.name:
        return None
    if before.name in STATE_ORDER and after.name in STATE_ORDER:
        faster = STATE_ORDER.index(after.name) > STATE_ORDER.index(before.name)
        if faster == (ratio > 1):
            return None
    return f"the GPU worked mostly in the performance state {before.name}, then in {after.name}"


# % of the time in which tasks of others waited for a core: twice what the doctor calls busy, since 10 s are few.
PRESSURE = 10.0
# How far neighbours alone may move a time. Two runs of one program on a machine with four tasks a core differed by up
# to a factor of 2: a fair scheduler gives each its share, so up to tasks per core, and half as much again to be safe.
MARGIN = 1.5
WORK_EXPLAINS = (
    0.3  # of a change of time (in logarithms) that a change of the work must reach to speak for it
)
CLOCKS_APART = 0.02


@dataclass(frozen=True)
class ClockReading:
    """The clock that a run was timed at, in Hz, and what told it."""

    hertz: float
    of: str


def clock_of(document: RunDocument) -> ClockReading | None:
    """The median clock beside the samples, or what perf counted; None where nothing tells."""
    from profkit.core.statistics import median

    between = [hertz for timing in document.timings for p in timing.processes for hertz in p.clocks]
    if between:
        return ClockReading(median(between), "the SMs between the samples")
    devices = [d.clock for m in document.moments for d in m.devices if d.clock is not None]
    if devices:
        return ClockReading(median(devices), "the SMs beside the timing")
    counted = [
        r.value
        for r in document.readings
        if r.metric == "frequency" and r.value is not None and r.scope.kind in ("run", "region")
    ]
    if counted:
        return ClockReading(median(counted), "the cores, counted by perf")
    return None


def contention(document: RunDocument) -> str | None:
    """What says that other work took part of the machine right before the timing; None where nothing does."""
    for moment in document.moments[:1]:
        if moment.pressure is not None and moment.pressure > PRESSURE:
            return f"tasks waited for a core in {moment.pressure:.0f} % of the 10 s before"
        cores = document.machine.cores if document.machine is not None else None
        if moment.pressure is None and moment.load is not None and cores and moment.load > cores:
            return f"the load was {moment.load:.1f} on {cores} cores"
    return None


def contention_factor(document: RunDocument) -> float:
    """The factor by which the neighbours of a busy run may have changed its times."""
    cores = document.machine.cores if document.machine is not None else 1
    loads = [moment.load for moment in document.moments if moment.load is not None]
    return MARGIN * max(1.0, max(loads, default=1.0) / max(1, cores))


def throttle_reasons(document: RunDocument) -> tuple[str, ...]:
    """Why the hardware held its clock down while it was timed."""
    reasons = [r for t in document.timings for p in t.processes for r in p.throttle_reasons]
    reasons += [reason for moment in document.moments for d in moment.devices for reason in d.throttle]
    reasons += [reason for moment in document.moments for reason in moment.slowed]
    counts = [moment.throttled for moment in document.moments if moment.throttled is not None]
    if len(counts) > 1 and counts[-1] > counts[0]:
        reasons.append(f"heat, {counts[-1] - counts[0]} times")
    return tuple(dict.fromkeys(reasons))


def ratio_in_cycles(change: Change, before: ClockReading, after: ClockReading) -> float | None:
    """The ratio in cycles of a time that the clock alone explains; None where it does not, or hardly moved."""
    if before.of != after.of or change.ratio is None or change.unit != "s":
        return None
    faster = after.hertz / before.hertz
    cycles = change.ratio * faster
    if abs(faster - 1) <= CLOCKS_APART or (change.ratio > 1) == (faster > 1):
        return None
    return cycles if 1 / (1 + change.floor) <= cycles <= 1 + change.floor else None


def without_machine_effects(
    changes: Sequence[Change], baseline: RunDocument, candidate: RunDocument
) -> tuple[Change, ...]:
    """The changes, those of times AMBIGUOUS where the state of the machine may have made them.

    A change of seconds that is none in cycles is the clock's. On a busy machine a time decides only where it changed by
    more than neighbours can do, or where the work, which they cannot change, changed with it.
    """
    clocks = clock_of(baseline), clock_of(candidate)
    occupied = [
        (name, reason, contention_factor(document))
        for name, document in (("baseline", baseline), ("candidate", candidate))
        if (reason := contention(document)) is not None
    ]
    work = [
        c for c in changes if c.metric == "instructions" and c.word == "different" and c.ratio is not None
    ]
    told = (_weigh_clock_and_load(change, clocks, occupied, work) for change in changes)
    return tuple(_weigh_performance_state(change, baseline, candidate) for change in told)


def _weigh_performance_state(change: Change, baseline: RunDocument, candidate: RunDocument) -> Change:
    """A time of an Apple GPU that its performance state may have made what it is."""
    if change.word != "different" or change.unit != "s" or not change.ratio:
        return change
    reason = state_change(baseline, candidate, change.ratio)
    return _ambiguous(change, f"{change.reason}; but {reason}") if reason is not None else change


def _weigh_clock_and_load(
    change: Change,
    clocks: tuple[ClockReading | None, ClockReading | None],
    occupied: Sequence[tuple[str, str, float]],
    work: Sequence[Change],
) -> Change:
    if change.word != "different" or change.unit != "s" or not change.ratio or change.ratio == 1:
        return change
    before, after = clocks
    if (
        before is not None
        and after is not None
        and (cycles := ratio_in_cycles(change, before, after)) is not None
    ):
        return _ambiguous(
            change,
            f"the clock of {before.of} went from {quantity(before.hertz, 'Hz')} to "
            f"{quantity(after.hertz, 'Hz')}; in cycles it is {signed_percent(cycles - 1)}, within the "
            f"{percent_text(change.floor)} that counts",
        )
    size = abs(log(change.ratio))
    name, reason, most = max(occupied, key=lambda found: found[2], default=("", "", 1.0))
    if not occupied or size > log(most) or any(_work_explains(other, change.ratio) for other in work):
        return change
    return _ambiguous(change, f"{change.reason}; but other work disturbed the {name}: {reason}")


def _work_explains(work: Change, ratio: float) -> bool:
    """Whether a change of the work explains a good part of one of the time."""
    return work.ratio is not None and work.ratio > 0 and log(work.ratio) / log(ratio) >= WORK_EXPLAINS


def _ambiguous(change: Change, reason: str) -> Change:
    return replace(change, word="ambiguous", course="neither", reason=reason)


def find_contention(view: Evidence) -> Iterator[Cause]:
    """Where a time could not be decided, and one of the two ran on a busy machine."""
    if not any(c.unit == "s" and c.word == "ambiguous" for c in view.changes):
        return
    for name, document in (("baseline", view.baseline), ("candidate", view.candidate)):
        reason = contention(document)
        if reason is not None:
            yield Cause("neighbours", f"Other work disturbed the {name}.", evidence=(reason,))


def find_clock_change(view: Evidence) -> Iterator[Cause]:
    """Where some time is not the same in seconds and would be in cycles, and whether all of them would."""
    before, after = clock_of(view.baseline), clock_of(view.candidate)
    if before is None or after is None:
        return
    times = [c for c in view.changes if c.unit == "s" and c.word != "same"]
    left = [c for c in times if ratio_in_cycles(c, before, after) is None]
    if len(left) < len(times):
        part = after.hertz / before.hertz - 1
        rest = (
            f"of {plural(len(times), 'time')} {len(left)} changed in cycles too"
            if left
            else "in cycles nothing changed"
        )
        yield Cause(
            "clocks",
            f"The clock was {abs(100 * part):.1f} % {'lower' if part < 0 else 'higher'}; {rest}.",
            evidence=(transition(f"clock of {before.of}", before.hertz, after.hertz, "Hz"),),
        )


def find_throttling(view: Evidence) -> Iterator[Cause]:
    """Where only one of the two was held down, or for another reason, and a time is not the same."""
    before, after = throttle_reasons(view.baseline), throttle_reasons(view.candidate)
    if before == after or not any(c.unit == "s" and c.word != "same" for c in view.changes):
        return
    for name, reasons in (("baseline", before), ("candidate", after)):
        if reasons:
            yield Cause("throttled", f"The {name} was throttled.", evidence=reasons)


def find_performance_state(view: Evidence) -> Iterator[Cause]:
    """Where the state that it mostly worked in is another one, or only one run was in a thermal state but Nominal."""
    before, after = performance_state(view.baseline), performance_state(view.candidate)
    if before is not None and after is not None and before.name != after.name:
        told = f"The GPU worked mostly in the performance state {after.name}, before in {before.name}."
        yield Cause("state", told, evidence=(f"baseline: {before}", f"candidate: {after}"))
    hot = thermal_throttling(view.baseline), thermal_throttling(view.candidate)
    for name, told_, other in (("baseline", hot[0], hot[1]), ("candidate", hot[1], hot[0])):
        if told_ is not None and other is None:
            yield Cause("state", f"The {name} was slowed by heat.", evidence=(told_,))
