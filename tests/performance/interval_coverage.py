"""How often the timing pass's interval holds the true median on noise whose median is known.

Run alone: python tests/performance/interval_coverage.py [SERIES_PER_ROW]
Limit: 95 % nominal. A row that misses by more than the trial's own error is marked.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from math import exp, log, pi, sqrt, tan

from profkit.core.statistics import combine_processes, median, percentile
from profkit.runtime.passes import timing

CAP = 4000  # samples; stands for the time budget
PRECISION = 0.01
Noise = Callable[[random.Random], Iterator[float]]


def gaussian(sigma: float) -> Noise:
    def series(rng: random.Random) -> Iterator[float]:
        while True:
            yield rng.gauss(1.0, sigma)

    return series


def warming(sigma: float, height: float, tau: float) -> Noise:
    def series(rng: random.Random) -> Iterator[float]:
        i = 0
        while True:
            yield rng.gauss(1.0, sigma) + height * exp(-i / tau)
            i += 1

    return series


def autoregressive(rho: float, sigma: float) -> Noise:
    def series(rng: random.Random) -> Iterator[float]:
        x = rng.gauss(0.0, sigma)
        while True:
            yield 1.0 + x
            x = rho * x + rng.gauss(0.0, sigma * sqrt(1 - rho * rho))

    return series


def tail(scale: float) -> Noise:  # median 1 - scale * log(2) + scale * log(2)
    def series(rng: random.Random) -> Iterator[float]:
        while True:
            yield 1.0 + scale * (rng.expovariate(1.0) - log(2))

    return series


def heavy(scale: float) -> Noise:  # half a Cauchy: no mean, no variance, median 1
    def series(rng: random.Random) -> Iterator[float]:
        while True:
            yield 1.0 + scale * (abs(tan(pi * (rng.random() - 0.5))) - 1.0)

    return series


def spiky(sigma: float) -> Noise:
    shift = sigma * 0.066  # 5 % of the values far above: the median is the 10/19 quantile of the rest

    def series(rng: random.Random) -> Iterator[float]:
        while True:
            yield (rng.gauss(1.0, sigma) - shift) * (2.0 if rng.random() < 0.05 else 1.0)

    return series


def two_modes(stay: float) -> Noise:
    """60 % at 1, 40 % at 1.04, sigma 0.5 %; `stay` is the chance to keep the mode of the sample before."""
    shift = 0.004837  # quantile 0.5 / 0.6 of the lower mode

    def series(rng: random.Random) -> Iterator[float]:
        upper = rng.random() < 0.4
        while True:
            yield rng.gauss(1.04 if upper else 1.0, 0.005) - shift
            if rng.random() > stay:
                upper = rng.random() < 0.4

    return series


def four_states(calls: int, tick: float = 0.0068) -> Noise:
    """Cold calls of 5 us on a GPU: by turns in one of four states 8 % apart, read off a clock of 32 ns.

    `calls` of them are a sample. Which state comes first is left to chance, as for a case of a sweep.
    """
    states = (0.9, 0.98, 1.02, 1.1)  # whatever is even about 1 has its median there

    def series(rng: random.Random) -> Iterator[float]:
        turn = rng.randrange(4)
        while True:
            taken = 0.0
            for _ in range(calls):
                turn += 1
                taken += 1 + tick * round((rng.gauss(states[turn % 4], 0.01) - 1) / tick)
            yield taken / calls

    return series


ROWS: dict[str, Noise] = {
    "Gaussian 1 %": gaussian(0.01),
    "Gaussian 3 %": gaussian(0.03),
    "Gaussian 10 %": gaussian(0.10),
    "warm-up +50 %, tau 5": warming(0.01, 0.5, 5),
    "warm-up +50 %, tau 50": warming(0.01, 0.5, 50),
    "warm-up +3 %, tau 50": warming(0.01, 0.03, 50),
    "warm-up +3 %, tau 500": warming(0.01, 0.03, 500),
    "AR(1) 0.3, 2 %": autoregressive(0.3, 0.02),
    "AR(1) 0.6, 2 %": autoregressive(0.6, 0.02),
    "AR(1) 0.9, 2 %": autoregressive(0.9, 0.02),
    "AR(1) 0.9, 1 %": autoregressive(0.9, 0.01),
    "exponential tail 3 %": tail(0.03),
    "half Cauchy 2 %": heavy(0.02),
    "1 % and 5 % spikes x2": spiky(0.01),
    "bimodal 60/40, at random": two_modes(0.0),
    "bimodal, runs of 20": two_modes(0.95),
    "bimodal, runs of 1000": two_modes(0.999),
    "four states, single calls": four_states(1),
    "four states, eight calls": four_states(8),
}


def measure(noise: Noise, rng: random.Random, first: int) -> tuple[list[float], timing.SampleAssessment]:
    """Samples as the timing pass would take them, the first look after `first`."""
    source, samples, count = noise(rng), [], first
    while True:
        samples += [next(source) for _ in range(count - len(samples))]
        seen = timing.assess_samples(samples, PRECISION)
        if seen.done or count >= CAP:
            return samples[seen.warmup :], seen
        count = min(CAP, timing.next_sample_count(count))


def row(name: str, noise: Noise, series: int, first: int) -> bool:
    rng = random.Random(f"{name} {first}")
    held, reached, errors, counts = 0, 0, [], []
    for _ in range(series):
        samples, seen = measure(noise, rng, first)
        found = seen.interval
        held += found is not None and found.low <= 1.0 <= found.high
        reached += seen.done
        errors.append(abs(median(samples) - 1.0))
        counts.append(len(samples) + seen.warmup)
    coverage = held / series
    missed = coverage < 0.95 - 2 * sqrt(0.95 * 0.05 / series)
    print(
        f"{name:26} {median(counts):6.0f} {100 * percentile(errors, 95):8.2f} %"
        f" {100 * reached / series:7.0f} % {100 * coverage:8.1f} %  {'below 95 %' if missed else ''}",
        flush=True,
    )
    return not missed


def layouts(spread: float, processes: int, series: int) -> bool:
    """Coverage of the combined interval where each process has a memory layout of its own."""
    rng = random.Random(f"{spread} {processes}")
    held = 0
    for _ in range(series):
        taken = []
        for _ in range(processes):
            layout = rng.gauss(1.0, spread)
            taken.append([layout * rng.gauss(1.0, 0.01) for _ in range(50)])
        centre = combine_processes(taken)
        assert centre is not None
        held += centre.low is not None and centre.high is not None and centre.low <= 1.0 <= centre.high
    coverage = held / series
    missed = coverage < 0.95 - 2 * sqrt(0.95 * 0.05 / series)
    print(
        f"{processes} processes, {100 * spread:3.1f} % between"
        f"  {100 * coverage:8.1f} %  {'below 95 %' if missed else ''}"
    )
    return not missed


def main(series: int) -> None:
    good = 0
    for first, words in (
        (200, "quick calls (first look after 0.2 s)"),
        (16, "slow calls (first look at 16)"),
    ):
        print(f"\n{words}; asked ±1 %, at most {CAP} samples, {series} series a row")
        print(f"{'noise':26} {'samples':>6} {'error p95':>10} {'reached':>8} {'coverage':>10}")
        good += sum(row(name, noise, series, first) for name, noise in ROWS.items())
    print(f"\nseveral processes of 50 samples, 1 % noise, {4 * series} trials a row")
    good += sum(
        layouts(spread, processes, 4 * series) for spread in (0.0, 0.005, 0.02) for processes in (2, 3, 5)
    )
    print(f"\n{good} of {2 * len(ROWS) + 9} rows hold their 95 %")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
