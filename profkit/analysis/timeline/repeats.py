"""Where a sequence repeats itself: with which period, from where to where, and how well. Pure functions on numbers.

A sequence is tested against itself shifted by a period: where the two agree for long, it repeats. That tolerates
what real programs do now and then: an extra kernel in every tenth step disturbs one period around it and no more.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

SAMPLE = 1 << 18  # launches of a longer sequence that are looked at for candidates, in each of four places
_GRAMS = (1, 2, 4, 8, 16, 32, 64)
_OF_EACH = 8  # most frequent distances that are tried, per length of gram
_MOST_RUNS = 4096  # per period
_MOST_PIECES = 1 << 16  # of which they are made; what is interrupted more often has not this period
LEAST_AGREEMENT = 0.75  # of a run's launches with those one period later
_STRAY = (
    0.005  # of the launches; a head and an embedding are 1 % of a model with eighty layers of ten kernels
)
_PENALTY = 4  # a run that misses one launch in four is worth nothing


@dataclass(frozen=True)
class Run:
    """`sequence[first:last]` repeats with `period`; `agreement` is the share of it that is as one period later."""

    first: int
    last: int
    period: int
    agreement: float

    @property
    def length(self) -> int:
        """Launches in it."""
        return self.last - self.first

    @property
    def worth(self) -> float:
        """For choosing between runs that overlap: long is good, wrong is bad."""
        return self.length * (1 - _PENALTY * (1 - self.agreement))


def find_runs(sequence: Any) -> list[Run]:
    """What repeats in `sequence` (an array of small whole numbers), in order; no two overlap.

    A run has at least two periods, and at least three where the period is below ten launches: two equal launches in a
    row are no loop.
    """
    found: list[Run] = []
    for period in candidates(sequence):
        found += _runs_of(sequence, period)
    # The shorter period first where both explain the same: what repeats after 5 also does after 10.
    found.sort(key=lambda run: (-run.worth, run.period))
    chosen: list[Run] = []
    for run in found:
        for piece in _free(run, chosen):
            if _enough(piece):
                chosen.append(piece)
    return sorted((_finer(run, found, sequence) for run in chosen), key=lambda run: run.first)


def _finer(run: Run, found: list[Run], sequence: Any) -> Run:
    """The shorter period of the same stretch, where next to nothing in it is foreign to that period.

    A program that logs in every tenth step repeats exactly only after ten. Layers are no steps all the same: what lies
    between the last layer and the next first one, a head and an embedding, is more of the launches than that.
    """
    for other in sorted(found, key=lambda run: run.period):
        if 2 * other.period > run.period:
            return run
        overlap = min(other.last, run.last) - max(other.first, run.first)
        if overlap >= 0.9 * run.length and _foreign(run, other, sequence) <= _STRAY:
            return Run(run.first, run.last, other.period, other.agreement)
    return run


def _foreign(run: Run, other: Run, sequence: Any) -> float:
    """The share of the launches of `run` that have no place in an iteration of `other`."""
    middle = other.first + other.length // (2 * other.period) * other.period
    seen: Counter[int] = Counter()
    for shift in (-other.period, 0, other.period):  # one of the three may hold a stray itself
        begin = max(middle + shift, 0)
        seen.update(set(sequence[begin : begin + other.period].tolist()))
    stretch = Counter(sequence[run.first : run.last].tolist())
    return sum(count for what, count in stretch.items() if seen[what] < 2) / run.length


def candidates(sequence: Any) -> list[int]:
    """Periods worth trying: the distances at which the same few launches come again, by how often they do."""
    periods: Counter[int] = Counter()
    for part in _parts(sequence):
        for gram in _grams(part):
            distances = _distances(gram)
            for distance, count in Counter(distances.tolist()).most_common(_OF_EACH):
                periods[distance] += count
    return [period for period, _ in periods.most_common() if 2 * period <= len(sequence)]


def _parts(sequence: Any) -> list[Any]:
    if len(sequence) <= 2 * SAMPLE:
        return [sequence]
    step = (len(sequence) - SAMPLE) // 3
    return [sequence[at : at + SAMPLE] for at in (0, step, 2 * step, len(sequence) - SAMPLE)]


def _grams(part: Any) -> list[Any]:
    """A number for every stretch of 1, 2, 4, ... launches; equal stretches have equal numbers."""
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
    """How far away each stretch comes again, for those that do."""
    import numpy as np

    order = np.argsort(gram, kind="stable")
    same = gram[order][1:] == gram[order][:-1]
    return (order[1:] - order[:-1])[same]


def _runs_of(sequence: Any, period: int) -> list[Run]:
    import numpy as np

    agree = sequence[:-period] == sequence[period:]
    edges = np.flatnonzero(np.diff(np.r_[False, agree, False].astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    long = (ends - begins) >= max(period // 2, 1)
    begins, ends = begins[long], ends[long]
    if not len(begins):
        return []
    if len(begins) > _MOST_PIECES:
        return []
    # Something that comes in between disturbs a period before and one after it. A loop goes on with the same.
    breaks = zip(ends[:-1].tolist(), begins[1:].tolist(), strict=True)
    goes_on = [begin - end <= 2 * period and _same(sequence, end, begin, period) for end, begin in breaks]
    apart = np.flatnonzero(~np.array(goes_on, dtype=bool))
    firsts, lasts = begins[np.r_[0, apart + 1]], ends[np.r_[apart, len(ends) - 1]]
    if len(firsts) > _MOST_RUNS:
        keep = np.sort(np.argsort(firsts - lasts, kind="stable")[:_MOST_RUNS])
        firsts, lasts = firsts[keep], lasts[keep]
    runs = []
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        agreement = float(np.count_nonzero(agree[first:last])) / (last - first)
        run = Run(first, last + period, period, agreement)
        if agreement >= LEAST_AGREEMENT:
            runs.append(run)
            continue
        # Disturbed too often to be one: the pieces that are not, for themselves.
        inside = (begins >= first) & (ends <= last)
        pairs = zip(begins[inside].tolist(), ends[inside].tolist(), strict=True)
        runs += [Run(begin, end + period, period, 1.0) for begin, end in pairs]
    return [run for run in runs if _enough(run)]


def _same(sequence: Any, end: int, begin: int, period: int) -> bool:
    """Whether the period before `end` has for the most part the launches of the one after `begin`, in any order."""
    before, after = sequence[end - 1 : end - 1 + period], sequence[begin : begin + period]
    enough = LEAST_AGREEMENT * period
    if len(before) == len(after) and (before == after).sum() >= enough:
        return True
    return sum((Counter(before.tolist()) & Counter(after.tolist())).values()) >= enough


def _enough(run: Run) -> bool:
    return run.length >= run.period * (2 if run.period >= 10 else 3)


def _free(run: Run, taken: list[Run]) -> list[Run]:
    """What of `run` no better one has taken."""
    pieces = [(run.first, run.last)]
    for other in taken:
        pieces = [
            piece
            for first, last in pieces
            for piece in ((first, min(last, other.first)), (max(first, other.last), last))
            if piece[0] < piece[1]
        ]
    return [Run(first, last, run.period, run.agreement) for first, last in pieces]
