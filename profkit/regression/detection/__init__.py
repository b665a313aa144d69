"""A series of nights in, a verdict on the last one out: pure functions, no processes and no clock.

How a nightly calls it, per workload and metric:

    rule = rule_for("time.median", overrides)            # floors and whether it gates; overrides from the config
    outcome = decide(series, rule, accepted, confirmed)  # of the last point of the series, which is tonight's
    if suspect(outcome) and outcome.gates:               # outside of its band: never a failure by itself
        rounds = [(candidate seconds, last good seconds), ...]   # ABBA, each a fresh process; 4 to begin with
        while (told := confirm(rounds, rule)).word == "more":
            rounds += ...                                # up to told.wanted rounds
        confirmed[tonight's entry] = told.word           # kept, so that the nights to come know it
        outcome = decide(series, rule, accepted, confirmed)

`confirmed` maps the id of an entry to the word of its re-run of this metric. All that a night depends on is the series,
the accepted changes and these words: there is no other state, and `replay` tells what every past night would have been.
"""

from profkit.regression.detection.confirm import confirm, order
from profkit.regression.detection.confirmation import Confirmation, ConfirmWord
from profkit.regression.detection.decide import decide, replay, suspect
from profkit.regression.detection.epochs import epochs
from profkit.regression.detection.rules import Rule, rule_for

__all__ = [
    "ConfirmWord",
    "Confirmation",
    "Rule",
    "confirm",
    "decide",
    "epochs",
    "order",
    "replay",
    "rule_for",
    "suspect",
]
