"""Every kernel and function of both runs: which is which, what appeared, vanished, became slower or faster."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

from profkit.analysis.kernel_names import same_name, short_name
from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.formatting import format_figures, format_quantity, plural, signed
from profkit.core.inference import Interval, decide
from profkit.core.types import (
    FunctionChange,
    GpuTrace,
    Hotspot,
    Kernel,
    KernelChange,
    KernelChangeWord,
    KernelTime,
    Profile,
    RoleSign,
    RunDocument,
)
from profkit.profilers.registry import find_profiler

_LONGEST = 20_000  # characters of a name that are looked at


@dataclass(frozen=True)
class KernelPair:
    """One kernel in both runs; `reshaped`: launched in another shape; `signs`: why it is one under two names."""

    before: KernelTime
    after: KernelTime
    reshaped: bool = False
    signs: tuple[RoleSign, ...] = ()

    @property
    def baseline(self) -> Kernel:
        """Of the baseline."""
        return self.before.kernel

    @property
    def candidate(self) -> Kernel:
        """Of the candidate."""
        return self.after.kernel


@dataclass(frozen=True)
class MatchedKernels:
    """The kernels of two runs: those of both, and those of one alone."""

    pairs: tuple[KernelPair, ...]
    vanished: tuple[KernelTime, ...]
    appeared: tuple[KernelTime, ...]


def match_kernels(baseline: RunDocument, candidate: RunDocument) -> MatchedKernels:
    """By name and shape as they stand; else by the mangled name, or the name spelled alike, and shape.

    What is left then and has one namesake alone on the other side is the same kernel launched in another shape. The
    time it takes grows with the number of kernels.
    """
    before, after = list(_kernel_times(baseline.trace)), list(_kernel_times(candidate.trace))
    pairs: list[KernelPair] = []
    keys: tuple[Callable[[Kernel], Hashable | None], ...] = (_exact_key, _mangled_key, _spelled_key)
    for key in keys:
        before, after = _match_by(before, after, key, pairs, reshaped=False)
    for key in (_mangled_name, _spelled_name):
        before, after = _match_by(before, after, key, pairs, reshaped=True)
    return MatchedKernels(tuple(pairs), tuple(before), tuple(after))


def _kernel_times(trace: GpuTrace | None) -> Sequence[KernelTime]:
    return trace.kernels if trace is not None else ()


def _match_by(
    before: Sequence[KernelTime],
    after: Sequence[KernelTime],
    key: Callable[[Kernel], Hashable | None],
    pairs: list[KernelPair],
    *,
    reshaped: bool,
) -> tuple[list[KernelTime], list[KernelTime]]:
    """Add to `pairs` what has the same key; the rest of both sides.

    Several of one key are paired in their order, largest first; in another shape only what is alone on both sides is.
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


def _exact_key(kernel: Kernel) -> Hashable:
    return kernel.name, kernel.grid, kernel.block


def _mangled_key(kernel: Kernel) -> Hashable | None:
    return (kernel.mangled, kernel.grid, kernel.block) if kernel.mangled else None


def _spelled_key(kernel: Kernel) -> Hashable | None:
    return same_name(kernel.name[:_LONGEST]), kernel.grid, kernel.block


def _mangled_name(kernel: Kernel) -> Hashable | None:
    return kernel.mangled


def _spelled_name(kernel: Kernel) -> Hashable | None:
    return same_name(kernel.name[:_LONGEST])


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
) -> tuple[KernelChange, ...]:
    """One change for each launch configuration, the largest change of time first.

    Seconds are per iteration of what counts; of a report of counters alone, per launch.
    """
    before, after = TracedRun(baseline), TracedRun(candidate)
    changes = [
        _kernel_change(pair, before, after, KERNEL_FLOOR if floor is None else floor)
        for pair in matched.pairs
    ]
    changes += [_kernel_of_one_run(time, before, "vanished") for time in matched.vanished]
    changes += [_kernel_of_one_run(time, after, "appeared") for time in matched.appeared]
    return tuple(sorted(changes, key=lambda change: -abs(added_seconds(change))))


def added_seconds(change: KernelChange) -> float:
    """Seconds per iteration by which the candidate is longer for it."""
    return (change.candidate_seconds or 0.0) - (change.baseline_seconds or 0.0)


def counts_chosen_launches(trace: GpuTrace | None) -> bool:
    """Whether the tool counted the launches it was told to: their number and their sum say nothing of the program."""
    profiler = find_profiler(trace.tool) if trace is not None else None
    return profiler is not None and profiler.recorder is not None and profiler.recorder.picks_kernel


