"""Steps of 3, 5 and 10 % put into real timing series: which share is found after how many nights, rule by rule.

    python -m tests.performance.detectors_steps [--folder FOLDER]

FOLDER holds series of yours. Of each, stretches of 120 nights with 30 to come
are taken, and those 30 made slower; every night the rule sees all nights so far. A step is found when a place within 5
nights of it is named; a stretch in which the rule names that place without the step is left out for it. False alarms
are counted on the same values in shuffled order, which has no change, night by night: a place counts once.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from profkit.regression.change_points import examine_series
from tests.performance import detectors_peers
from tests.performance.detectors_peers import Rule, recorded, rules

PAST, AFTER = 120, (1, 2, 3, 5, 8, 12, 20, 30)
NEAR = 5
STEPS = (0.03, 0.05, 0.10)
STRIDE = 40  # from one stretch to the next
SEEN = 150  # nights that a rule sees in the replay


def names(rule: Rule, values: list[float]) -> bool:
    return any(abs(place - PAST) <= NEAR for place in rule(values))


def curve(rule: Rule, series: list[list[float]], step: float) -> tuple[list[float], int]:
    """Of all stretches the share in which the step was found, for each number of nights after it."""
    stretches = [
        values[begin : begin + PAST + max(AFTER)]
        for values in series
        for begin in range(0, len(values) - PAST - max(AFTER) + 1, STRIDE)
    ]
    shares = []
    for nights in AFTER:
        found = tried = 0
        for stretch in stretches:
            until = stretch[: PAST + nights]
            if names(rule, until):
                continue  # it would have been named without a step
            tried += 1
            found += names(rule, until[:PAST] + [value * (1 + step) for value in until[PAST:]])
        shares.append(found / tried if tried else float("nan"))
    return shares, len(stretches)


def false_alarms(rule: Rule, series: list[list[float]]) -> float:
    """Places named per series and year of nights, each series shuffled, every fifth night looked at."""
    alarms = nights = 0
    for number, values in enumerate(series):
        shuffled = np.random.default_rng(number).permutation(values).tolist()
        named: list[int] = []
        for night in range(40, len(shuffled), 5):
            first = max(0, night - SEEN)
            for place in (first + place for place in rule(shuffled[first:night])):
                if all(abs(place - other) > NEAR for other in named):
                    named.append(place)
        alarms, nights = alarms + len(named), nights + len(shuffled)
    return alarms / nights * 365


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="other series than those in tests/data/timing_series")
    folder = parser.parse_args().folder
    if folder is not None:
        detectors_peers.RECORDED = folder
    everything = recorded()
    for name, values in everything.items():
        seen = examine_series(values)
        print(
            f"{name}: {len(values)} nights, noise {seen.noise:.1%}, correlation {seen.autocorrelation or 0:.2f}"
        )
    series = list(everything.values())
    available = rules()
    for step in STEPS:
        print(f"\nslower by {step:.0%}, share found after so many nights\n")
        print("| rule | " + " | ".join(map(str, AFTER)) + " |\n| --- |" + " --- |" * len(AFTER))
        for name, rule in available.items():
            shares, count = curve(rule, series, step)
            print(f"| {name.strip()} | " + " | ".join(f"{share:.0%}" for share in shares) + " |", flush=True)
        print(f"({count} stretches of {len(series)} series)")
    print("\nfalse alarms a year and series, on the same values in shuffled order\n")
    print("| rule | alarms |\n| --- | --- |")
    for name, rule in available.items():
        print(f"| {name.strip()} | {false_alarms(rule, series):.1f} |", flush=True)


if __name__ == "__main__":
    main()
