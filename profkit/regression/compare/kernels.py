"""Match every kernel and function of two runs, and find what appeared, vanished, became slower or faster."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from profkit.analysis.kernel_names import same_name
from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.inference import Interval, decide
from profkit.core.types import (
    CodeChange,
    CodeChangeWord,
    GpuTrace,
    Hotspot,
    Kernel,
    KernelTime,
    Profile,
    RunDocument,
)
from profkit.profilers.registry import PROFILERS

_LONGEST = 20_000  # characters of a name that are looked at


@dataclass(frozen=True)
class KernelPair:
    """One kernel in both runs; `reshaped`: the candidate launches it in another shape."""

    before: KernelTime
    after: KernelTime
    reshaped: bool = False

    @property
    def baseline(self) -> Kernel:
        """Return the baseline's kernel."""
        return self.before.kernel

    @property
    def candidate(self) -> Kernel:
        """Return the candidate's kernel."""
        return self.after.kernel


@dataclass(frozen=True)
class MatchedKernels:
    """The kernels of two runs: those in both, and those in only one."""

    pairs: tuple[KernelPair, ...]
    vanished: tuple[KernelTime, ...]
    appeared: tuple[KernelTime, ...]


def match_kernels(baseline: RunDocument, candidate: RunDocument) -> MatchedKernels:
    """Match kernels by exact name and shape; else by the mangled name, or an equivalent spelling, and shape.

    A kernel left over that has a single namesake on the other side is taken for the same one in another shape.
    The time it takes grows with the number of kernels.
    """
    before, after = (
        list(run.trace.kernels) if run.trace is not None else [] for run in (baseline, candidate)
    )
    pairs: list[KernelPair] = []
    names: tuple[Callable[[Kernel], Hashable | None], ...] = (
        lambda kernel: kernel.name,
        lambda kernel: kernel.mangled,
        lambda kernel: same_name(kernel.name[:_LONGEST]),
    )
    for name in names:
        before, after = _match_by(before, after, partial(_shaped, name), pairs, reshaped=False)
    for name in names[1:]:
        before, after = _match_by(before, after, name, pairs, reshaped=True)
    return MatchedKernels(tuple(pairs), tuple(before), tuple(after))


def _match_by(
    before: Sequence[KernelTime],
    after: Sequence[KernelTime],
    key: Callable[[Kernel], Hashable | None],
    pairs: list[KernelPair],
    *,
    reshaped: bool,
) -> tuple[list[KernelTime], list[KernelTime]]:
    """Add to `pairs` the kernels with the same key, and return the rest of both sides.

    Several with one key are paired in their order, largest first; in another shape, only those alone on both
    sides are.
    """
    if not before or not after:
        return list(before), list(after)
    first, second = _group_by(before, key), _group_by(after, key)
    taken: set[int] = set()
    for name, members in first.items():
        counterparts = second.get(name, [])
        if reshaped and (len(members) > 1 or len(counterparts) > 1):
            continue
        for own, counterpart in zip(members, counterparts, strict=False):
            pairs.append(KernelPair(own, counterpart, reshaped))
            taken |= {id(own), id(counterpart)}
    return [k for k in before if id(k) not in taken], [k for k in after if id(k) not in taken]


def _group_by(
    times: Sequence[KernelTime], key: Callable[[Kernel], Hashable | None]
) -> dict[Hashable, list[KernelTime]]:
    groups: dict[Hashable, list[KernelTime]] = {}
    for time in times:
        name = key(time.kernel)
        if name is not None:
            groups.setdefault(name, []).append(time)
    return groups


def _shaped(name: Callable[[Kernel], Hashable | None], kernel: Kernel) -> Hashable | None:
    key = name(kernel)
    return (key, kernel.grid, kernel.block) if key else None


KERNEL_FLOOR = 0.02  # relative, of its time per iteration
# What one launch configuration's time differs by from one trace of the same program to the next: the clock of a device
# moves by 1 to 2 %, and a launch begins and ends within 200 ns of where it did.
REPEAT, JITTER = 0.03, 2e-7
# The same of the median of an encoder of Metal, which is given in ticks of 42 ns: recordings of one program on an M1
# lay 3 to 7 % apart, of five programs with 4 to 11 recordings each; of one program a single recording lay 34 % off, in
# a state that was not exported. Sums lay up to 39 % apart, so encoders are compared by their medians.
METAL_REPEAT, METAL_JITTER = 0.07, 1e-7


def kernel_changes(
    baseline: RunDocument, candidate: RunDocument, matched: MatchedKernels, floor: float | None = None
) -> tuple[CodeChange, ...]:
    """Return one change for each launch configuration, the largest change of time first.

    Seconds are per iteration of what counts; of a report of counters alone, per launch.
    """
    before, after = RunKernels(baseline), RunKernels(candidate)
    changes = [
        _kernel_change(pair, before, after, KERNEL_FLOOR if floor is None else floor)
        for pair in matched.pairs
    ]
    changes += [_kernel_of_one_run(time, before, "vanished") for time in matched.vanished]
    changes += [_kernel_of_one_run(time, after, "appeared") for time in matched.appeared]
    changes.sort(key=lambda change: -abs(added_value(change)))
    return tuple(changes)


