"""A series of nights in, a verdict on the last one out: pure functions, no processes and no clock.

How a nightly calls it, per workload and metric:

    rule = rule_for("time.median", overrides)            # floors and whether it gates; overrides from the config
    outcome = decide(series, rule, accepted, confirmed)  # of the last point of the series, which is tonight's
    if suspect(outcome) and outcome.gates:               # outside of its band: never a failure by itself
        rounds = [(candidate seconds, last good seconds), ...]   # ABBA, each a fresh process; 4 to begin with
        while (word := confirm(rounds, rule, series)).word == "more":
            rounds += ...                                # up to word.wanted rounds
        outcome = settled(outcome, word)                 # regressed, improved, pass or ambiguous
        # keep word.word under the entry's id: `confirmed` of the nights to come, so that they know it
    absent = missing(declared, measured)                 # what was promised and is not there
    word, reason = worst(outcomes)                       # of a workload; of a night likewise

`confirmed` maps the id of an entry to the word of its re-run of this metric. All that a night depends on is the series,
the accepted changes and these words: there is no other state, and `replay` tells what every past night would have been.
"""
