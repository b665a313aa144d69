"""Simulated years through the decision, and through the rules that other tools ship.

    python -m tests.performance.simulated_year [--seeds 100:110] [--sigma 0.01]

Every noise of tests/regression/detection/years.py with every story, one series of 365 nights each and per seed.
Parameters were chosen on the seeds 0 to 9; run it with others.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from profkit.regression.detection.rules import rule_for
from tests.performance.nights_of_peers import PEERS
from tests.regression.detection.scoring import Score, by_nights
from tests.regression.detection.years import NOISES, STORIES, Year, make_year

Alarms = Callable[[Year], Sequence[int]]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="100:103", help="first:end")
    parser.add_argument("--sigma", type=float, default=0.01, help="noise of one night, relative")
    options = parser.parse_args()
    first, end = (int(part) for part in options.seeds.split(":"))
    rule = rule_for("time.median")
    rules: dict[str, Alarms] = {"profkit, by nights alone": lambda year: by_nights(year, rule), **PEERS}
    total = {name: Score() for name in rules}
    began = time.monotonic()
    for noise in NOISES:
        for story in STORIES:
            for seed in range(first, end):
                year = make_year(noise, story, seed, options.sigma)
                for name, alarms in rules.items():
                    total[name].add(year, alarms(year))
        print(f"{noise}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    nights = next(iter(total.values())).nights
    print(f"{nights} series-nights, seeds {first} to {end - 1}, noise of one night {options.sigma:.1%}")
    print(f"\n{'rule':<50}{'precision':>10}{'recall':>8}{'delay':>7}{'wrong/1000':>12}")
    for name, score in total.items():
        print(f"{name:<50}{_row(score)}")
    return 0


def _row(score: Score) -> str:
    """Recall and delays are of steps of at least twice the floor (4 %)."""
    cells = (
        (score.precision, ">10.3f"),
        (score.recall(), ">8.3f"),
        (score.delay(), ">7"),
        (score.wrong_per_1000, ">12.3f"),
    )
    return "".join(
        format(v, spec) if v is not None else f"{'-':>{spec[1:].split('.')[0]}}" for v, spec in cells
    )


if __name__ == "__main__":
    sys.exit(main())
