"""What of an unmarked trace is the workload: the part that repeats. Pure functions on numbers.

A sequence of launches is tested against itself shifted by a period: where the two agree for long, it repeats. That
tolerates what real programs do now and then: an extra kernel in every tenth step disturbs one period around it.

What happens once is set-up. Set-up may repeat as well: a loop that fills tensors, and above all autotuning, which runs
every candidate thousands of times before the winner is used some dozens of times. Both are known by their kernels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Any

from profkit.analysis.timeline.phases import LaunchClues, separate_loops

SAMPLE = 1 << 18  # launches of a longer sequence that are looked at for candidates, in each of four places
_GRAMS = (1, 2, 4, 8, 16, 32, 64)
_OF_EACH = 8  # most frequent distances that are tried, per length of gram
_MAX_RUNS = 4096  # per period
_MAX_PIECES = 1 << 16  # of which they are made; what is interrupted more often has not this period
MIN_AGREEMENT = 0.75  # of a run's launches with those one period later
# Of the launches; a head and an embedding are 1 % of a model with eighty layers of ten kernels
_STRAY = 0.005
_PENALTY = 4  # a run that misses one launch in four is worth nothing


@dataclass(frozen=True)
class Repetition:
    """`sequence[first:last]` repeats with `period`; `agreement` is the share of it that is as one period later."""

    first: int
    last: int
    period: int
    agreement: float

    @property
    def length(self) -> int:
        """Return the number of launches in it."""
        return self.last - self.first

    @property
    def worth(self) -> float:
        """Return the value by which runs that overlap are chosen: long is good, a low agreement is bad."""
        return self.length * (1 - _PENALTY * (1 - self.agreement))


def find_repetitions(sequence: Any) -> list[Repetition]:
    """Find what repeats in `sequence` (an array of small whole numbers), in order; no two overlap.

    A run has at least two periods, and at least three where the period is below ten launches: two equal launches
    in a row are no loop.
    """
    runs: list[Repetition] = []
    for period in candidate_periods(sequence):
        runs += _repetitions_with(sequence, period)
    # The shorter period first where both explain the same: what repeats after 5 also does after 10.
    runs.sort(key=lambda run: (-run.worth, run.period))
    chosen: list[Repetition] = []
    for run in runs:
        for piece in _free_pieces(run, chosen):
            if _is_long_enough(piece):
                chosen.append(piece)
    return sorted((_with_shorter_period(run, runs, sequence) for run in chosen), key=lambda run: run.first)


def _with_shorter_period(run: Repetition, runs: list[Repetition], sequence: Any) -> Repetition:
    """Give the run a shorter period where at most _STRAY of its launches are foreign to that.

    A program that logs in every tenth step repeats exactly only after ten. Layers are not taken for steps: what
    lies between the last layer and the next first one, a head and an embedding, is more of the launches than
    that.
    """
    for shorter in sorted(runs, key=lambda run: run.period):
        if 2 * shorter.period > run.period:
            return run
        overlap = min(shorter.last, run.last) - max(shorter.first, run.first)
        if overlap >= 0.9 * run.length and _foreign_share(run, shorter, sequence) <= _STRAY:
            return Repetition(run.first, run.last, shorter.period, shorter.agreement)
    return run


def _foreign_share(run: Repetition, shorter: Repetition, sequence: Any) -> float:
    """Return the share (0..1) of the launches of `run` that have no place in an iteration of `shorter`."""
    middle = shorter.first + shorter.length // (2 * shorter.period) * shorter.period
    times_seen: Counter[int] = Counter()
    for shift in (-shorter.period, 0, shorter.period):  # one of the three may hold a stray itself
        begin = max(middle + shift, 0)
        times_seen.update(set(sequence[begin : begin + shorter.period].tolist()))
    stretch = Counter(sequence[run.first : run.last].tolist())
    return sum(count for what, count in stretch.items() if times_seen[what] < 2) / run.length


def candidate_periods(sequence: Any) -> list[int]:
    """Return periods worth trying: distances at which the same few launches recur, the most frequent first."""
    periods: Counter[int] = Counter()
    for part in _sample_parts(sequence):
        for gram in _grams(part):
            for distance, count in _commonest(_distances(gram)):
                periods[distance] += count
    return [period for period, _ in periods.most_common() if 2 * period <= len(sequence)]


def _sample_parts(sequence: Any) -> list[Any]:
    if len(sequence) <= 2 * SAMPLE:
        return [sequence]
    step = (len(sequence) - SAMPLE) // 3
    return [sequence[at : at + SAMPLE] for at in (0, step, 2 * step, len(sequence) - SAMPLE)]


def _grams(part: Any) -> list[Any]:
    """Hash every stretch of 1, 2, 4, ... launches; equal stretches have equal numbers."""
    import numpy as np

    grams, factor = [part.astype(np.uint64)], np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        for length in _GRAMS[1:]:
            last, half = grams[-1], length // 2
            if len(last) <= half:
                break
            grams.append(last[:-half] * factor + last[half:] + np.uint64(length))
            factor = factor * factor
    return grams


def _distances(gram: Any) -> Any:
    """Return the distance from each stretch to the next equal one, for those that have one."""
    import numpy as np

    order = np.argsort(gram, kind="stable")
    same = gram[order][1:] == gram[order][:-1]
    return (order[1:] - order[:-1])[same]


def _commonest(distances: Any) -> list[tuple[int, int]]:
    """Return the most frequent distances with their counts; of equally frequent ones the first met first."""
    import numpy as np

    distinct, first, counts = np.unique(distances, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))[:_OF_EACH]
    return list(zip(distinct[order].tolist(), counts[order].tolist(), strict=True))


def _repetitions_with(sequence: Any, period: int) -> list[Repetition]:
    import numpy as np

    agree = sequence[:-period] == sequence[period:]
    edges = np.flatnonzero(np.diff(np.r_[False, agree, False].astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    long = (ends - begins) >= max(period // 2, 1)
    begins, ends = begins[long], ends[long]
    if not len(begins):
        return []
    if len(begins) > _MAX_PIECES:
        return []
    # Something that comes in between disturbs a period before and one after it. A loop goes on with the same.
    breaks = zip(ends[:-1].tolist(), begins[1:].tolist(), strict=True)
    goes_on = [
        begin - end <= 2 * period and _has_same_launches(sequence, end, begin, period)
        for end, begin in breaks
    ]
    apart = np.flatnonzero(~np.array(goes_on, dtype=bool))
    firsts, lasts = begins[np.r_[0, apart + 1]], ends[np.r_[apart, len(ends) - 1]]
    if len(firsts) > _MAX_RUNS:
        keep = np.sort(np.argsort(firsts - lasts, kind="stable")[:_MAX_RUNS])
        firsts, lasts = firsts[keep], lasts[keep]
    runs = []
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        agreement = float(np.count_nonzero(agree[first:last])) / (last - first)
        run = Repetition(first, last + period, period, agreement)
        if agreement >= MIN_AGREEMENT:
            runs.append(run)
            continue
        # Disturbed too often to be one: the pieces that are not, for themselves.
        inside = (begins >= first) & (ends <= last)
        pairs = zip(begins[inside].tolist(), ends[inside].tolist(), strict=True)
        runs += [Repetition(begin, end + period, period, 1.0) for begin, end in pairs]
    return [run for run in runs if _is_long_enough(run)]


def _has_same_launches(sequence: Any, end: int, begin: int, period: int) -> bool:
    """Return whether two periods agree in at least MIN_AGREEMENT of their launches, in any order.

    These are the period before `end` and the one after `begin`.
    """
    before, after = sequence[end - 1 : end - 1 + period], sequence[begin : begin + period]
    enough = MIN_AGREEMENT * period
    if len(before) == len(after) and (before == after).sum() >= enough:
        return True
    return sum((Counter(before.tolist()) & Counter(after.tolist())).values()) >= enough


def _is_long_enough(run: Repetition) -> bool:
    return run.length >= run.period * (2 if run.period >= 10 else 3)


def _free_pieces(run: Repetition, taken: list[Repetition]) -> list[Repetition]:
    """Return the pieces of `run` that no better run has taken."""
    pieces = [(run.first, run.last)]
    for better in taken:
        pieces = [
            piece
            for first, last in pieces
            for piece in ((first, min(last, better.first)), (max(first, better.last), last))
            if piece[0] < piece[1]
        ]
    return [Repetition(first, last, run.period, run.agreement) for first, last in pieces]


# Kernels that fill memory, by name: PyTorch's fill_ and random numbers, cuRAND, Triton's and XLA's.
_FILLING = re.compile(
    r"FillFunctor|distribution_elementwise|distribution_nullary|curand|philox|random_(?:normal|uniform)|"
    r"(?:^|\W)(?:init|fill|memset|arange|iota|zero)(?:_?kernel)?(?:\W|$)|arange_cuda|triu_tril|generate_seed",
    re.IGNORECASE,
)
# Of the GPU time of what repeats most: below it a loop of other kernels is no part of the workload
SMALL = 0.25


# What happens once may take as long as so many iterations: a first step in which cuDNN tries out its algorithms, some
# ten per convolution and many of them slower. Beyond that, and beyond so many times what repeats, the repetition is a
# detail: the dozen equal copies in a single inference, the hundreds of rounds of a clustering after an hour of batches
# that all differ.
ONCE = 100.0
ONCE_IN_ALL = 3.0

_ALIKE = 16  # launches by which the beginning of an iteration is known


@dataclass(frozen=True)
class SteadyPart:
    """`sequence[first:last]` is the workload, in which one iteration was seen `repeats` times."""

    first: int
    last: int
    period: int  # launches of one iteration, as most have it
    repeats: int
    others: tuple[SteadyPart, ...] = ()  # loops before or after it that are no part of it, the longest first


def fills_memory(name: str) -> bool:
    """Return whether a kernel of this name only fills memory.

    Such kernels initialise tensors, or flush a cache between trial runs.
    """
    return _FILLING.search(name) is not None


def find_steady(
    sequence: Any,
    weights: Sequence[float],
    filling: Sequence[bool],
    loads: Sequence[int] = (),
    clues: LaunchClues | None = None,
) -> SteadyPart | None:
    """Find the part of `sequence` that is the workload; None where all that repeats is a detail.

    `sequence` holds the number of each launch's configuration, in the order of the launches; `weights` the time
    of one launch of each configuration, `filling` whether it only fills memory. `loads` are the positions before
    which code was loaded: the first iterations of a loop, which load their kernels, are warm-up. `clues` help
    to distinguish loops that follow one another.
    """
    import numpy as np

    sequence = np.asarray(sequence)
    if not len(sequence):
        return None
    # Without what only fills: caches are flushed between trial runs, gradients are zeroed between steps.
    clues = clues or LaunchClues()
    at = np.flatnonzero(~np.asarray(filling, dtype=bool)[sequence]).astype(np.int32)
    chosen = _choose(sequence[at], weights, clues.at(at)) if len(at) else ()
    if not chosen:
        at = np.arange(len(sequence), dtype=np.int32)
        chosen = _choose(sequence, weights, clues)
    if not chosen:
        return None
    behind = np.searchsorted(at, np.asarray(loads, dtype=np.int64))
    counts, *others = (_to_the_launch(sequence, at, loop, behind) for loop in chosen)
    return replace(counts, others=tuple(others))


def _to_the_launch(sequence: Any, at: Any, loop: tuple[int, int, Repetition], loads: Any) -> SteadyPart:
    """Return a loop of the launches `at`, without its warm-up and with what is filled in it."""
    first, last, main = loop
    first = _after_loading(sequence[at], first, main, loads)
    repeats = _count_repeats(at, sequence, first, last, main)
    begin, end = _with_fills(sequence, at, first, last, main.period)
    launches = round((end - begin) / repeats) if repeats else main.period
    return SteadyPart(begin, end, launches, repeats)


def _choose(
    sequence: Any, weights: Sequence[float], clues: LaunchClues
) -> tuple[tuple[int, int, Repetition], ...]:
    """Return from where to where it is the workload, and the run that most of it is; nothing if there is none.

    Behind it come the loops that are no part of it, with the run that most of each is.
    """
    import numpy as np

    runs = find_repetitions(sequence)
    if not runs:
        return ()
    cost = np.asarray(weights, dtype=np.float64)
    counts = [np.bincount(sequence[run.first : run.last], minlength=len(cost)) for run in runs]
    kinds = [frozenset(np.flatnonzero(count).tolist()) for count in counts]
    spent = [float((count * cost).sum()) for count in counts]
    trials = trial_runs(kinds)
    candidates = [n for n in range(len(runs)) if n not in trials] or list(range(len(runs)))
    main = max(candidates, key=lambda n: (spent[n], n))
    part = [
        n
        for n in candidates
        if spent[n] >= SMALL * spent[main] or _shares_kernels(kinds[n], kinds[main], weights)
    ]
    loops = separate_loops(sequence, [runs[n] for n in part], [spent[n] for n in part], clues)
    chosen = [
        (loop.first, loop.last, runs[max((part[n] for n in loop.runs), key=spent.__getitem__)])
        for loop in loops
    ]
    if not chosen:
        chosen = [(min(runs[n].first for n in part), max(runs[n].last for n in part), runs[main])]
    # What tries out one kernel again and again is tuning, whoever does it. Layers of a batch that comes once are not.
    again = [run for run, kind in zip(runs, kinds, strict=True) if len(kind) == 1]
    (first, last, most), *others = _cut_apart(chosen)
    if not others:
        first, last = _stretch(sequence, first, last, most)
    apart = [*again, *(Repetition(begin, end, run.period, run.agreement) for begin, end, run in others)]
    detail = _is_detail(cost[sequence], apart, first, last, most.period)
    return () if detail else ((first, last, most), *others)


def _cut_apart(
    loops: Sequence[tuple[int, int, Repetition]],
) -> list[tuple[int, int, Repetition]]:
    """Return loops with whole iterations where the next one begins with the same launches, as an evaluation does."""
    apart = list(loops)
    in_order = sorted(range(len(apart)), key=lambda number: apart[number][0])
    for earlier, later in pairwise(in_order):
        (first, last, run), (begin, end, next_run) = apart[earlier], apart[later]
        if begin == last:
            cut = last - (last - run.first) % run.period
            apart[earlier], apart[later] = (first, cut, run), (cut, end, next_run)
    return apart


def _is_detail(spent: Any, tuning: Sequence[Repetition], first: int, last: int, period: int) -> bool:
    """Return whether what happens once, before and after, takes so long that what repeats is no workload."""
    once = spent.copy()
    for run in tuning:
        once[run.first : run.last] = 0
    once[first:last] = 0
    repeats = (last - first) / period
    return bool(once.sum() > max(ONCE / repeats, ONCE_IN_ALL) * spent[first:last].sum())


def _stretch(sequence: Any, first: int, last: int, main: Repetition) -> tuple[int, int]:
    """Extend `first` and `last` by iterations around them that are like those of `main`, but for some launches."""
    period = main.period
    begin = main.first + main.length // (2 * period) * period
    iteration, enough = Counter(sequence[begin : begin + period].tolist()), MIN_AGREEMENT * period
    while (
        first >= period
        and sum((iteration & Counter(sequence[first - period : first].tolist())).values()) >= enough
    ):
        first -= period
    while sum((iteration & Counter(sequence[last : last + period].tolist())).values()) >= enough:
        last = min(last + period, len(sequence))
    return first, last


def trial_runs(kinds: Sequence[frozenset[int]]) -> set[int]:
    """Return the numbers of the runs that are an autotuner's trials, by the configurations of each run.

    A trial is one kernel over and over, other candidates alternate with it, and one of them is used in a later run:
    the winner. Without a winner it is a sweep over sizes, which is a workload.
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


