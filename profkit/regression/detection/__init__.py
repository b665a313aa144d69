"""A series of nights in, a verdict on the last one out: pure functions, no processes and no clock.

How a nightly calls it, per workload and metric:

    rule = rule_for("time.median", overrides)            # floors and whether it gates; overrides from the config
    outcome = decide(series, rule, accepted, confirmed)  # of the last point of the series, which is tonight's
    if is_candidate(outcome) and outcome.gates:          # outside of its control limits: no failure by itself
        rounds = [(candidate seconds, last good seconds), ...]   # ABBA, each a fresh process; 4 to begin with
        while (answer := confirm(rounds, rule)).word == "more":
            rounds += ...                                # up to answer.wanted rounds
        confirmed[tonight's entry] = answer.word         # stored, so that later nights know it
        outcome = decide(series, rule, accepted, confirmed)

`confirmed` maps the id of an entry to the word of its re-run of this metric. A night depends on the series, the
accepted changes and these words alone; `decide_every_night` says what every past night would have been.
"""

from profkit.regression.detection.decide import decide as decide
from profkit.regression.detection.decide import decide_every_night as decide_every_night
from profkit.regression.detection.decide import is_candidate as is_candidate
from profkit.regression.detection.rules import NightRule as NightRule
from profkit.regression.detection.rules import rule_for as rule_for
from profkit.regression.detection.segments import segments_of as segments_of
from profkit.regression.paired.decide import Confirmation as Confirmation
from profkit.regression.paired.decide import ConfirmWord as ConfirmWord
from profkit.regression.paired.decide import confirm as confirm
