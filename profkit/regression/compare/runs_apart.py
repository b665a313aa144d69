"""Which changes of a time the machine may have made because the two runs were recorded one after the other.

From one run to the next a machine changes: its clock, who else is on it, where the memory lies. The samples of a run
show nothing of that, however many they are. What shows it are runs of unchanged programs (`RunSpread`), what each run
counted of others while it was timed (`Disturbance`), and the reference loop that was timed beside it. Where those allow
a change, two runs that lie apart cannot decide it: both programs have to be run in turns.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log

from profkit.analysis.comparability.fingerprint import arguments_of, program_of
from profkit.core.formatting import format_percent, plural
from profkit.core.inference.tails import student_quantile
from profkit.core.types import Change, RunDocument, RunSpread
from profkit.hardware.conditions import lost_shares
from profkit.regression.compare.decisions import signed_percent
from profkit.regression.compare.processor_speed import SpeedChange, speed_change

# Two runs of one program on a guest whose cores may be others', too: up to so many times as long. On a shared virtual
# machine of two cores the medians of a Python loop lay 1.6 apart in 6 runs, and those of a copy of 8 MB 2.2
# (docs/measurements.md); nothing tells a guest whether its cores are its own.
GUEST_FACTOR = 2.0
# From so many pairs of equal runs on they count instead. A guest's speed moves between few values: if it is another one
# in a tenth of the runs, 20 pairs show none of that in 1 of 8 cases, 5 pairs in 6 of 10.
GUEST_TRIALS = 20
TRIALS = 5  # on the machine itself, where without them nothing is assumed
COVERAGE = 0.99
# How much of a reference loop's slowdown a program may have, in logarithms: one that waits for the disk has none of it.
# Of one that copies 8 MB a fifth run was 1.8 times slower where the loop was 1.3 times slower (docs/measurements.md).
MOST_SENSITIVE = 2.0
# Whoever takes a core's time takes of its caches and its clock, too, which nothing counts: half as much again.
MARGIN = 1.5
TOLD_LOSS = 0.01  # of a run's time: less is not worth a word beside the machine's own spread
MOST_LOST = 0.9  # of a run's time: who lost more of it knows no time at all
# Share of the 10 s before in which tasks waited for a core: twice what the doctor calls busy, since 10 s are few.
PRESSURE = 0.1
# Times by the device's own clock or of a trace; and means over a grid, which have noise and a control of their own.
_NOT_OF_HOST = ("time.gpu", "time.kernel", "time.geometric_mean")


@dataclass(frozen=True)
class Allowance:
    """By how much a time may change, as logarithms of the ratio, though the program did not; and why."""

    down: float  # the ratio may be as small as exp(-down)
    up: float
    reason: str


def without_distance_effects(
    change: Change, baseline: RunDocument, candidate: RunDocument, by_events: frozenset[str | None]
) -> Change:
    """The change of a host's time; AMBIGUOUS where it is DIFFERENT and the distance between the runs may be why.

    So is a time that is the SAME on a processor of another speed: the program may have changed by as much. One that is
    AMBIGUOUS already is told what decides it, where recording both once more could not. `by_events`: `timed_by_events`.
    """
    if not change.ratio or not is_host_time(change, by_events):
        return change
    between = allowance_of(baseline, candidate)
    if change.word == "ambiguous":
        if change.low is None or between is None or not _allows(between, change):
            return change  # where there are too few samples: that can be mended, and comes first
        return replace(change, fix=command_that_decides(baseline, candidate))
    timed = change.scope if change.metric == "time.median" else None
    speed = speed_change(baseline, candidate, timed)
    if change.word == "same":
        allowed = [speed.sentence] if speed is not None and _has_moved(speed, change.floor) else []
    else:
        known = (_allowance_of_speed(speed) if speed is not None else None, between)
        allowed = [one.reason for one in known if one is not None and _allows(one, change)]
    if not allowed:
        return change
    reason, fix = f"{change.reason}; but {allowed[0]}", command_that_decides(baseline, candidate)
    return replace(change, word="ambiguous", course="neither", reason=reason, fix=fix)


def _has_moved(speed: SpeedChange, floor: float) -> bool:
    return log(speed.low) > log(1 + floor) or log(speed.high) < -log(1 + floor)


def _allowance_of_speed(speed: SpeedChange) -> Allowance:
    """How much of it the program has is not known: from nothing to MOST_SENSITIVE times as much."""
    down, up = (max(0.0, MOST_SENSITIVE * size) for size in (-log(speed.low), log(speed.high)))
    return Allowance(down, up, speed.sentence)


def _allows(allowance: Allowance, change: Change) -> bool:
    """Whether no change that counts may be left without what the machine did."""
    assert change.ratio
    low, high = log(change.low or change.ratio), log(change.high or change.ratio)
    if change.word == "ambiguous":
        low = high = log(change.ratio)
    floor = log(1 + change.floor)
    # What others took from the candidate made it longer, and may not have been there at all.
    return low - allowance.up <= floor and high + allowance.down >= -floor


def timed_by_events(baseline: RunDocument, candidate: RunDocument) -> frozenset[str | None]:
    """The names of what a device's own clock timed in one of the runs; None stands for the whole process.

    A sweep has thousands of timings: they are looked through once, and not for each change.
    """
    timings = (timing for document in (baseline, candidate) for timing in document.timings)
    timed = [t for t in timings if any(process.clock == "cuda-events" for process in t.processes)]
    return frozenset({t.name for t in timed} | {None for t in timed if t.kind == "process"})


def is_host_time(change: Change, by_events: frozenset[str | None]) -> bool:
    """Whether it is wall or CPU time of the host, and no mean over a grid of shapes."""
    if change.unit != "s" or not change.metric.startswith("time.") or change.metric.startswith(_NOT_OF_HOST):
        return False
    if change.metric != "time.median":
        return True
    return (None if change.scope.kind == "run" else change.scope.name) not in by_events


# ---------------------------------------------------------------- what the machine allows


def allowance_of(baseline: RunDocument, candidate: RunDocument) -> Allowance | None:
    """What is known of the machine between the runs, and of others beside each of them, one on top of the other.

    None where that is nothing.
    """
    between = spread_allowance(baseline, candidate)
    lost = lost_share(baseline), lost_share(candidate)
    if between is None and max(lost) == 0:
        return None
    down, up = (-MARGIN * log(1 - share) for share in lost)
    name, document = ("candidate", candidate) if lost[1] >= lost[0] else ("baseline", baseline)
    told = f"the {name} {lost_text(document)}"
    if between is None:
        return Allowance(down, up, told)
    reason = f"{between.reason}; {told}" if max(lost) >= TOLD_LOSS else between.reason
    return Allowance(between.down + down, between.up + up, reason)


def lost_share(document: RunDocument) -> float:
    """The share of its time, 0..MOST_LOST, that a run may have lost to others: stolen, or waiting for a core.

    Threads that wait for each other's cores lose nothing to others: no more counts than what other processes had.
    """
    share, _ = _share_before(document)
    return min(MOST_LOST, max(share, sum(lost_shares(document.disturbances))))


def _share_before(document: RunDocument) -> tuple[float, str]:
    """What others had of the machine right before, where nothing counted it while it ran; and how that is told."""
    if any(d.waited is not None or d.pressure is not None for d in document.disturbances):
        return 0.0, ""
    moment = document.moments[0] if document.moments else None
    cores = document.machine.cores if document.machine is not None else None
    if moment is not None and moment.pressure is not None:
        share = moment.pressure / 100
        told = f"began where tasks waited for a core in {moment.pressure:.0f} % of the 10 s before"
        return (share, told) if share > PRESSURE else (0.0, "")
    if moment is not None and moment.load is not None and cores and moment.load > cores:
        return 1 - cores / moment.load, f"began at a load of {moment.load:.1f} on {plural(cores, 'core')}"
    return 0.0, ""


def lost_text(document: RunDocument) -> str:
    """`lost 12 % of its time to other guests of the hypervisor and waited for a core in 30 % of its time`."""
    before, told_before = _share_before(document)
    if before > 0:
        return told_before
    stolen, waited = lost_shares(document.disturbances)
    parts = (
        (stolen, "lost {} % of its time to other guests of the hypervisor"),
        (waited, "waited for a core in {} % of its time"),
    )
    told = [
        text.format(format_percent(100 * share)) for share, text in parts if share >= max(stolen, waited) / 10
    ]
    return " and ".join(told)


def spread_allowance(baseline: RunDocument, candidate: RunDocument) -> Allowance | None:
    """By the pairs of equal runs on this machine, or what is assumed of a guest; None where nothing is known of it."""
    known = _more_trials([baseline.run_spread, candidate.run_spread])
    virtual = next((d.machine.virtual for d in (candidate, baseline) if d.machine is not None), None)
    enough = GUEST_TRIALS if virtual is not None else TRIALS
    if known is not None and known.trials >= enough:
        size = spread_range(known)
        seen = f"in {plural(known.trials, 'pair')} of equal runs on this machine they lay {_range_text(size)} apart"
        return Allowance(size, size, f"{seen} (99 %)")
    if virtual is None:
        return None
    size = max(
        log(GUEST_FACTOR), spread_range(known) if known is not None and known.trials >= TRIALS else 0.0
    )
    seen = (
        f"two equal runs of this kind of machine ({virtual}) are taken to lie up to {_range_text(size)} apart"
    )
    why = f"fewer than {GUEST_TRIALS} pairs of equal runs are known of it"
    return Allowance(size, size, f"{seen}: {why}")


def spread_range(spread: RunSpread) -> float:
    """How far, as a logarithm, the next pair of equal runs may lie apart: in 99 of 100 cases, as far as so few tell.

    Student's t for a mean that is known to be 0, for one more pair; and never less than the largest that was seen,
    since a machine that moves between two speeds has no normal distribution.
    """
    quantile = student_quantile((1 + COVERAGE) / 2, spread.trials)
    return max(quantile * spread.rms, spread.largest)


def _more_trials(spreads: Sequence[RunSpread | None]) -> RunSpread | None:
    """Of two looks at one machine the one with more trials; of as many the wider one."""
    return max(
        (spread for spread in spreads if spread is not None),
        key=lambda spread: (spread.trials, spread.rms),
        default=None,
    )


def _range_text(size: float) -> str:
    return f"{exp(size):.2g} times" if size >= log(1.5) else f"{signed_percent(exp(size) - 1)[1:]}"


# ---------------------------------------------------------------- what would decide


def command_that_decides(baseline: RunDocument, candidate: RunDocument) -> str:
    """The call that runs both programs in turns: two commits by one command, else two commands."""
    commands = [shlex.join(document.workload.command) for document in (baseline, candidate)]
    if not all(commands):
        return "run both programs in turns on one machine: profkit compare --a COMMAND --b COMMAND"
    before, after = baseline.revision, candidate.revision
    if before is not None and after is not None and before.commit and after.commit and not before.dirty:
        base = f"profkit compare --base {before.commit[:12]}"
        if _are_one_command(baseline, candidate) and after.dirty:
            return f"{base} -- {commands[1]}"  # the files as they are
        if _are_one_command(baseline, candidate) and before.commit != after.commit:
            return f"{base} --head {after.commit[:12]} -- {commands[1]}"
    line = f"profkit compare --a {_quoted(commands[0])} --b {_quoted(commands[1])}"
    if commands[0] == commands[1]:
        line += " (with each version in a file or folder of its own)"
    return line


def _are_one_command(baseline: RunDocument, candidate: RunDocument) -> bool:
    names = [(program_of(d.workload), arguments_of(d.workload)) for d in (baseline, candidate)]
    return names[0] == names[1]


def _quoted(command: str) -> str:
    """In double quotes where the shell reads it as it stands, else as `shlex` has it."""
    return shlex.quote(command) if set(command) & set('"$`\\!') else f'"{command}"'
