"""How the machine was in both runs: clocks, throttling and other work, and which changes they explain by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from profkit.analysis.comparability.fingerprint import holds_down
from profkit.core.formatting import format_percent, format_quantity, plural
from profkit.core.statistics import median
from profkit.core.types import Cause, Change, KernelChange, RunDocument
from profkit.regression.compare.causes.evidence import Evidence, transition
from profkit.regression.compare.decisions import percent_text, signed_percent
from profkit.regression.compare.processor_speed import speed_change
from profkit.regression.compare.runs_apart import (
    command_that_decides,
    is_host_time,
    lost_share,
    lost_text,
    timed_by_events,
    without_distance_effects,
)

# A device that changes its performance state with its load is in each for some of the time; what it is in for most of
# its work is what its mean times depend on.
MAIN_STATE_SHARE = 0.6
THROTTLED_SHARE = 0.1  # of the trace
# From slow to fast, as Instruments names them; of other names the order is not known.
STATE_ORDER = ("Minimum", "Low", "Medium", "High", "Maximum")
WORK_EXPLAINS = 0.3  # of a change of time (in logarithms) that a change of the work must reach to explain it
CLOCKS_APART = 0.02
LOST_SHARE = 0.05  # of a run's time, to others: less is usual where a desktop's own services run


# ---------------------------------------------------------------- what a run says of its machine


@dataclass(frozen=True)
class PerformanceState:
    """The state that an Apple GPU was in for most of the work of the process, and its share of it, 0..1."""

    name: str
    share: float

    def __str__(self) -> str:
        return f"{self.name} {format_percent(100 * self.share)} % of its work"


@dataclass(frozen=True)
class ClockReading:
    """The clock that a run was timed at, in Hz, and what measured it."""

    hertz: float
    of: str


def performance_state(document: RunDocument) -> PerformanceState | None:
    """The performance state that it mostly worked in; None where none is that, or none is known."""
    states = document.metal.performance if document.metal is not None else ()
    worked = {state.name: state.busy for state in states if state.busy}
    total = sum(worked.values())
    name = max(worked, key=lambda name: worked[name], default=None)
    if name is None or worked[name] < MAIN_STATE_SHARE * total:
        return None
    return PerformanceState(name, worked[name] / total)


def thermal_throttling(document: RunDocument) -> str | None:
    """`thermal state Fair in 43 % of the trace`, where another one than Nominal held for a tenth of it or more."""
    states = document.metal.thermal if document.metal is not None else ()
    total = sum(state.seconds for state in states)
    hot = [state for state in states if holds_down(state.name)]
    share = sum(state.seconds for state in hot) / total if total > 0 else 0.0
    if share < THROTTLED_SHARE:
        return None
    longest = max(hot, key=lambda state: state.seconds)
    return f"thermal state {longest.name} in {format_percent(100 * share)} % of the trace"


def clock_of(document: RunDocument) -> ClockReading | None:
    """The median clock beside the samples, or what cycles and time tell; None where nothing measured it."""
    samples = [hertz for timing in document.timings for p in timing.processes for hertz in p.clocks]
    moments = [d.clock for m in document.moments for d in m.devices if d.clock is not None]
    counted = [
        r.value
        for r in document.readings
        if r.metric == "frequency" and r.value is not None and r.scope.kind in ("run", "region")
    ]
    for values, source in (
        (samples, "the SMs between the samples"),
        (moments, "the SMs beside the timing"),
        (counted, "the cores, by their cycle counters"),
    ):
        if values:
            return ClockReading(median(values), source)
    return None


def throttle_reasons(document: RunDocument) -> tuple[str, ...]:
    """Why the hardware held its clock down while it was timed."""
    reasons = [r for t in document.timings for p in t.processes for r in p.throttle_reasons]
    reasons += [reason for moment in document.moments for d in moment.devices for reason in d.throttle]
    reasons += [reason for moment in document.moments for reason in moment.slowed]
    counts = [moment.throttled for moment in document.moments if moment.throttled is not None]
    if len(counts) > 1 and counts[-1] > counts[0]:
        reasons.append(f"heat, {counts[-1] - counts[0]} times")
    return tuple(dict.fromkeys(reasons))


# ---------------------------------------------------------------- changes that the machine explains


def without_machine_effects(
    changes: Sequence[Change], baseline: RunDocument, candidate: RunDocument
) -> tuple[Change, ...]:
    """The changes, those of times AMBIGUOUS where the state of the machine may have made them.

    A change of seconds that is none in cycles is the clock's. Where others had a part of the machine, or the reference
    loop tells of another speed of the processor, a time decides only where it changed by more than that can do, or
    where the instructions, which others cannot change, changed with it.
    """
    clocks = clock_of(baseline), clock_of(candidate)
    by_events = timed_by_events(baseline, candidate)
    work = [
        c.ratio
        for c in changes
        if c.metric == "instructions" and c.word == "different" and c.ratio is not None
    ]
    weighed = []
    for change in changes:
        before = change
        if _is_changed_time(change):
            change = _weigh_clock(change, *clocks)
        if _is_changed_time(change) and change.ratio:
            reason = state_change(baseline, candidate, change.ratio)
            if reason is not None:
                change = _as_ambiguous(change, f"{change.reason}; but {reason}")
        if change.word != before.word and is_host_time(change, by_events):
            change = replace(change, fix=command_that_decides(baseline, candidate))
        if not _is_explained(change, work):
            change = without_distance_effects(change, baseline, candidate, by_events)
        weighed.append(change)
    return tuple(weighed)


def _is_changed_time(change: Change) -> bool:
    return change.word == "different" and change.unit == "s" and bool(change.ratio)


def _weigh_clock(change: Change, before: ClockReading | None, after: ClockReading | None) -> Change:
    cycles = ratio_in_cycles(change, before, after)
    if cycles is None or before is None or after is None:
        return change
    return _as_ambiguous(
        change,
        f"the clock of {before.of} went from {format_quantity(before.hertz, 'Hz')} to "
        f"{format_quantity(after.hertz, 'Hz')}; in cycles it is {signed_percent(cycles - 1)}, within the "
        f"{percent_text(change.floor)} that counts",
    )


def _is_explained(change: Change, work: Sequence[float]) -> bool:
    """Whether the instructions changed with the time, `work` times as many."""
    size = log(change.ratio) if change.word == "different" and change.ratio else 0.0
    return size != 0 and any(ratio > 0 and log(ratio) / size >= WORK_EXPLAINS for ratio in work)


def ratio_in_cycles(change: Change, before: ClockReading | None, after: ClockReading | None) -> float | None:
    """The ratio in cycles of a time that the clock alone explains; None where it does not, or hardly moved."""
    if before is None or after is None or before.of != after.of or change.ratio is None or change.unit != "s":
        return None
    faster = after.hertz / before.hertz
    cycles = change.ratio * faster
    if abs(faster - 1) <= CLOCKS_APART or (change.ratio > 1) == (faster > 1):
        return None
    return cycles if 1 / (1 + change.floor) <= cycles <= 1 + change.floor else None


def state_change(baseline: RunDocument, candidate: RunDocument, ratio: float) -> str | None:
    """Why the performance state may have made a time `ratio` times as long; None where it cannot have.

    Only where the state is another one, and where a faster one does not come with a longer time.
    """
    before, after = performance_state(baseline), performance_state(candidate)
    if before is None or after is None or before.name == after.name:
        return None
    if before.name in STATE_ORDER and after.name in STATE_ORDER:
        faster = STATE_ORDER.index(after.name) > STATE_ORDER.index(before.name)
        if faster == (ratio > 1):
            return None
    return f"the GPU worked mostly in the performance state {before.name}, then in {after.name}"


def without_state_effects(
    changes: Sequence[KernelChange], baseline: RunDocument, candidate: RunDocument
) -> tuple[tuple[KernelChange, ...], dict[KernelChange, str]]:
    """The encoders' changes, AMBIGUOUS where the performance state may have made them; of each of those, why."""
    weighed, reasons = [], {}
    for change in changes:
        if change.word in ("slower", "faster"):
            reason = state_change(baseline, candidate, 2.0 if change.word == "slower" else 0.5)
            if reason is not None:
                change = replace(change, word="ambiguous", reason=f"{change.reason}; but {reason}")
                reasons[change] = reason
        weighed.append(change)
    return tuple(weighed), reasons