class TracedRun:
    """One run, as its kernels are compared: seconds and calls per iteration, or per launch where chosen ones count."""

    def __init__(self, document: RunDocument) -> None:
        trace = document.trace
        self.counted = counts_chosen_launches(trace)
        self.metal = document.metal is not None
        self.iterations = 1.0 if self.counted else traced_iterations(document)
        self.times = trace.kernels if trace is not None else ()
        self.order = trace.order if trace is not None else ()
        self.total = sum(self.seconds(time) for time in self.times)

    def seconds(self, time: KernelTime) -> float:
        """GPU time of a kernel, per iteration or launch."""
        if self.metal and time.median is not None:
            return time.median * time.launches / self.iterations
        return time.total / (time.launches or 1) if self.counted else time.total / self.iterations

    def calls(self, time: KernelTime) -> float:
        """Launches in each iteration."""
        return time.launches / self.iterations

    def share(self, time: KernelTime) -> float:
        """Of the GPU time of all kernels, 0..1."""
        return self.seconds(time) / self.total if self.total > 0 else 0.0


def _kernel_change(pair: KernelPair, before: TracedRun, after: TracedRun, floor: float) -> KernelChange:
    first, second = before.seconds(pair.before), after.seconds(pair.after)
    calls = before.calls(pair.before), after.calls(pair.after)
    launches = 1.0 if after.counted else max(calls)
    repeat, jitter = (METAL_REPEAT, METAL_JITTER) if after.metal else (REPEAT, JITTER)
    noise, limit = repeat * max(first, second) + jitter * launches, floor * first
    change = second - first
    decision = decide(Interval(change - noise, change, change + noise), limit, around=0)
    word: KernelChangeWord = "slower" if second > first else "faster"
    if decision != "different":  # what lies between is within the noise of one trace each
        word = "same" if abs(change) <= limit else "ambiguous"
    reason = (
        f"{_percent_change(first, second)}; one trace differs from the next by {format_quantity(noise, 's')}"
    )
    if not after.counted and abs(calls[1] - calls[0]) > 0.005 * calls[0]:
        reason += f"; {format_figures(calls[0])} calls became {format_figures(calls[1])}"
    if pair.signs:
        names = f"{short_name(pair.baseline.name)} became {short_name(pair.candidate.name)}"
        reason += f"; paired by its role: {names}"
    if pair.reshaped:
        reason += f"; launched as {pair.candidate.id}, before as {pair.baseline.id}"
    return KernelChange(
        pair.candidate.name,
        word,
        reason,
        first,
        second,
        *calls,
        pair.candidate.id,
        max(before.share(pair.before), after.share(pair.after)),
        baseline_name=pair.baseline.name if pair.signs else None,
        baseline_launch=pair.baseline.id if pair.signs else None,
        paired_by=pair.signs,
    )


def _kernel_of_one_run(time: KernelTime, run: TracedRun, word: KernelChangeWord) -> KernelChange:
    seconds, calls = run.seconds(time), run.calls(time)
    which = "candidate" if word == "appeared" else "baseline"
    reason = f"only in the {which}: {format_quantity(seconds, 's')} in {plural(round(calls), 'call')}"
    old, new = (None, seconds) if word == "appeared" else (seconds, None)
    old_calls, new_calls = (None, calls) if word == "appeared" else (calls, None)
    kernel = time.kernel
    return KernelChange(kernel.name, word, reason, old, new, old_calls, new_calls, kernel.id, run.share(time))


def _percent_change(first: float, second: float) -> str:
    if first <= 0:
        return f"{format_quantity(first, 's')} became {format_quantity(second, 's')}"
    return f"{signed(100 * (second / first - 1))} %"


INSTRUCTIONS_SHARE = 0.005  # of all instructions: a function below it moves nothing
SAMPLES_PER_SECOND = 100  # of sampled Python stacks
SAMPLES_SHARE = 0.02  # of all samples
SIGMAS = 2.6  # 99 % of the differences of two equal shares
MOST_FUNCTIONS = 200  # functions of one profile that are listed, largest change first


