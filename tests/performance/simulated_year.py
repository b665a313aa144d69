"""Simulated years through the decision, and through the rules that other tools ship.

    python -m tests.performance.simulated_year [--seeds 100:110] [--sigma 0.01]

Every noise of tests/regression/detection/years.py with every story, one series of 365 nights each and per seed.
Parameters were chosen on the seeds 0 to 9; run it with others. A table of rules, then one of ours by noise, then one
by story.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

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
    ours: dict[str, Alarms] = {
        "profkit, by nights alone": partial(_flipped, by_nights, rule),
    }
    rules = {**ours, **PEERS}
    total = {name: Score() for name in rules}
    quiet = {name: Score() for name in rules}
    by_noise = {(name, noise): Score() for name in ours for noise in NOISES}
    by_story = {(name, story): Score() for name in ours for story in STORIES}
    began = time.monotonic()
    for noise in NOISES:
        for story in STORIES:
            for seed in range(first, end):
                year = make_year(noise, story, seed, options.sigma)
                for name, alarms in rules.items():
                    found = alarms(year)
                    scores = [total[name]]
                    if name in ours:
                        scores += [by_noise[name, noise], by_story[name, story]]
                    if (noise, story) == ("gaussian", "quiet"):
                        scores.append(quiet[name])
                    for score in scores:
                        score.add(year, found)
        print(f"{noise}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    nights = sum(s.nights for s in [total[next(iter(ours))]])
    print(f"{nights} series-nights, seeds {first} to {end - 1}, noise of one night {options.sigma:.1%}")
    print(f"\n{'rule':<50}{_HEAD}  wrong per quiet Gaussian year")
    for name in rules:
        print(f"{name:<50}{_row(total[name])}  {len(quiet[name].wrong) / max(1, quiet[name].years):.2f}")
    for name in ours:
        print(f"\n{name + ': by noise':<50}{_HEAD}")
        for noise in NOISES:
            print(f"{noise:<50}{_row(by_noise[name, noise])}")
        print(f"\n{name + ': by story':<50}{'found':>8}{'of':>6}{'delay':>7}{'wrong':>7}")
        for story in STORIES:
            print(f"{story:<50}{_story(by_story[name, story])}")
    return 0


_HEAD = f"{'precision':>10}{'recall':>8}{'delay':>7}{'9 of 10':>9}{'drifts':>8}{'wrong/1000':>12}"


def _flipped(alarms: Callable[..., Sequence[int]], rule: object, year: Year) -> Sequence[int]:
    return alarms(year, rule)


def _row(score: Score) -> str:
    """Recall and delays are of steps of at least twice the floor (4 %)."""
    cells = (
        (score.precision, ">10.3f"),
        (score.recall(), ">8.3f"),
        (score.delay(), ">7"),
        (score.delay(0.9), ">9"),
        (score.recall(0.0025, "drift"), ">8.2f"),
        (score.wrong_per_1000, ">12.3f"),
    )
    return "".join(
        format(v, spec) if v is not None else f"{'-':>{spec[1:].split('.')[0]}}" for v, spec in cells
    )


def _story(score: Score) -> str:
    delays = sorted(d for _, d in score.found)
    middle = delays[len(delays) // 2] if delays else "-"
    return f"{len(score.found):>8}{len(score.found) + len(score.missed):>6}{middle:>7}{len(score.wrong):>7}"


if __name__ == "__main__":
    sys.exit(main())