def _as_ambiguous(change: Change, reason: str) -> Change:
    return replace(change, word="ambiguous", course="neither", reason=reason)


# ---------------------------------------------------------------- causes


def find_contention(evidence: Evidence) -> Iterator[Cause]:
    """Where a time could not be decided, and one of the two ran on a busy machine."""
    if not any(c.unit == "s" and c.word == "ambiguous" for c in evidence.changes):
        return
    for name, document in (("baseline", evidence.baseline), ("candidate", evidence.candidate)):
        if lost_share(document) > LOST_SHARE:
            yield Cause("neighbours", f"Other work disturbed the {name}.", evidence=(lost_text(document),))


def find_processor_speed(evidence: Evidence) -> Iterator[Cause]:
    """Where a time could not be decided, and the reference loop took another time in the two runs, too."""
    if not any(c.unit == "s" and c.word == "ambiguous" for c in evidence.changes):
        return
    speed = speed_change(evidence.baseline, evidence.candidate)
    if speed is None or abs(speed.ratio - 1) <= CLOCKS_APART or speed.low <= 1 <= speed.high:
        return
    name = "candidate" if speed.ratio > 1 else "baseline"
    sentence = f"The processor was slower in the {name}: another guest on its core, or a lower clock."
    yield Cause("neighbours", sentence, evidence=(speed.sentence,))