def function_changes(baseline: RunDocument, candidate: RunDocument) -> tuple[FunctionChange, ...]:
    """What changed, by own values, largest change of a profile first. What stayed the same is left out.

    Instructions that were simulated are counts per iteration and exact. Of samples only shares are compared, with the
    error that their number leaves (binomial); a profile under a tracer has no such error, so 2 % of all must differ.
    """
    after = {(profile.title, profile.unit): profile for profile in candidate.profiles}
    changes: list[FunctionChange] = []
    for profile in baseline.profiles:
        counterpart = after.get((profile.title, profile.unit))
        if counterpart is None or profile.total <= 0 or counterpart.total <= 0:
            continue
        if profile.unit == "instructions" and profile.kind != "counted-lines":
            changes += sorted(_instruction_changes(profile, counterpart), key=_largest_first)[:MOST_FUNCTIONS]
        elif profile.kind in ("functions", "own-time", "sampled-functions"):
            changes += sorted(_sample_changes(profile, counterpart), key=_largest_first)[:MOST_FUNCTIONS]
    return tuple(changes)


def _largest_first(change: FunctionChange) -> float:
    return -abs((change.candidate or 0.0) - (change.baseline or 0.0))


def _instruction_changes(before: Profile, after: Profile) -> Iterator[FunctionChange]:
    limit = INSTRUCTIONS_SHARE * max(before.total, after.total)
    for first, second, spot in _pair_spots(before, after):
        if abs((second or 0.0) - (first or 0.0)) < limit:
            continue
        unit = before.unit
        reason = f"{format_quantity(first, '')} became {format_quantity(second, '')} {unit}, simulated"
        if first is None or second is None:
            reason = f"{format_quantity(first or second, '')} {unit}, simulated"
        yield _function_change(before, unit, first, second, spot, reason)


def _sample_changes(before: Profile, after: Profile) -> Iterator[FunctionChange]:
    noise = _sample_count(before), _sample_count(after)
    for first, second, spot in _pair_spots(before, after):
        share_before, share_after = (first or 0.0) / before.total, (second or 0.0) / after.total
        middle = (share_before + share_after) / 2
        error = SIGMAS * sqrt(max(0.0, middle * (1 - min(1.0, middle))) * sum(1 / count for count in noise))
        if abs(share_after - share_before) - error < SAMPLES_SHARE:
            continue
        percents = 100 * share_before, 100 * share_after
        reason = (
            f"{format_figures(percents[0])} % became {format_figures(percents[1])} % of "
            f"{_profiled_quantity(before)}"
        )
        shares = [
            None if value is None else part for value, part in zip((first, second), percents, strict=True)
        ]
        yield _function_change(before, "%", shares[0], shares[1], spot, reason)


def _profiled_quantity(profile: Profile) -> str:
    if profile.kind == "sampled-functions":
        return "the processor time of Python's threads"
    return "the time under cProfile" if profile.kind == "own-time" else "the samples"


def _sample_count(profile: Profile) -> float:
    """About how many samples a profile is made of: the smallest value is one. Infinite where it was not sampled."""
    if profile.kind == "own-time":
        return float("inf")
    if profile.kind == "sampled-functions":  # of seconds: a hundred of them in one
        return max(1.0, profile.total * SAMPLES_PER_SECOND)
    values = [spot.own for spot in profile.hotspots if spot.own > 0]
    return max(1.0, profile.total / min(values)) if values else 1.0


def _pair_spots(before: Profile, after: Profile) -> Iterator[tuple[float | None, float | None, Hotspot]]:
    first, second = _spots_by_name(before), _spots_by_name(after)
    for key in dict.fromkeys((*first, *second)):
        spot_before, spot_after = first.get(key), second.get(key)
        spot = spot_after or spot_before
        assert spot is not None
        yield (spot_before.own if spot_before else None), (spot_after.own if spot_after else None), spot


def _spots_by_name(profile: Profile) -> dict[tuple[str, str], Hotspot]:
    """By name and library; of two of one name the larger."""
    spots: dict[tuple[str, str], Hotspot] = {}
    for spot in profile.hotspots:
        key = (spot.function, os.path.basename(spot.library or ""))
        if key not in spots or spots[key].own < spot.own:
            spots[key] = spot
    return spots


def _function_change(
    profile: Profile, unit: str, first: float | None, second: float | None, spot: Hotspot, reason: str
) -> FunctionChange:
    word: KernelChangeWord
    if first is None:
        word = "appeared"
    elif second is None:
        word = "vanished"
    else:
        word = "slower" if second > first else "faster"
    library = os.path.basename(spot.library) if spot.library else None
    return FunctionChange(spot.function, profile.title, unit, word, reason, first, second, library)
