"""A night as JUnit XML: a suite for each workload, a case for each metric and each target that was asked for.

What regressed is a failure, what was not measured or is not valid an error, what could not be decided is skipped with
its reason; a watched metric that moved is skipped too, since it fails nothing. The code is the case's type.
"""

from __future__ import annotations

from profkit.core.types import MetricOutcome, Night, Outcome, Verdict, WorkloadOutcome
from profkit.reporting.junit_text import Case, CaseState, Suite, junit_text
from profkit.reporting.night_words import (
    calibration_line,
    causes,
    chance_line,
    change_of,
    epochs,
    name_of,
    points,
    seen,
)

STATES: dict[Outcome, CaseState] = {
    "pass": "passed",
    "improved": "passed",
    "new": "passed",
    "regressed": "failure",
    "missing": "error",
    "invalid": "error",
    "ambiguous": "skipped",
}


def render(night: Night, *, strict: bool = False) -> str:
    """The night as one XML document. With `strict` what could not be decided is an error."""
    return junit_text([_suite(night, workload, strict) for workload in night.workloads])


def _suite(night: Night, workload: WorkloadOutcome, strict: bool) -> Suite:
    group = f"{night.name}.{workload.name}"
    cases = [_case(group, metric, strict) for metric in workload.metrics]
    cases += [_target(group, verdict, strict) for verdict in workload.verdicts]
    if not any(_matches(case, workload, strict) for case in cases):
        cases.insert(0, _whole(group, workload, strict))
    facts = {"night": night.id, "outcome": workload.outcome, "code": workload.code}
    facts |= {"commit": night.commit} if night.commit else {}
    facts |= {"run": workload.run} if workload.run else {}
    lines = [workload.reason, *causes(workload), *epochs(workload), *workload.notes]
    lines += [f"{name_of(m)}: could have shown a change of {seen(m)}" for m in workload.metrics]
    lines += [line for line in (chance_line(night), calibration_line(night)) if line is not None]
    return Suite(
        f"{workload.name} on {workload.backend}",
        cases,
        night.started,
        workload.seconds,
        facts,
        "\n".join(lines),
    )


def _matches(case: Case, workload: WorkloadOutcome, strict: bool) -> bool:
    """Whether this case says already what the workload as a whole came to."""
    return case.state == _state(workload.outcome, strict)


def _whole(group: str, workload: WorkloadOutcome, strict: bool) -> Case:
    fix = f"\nfix: {workload.fix}" if workload.fix else ""
    state = _state(workload.outcome, strict)
    detail = f"{workload.reason}{fix}"
    return Case(group, "workload", state, workload.reason, detail, workload.seconds, workload.code)


def _state(outcome: Outcome, strict: bool) -> CaseState:
    return "error" if strict and outcome == "ambiguous" else STATES[outcome]


def _case(group: str, metric: MetricOutcome, strict: bool) -> Case:
    state = _state(metric.outcome, strict)
    if not metric.gates and state != "passed":
        state = "skipped"
    change = change_of(metric)
    told = f"{change}: {metric.reason}" if change else metric.reason
    return Case(group, name_of(metric), state, told, "\n".join([told, *points(metric)]), kind=metric.code)


def _target(group: str, verdict: Verdict, strict: bool) -> Case:
    states: dict[str, CaseState] = {
        "pass": "passed",
        "fail": "failure",
        "unknown": "error" if strict else "skipped",
        "not-applicable": "skipped",
    }
    told = f"{verdict.reason} (target {verdict.threshold})"
    return Case(f"{group}.targets", verdict.target, states[verdict.verdict], told, kind=verdict.verdict)