def find_clock_change(evidence: Evidence) -> Iterator[Cause]:
    """Where some time is not the same in seconds and would be in cycles, and whether all of them would."""
    before, after = clock_of(evidence.baseline), clock_of(evidence.candidate)
    if before is None or after is None:
        return
    times = [c for c in evidence.changes if c.unit == "s" and c.word != "same"]
    left = [c for c in times if ratio_in_cycles(c, before, after) is None]
    if len(left) == len(times):
        return
    part = after.hertz / before.hertz - 1
    rest = "in cycles nothing changed"
    if left:
        rest = f"of {plural(len(times), 'time')} {len(left)} changed in cycles too"
    yield Cause(
        "clocks",
        f"The clock was {abs(100 * part):.1f} % {'lower' if part < 0 else 'higher'}; {rest}.",
        evidence=(transition(f"clock of {before.of}", before.hertz, after.hertz, "Hz"),),
    )


def find_throttling(evidence: Evidence) -> Iterator[Cause]:
    """Where only one of the two was throttled, or for another reason, and a time is not the same."""
    before, after = throttle_reasons(evidence.baseline), throttle_reasons(evidence.candidate)
    if before == after or not any(c.unit == "s" and c.word != "same" for c in evidence.changes):
        return
    for name, reasons in (("baseline", before), ("candidate", after)):
        if reasons:
            yield Cause("throttled", f"The {name} was throttled.", evidence=reasons)


def find_performance_state(evidence: Evidence) -> Iterator[Cause]:
    """Where the GPU mostly worked in another performance state, or only one run was throttled by heat."""
    before, after = performance_state(evidence.baseline), performance_state(evidence.candidate)
    if before is not None and after is not None and before.name != after.name:
        sentence = f"The GPU worked mostly in the performance state {after.name}, before in {before.name}."
        yield Cause("state", sentence, evidence=(f"baseline: {before}", f"candidate: {after}"))
    hot = thermal_throttling(evidence.baseline), thermal_throttling(evidence.candidate)
    for name, reason, other_reason in (("baseline", *hot), ("candidate", *hot[::-1])):
        if reason is not None and other_reason is None:
            yield Cause("state", f"The {name} was slowed by heat.", evidence=(reason,))
