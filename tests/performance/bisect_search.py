"""How often a bisection is right, how sure it says it is, and how many pairs of runs it takes, by kind of noise.

python -m tests.performance.bisect_search [--searches 200] [--noise quiet] [--changes 2]
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import exp, log

from profkit.core.pairs import confirm, rounds_of_looks
from profkit.regression.bisect.search import MIN_PAIRS, Move, Pairs, next_move, observed
from profkit.regression.detection.rules import NightRule

MAX_PAIRS = 40  # pairs of a test
BUILD = 0.003  # standard deviation of what a build is faster or slower by chance
FLOOR = 0.02
NOISES = ("quiet", "noisy", "tails", "neighbour")


@dataclass
class Machine:
    """Runs a program: `quiet` 1 % of noise, `noisy` 5 %, `tails` 1 % and every seventh run a fifth slower.

    `neighbour`: another program comes for 8 runs in the mean and goes for 12; a run beside it takes 30 % longer, with
    5 % of noise.
    """

    noise: str
    draw: random.Random
    beside: bool = False

    def run(self, level: float) -> float:
        """Seconds of one run."""
        draw = self.draw
        if self.noise == "neighbour" and draw.random() < (1 / 8 if self.beside else 1 / 12):
            self.beside = not self.beside
        other = draw.gauss(0, 0.05 if self.noise == "noisy" or self.beside else 0.01)
        other += log(1.3) if self.beside else 0
        other += draw.expovariate(5) if self.noise == "tails" and draw.random() < 0.15 else 0
        return exp(level + other)

    def pair(self, earlier: float, later: float) -> tuple[float, float]:
        """Seconds of both, run in random order."""
        if self.draw.random() < 0.5:
            return self.run(earlier), self.run(later)
        second = self.run(later)
        return self.run(earlier), second


@dataclass(frozen=True)
class Searched:
    """How one search ended, what it said, and what it took.

    `ends`: both ends were not called different. Of two changes: `one of two` is named and the rest is said to lie
    elsewhere; `one for both`: it is named alone.
    """

    end: str
    said: float
    tests: int
    pairs: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--noise", choices=NOISES)
    parser.add_argument("--changes", type=int, choices=(1, 2))
    options = parser.parse_args()
    noises = (options.noise,) if options.noise else NOISES
    rows = [(noise, 1, size, n) for noise, size, n in product(noises, (1.03, 1.05, 1.2), (16, 100))]
    rows += [(noise, 2, size, 16) for noise, size in product(noises, (1.05, 1.2))]
    rows = [row for row in rows if options.changes in (None, row[1])]
    print(f"{options.searches} searches each\n")
    print(
        "| noise | changes | commits | searched | answered | right | says | of 95 % and more: right | tests | pairs |"
    )
    print("| --- |" + " --- |" * 9)
    every: list[Searched] = []
    with ProcessPoolExecutor() as pool:
        for noise, changes, size, n in rows:
            one = partial(_search, noise, changes, size, n)
            made = list(pool.map(one, range(options.searches), chunksize=4))
            every += made
            print(
                f"| {noise} | {changes} of {size - 1:.0%} | {n} | {_summary(made)} |",
                flush=True,
            )
    print(f"| all | | | {_summary(every)} |")


def _summary(made: Sequence[Searched]) -> str:
    searched = [one for one in made if one.end != "ends"]
    ends = Counter(one.end for one in searched)
    answers = [one for one in searched if one.end != "open"]
    sure = [one.end in ("right", "one of two") for one in answers if one.said >= 0.95]
    if not searched or not answers:
        return f"{len(searched)} | {len(answers)} | | | | |"
    names = ("one of two", "one for both", "wrong")
    right = ", ".join([str(ends["right"]), *(f"{ends[name]} {name}" for name in names if ends[name])])
    said = sum(one.said for one in answers) / len(answers)
    tests, pairs = (
        sum(values) / len(searched) for values in zip(*((s.tests, s.pairs) for s in searched), strict=True)
    )
    share = f"{sum(sure) / len(sure):.1%}" if sure else ""
    return f"{len(searched)} | {len(answers)} | {right} | {said:.1%} | {share} | {tests:.1f} | {pairs:.0f}"


def _search(noise: str, changes: int, size: float, n: int, seed: int) -> Searched:
    draw = random.Random(f"{noise}{changes}{size}{n}{seed}")
    places = sorted(draw.sample(range(1, n + 1), changes))
    levels = [sum(log(size) for place in places if commit >= place) for commit in range(n + 1)]
    levels = [level + draw.gauss(0, BUILD) for level in levels]
    machine, floor, nobody = Machine(noise, draw), log(1 + FLOOR), frozenset[int]()
    ends, different = _in_full(machine, levels[0], levels[n])
    if not different:
        return Searched("ends", 0.0, 1, len(ends))
    seen, made = [observed(ends, ends, 0, n)], len(ends)
    while isinstance(move := next_move(n, nobody, seen, floor), Move):
        earlier, later = levels[move.earlier], levels[move.later]
        pairs: Pairs = _in_full(machine, earlier, later)[0] if move.direct else ()
        while not move.direct and len(pairs) < MAX_PAIRS:
            pairs += tuple(machine.pair(earlier, later) for _ in range(MIN_PAIRS))
            if observed(pairs, ends, move.earlier, move.later).error <= move.error:
                break
        seen.append(observed(pairs, ends, move.earlier, move.later))
        made += len(pairs)
    single = [found for found in move if not found.rest]
    named = [found.high for found in single]
    rest = any(found.rest and abs(found.size) > floor for found in move)
    end = "right" if named == places else "wrong"
    if set(named) < set(places):
        end = "one of two" if rest else "one for both"
    said = min((found.probability for found in single), default=0.0)
    return Searched(end if named else "open", said, len(seen), made)


def _in_full(machine: Machine, earlier: float, later: float) -> tuple[Pairs, bool]:
    """The pairs of the paired test, and whether it called them different."""
    pairs: list[tuple[float, float]] = []
    floor = NightRule("time", relative=FLOOR)
    for look in rounds_of_looks(MAX_PAIRS):
        pairs += [machine.pair(earlier, later) for _ in range(look - len(pairs))]
        told = confirm([(new, old) for old, new in pairs], floor, most=MAX_PAIRS)
        if told is not None and told.word != "ambiguous":
            break
    return tuple(pairs), told is not None and told.word == "different"


if __name__ == "__main__":
    main()
