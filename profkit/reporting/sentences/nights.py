"""Sentences about nights: what the past says of a metric, and why a workload was not measured or compared."""

from __future__ import annotations

from profkit.core.formatting import format_figures
from profkit.core.process import describe_status
from profkit.reporting.sentences.formats import count_of, first_line, percent
from profkit.reporting.sentences.table import Parts, SentenceTable

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


# ---------------------------------------------------------------- what the past says of a metric


@SENTENCES.add("night other-machine")
def night_other_machine(here: str, before: str) -> str:
    return f"the first night on another machine ({here} instead of {before})"


@SENTENCES.add("night collapse")
def night_collapse(value: str, size: str) -> str:
    return f"{value}, {size}: implausibly fast, so not counted until accepted; did it do the work?"


@SENTENCES.add("night held")
def night_held(value: str, within: str) -> str:
    return f"{value}{within}"


@SENTENCES.add("night suspect")
def night_suspect(value: str, size: str, limits: str, nights: str) -> str:
    return f"{value}, {size}, outside of {limits}, {nights} in a row"


@SENTENCES.add("night nights")
def night_nights(size: str, nights: str, since: str) -> str:
    return f"{size} for {nights} in a row{since}"


@SENTENCES.add("night change-point")
def night_change_point(size: str, since: str) -> str:
    return f"{size}{since}, found afterwards by the change detector"


@SENTENCES.add("night standing")
def night_standing(size: str, since: str) -> str:
    return f"{size}{since}, still there, and not accepted"


@SENTENCES.add("night returning")
def night_returning(value: str, day: str) -> str:
    return f"{value}: back at the value from before {day}"


@SENTENCES.add("night perhaps-better")
def night_perhaps_better(value: str, size: str, limits: str, nights: str) -> str:
    return f"{value}, {size}: better than {limits} for {nights}"


@SENTENCES.add("night gone")
def night_gone(value: str, since: str) -> str:
    return f"{value}: the regression{since} is gone"


@SENTENCES.add("night improved")
def night_improved(size: str, since: str) -> str:
    return f"{size}{since}"


@SENTENCES.add("night moved")
def night_moved(value: str, size: str) -> str:
    return f"{value}, {size}"


# ---------------------------------------------------------------- why a workload was not measured, or not run in pairs


@SENTENCES.add("workload not-stored")
def workload_not_stored(message: str) -> str:
    return f"measured, but not stored: {message}"


@SENTENCES.add("workload vanished")
def workload_vanished(share: float) -> str:
    by = f" by {100 * share:+.1f} %" if share else ""
    return f"it was worse{by} and is no longer declared"


@SENTENCES.add("pairs accepted-tonight")
def pairs_accepted_tonight(base: str) -> str:
    return f"an accepted change begins tonight ({base})"


@SENTENCES.add("pairs same-files")
def pairs_same_files(base: str) -> str:
    return f"nothing that it loads or reads was changed since the last good night ({base})"


@SENTENCES.add("pairs same-code")
def pairs_same_code(base: str) -> str:
    return f"nothing was committed since the last good night ({base})"


@SENTENCES.add("pairs lost-commit")
def pairs_lost_commit(commit: str) -> str:
    return f"this clone does not have the commit {commit}"


@SENTENCES.add("pairs few-pairs")
def pairs_few_pairs(pairs: float, seconds: float) -> str:
    fit = count_of(pairs, "pair fits", "pairs fit")
    return f"only {fit} into the budget of {seconds:.0f} s, and at least 4 are needed"


@SENTENCES.add("uncounted unknown")
def uncounted_unknown(what: str) -> str:
    return f"{what} of the base are not known: the past nights decide"


@SENTENCES.add("uncounted scatters")
def uncounted_scatters(apart: float, what: str) -> str:
    return f"runs of one commit differ by {percent(apart)} in {what}: the past nights decide, not the base"


@SENTENCES.add("uncounted scatters-at-0")
def uncounted_scatters_at_0(apart: float, what: str) -> str:
    return (
        f"runs of one commit differ by {format_figures(apart)} in {what}: the past nights decide, not "
        "the base"
    )


@SENTENCES.add("uncounted absent")
def uncounted_absent(what: str, name: str) -> str:
    return f"{what} was not measured: its pass, {name}, did not run or had no result (passes:, depth:)"


@SENTENCES.add("uncounted failed")
def uncounted_failed(what: str, parts: Parts) -> str:
    return f"{what} was not counted: {first_line(parts.first)}"


@SENTENCES.add("uncounted budget-spent")
def uncounted_budget_spent(what: str) -> str:
    return f"{what} was not counted: the budget is used up"


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


@SENTENCES.add("ended not-whole")
def ended_not_whole(state: str) -> str:
    return f"its run was {state}"


@SENTENCES.add("run-ended")
def run_ended(state: str) -> str:
    return f"the run was {state}"


@SENTENCES.add("too-throttled")
def too_throttled(thrown: float, left: float, names: str) -> str:
    return f"throttled: {count_of(thrown, 'sample')} discarded, {left:.0f} left ({names})"


@SENTENCES.add("always-throttled")
def always_throttled(names: str) -> str:
    return f"throttled the whole time ({names})"


@SENTENCES.add("runs-elsewhere")
def runs_elsewhere(place: str) -> str:
    return f"it runs on {place}, but versions can be compared only on this machine"


@SENTENCES.add("not-in-base")
def not_in_base(base: str, file: str) -> str:
    return f"{base} has no {file}"