def _shares_kernels(kinds: frozenset[int], wanted: frozenset[int], weights: Sequence[float]) -> bool:
    """Return whether at least half of the time of `kinds` is in kernels of `wanted`, too.

    An evaluation, for instance, runs the kernels of the training.
    """
    total = sum(weights[n] for n in kinds)
    return total > 0 and sum(weights[n] for n in kinds & wanted) >= 0.5 * total


def _after_loading(kernels: Any, first: int, main: Repetition, loads: Any) -> int:
    """Move `first` behind the iterations that loaded code.

    Loads in the later half do not count, and two iterations are left in any case. The new position is where an
    iteration begins as the first one did: a loop in a loop has shorter ones than its period. Where none does,
    since set-up runs into the first one, it moves by whole periods.
    """
    half = first + (main.last - first) // 2
    inside = [int(load) for load in loads if first < load <= half]
    if not inside:
        return first
    begins = kernels[first : first + min(_ALIKE, main.period)]
    for at in range(inside[-1], main.last - 2 * main.period + 1):
        if (kernels[at : at + len(begins)] == begins).all():
            return at
    behind = main.first + -(-(inside[-1] - main.first) // main.period) * main.period
    return behind if first < behind <= main.last - 2 * main.period else first


def _with_fills(sequence: Any, at: Any, first: int, last: int, period: int) -> tuple[int, int]:
    """Return begin and end in `sequence` with the fills before the first kernel and after the last one.

    Only fills that also occur between two iterations are included, launch for launch: whatever else is filled
    before is set-up.
    """
    between = sequence[int(at[first + period - 1]) + 1 : int(at[first + period])].tolist()
    before = sequence[int(at[first - 1]) + 1 if first else 0 : int(at[first])].tolist()
    after = sequence[int(at[last - 1]) + 1 : int(at[last]) if last < len(at) else len(sequence)].tolist()
    lead = _common_prefix(before[::-1], between[::-1])
    return int(at[first]) - lead, int(at[last - 1]) + 1 + _common_prefix(after, between)


def _common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Count the leading entries that are the same in both."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _count_repeats(at: Any, sequence: Any, first: int, last: int, main: Repetition) -> int:
    """Count the iterations by the kernels of one of them, since phases of something else lie in between."""
    import numpy as np

    kernels = sequence[at]
    # An iteration from the middle of the run: its first ones may still be finding their way.
    begin = main.first + (main.length // (2 * main.period)) * main.period
    iteration = kernels[begin : begin + main.period]
    names, counts = np.unique(iteration, return_counts=True)
    everywhere = np.bincount(kernels[first:last], minlength=int(names.max()) + 1)[names]
    ratios = np.sort(everywhere / counts)
    return max(round(float(ratios[(len(ratios) - 1) // 2])), 1)
