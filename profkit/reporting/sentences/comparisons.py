"""Sentences about the outcome of a comparison: why it is so, how sure, and what would decide it."""

from __future__ import annotations

from profkit.core.formatting import format_figures, format_quantity
from profkit.reporting.sentences.formats import (
    after_colon,
    and_more,
    and_more_are,
    count_of,
    first_line,
    more_of,
    percent,
    signed_percent,
    smallest_change,
)
from profkit.reporting.sentences.table import Movement, Parts, Quantity, SentenceTable, Subject, TextWithNames

SENTENCES = SentenceTable(
    {
        # why an outcome is what it is
        "one-run": "No change: both are the same run.",
        "no-case": "Cannot decide: no case was timed in both sweeps.",
        "no-test-in-common": "There is nothing to compare: the two evaluations have no test in common.",
        # what an interval does not know
        "one-process": "only one process each, so the difference between processes is assumed",
        "no-ratio-interval": "no confidence interval: there are too few samples, or the clock is too coarse",
        "unknown-noise": "only one value each, and it is not known how much such values vary",
        # what would decide it
        "sample-longer": "profile both again with a larger --sampling, on a quiet machine",
        "more-processes": "profile both again with --depth full: several processes show how much they differ",
        "in-turns": "alternate runs of both programs on one machine: profkit compare --a COMMAND --b COMMAND",
        "force": "--force compares them anyway",
        "force-other-work": (
            "--a COMMAND --b COMMAND alternates runs of both; --force compares these numbers although "
            "they are of different work"
        ),
        "larger-budget": (
            "run both again with a larger --budget, on a machine that nobody else uses; or ignore "
            "smaller changes: --floor 10%"
        ),
        "resume-sweep": "the candidate shows why they have no time; run these cases again",
        "same-operations": "evaluate the same operations in both",
        # notes of a comparison
        "nothing-sampled": (
            "No time was sampled in both runs: single values are compared, assuming the usual noise."
        ),
        "counts-no-tool": (
            "Instructions were not counted: neither the processor's counters nor valgrind work here."
        ),
        "search-interrupted": "Interrupted during the search for the reason; the times above are complete.",
    }
)
SENTENCES.add_each(
    TextWithNames,
    {
        # why an outcome is what it is
        "kernels-open": (
            "Cannot decide: the difference of the {what}s is no larger than between two traces of the same "
            "program."
        ),
        "kernels-same": "No change: every {what} takes the same time.",
        "refused": "They must not be compared: {runs}.",
        # what would decide it
        "accept": "--metric {metric} accepts the improvement",
        # notes of a comparison
        "interrupted": "The {side} was interrupted: what was measured before is compared.",
        "dirty": "The {side} had uncommitted changes.",
        "other-devices": "Speed-ups are not compared: {before} against {after}; --force compares them.",
        "not-in-both": "not in both versions, so not compared: {names}",
        "counts-failed": "Instructions were not counted: {message} under {tool}.",
        "calls-told": "The numbers of calls already show the reason, so {passes} were skipped.",
        "no-time-left": "No time was left for {passes}: a larger --budget leaves more, up to 60 s.",
    },
)


# ---------------------------------------------------------------- why an outcome is what it is


@SENTENCES.add("worse")
def worse(movement: Movement, more: float) -> str:
    return f"Worse: {movement}{more_of(more, 'is worse', 'are worse')}."


@SENTENCES.add("better")
def better(movement: Movement, more: float) -> str:
    return f"Better: {movement}{more_of(more, 'is better', 'are better')}."


@SENTENCES.add("same")
def no_change(subject: Subject, more: float, detectable: float) -> str:
    return f"No change: {subject}{and_more_are(more)} the same{smallest_change(detectable)}."


@SENTENCES.add("same-but")
def same_but(subject: Subject, more: float, detectable: float) -> str:
    return f"{subject}{and_more_are(more)} the same{smallest_change(detectable)}, but not everything is."


@SENTENCES.add("open")
def cannot_decide(subject: Subject, reason: str = "") -> str:
    return f"Cannot decide {subject}{after_colon(reason)}."


@SENTENCES.add("collapsed")
def collapsed(subject: Subject, before: Quantity, after: Quantity) -> str:
    return f"{subject} fell from {before} to {after}: did it do the work at all?"


@SENTENCES.add("kernels-slower")
def kernels_slower(count: float, what: str) -> str:
    return f"{count_of(count, what)} became slower."


@SENTENCES.add("kernels-faster")
def kernels_faster(count: float, what: str) -> str:
    return f"{count_of(count, what)} became faster."


@SENTENCES.add("kernels-replaced")
def kernels_replaced(count: float, what: str) -> str:
    return f"{count_of(count, what)} appeared or vanished."


