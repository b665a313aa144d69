"""Sentences about nights: what the past says of a metric, and why a workload was not measured or compared."""

from __future__ import annotations

from profkit.core.formatting import format_figures
from profkit.core.process import describe_status
from profkit.reporting.sentences.formats import count_of, first_line, percent
from profkit.reporting.sentences.table import Parts, SentenceTable, TextWithNames

SENTENCES = SentenceTable(
    {
        # what the past says of a metric
        "night not-measured": "it was not measured",
        "night not-valid": "its value is not a finite number",
        "night new": "too few nights on this machine: it is judged from the eighth night on",
        # why a workload was not measured, or not run in pairs
        "workload not-measured": "it was not measured",
        "workload budget-spent": "the night's budget was used up before it began",
        "workload nothing-gates": "no metric that decides was measured",
        "workload not-valid": "it is not valid",
        "pairs elsewhere": "it runs on another machine (on:), but pairs are run only on this one",
        "pairs no-parent": "there is no commit before this one",
        "pairs budget-spent": "the night's budget is used up",
        "pairs interrupted": "the night was interrupted before its pairs were run",
        # nights and comparisons
        "ended workload-failed": "the workload failed",
        "ended machine": "this machine cannot run it",
        "ended refused": "profkit refused to run it",
        "ended unreadable": "profkit cannot read this report",
        "ended interrupted": "it was interrupted from outside",
        "ended without-run": "it ended without an error, but left no run that can be read",
        "other-iterations": "it has another number of iterations than tonight's run",
        "other-regions": "it marks other regions than the commit it is compared with",
    }
)
SENTENCES.add_each(
    TextWithNames,
    {
        # what the past says of a metric
        "night other-machine": "the first night on another machine ({here} instead of {before})",
        "night collapse": (
            "{value}, {size}: implausibly fast, so not counted until accepted; did it do the work?"
        ),
        "night held": "{value}{within}",
        "night suspect": "{value}, {size}, outside of {limits}, {nights} in a row",
        "night nights": "{size} for {nights} in a row{since}",
        "night change-point": "{size}{since}, found afterwards by the change detector",
        "night standing": "{size}{since}, still there, and not accepted",
        "night returning": "{value}: back at the value from before {day}",
        "night perhaps-better": "{value}, {size}: better than {limits} for {nights}",
        "night gone": "{value}: the regression{since} is gone",
        "night improved": "{size}{since}",
        "night moved": "{value}, {size}",
        # why a workload was not measured, or not run in pairs
        "workload not-stored": "measured, but not stored: {message}",
        "pairs accepted-tonight": "an accepted change begins tonight ({base})",
        "pairs same-files": "nothing that it loads or reads was changed since the last good night ({base})",
        "pairs same-code": "nothing was committed since the last good night ({base})",
        "pairs lost-commit": "this clone does not have the commit {commit}",
        "uncounted unknown": "{what} of the base are not known: the past nights decide",
        "uncounted absent": (
            "{what} was not measured: its pass, {name}, did not run or had no result (passes:, depth:)"
        ),
        "uncounted budget-spent": "{what} was not counted: the budget is used up",
        # nights and comparisons
        "ended not-whole": "its run was {state}",
        "run-ended": "the run was {state}",
        "always-throttled": "throttled the whole time ({names})",
        "runs-elsewhere": "it runs on {place}, but versions can be compared only on this machine",
        "not-in-base": "{base} has no {file}",
    },
)


# ---------------------------------------------------------------- why a workload was not measured, or not run in pairs


@SENTENCES.add("workload vanished")
def workload_vanished(share: float) -> str:
    by = f" by {100 * share:+.1f} %" if share else ""
    return f"it was worse{by} and is no longer declared"


@SENTENCES.add("pairs few-pairs")
def pairs_few_pairs(pairs: float, seconds: float) -> str:
    fit = count_of(pairs, "pair fits", "pairs fit")
    return f"only {fit} into the budget of {seconds:.0f} s, and at least 4 are needed"


@SENTENCES.add("uncounted scatters")
def uncounted_scatters(apart: float, what: str) -> str:
    return f"runs of one commit differ by {percent(apart)} in {what}: the past nights decide, not the base"


@SENTENCES.add("uncounted scatters-at-0")
def uncounted_scatters_at_0(apart: float, what: str) -> str:
    return (
        f"runs of one commit differ by {format_figures(apart)} in {what}: the past nights decide, not "
        "the base"
    )


@SENTENCES.add("uncounted failed")
def uncounted_failed(what: str, parts: Parts) -> str:
    return f"{what} was not counted: {first_line(parts.first)}"


# ---------------------------------------------------------------- nights and comparisons


@SENTENCES.add("ended out-of-time")
def ended_out_of_time(seconds: float) -> str:
    return f"it did not finish within its budget of {seconds:.0f} s"


@SENTENCES.add("ended died")
def ended_died(status: float) -> str:
    return f"profkit's process {describe_status(round(status))}"


@SENTENCES.add("ended profkit-failed")
def ended_profkit_failed(status: float) -> str:
    return f"profkit {describe_status(round(status))}"


@SENTENCES.add("too-throttled")
def too_throttled(thrown: float, left: float, names: str) -> str:
    return f"throttled: {count_of(thrown, 'sample')} discarded, {left:.0f} left ({names})"
