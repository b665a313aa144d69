"""Who wins where, and by how much. Pure: results in, numbers out.

Speed-ups are ratios, and the mean of ratios is the geometric one: the arithmetic mean of 2 and 1/2 says that somebody
who is as often twice as fast as half as fast is 25 % faster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log

from profkit.analysis.ranking.guide import efficiency, throughput
from profkit.core.statistics import median
from profkit.core.types import CaseResult, GridPoint, MeasuredRoofs, SweepDocument

BASELINE = "PyTorch"
UNKNOWN = 0.5  # half the interval of a single sample: who is three times as fast by one of each is faster


@dataclass(frozen=True)
class Panel:
    """All cases of one operation in one direction and dtype: the shapes, and who does it."""

    operation: str
    direction: str
    dtype: str
    results: tuple[CaseResult, ...]

    @property
    def title(self) -> str:
        """`LayerNorm forward float32`."""
        return f"{self.operation} {self.direction} {self.dtype}"

    @property
    def implementations(self) -> tuple[str, ...]:
        """In the order of the sweep."""
        return tuple(dict.fromkeys(result.implementation for result in self.results))

    @property
    def points(self) -> tuple[GridPoint, ...]:
        """The shapes, in the order of the sweep."""
        return tuple(dict.fromkeys(result.point for result in self.results))


@dataclass(frozen=True)
class Standing:
    """One implementation over all shapes of a panel. What is None is not known.

    `speedup` is the geometric mean over shapes of the baseline's time over its own, and `compared` their number;
    `least` and `most` are the extremes. `wins` are the shapes where it is the fastest, alone.
    """

    implementation: str
    measured: int
    cases: int
    time: float | None  # geometric mean, s
    memory: int | None  # most, bytes
    efficiency: float | None  # median, a share of the roofline
    throughput: float | None  # most, bytes/s
    speedup: float | None = None
    compared: int = 0
    least: float | None = None
    most: float | None = None
    wins: int = 0
    why_not: str | None = None  # the commonest reason where cases are missing
    shared: int = 0


def panels(document: SweepDocument) -> tuple[Panel, ...]:
    """The sweep by operation, direction and dtype, in the order of the sweep."""
    found: dict[tuple[str, str, str], list[CaseResult]] = defaultdict(list)
    for result in document.results:
        found[result.point.operation, result.point.direction, result.point.dtype].append(result)
    return tuple(Panel(*key, tuple(results)) for key, results in found.items())


def standings(panel: Panel, roofs: MeasuredRoofs, baseline: str = BASELINE) -> tuple[Standing, ...]:
    """Every implementation of the panel, in the order of the sweep."""
    base = {r.point: r.median for r in panel.results if r.implementation == baseline and r.median}
    best = winners(panel)
    shared = _shared(panel)
    found = []
    for name in panel.implementations:
        own = [result for result in panel.results if result.implementation == name]
        timed = [result for result in own if result.median]
        ratios = [base[r.point] / r.median for r in timed if r.median and base.get(r.point)]
        shares = [share for r in timed if (share := efficiency(r, roofs)) is not None]
        memory = [result.memory for result in timed if result.memory is not None]
        found.append(
            Standing(
                implementation=name,
                measured=len(timed),
                cases=len(own),
                time=geometric_mean(
                    [r.median for r in timed if r.median and (not shared or r.point in shared)]
                ),
                memory=max(memory, default=None),
                efficiency=median(shares) if shares else None,
                throughput=max((throughput(r) for r in timed), default=None),
                speedup=geometric_mean(ratios) if name != baseline else None,
                compared=len(ratios),
                least=min(ratios, default=None) if name != baseline else None,
                most=max(ratios, default=None) if name != baseline else None,
                wins=sum(1 for names in best.values() if names == (name,)),
                why_not=_commonest(own),
                shared=len(shared),
            )
        )
    return tuple(found)


def winners(panel: Panel) -> dict[GridPoint, tuple[str, ...]]:
    """The fastest at each shape where two or more were timed: several where their intervals overlap."""
    found: dict[GridPoint, tuple[str, ...]] = {}
    by_point: dict[GridPoint, list[CaseResult]] = defaultdict(list)
    for result in panel.results:
        if result.median:
            by_point[result.point].append(result)
    for point, results in by_point.items():
        if len(results) < 2:
            continue
        fastest = min(results, key=lambda r: r.median or 0.0)
        limit = (fastest.median or 0.0) * (1 + _half_width(fastest))
        found[point] = tuple(
            r.implementation
            for r in results
            if r is fastest or (r.median or 0.0) * (1 - _half_width(r)) <= limit
        )
    return found


def _half_width(result: CaseResult) -> float:
    """Of its interval, as a share of the median. Of samples too few for one the farthest; of one that is not known."""
    if result.half_width is not None:
        return result.half_width
    centre = result.median or 0.0
    if len(result.seconds) < 2 or centre <= 0:
        return UNKNOWN
    return max(abs(seconds - centre) for seconds in result.seconds) / centre


def above_roof(document: SweepDocument) -> tuple[CaseResult, ...]:
    """All cases that have a place below a roofline, by the time above the roofline's, in seconds, the longest first."""
    told = [
        (result, (1 - min(1.0, share)) * (result.median or 0.0))
        for result in document.results
        if (share := efficiency(result, document.roofs)) is not None
    ]
    return tuple(result for result, _ in sorted(told, key=lambda pair: -pair[1]))


def farthest(document: SweepDocument, count: int) -> tuple[CaseResult, ...]:
    """The fastest case of a shape, at those shapes where it is most time above its roofline.

    Where another implementation is faster already, nothing has to be found out to win that.
    """
    best: dict[GridPoint, float] = {}
    for result in document.results:
        if result.median:
            best[result.point] = min(result.median, best.get(result.point, result.median))
    return tuple(result for result in above_roof(document) if result.median == best[result.point])[:count]


def slowest(document: SweepDocument, count: int) -> tuple[CaseResult, ...]:
    """The cases that take longest."""
    timed = [result for result in document.results if result.median]
    return tuple(sorted(timed, key=lambda result: -(result.median or 0.0))[:count])


def geometric_mean(values: Iterable[float]) -> float | None:
    """exp(mean(ln x)); None of nothing."""
    logs = [log(value) for value in values if value > 0]
    return exp(sum(logs) / len(logs)) if logs else None


def _shared(panel: Panel) -> frozenset[GridPoint]:
    """The shapes at which everybody has a time who has one anywhere: a mean over others could not be compared."""
    of: dict[str, set[GridPoint]] = defaultdict(set)
    for result in panel.results:
        if result.median:
            of[result.implementation].add(result.point)
    return frozenset(set.intersection(*of.values())) if of else frozenset()


def _commonest(results: Sequence[CaseResult]) -> str | None:
    counts: dict[str, int] = defaultdict(int)
    for result in results:
        if result.state != "measured":
            counts[f"{result.state}: {result.reason}" if result.reason else result.state] += 1
    return max(counts, key=lambda reason: counts[reason]) if counts else None
