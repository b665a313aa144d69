"""Decide which changes of a time the machine may have caused: its clock, its state, or other programs.

From one run to the next a machine changes, and the samples of a run show nothing of that, however many they
are. What shows it are what each run counted of others while it was timed (`Disturbance`), the reference loop
that was timed beside it, and the clocks. Where those allow a change, two runs that lie apart cannot decide
it: both programs have to be run alternately.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from profkit.core.inference import Interval, decide, ratio_interval
from profkit.core.statistics import median, median_interval
from profkit.core.types import Cause, Change, Fact, Revision, RunDocument
from profkit.hardware.conditions import lost_shares
from profkit.regression.compare.outcome import Evidence
from profkit.runtime.passes.shown_command import line_to_type

# Two runs of one program on a guest whose cores may be others', too: up to so many times as long. On a shared virtual
# machine of two cores the medians of a Python loop lay 1.6 apart in 6 runs, and those of a copy of 8 MB 2.2
# (docs/measurements.md); nothing tells a guest whether its cores are its own.
GUEST_FACTOR = 2.0
# How much of a reference loop's slowdown a program may have, in logarithms: one that waits for the disk has none of it.
# Of one that copies 8 MB a fifth run was 1.8 times slower where the loop was 1.3 times slower (docs/measurements.md).
MAX_SENSITIVITY = 2.0
# A program that takes a core's time also takes of its caches and its clock, which nothing counts: half as much again.
MARGIN = 1.5
MIN_LOSS = 0.01  # of a run's time: less is not worth a note, given the machine's own spread
MAX_LOST = 0.9  # of a run's time: if more was lost, no time is known at all
# Times by the device's own clock or of a trace; and means over a grid, which have noise and a control of their own.
_NOT_OF_HOST = ("time.gpu", "time.kernel", "time.geometric_mean")
WORK_EXPLAINS = 0.3  # of a change of time (in logarithms) that a change of the work must reach to explain it
CLOCKS_APART = 0.02  # a smaller difference of the clocks explains no change of the time that counts


@dataclass(frozen=True)
class Allowance:
    """By how much a time may change (logarithms of the ratio) though the program did not; and why."""

    down: float  # the ratio may be as small as exp(-down)
    up: float
    reasons: tuple[Fact, ...]


def without_machine_effects(
    changes: Sequence[Change], baseline: RunDocument, candidate: RunDocument
) -> tuple[Change, ...]:
    """Return the changes, with times set to "ambiguous" where the state of the machine may have caused them.

    A change of seconds that is none in cycles is the clock's. Where others had a part of the machine, or the
    reference loop shows another speed of the processor, a time decides only if it changed by more than that can
    do, or if the instructions, which others cannot change, changed with it.
    """
    clocks = clock_of(baseline), clock_of(candidate)
    by_events = timed_by_events(baseline, candidate)
    work = [c.ratio for c in changes if c.metric == "instructions" and c.word == "different" and c.ratio]
    weighed = []
    for change in changes:
        host = is_host_time(change, by_events)
        doubt = None
        if change.word == "different" and change.unit == "s" and change.ratio:
            doubt = _clock_doubt(change, *clocks)
        if doubt is not None:
            change = _doubted(change, (doubt,))
            change = replace(change, fix=_in_turns(baseline, candidate)) if host else change
        if host and change.ratio and change.word != "same" and not _is_explained(change, work):
            change = _without_distance_effects(change, baseline, candidate)
        weighed.append(change)
    return tuple(weighed)


def _doubted(change: Change, doubts: tuple[Fact, ...]) -> Change:
    return replace(change, word="ambiguous", course="neither", doubts=(*change.doubts, *doubts))


def _is_explained(change: Change, work: Sequence[float]) -> bool:
    """Return whether the instructions changed with the time; `work` holds their ratios."""
    size = log(change.ratio) if change.word == "different" and change.ratio else 0.0
    return size != 0 and any(log(ratio) / size >= WORK_EXPLAINS for ratio in work)


def _without_distance_effects(change: Change, baseline: RunDocument, candidate: RunDocument) -> Change:
    """Return a change of a host's time, as "ambiguous" where the distance between the runs may be its reason.

    A change that is "ambiguous" already gets the fix that decides it, if recording both again could not.
    """
    between = allowance_of(baseline, candidate)
    if change.word == "ambiguous":
        if change.low is None or between is None or not _allows(between, change):
            return change  # where there are too few samples: that can be mended, and comes first
        return replace(change, fix=_in_turns(baseline, candidate))
    speed = speed_change(baseline, candidate)
    allowances = (_allowance_of_speed(speed) if speed is not None else None, between)
    reasons = next(
        (
            allowance.reasons
            for allowance in allowances
            if allowance is not None and _allows(allowance, change)
        ),
        None,
    )
    if reasons is None:
        return change
    return replace(_doubted(change, reasons), fix=_in_turns(baseline, candidate))


def _allowance_of_speed(speed: Interval) -> Allowance:
    """Return the allowance for another processor speed.

    How much of it a program has is not known: from nothing to MAX_SENSITIVITY times as much.
    """
    down, up = (max(0.0, MAX_SENSITIVITY * size) for size in (-log(speed.low), log(speed.high)))
    slower = max(speed.middle, 1 / speed.middle) - 1
    side = "candidate" if speed.middle >= 1 else "baseline"
    return Allowance(down, up, (Fact.of("reference-loop", share=slower, side=side),))


def _allows(allowance: Allowance, change: Change) -> bool:
    """Return whether, without the machine's part, possibly no change that counts is left."""
    assert change.ratio
    low, high = log(change.low or change.ratio), log(change.high or change.ratio)
    if change.word == "ambiguous":
        low = high = log(change.ratio)
    floor = log(1 + change.floor)
    # What others took from the candidate made it longer, and may not have been there at all.
    return low - allowance.up <= floor and high + allowance.down >= -floor