@SENTENCES.add("nothing-differs")
def nothing_differs(files: float) -> str:
    return f"No change: {count_of(files, 'file')} of the repository loaded or read, all the same in both."


@SENTENCES.add("nothing-in-common")
def nothing_in_common(metrics: str) -> str:
    which = f": not both have {metrics}" if metrics else ""
    return f"There is nothing to compare: the two runs have no metric in common{which}."


@SENTENCES.add("few-pairs")
def few_pairs(seconds: float, pairs: float, least: float) -> str:
    return f"Too few pairs in {seconds:.1f} s: {pairs:g} of at least {least:g}."


@SENTENCES.add("controls-changed")
def controls_changed(name: str, more: float, share: float) -> str:
    return (
        f"Cannot decide about the code: {name}{and_more(more)}, of the same version in both, "
        f"changed by {signed_percent(share)}: the machine changed."
    )


@SENTENCES.add("lost-cases")
def lost_cases(count: float, first: str, more: float) -> str:
    cases = count_of(count, "case of the baseline has", "cases of the baseline have")
    return f"{cases} no time in the candidate: {first}{and_more(more)}."


@SENTENCES.add("means-same")
def means_same(count: float, detectable: float) -> str:
    means = count_of(count, "mean over all shapes is", "means over all shapes are")
    return f"No change: {means} the same{smallest_change(detectable)}."


@SENTENCES.add("lost-tests")
def lost_tests(count: float, first: str, more: float) -> str:
    tests = count_of(count, "test that passed in the baseline is", "tests that passed in the baseline are")
    return f"{tests} not decided in the candidate: {first}{and_more(more)}."


@SENTENCES.add("tests-broken")
def tests_broken(operation: str, broken: float, tests: str, more: float, mended: float) -> str:
    of = f"{operation}: " if operation else ""
    others = f"; {count_of(mended, 'test')} failed before and passed now" if mended else ""
    return f"{of}{count_of(broken, 'test')} passed before and failed now: {tests}{and_more(more)}{others}."


@SENTENCES.add("tests-mended")
def tests_mended(operation: str, mended: float) -> str:
    of = f"{operation}: " if operation else ""
    return f"{of}{count_of(mended, 'test')} failed before and passed now."


# ---------------------------------------------------------------- what an interval does not know


@SENTENCES.add("correlated")
def correlated(independent: float) -> str:
    count = count_of(independent, "independent one")
    return f"neighbouring samples are correlated: they count as {count}"


@SENTENCES.add("clock")
def clock(before: float, after: float, cycles: float) -> str:
    return (
        f"the clock went from {format_quantity(before, 'Hz')} to {format_quantity(after, 'Hz')}; in "
        f"cycles the difference is {signed_percent(cycles)}"
    )


@SENTENCES.add("reference-loop")
def reference_loop(share: float, side: str) -> str:
    return f"a reference loop of the same arithmetic took {percent(share)} longer in the {side}"


@SENTENCES.add("guest")
def guest(virtual: str, factor: float) -> str:
    apart = f"a factor of {factor:.2g}" if factor >= 1.5 else f"{format_figures(100 * (factor - 1))} %"
    return f"two equal runs on this kind of machine ({virtual}) are assumed to differ by up to {apart}"


@SENTENCES.add("lost")
def stolen_time(stolen: float, side: str, waited: float) -> str:
    return (
        f"other guests of the hypervisor took {percent(stolen)} of the time of the {side}, and for "
        f"{percent(waited)} it waited for a core"
    )


@SENTENCES.add("settled-by-instructions")
def settled_by_instructions(share: float, tool: str) -> str:
    return f"it executes {signed_percent(share)} instructions, which decides the comparison ({tool})"


# ---------------------------------------------------------------- what would decide it


@SENTENCES.add("budget")
def budget(seconds: float) -> str:
    return f"--budget {seconds:.0f}"


@SENTENCES.add("budget-or-floor")
def budget_or_floor(seconds: float, floor: float) -> str:
    return f"--budget {seconds:.0f}, or --floor {100 * floor:g}%"


@SENTENCES.add("floor")
def smaller_floor(floor: float) -> str:
    return f"a quiet machine, or --floor {100 * floor:g}%: more time is unlikely to decide it"


# ---------------------------------------------------------------- notes of a comparison


@SENTENCES.add("counts-too-long")
def counts_too_long(seconds: float, tool: str) -> str:
    return (
        f"Instructions were not counted: that takes about {seconds:.0f} s under {tool}, more than was "
        "left of the budget."
    )


@SENTENCES.add("counts-scatter")
def counts_scatter(apart: float, tool: str) -> str:
    return f"The instruction counts cannot decide: those of equal runs differ by {percent(apart)} ({tool})."


@SENTENCES.add("failed-profiled")
def failed_profiled(parts: Parts) -> str:
    return f"A version failed under the profilers: {first_line(parts.first)}."
