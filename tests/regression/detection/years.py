"""Simulated years: series whose changes are known, since they were put there.

A night's value = level of the code * level of the machine * noise. What is true is a change of the code's level that
nobody accepted; all else (another machine, a throttled night, a wild value) is none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from math import sqrt

from profkit.core.types import AcceptedChange, Fact, HistoryPoint, Series, SeriesKey

NIGHTS = 365
BEGIN = datetime(2025, 1, 1, 3, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Truth:
    """A change of the code at `index`. kind: worse, better, drift, collapse; size: relative (of drift: a week's)."""

    index: int
    kind: str
    size: float


@dataclass(frozen=True)
class Year:
    """One series, what is true of it, and the code's own level of every night, which a re-run would see."""

    name: str
    noise: str
    story: str
    series: Series
    truths: tuple[Truth, ...]
    accepted: tuple[AcceptedChange, ...]
    code: tuple[float, ...]
    sigma: float


@dataclass
class Plot:
    """What happens in a year, as it is put together."""

    code: list[float] = field(default_factory=lambda: [1.0] * NIGHTS)
    machine: list[str] = field(default_factory=lambda: ["m1"] * NIGHTS)
    factor: dict[str, float] = field(default_factory=dict)
    truths: list[Truth] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    wild: dict[int, float] = field(default_factory=dict)
    throttled: set[int] = field(default_factory=set)
    absent: set[int] = field(default_factory=set)

    def step(self, at: int, size: float, kind: str | None = None) -> None:
        for i in range(at, NIGHTS):
            self.code[i] *= 1 + size
        self.truths.append(Truth(at, kind or ("worse" if size > 0 else "better"), abs(size)))


def gaussian(rng: random.Random, sigma: float) -> Iterator[float]:
    while True:
        yield rng.gauss(0, sigma)


def tails(rng: random.Random, sigma: float) -> Iterator[float]:
    """Student's t with 3 degrees of freedom; `sigma` is its scale, 1.73 of which are its standard deviation."""
    while True:
        yield sigma * rng.gauss(0, 1) / sqrt(sum(rng.gauss(0, 1) ** 2 for _ in range(3)) / 3)


def clinging(r: float) -> Callable[[random.Random, float], Iterator[float]]:
    """AR(1) with that autocorrelation, of standard deviation `sigma`."""

    def noise(rng: random.Random, sigma: float) -> Iterator[float]:
        value = rng.gauss(0, sigma)
        while True:
            yield value
            value = r * value + sqrt(1 - r * r) * rng.gauss(0, sigma)

    return noise


def bimodal(rng: random.Random, sigma: float) -> Iterator[float]:
    """One night in five is 4 sigma slower: a layout of memory that is unlucky."""
    while True:
        yield rng.gauss(0, sigma) + (4 * sigma if rng.random() < 0.2 else 0)


def spikes(rng: random.Random, sigma: float) -> Iterator[float]:
    """One night in twenty somebody else was there, and it took up to twice as long."""
    while True:
        yield rng.gauss(0, sigma) + (rng.uniform(0.1, 1.0) if rng.random() < 0.05 else 0)


def uneven(rng: random.Random, sigma: float) -> Iterator[float]:
    """Calm and restless months: sigma from a half to twice what it is called."""
    i = 0
    while True:
        yield rng.gauss(0, sigma * (2.0 if (i // 45) % 2 else 0.5))
        i += 1


NOISES: dict[str, Callable[[random.Random, float], Iterator[float]]] = {
    "gaussian": gaussian,
    "tails": tails,
    "ar .3": clinging(0.3),
    "ar .6": clinging(0.6),
    "bimodal": bimodal,
    "spikes": spikes,
    "uneven": uneven,
}


def _quiet(plot: Plot, rng: random.Random) -> None:
    pass


def _step(size: float) -> Callable[[Plot, random.Random], None]:
    return lambda plot, rng: plot.step(rng.randrange(60, 320), size)


def _drift(week: float) -> Callable[[Plot, random.Random], None]:
    def story(plot: Plot, rng: random.Random) -> None:
        at = rng.randrange(60, 120)
        for i in range(at, NIGHTS):
            plot.code[i] *= (1 + week) ** ((i - at) / 7)
        plot.truths.append(Truth(at, "drift", week))

    return story


def _accepted(plot: Plot, rng: random.Random) -> None:
    at = rng.randrange(60, 300)
    plot.step(at, rng.choice([0.05, 0.1, 0.3]), "accepted")
    plot.accepted.append(at)


def _moved(plot: Plot, rng: random.Random) -> None:
    at = rng.randrange(60, 300)
    plot.machine[at:] = ["m2"] * (NIGHTS - at)
    plot.factor = {"m2": rng.choice([0.8, 1.15, 1.4])}


def _pool(plot: Plot, rng: random.Random) -> None:
    plot.machine = [rng.choice(["m1", "m2"]) for _ in range(NIGHTS)]
    plot.factor = {"m2": 1.12}


def _hot(plot: Plot, rng: random.Random) -> None:
    """Throttled nights that were told, and as many wild ones that nobody told."""
    plot.throttled = {rng.randrange(30, NIGHTS) for _ in range(15)}
    plot.wild = {rng.randrange(30, NIGHTS): rng.uniform(1.1, 1.6) for _ in range(10)}
    plot.absent = {rng.randrange(30, NIGHTS) for _ in range(20)}


def _collapse(plot: Plot, rng: random.Random) -> None:
    at = rng.randrange(60, 300)
    for i in range(at, at + 4):
        plot.wild[i] = 0.03
    plot.truths.append(Truth(at, "collapse", 0.97))


STORIES: dict[str, Callable[[Plot, random.Random], None]] = {
    "quiet": _quiet,
    "step 1 %": _step(0.01),
    "step 2 %": _step(0.02),
    "step 3 %": _step(0.03),
    "step 5 %": _step(0.05),
    "step 10 %": _step(0.1),
    "step 25 %": _step(0.25),
    "better 5 %": _step(-0.05),
    "better 10 %": _step(-0.1),
    "drift 0.1 %": _drift(0.001),
    "drift 0.25 %": _drift(0.0025),
    "drift 0.5 %": _drift(0.005),
    "drift 1 %": _drift(0.01),
    "accepted": _accepted,
    "moved": _moved,
    "pool": _pool,
    "hot": _hot,
    "collapse": _collapse,
}


def make_year(noise: str, story: str, seed: int, sigma: float = 0.01) -> Year:
    """One series of 365 nights. The same arguments give the same year."""
    rng = random.Random(f"{noise}/{story}/{seed}/{sigma}")
    plot = Plot()
    STORIES[story](plot, rng)
    draws = NOISES[noise](rng, sigma)
    points: list[HistoryPoint] = []
    code: list[float] = []
    index_of: dict[int, int] = {}
    for night in range(NIGHTS):
        draw = next(draws)
        if night in plot.absent:
            continue
        index_of[night] = len(points)
        machine = plot.machine[night]
        value = plot.code[night] * plot.factor.get(machine, 1.0) * (1 + draw) * plot.wild.get(night, 1.0)
        hot = night in plot.throttled
        points.append(
            HistoryPoint(
                entry=f"{seed}-{night}",
                started=(BEGIN + timedelta(days=night)).isoformat(),
                machine=machine,
                value=value * (1.4 if hot else 1.0),
                commit=f"{night:07x}",
                valid=not hot,
                reason=Fact.message("the clock was 61 % of its limit") if hot else None,
            )
        )
        code.append(plot.code[night])
    name = f"{noise}: {story} #{seed}"
    key = SeriesKey(name, "cpu", "time.median")

    def place(night: int) -> int:
        return index_of[min(n for n in index_of if n >= night)]

    return Year(
        name=name,
        noise=noise,
        story=story,
        series=Series(key, "s", "lower", tuple(points)),
        truths=tuple(
            Truth(place(t.index), t.kind, t.size)
            for t in sorted(plot.truths, key=lambda t: t.index)
            if t.kind != "accepted"
        ),
        accepted=tuple(
            AcceptedChange(name, (BEGIN + timedelta(days=at)).isoformat(), "a known price")
            for at in plot.accepted
        ),
        code=tuple(code),
        sigma=sigma,
    )