def timed_by_events(baseline: RunDocument, candidate: RunDocument) -> frozenset[str | None]:
    """Return the names of what was timed on a device in one of the runs; None stands for the whole process.

    A sweep has thousands of timings: they are looked through once, and not for each change.
    """
    timings = (timing for document in (baseline, candidate) for timing in document.timings)
    timed = [t for t in timings if any(process.on_device for process in t.processes)]
    return frozenset({t.name for t in timed} | {None for t in timed if t.kind == "process"})


def is_host_time(change: Change, by_events: frozenset[str | None]) -> bool:
    """Return whether a change is of wall or CPU time of the host, and not a mean over a grid of shapes."""
    if change.unit != "s" or not change.metric.startswith("time.") or change.metric.startswith(_NOT_OF_HOST):
        return False
    if change.metric != "time.median":
        return True
    return (None if change.scope.kind == "run" else change.scope.name) not in by_events


# ---------------------------------------------------------------- what the machine allows


def allowance_of(baseline: RunDocument, candidate: RunDocument) -> Allowance | None:
    """Combine what is known of the machine between the runs with what others took from each of them.

    None if nothing is known.
    """
    virtual = next((d.machine.virtual for d in (candidate, baseline) if d.machine is not None), None)
    lost = lost_share(baseline), lost_share(candidate)
    if virtual is None and max(lost) == 0:
        return None
    size = log(GUEST_FACTOR) if virtual is not None else 0.0
    down, up = (size - MARGIN * log(1 - share) for share in lost)
    reasons = [Fact.of("guest", virtual=virtual, factor=GUEST_FACTOR)] if virtual is not None else []
    if virtual is None or max(lost) >= MIN_LOSS:
        side, more = ("candidate", candidate) if lost[1] >= lost[0] else ("baseline", baseline)
        stolen, waited = lost_shares(more.disturbances)
        reasons.append(Fact.of("lost", side=side, stolen=stolen, waited=waited))
    return Allowance(down, up, tuple(reasons))