def counts_chosen_launches(trace: GpuTrace | None) -> bool:
    """Return whether the tool counted only chosen launches: their number and sum say nothing about the program."""
    profiler = PROFILERS.get(trace.tool) if trace is not None else None
    return profiler is not None and profiler.recorder is not None and profiler.recorder.picks_kernel


class RunKernels:
    """One run, as its kernels are compared: seconds and calls per iteration.

    Per launch if the tool counted only chosen ones.
    """

    def __init__(self, document: RunDocument) -> None:
        trace = document.trace
        self.counted = counts_chosen_launches(trace)
        self.metal = document.metal is not None
        self.iterations = 1.0 if self.counted else traced_iterations(document)
        self.times = trace.kernels if trace is not None else ()
        self.total = sum(self.seconds(time) for time in self.times)

    def seconds(self, time: KernelTime) -> float:
        """Return the GPU time of a kernel, in seconds per iteration or launch."""
        if self.metal and time.median is not None:
            return time.median * time.launches / self.iterations
        return time.total / (time.launches or 1) if self.counted else time.total / self.iterations

    def calls(self, time: KernelTime) -> float:
        """Return the launches in each iteration."""
        return time.launches / self.iterations

    def share(self, time: KernelTime) -> float:
        """Return the kernel's share of the GPU time of all kernels, 0..1."""
        return self.seconds(time) / self.total if self.total > 0 else 0.0


def _kernel_change(pair: KernelPair, before: RunKernels, after: RunKernels, floor: float) -> CodeChange:
    first, second = before.seconds(pair.before), after.seconds(pair.after)
    launches = 1.0 if after.counted else max(before.calls(pair.before), after.calls(pair.after))
    repeat, jitter = (METAL_REPEAT, METAL_JITTER) if after.metal else (REPEAT, JITTER)
    noise, limit = repeat * max(first, second) + jitter * launches, floor * first
    change = second - first
    decision = decide(Interval(change - noise, change, change + noise), limit, around=0)
    word: CodeChangeWord = "slower" if second > first else "faster"
    if decision != "different":  # what lies between is within the noise of one trace each
        word = "same" if abs(change) <= limit else "ambiguous"
    return CodeChange(
        pair.candidate.name,
        word,
        first,
        second,
        pair.candidate.id,
        max(before.share(pair.before), after.share(pair.after)),
    )


def _kernel_of_one_run(time: KernelTime, run: RunKernels, word: CodeChangeWord) -> CodeChange:
    seconds, kernel = run.seconds(time), time.kernel
    old, new = (None, seconds) if word == "appeared" else (seconds, None)
    return CodeChange(kernel.name, word, old, new, kernel.id, run.share(time))


INSTRUCTIONS_SHARE = 0.005  # of all instructions: a function below it moves nothing
MAX_FUNCTIONS = 200  # functions of one profile that are listed, largest change first


def function_changes(baseline: RunDocument, candidate: RunDocument) -> tuple[CodeChange, ...]:
    """Return the functions whose simulated instructions changed, which are exact: own counts per iteration.

    The largest change comes first; unchanged functions are left out. Samples of two runs differ by chance: a
    profile of each shows them.
    """
    after = {(profile.title, profile.unit): profile for profile in candidate.profiles}
    changes: list[CodeChange] = []
    for profile in baseline.profiles:
        counterpart = after.get((profile.title, profile.unit))
        counted = profile.unit == "instructions" and profile.kind not in ("counted-lines", "counted-loops")
        if counted and counterpart is not None and profile.total > 0 and counterpart.total > 0:
            moved = _instruction_changes(profile, counterpart)
            changes += sorted(moved, key=lambda change: -abs(added_value(change)))[:MAX_FUNCTIONS]
    return tuple(changes)


def added_value(function: CodeChange) -> float:
    """Return by how much the candidate has more of it."""
    return (function.candidate or 0.0) - (function.baseline or 0.0)


def _instruction_changes(before: Profile, after: Profile) -> Iterator[CodeChange]:
    limit = INSTRUCTIONS_SHARE * max(before.total, after.total)
    first, second = _spots_by_name(before), _spots_by_name(after)
    for key in dict.fromkeys((*first, *second)):
        old, new = (spots[key].own if key in spots else None for spots in (first, second))
        if abs((new or 0.0) - (old or 0.0)) < limit:
            continue
        word: CodeChangeWord = "slower" if (new or 0.0) > (old or 0.0) else "faster"
        if old is None or new is None:
            word = "appeared" if old is None else "vanished"
        name = (second if key in second else first)[key].function
        yield CodeChange(name, word, old, new, unit=before.unit, profile=before.title)


def _spots_by_name(profile: Profile) -> dict[tuple[str, str], Hotspot]:
    """Index the hotspots by name and library; of two with one name, keep the larger."""
    spots: dict[tuple[str, str], Hotspot] = {}
    for spot in profile.hotspots:
        key = (spot.function, os.path.basename(spot.library or ""))
        if key not in spots or spots[key].own < spot.own:
            spots[key] = spot
    return spots
