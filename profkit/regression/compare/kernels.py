"""Every kernel of both runs: what appeared, vanished, became slower or faster."""

from __future__ import annotations

from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.formatting import figures, plural, quantity
from profkit.core.types import KernelChange, KernelChangeWord, KernelTime, RunDocument
from profkit.regression.compare.match import KernelPair, Matched

FLOOR = 0.02  # relative, of its time per iteration
# What one launch configuration's time differs by from one trace of the same program to the next: the clock of a device
# moves by 1 to 2 %, and a launch begins and ends within 200 ns of where it did.
REPEAT, JITTER = 0.03, 2e-7
# The same of the median of an encoder of Metal, which is told in ticks of 42 ns: recordings of one program on an M1 lay
# 3 to 7 % apart, of five programs with 4 to 11 recordings each; of one program a single recording lay 34 % off, in a
# state that was not exported. Sums lay up to 39 % apart, so encoders are held against each other by their medians.
METAL_REPEAT, METAL_JITTER = 0.07, 1e-7


def kernel_changes(
    baseline: RunDocument, candidate: RunDocument, matched: Matched, floor: float | None = None
) -> tuple[KernelChange, ...]:
    """One change for each launch configuration, the largest change of time first.

    Seconds are per iteration of what counts; of a report of counters alone, per launch.
    """
    before, after = _Run(baseline), _Run(candidate)
    found = [_both(pair, before, after, FLOOR if floor is None else floor) for pair in matched.pairs]
    found += [_alone(time, before, "vanished") for time in matched.vanished]
    found += [_alone(time, after, "appeared") for time in matched.appeared]
    return tuple(sorted(found, key=lambda change: -abs(moved(change))))


def moved(change: KernelChange) -> float:
    """Seconds per iteration by which the candidate is longer for it."""
    return (change.candidate_seconds or 0.0) - (change.baseline_seconds or 0.0)


class _Run:
    """What a kernel's time is held against in one run."""

    def __init__(self, document: RunDocument) -> None:
        trace = document.trace
        self.counted = trace is not None and trace.tool == "ncu"  # as many launches as ncu was told to count
        self.metal = trace is not None and trace.tool == "xctrace"
        self.iterations = 1.0 if self.counted else traced_iterations(document)
        times = trace.kernels if trace is not None else ()
        self.total = sum(self.seconds(time) for time in times)

    def seconds(self, time: KernelTime) -> float:
        if self.metal and time.median is not None:
            return time.median * time.launches / self.iterations
        return time.total / (time.launches or 1) if self.counted else time.total / self.iterations

    def calls(self, time: KernelTime) -> float:
        return time.launches / self.iterations

    def share(self, time: KernelTime) -> float:
        return self.seconds(time) / self.total if self.total > 0 else 0.0


def _both(pair: KernelPair, before: _Run, after: _Run, floor: float) -> KernelChange:
    first, second = before.seconds(pair.before), after.seconds(pair.after)
    calls = before.calls(pair.before), after.calls(pair.after)
    launches = 1.0 if after.counted else max(calls)
    repeat, jitter = (METAL_REPEAT, METAL_JITTER) if after.metal else (REPEAT, JITTER)
    noise, limit = repeat * max(first, second) + jitter * launches, floor * first
    distance = abs(second - first)
    word: KernelChangeWord = "ambiguous"
    if distance - noise > limit:
        word = "slower" if second > first else "faster"
    elif distance <= limit:
        word = "same"  # what lies between is within the noise of one trace each
    reason = f"{_per(first, second)}; one trace differs from the next by {quantity(noise, 's')}"
    if not after.counted and abs(calls[1] - calls[0]) > 0.005 * calls[0]:
        reason += f"; {figures(calls[0])} calls became {figures(calls[1])}"
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
    )


def _alone(time: KernelTime, run: _Run, word: KernelChangeWord) -> KernelChange:
    seconds, calls = run.seconds(time), run.calls(time)
    which = "candidate" if word == "appeared" else "baseline"
    reason = f"only in the {which}: {quantity(seconds, 's')} in {plural(round(calls), 'call')}"
    old, new = (None, seconds) if word == "appeared" else (seconds, None)
    old_calls, new_calls = (None, calls) if word == "appeared" else (calls, None)
    kernel = time.kernel
    return KernelChange(kernel.name, word, reason, old, new, old_calls, new_calls, kernel.id, run.share(time))


def _per(first: float, second: float) -> str:
    if first <= 0:
        return f"{quantity(first, 's')} became {quantity(second, 's')}"
    part = second / first - 1
    return f"{'+' if part >= 0 else '-'}{figures(abs(100 * part))} %"
