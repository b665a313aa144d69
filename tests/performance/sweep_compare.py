"""How often `compare` of two sweeps calls equal code different, and how large a change it finds.

    python tests/performance/sweep_compare.py             # made-up sweeps, some minutes
    python tests/performance/sweep_compare.py --pairs 40

Sweeps of 5 operations in 3 implementations over 28 shapes, made up with the noise that was measured between sweeps of
the same code (tests/data/sweeps): all cases of an implementation of an operation move together by 0.85 %, each by
itself by 1.5 % with heavy tails (Student's t, 5 degrees of freedom). Then one of the 15 is made slower. Nothing moves
all of them together, so the control can take nothing out: measured sweeps are nearer each other.
"""

# ruff: noqa: E402 (the project's own packages are found first, wherever this is run)

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import permutations
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from profkit.core.types import Comparison
from profkit.regression.compare import compare
from tests.sweep_twins import changed, made_up, measured, noisy, sweep

OPERATIONS = ("LayerNorm", "GELU", "Swish", "MSE", "CrossEntropy")
SLOWER = (0.0, 0.03, 0.05, 0.07, 0.1)


def told(found: Comparison) -> tuple[bool, int]:
    """Whether the slower one is called worse, and how many others are called different."""
    worse = [
        c.scope.name or ""
        for c in found.changes
        if c.metric == "time.geometric_mean" and c.word == "different"
    ]
    hit = [name for name in worse if name.startswith("CUDA: GELU ")]
    return bool(hit), len(worse) - len(hit)


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=100)
    pairs = parser.parse_args().pairs
    base = made_up(28, OPERATIONS)
    print(f"made up, {pairs} pairs for each change of one of 15")
    for slower in SLOWER:
        outcomes: Counter[str] = Counter()
        hits = others = cases = 0
        for number in range(pairs):
            later = changed(
                noisy(base, 2 * number + 1),
                lambda p, name, by=slower: 1 + by if (p.operation, name) == ("GELU", "CUDA") else 1.0,  # type: ignore[misc]
            )
            found = compare(sweep(noisy(base, 2 * number)), sweep(later))
            outcomes[found.outcome] += 1
            hit, other = told(found)
            hits, others = hits + hit, others + other
            cases += any(c.metric == "time.median" and c.word == "different" for c in found.changes)
        said = ", ".join(f"{word} {100 * count / pairs:.0f} %" for word, count in outcomes.most_common())
        print(
            f"  {100 * slower:3.0f} % slower: found in {100 * hits / pairs:3.0f} %; others called different: {others}; "
            f"pairs with a case that stands out: {cases}; {said}"
        )
    print("measured, five sweeps of the same code")
    twins = {name: sweep(times) for name, times in measured().items()}
    for before, after in permutations(twins, 2):
        start = monotonic()
        found = compare(twins[before], twins[after])
        alone = [c.scope.name for c in found.changes if c.metric == "time.median" and c.word == "different"]
        print(
            f"  {before:3} {after:3} {found.outcome:9} {monotonic() - start:.1f} s  {', '.join(map(str, alone))}"
        )


if __name__ == "__main__":
    main()