def lost_share(document: RunDocument) -> float:
    """Return the share of its time, 0..MAX_LOST, that a run may have lost to others.

    That is time stolen, or spent waiting for a core. Threads that wait for each other's cores lose nothing to
    others: no more counts than what other processes had.
    """
    return min(MAX_LOST, sum(lost_shares(document.disturbances)))


# ---------------------------------------------------------------- the processor's speed, by the reference loop


def speed_change(baseline: RunDocument, candidate: RunDocument) -> Interval | None:
    """Return how many times as long the reference loop took beside all timings.

    None if a run has none, or if the Python versions differ: then it is another loop.
    """
    if baseline.packages.get("python") != candidate.packages.get("python"):
        return None
    turns = [
        [s for timing in run.timings for p in timing.processes for s in p.reference_loop if s > 0]
        for run in (baseline, candidate)
    ]
    return ratio_interval(_interval_of(turns[0]), _interval_of(turns[1])) if all(turns) else None


def _interval_of(turns: Sequence[float]) -> Interval:
    """Return the median with its interval; with too few values for one, the smallest and the largest."""
    bounds = median_interval(turns)
    low, high = (min(turns), max(turns)) if bounds is None else (bounds.low, bounds.high)
    return Interval(low, median(turns), high)


# ---------------------------------------------------------------- clocks and states


def clock_of(document: RunDocument) -> float | None:
    """Return the median clock beside the samples, in Hz; None where nothing measured it."""
    clocks = [hertz for timing in document.timings for p in timing.processes for hertz in p.clocks]
    return median(clocks) if clocks else None


def _clock_doubt(change: Change, before: float | None, after: float | None) -> Fact | None:
    """Return the doubt about a time that the clock alone explains, with its change in cycles; else None."""
    if before is None or after is None or change.ratio is None:
        return None
    faster = after / before
    cycles = change.ratio * faster
    if abs(faster - 1) <= CLOCKS_APART or (change.ratio > 1) == (faster > 1):
        return None
    if decide(Interval(cycles, cycles, cycles), change.floor) != "same":
        return None
    return Fact.of("clock", before=before, after=after, cycles=cycles - 1)


def throttle_reasons(document: RunDocument) -> tuple[Fact, ...]:
    """Return why the hardware held its clock down while the run was timed."""
    reasons = [r for t in document.timings for p in t.processes for r in p.throttle_reasons]
    return tuple(Fact.of("text", text=reason) for reason in dict.fromkeys(reasons))


# ---------------------------------------------------------------- what would decide


def _in_turns(baseline: RunDocument, candidate: RunDocument) -> Fact:
    """Return the command that runs both programs alternately: two commits by one command, else two commands."""
    commands = baseline.workload.command, candidate.workload.command
    before, after = map(line_to_type, commands)
    if not all(commands):
        return Fact("in-turns")
    old, new = baseline.revision, candidate.revision
    if commands[0] == commands[1] and old and new and _is_kept(old) and _is_kept(new):
        line = f"profkit compare --base {str(old.commit)[:12]} --head {str(new.commit)[:12]} -- {after}"
        return Fact.of("text", text=line)
    return Fact.of("text", text=f"profkit compare --a {shlex.quote(before)} --b {shlex.quote(after)}")


def _is_kept(revision: Revision) -> bool:
    """Return whether all of the revision is in a commit, whose name in a stranger's document might be an option."""
    return re.fullmatch(r"[0-9a-f]{7,64}", revision.commit or "") is not None and not revision.dirty


# ---------------------------------------------------------------- causes


def find_machine_causes(evidence: Evidence) -> Iterator[Cause]:
    """Yield throttling of one run as a cause where a time is open or changed.

    Other effects of the machine are doubts of each change.
    """
    throttled = [throttle_reasons(document) for document in (evidence.baseline, evidence.candidate)]
    if throttled[0] != throttled[1] and any(c.unit == "s" and c.word != "same" for c in evidence.changes):
        for side, reasons in zip(("baseline", "candidate"), throttled, strict=True):
            if reasons:
                yield Cause("throttled", Fact.of("throttled", side=side), evidence=reasons)
