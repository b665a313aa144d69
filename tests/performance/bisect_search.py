"""How often a bisection is right, how sure it says it is, and how many tests it takes, beside plain bisection.

python -m tests.performance.bisect_search [--searches 500]
"""

from __future__ import annotations

import argparse
import random
from math import log

from profkit.regression.bisect.search import Move, Observation, Rules, next_move

ROWS = ((20, 0.0), (20, 0.05), (20, 0.1), (200, 0.0), (200, 0.1))
SIZE, ERROR = log(1.1), 0.01  # of the change, and of a test's logarithm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--searches", type=int, default=500)
    count = parser.parse_args().searches
    print(f"{count} searches each; one commit is 10 % slower, a test has an error of 1 %\n")
    print("| commits | wrong tests | right | says | tests | 9 of 10 below | plain bisection: right | tests |")
    print("| --- |" + " --- |" * 7)
    for n, wrong in ROWS:
        draw = random.Random(n)
        made = [_search(n, wrong, draw) for _ in range(count)]
        plain = [_plain(n, wrong, draw) for _ in range(count)]
        right, said, tests = (sum(row[i] for row in made) / count for i in range(3))
        most = sorted(row[2] for row in made)[9 * count // 10]
        of_plain, its_tests = (sum(row[i] for row in plain) / count for i in range(2))
        ours = f"{right:.1%} | {said:.1%} | {tests:.1f} | {most}"
        print(f"| {n} | {wrong:.0%} | {ours} | {of_plain:.0%} | {its_tests:.1f} |")


def _search(n: int, wrong: float, draw: random.Random) -> tuple[bool, float, int]:
    """Whether it was right, the probability that it said, and its tests."""
    change = draw.randint(1, n)
    seen = [Observation(0, n, SIZE, ERROR)]
    while isinstance(move := next_move(n, frozenset(), seen, Rules()), Move):
        slower = (move.earlier < change <= move.later) != (draw.random() < wrong)
        seen.append(Observation(move.earlier, move.later, SIZE * slower + draw.gauss(0, ERROR), ERROR))
    single = [found for found in move if not found.rest]
    answer = max(single, key=lambda found: found.probability, default=None)
    return len(single) == 1 and single[0].high == change, answer.probability if answer else 0.0, len(seen)


def _plain(n: int, wrong: float, draw: random.Random) -> tuple[bool, int]:
    low, high, tests, change = 0, n, 0, draw.randint(1, n)
    while high - low > 1:
        middle, tests = (low + high) // 2, tests + 1
        if (middle >= change) != (draw.random() < wrong):
            high = middle
        else:
            low = middle
    return high == change, tests


if __name__ == "__main__":
    main()
