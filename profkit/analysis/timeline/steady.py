"""In a trace that marks nothing: what repeats is the workload, and what happens once is set-up.

Set-up may repeat as well: a loop that fills tensors, and above all autotuning, which runs every candidate thousands of
times before the winner is used some dozens of times. Both are known by what they are made of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.repeats import LEAST_AGREEMENT, Run, find_runs

# Kernels that fill memory, by name: PyTorch's fill_ and random numbers, cuRAND, Triton's and XLA's.
_FILLING = re.compile(
    r"FillFunctor|distribution_elementwise|distribution_nullary|curand|philox|random_(?:normal|uniform)|"
    r"(?:^|\W)(?:init|fill|memset|arange|iota|zero)(?:_?kernel)?(?:\W|$)|arange_cuda|triu_tril|generate_seed",
    re.IGNORECASE,
)
SMALL = (
    0.25  # of the GPU time of what repeats most; below it a loop of other kernels is no part of the workload
)


# What happens once may take so many times as long as what repeats: a first step in which cuDNN tries out its
# algorithms, some ten per convolution and many of them slower, next to two steps. Beyond that the repetition is a
# detail, such as the dozen equal copies in a single inference.
ONCE = 50.0

_ALIKE = 16  # launches by which the beginning of an iteration is known


@dataclass(frozen=True)
class Steady:
    """`sequence[first:last]` is the workload, in which one iteration was seen `repeats` times."""

    first: int
    last: int
    period: int  # launches of one iteration, as most have it
    repeats: int


def fills(name: str) -> bool:
    """Whether a kernel of this name only fills memory: what initialises, or flushes a cache between trial runs."""
    return _FILLING.search(name) is not None


def find_steady(
    sequence: Any, weights: Sequence[float], filling: Sequence[bool], loads: Sequence[int] = ()
) -> Steady | None:
    """The part of `sequence` that is the workload; None where nothing repeats that is more than a detail.

    `sequence` holds the number of each launch's configuration, in the order of the launches; `weights` the time of one
    launch of each configuration, `filling` whether it only fills memory. `loads` are the positions before which code
    was loaded: the first iterations of a loop, which load their kernels, are warm-up.
    """
    import numpy as np

    sequence = np.asarray(sequence)
    if not len(sequence):
        return None
    # Without what only fills: caches are flushed between trial runs, gradients are zeroed between steps.
    at = np.flatnonzero(~np.asarray(filling, dtype=bool)[sequence]).astype(np.int32)
    found = _choose(sequence[at], weights) if len(at) else None
    if found is None:
        at = np.arange(len(sequence), dtype=np.int32)
        found = _choose(sequence, weights)
    if found is None:
        return None
    first, last, main = found
    first = _after_loading(sequence[at], first, main, np.searchsorted(at, np.asarray(loads, dtype=np.int64)))
    repeats = _repeats(at, sequence, first, last, main)
    begin, end = _with_fills(sequence, at, first, last, main.period)
    launches = round((end - begin) / repeats) if repeats else main.period
    return Steady(begin, end, launches, repeats)


def _choose(sequence: Any, weights: Sequence[float]) -> tuple[int, int, Run] | None:
    """From where to where it is the workload, and the run that most of it is; None where there is none."""
    import numpy as np

    runs = find_runs(sequence)
    if not runs:
        return None
    cost = np.asarray(weights, dtype=np.float64)
    counts = [np.bincount(sequence[run.first : run.last], minlength=len(cost)) for run in runs]
    kinds = [frozenset(np.flatnonzero(count).tolist()) for count in counts]
    spent = [float((count * cost).sum()) for count in counts]
    trials = trial_runs(kinds)
    kept = [n for n in range(len(runs)) if n not in trials] or list(range(len(runs)))
    main = max(kept, key=lambda n: (spent[n], n))
    part = [n for n in kept if spent[n] >= SMALL * spent[main] or _alike(kinds[n], kinds[main], weights)]
    first, last = min(runs[n].first for n in part), max(runs[n].last for n in part)
    first, last = _stretched(sequence, first, last, runs[main])
    return None if _is_detail(cost[sequence], runs, first, last) else (first, last, runs[main])


def _is_detail(spent: Any, runs: Sequence[Run], first: int, last: int) -> bool:
    """Whether what happens once, before and after, takes so much longer that what repeats is no workload."""
    once = spent.copy()
    for run in runs:
        once[run.first : run.last] = 0
    once[first:last] = 0
    return bool(once.sum() > ONCE * spent[first:last].sum())


def _stretched(sequence: Any, first: int, last: int, main: Run) -> tuple[int, int]:
    """With the iterations before and after that are like those of `main` but for some launches."""
    period = main.period
    begin = main.first + main.length // (2 * period) * period
    one, enough = Counter(sequence[begin : begin + period].tolist()), LEAST_AGREEMENT * period
    while (
        first >= period and sum((one & Counter(sequence[first - period : first].tolist())).values()) >= enough
    ):
        first -= period
    while sum((one & Counter(sequence[last : last + period].tolist())).values()) >= enough:
        last = min(last + period, len(sequence))
    return first, last


def trial_runs(kinds: Sequence[frozenset[int]]) -> set[int]:
    """Which of the runs are trials of an autotuner, by the configurations that each is made of.

    A trial is one kernel over and over, other candidates come beside it, and one of them is used in a later run: the
    winner. Without a winner it is a sweep over sizes, which is a workload.
    """
    trials: set[int] = set()
    for later, kind in enumerate(kinds):
        single = [n for n in range(later) if len(kinds[n]) == 1]
        before = later
        while single and single[-1] == before - 1 and kinds[single[-1]] == kind:
            before = single.pop()  # the same loop, interrupted: it is no winner of itself
        tried = {next(iter(kinds[n])) for n in single}
        if len(tried) >= 2 and tried & kind:
            trials.update(single)
    return trials


def _alike(one: frozenset[int], other: frozenset[int], weights: Sequence[float]) -> bool:
    """Whether most of the time of one is in kernels of the other: an evaluation runs the kernels of the training."""
    total = sum(weights[n] for n in one)
    return total > 0 and sum(weights[n] for n in one & other) >= 0.5 * total


def _after_loading(kernels: Any, first: int, main: Run, loads: Any) -> int:
    """`first` moved behind the iterations that loaded code; none of the later half, and two are left in any case.

    To where the next iteration begins as the first one did: a loop in a loop has shorter ones than its period.
    """
    half = first + (main.last - first) // 2
    inside = [int(load) for load in loads if first < load <= half]
    if not inside:
        return first
    begins = kernels[first : first + min(_ALIKE, main.period)]
    for at in range(inside[-1], main.last - 2 * main.period + 1):
        if (kernels[at : at + len(begins)] == begins).all():
            return at
    return first


def _with_fills(sequence: Any, at: Any, first: int, last: int, period: int) -> tuple[int, int]:
    """From where to where it is with what is filled before its first kernel and after its last one.

    As much of it as is so between two iterations, launch for launch: what else is filled before is set-up.
    """
    between = sequence[int(at[first + period - 1]) + 1 : int(at[first + period])].tolist()
    before = sequence[int(at[first - 1]) + 1 if first else 0 : int(at[first])].tolist()
    after = sequence[int(at[last - 1]) + 1 : int(at[last]) if last < len(at) else len(sequence)].tolist()
    lead = _common(before[::-1], between[::-1])
    return int(at[first]) - lead, int(at[last - 1]) + 1 + _common(after, between)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many of the first entries are the same."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))


def _repeats(at: Any, sequence: Any, first: int, last: int, main: Run) -> int:
    """How often the iteration came: by the kernels of one of them, since phases of something else lie in between."""
    import numpy as np

    kernels = sequence[at]
    # An iteration from the middle of the run: its first ones may still be finding their way.
    begin = main.first + (main.length // (2 * main.period)) * main.period
    one = kernels[begin : begin + main.period]
    names, counts = np.unique(one, return_counts=True)
    everywhere = np.bincount(kernels[first:last], minlength=int(names.max()) + 1)[names]
    ratios = np.sort(everywhere / counts)
    return max(round(float(ratios[(len(ratios) - 1) // 2])), 1)
