"""Samples of GPU counters in the part that counts: means by how long each held, extremes, and what they cover."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.spans import Spans, Union, overlap_lengths
from profkit.core.types import MetalCounter
from profkit.profilers.xctrace.metal_counters import TOP_LIMITER, Counted, CounterSamples

_NEVER = 1 << 61
_SHARE_TOLD = 0.01  # of the sampled time; a limiter that was the top one for less is not named


@dataclass
class _Sums:
    """Columns by the number of the counter. Weights in ns."""

    weight: Any
    total: Any
    active_weight: Any
    active_total: Any
    touched: Any  # of the samples in which the process worked
    least: Any
    most: Any
    count: Any
    covered: Any
    reached: Any
    begun: Any  # the latest start so far
    unordered: set[int] = field(
        default_factory=set
    )  # counters whose samples came in another order than they began


def counters_in(
    samples: CounterSamples, part: Spans, busy: Spans | None, gpu: str | None = None
) -> tuple[MetalCounter, ...]:
    """Each counter (of one GPU, where they tell theirs) over the part that counts, by name.

    `busy`: when the process had the GPU. The mean of a counter is the sum of value times the time that the sample held
    within the part, over the sum of those times.
    """
    table = samples.counters.all
    if not table or not part.total:
        return ()
    sums = _summed(samples, part, busy, len(table))
    limiters = _limiters(table, sums)
    return tuple(
        sorted(
            _counters(samples, sums, part.total, gpu, limiters, with_active=busy is not None),
            key=lambda counter: counter.name,
        )
    )


def _counters(
    samples: CounterSamples,
    sums: _Sums,
    total: int,
    gpu: str | None,
    limiters: dict[str, str],
    *,
    with_active: bool,
) -> Iterator[MetalCounter]:
    for at, counted in enumerate(samples.counters.all):
        if counted.of or not sums.weight[at] or (gpu is not None and counted.gpu not in ("", gpu)):
            continue
        unit = samples.units[at]
        factor, word = (1.0, "") if unit.factor is None else (unit.factor, unit.unit)
        least, most = float(sums.least[at]) * factor, float(sums.most[at]) * factor
        mean, active, filled = sums.total[at] / sums.weight[at] * factor, None, None
        if with_active and sums.active_weight[at]:
            filled = float(sums.active_weight[at] / sums.touched[at])
            active = _between(least, sums.active_total[at] / sums.active_weight[at] * factor, most)
        yield MetalCounter(
            counted.name,
            word,
            _between(least, mean, most),
            least,
            most,
            int(sums.count[at]),
            min(1.0, float(sums.covered[at]) / total),
            limiters.get(counted.gpu) if counted.name == TOP_LIMITER else unit.note or None,
            active,
            filled,
        )


def _between(least: float, mean: float, most: float) -> float:
    """A mean without the last digit that its sums lost."""
    return min(max(float(mean), least), most)


def _summed(samples: CounterSamples, part: Spans, busy: Spans | None, size: int) -> _Sums:
    import numpy as np

    sums = _nothing(size)
    working = None if busy is None else part & busy
    longest = np.full(size, _NEVER, dtype=np.int64)
    for number, hold in samples.longest.items():
        longest[number] = hold
    for counter, start, end, value in _blocks(samples, part, longest):
        held = overlap_lengths(start, end, part)
        sums.weight += np.bincount(counter, held, size)
        sums.total += np.bincount(counter, held * value, size)
        sums.count += np.bincount(counter, minlength=size)
        if working is not None:
            active = overlap_lengths(start, end, working)
            sums.active_weight += np.bincount(counter, active, size)
            sums.active_total += np.bincount(counter, active * value, size)
            sums.touched += np.bincount(counter, held * (active > 0), size)
        _extremes(sums, counter, value)
        _cover(sums, counter, start, end, part)
    for at in sums.unordered:
        whole = Union()
        for counter, start, end, _ in _blocks(samples, part, longest):
            whole.add(start[counter == at], end[counter == at])
        sums.covered[at] = (whole.spans() & part).total
    return sums


def _blocks(samples: CounterSamples, part: Spans, longest: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Counter, begin, end and value of the samples that touch the part that counts."""
    import numpy as np

    for block in samples.spool:
        end = np.minimum(block["end"], block["start"] + longest[block["counter"]])
        inside = overlap_lengths(block["start"], end, part) > 0
        if inside.any():
            yield block["counter"][inside], block["start"][inside], end[inside], block["value"][inside]


def _nothing(size: int) -> _Sums:
    import numpy as np

    return _Sums(
        weight=np.zeros(size),
        total=np.zeros(size),
        active_weight=np.zeros(size),
        active_total=np.zeros(size),
        touched=np.zeros(size),
        least=np.full(size, np.inf),
        most=np.full(size, -np.inf),
        count=np.zeros(size, dtype=np.int64),
        covered=np.zeros(size),
        reached=np.full(size, -_NEVER, dtype=np.int64),
        begun=np.full(size, -_NEVER, dtype=np.int64),
    )


def _extremes(sums: _Sums, counter: Any, value: Any) -> None:
    import numpy as np

    order = np.argsort(counter, kind="stable")
    cuts = np.flatnonzero(np.r_[True, np.diff(counter[order]) != 0])
    which = counter[order][cuts]
    sums.least[which] = np.minimum(sums.least[which], np.minimum.reduceat(value[order], cuts))
    sums.most[which] = np.maximum(sums.most[which], np.maximum.reduceat(value[order], cuts))


def _cover(sums: _Sums, counter: Any, start: Any, end: Any, part: Spans) -> None:
    """What samples of a counter cover together: one that overlaps what came before adds what lies beyond it."""
    import numpy as np

    for at in np.flatnonzero(np.bincount(counter)).tolist():
        own = counter == at
        begun = np.r_[sums.begun[at], start[own]]
        if (begun[1:] < begun[:-1]).any():
            sums.unordered.add(at)
        sums.begun[at] = begun.max()
        reached = np.maximum.accumulate(np.r_[sums.reached[at], end[own]])
        sums.covered[at] += overlap_lengths(
            np.maximum(start[own], reached[:-1]), np.maximum(end[own], reached[:-1]), part
        ).sum()
        sums.reached[at] = reached[-1]


def _limiters(table: list[Counted], sums: _Sums) -> dict[str, str]:
    """By GPU what the top limiter was, with its share of the sampled time, in words."""
    found: dict[str, list[tuple[float, str]]] = {}
    for at, counted in enumerate(table):
        if counted.of:
            found.setdefault(counted.gpu, []).append((float(sums.weight[at]), counted.name))
    told = {}
    for gpu, named in found.items():
        whole = sum(weight for weight, _ in named)
        parts = [
            f"{name} {100 * weight / whole:.0f} %"
            for weight, name in sorted(named, key=lambda item: (-item[0], item[1]))
            if whole and weight / whole >= _SHARE_TOLD
        ]
        told[gpu] = ", ".join(parts[:5])
    return told
