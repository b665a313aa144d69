"""A comparison for a CI system: a test case for each metric that decides, an annotation for what is not the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from profkit.core.types import Change, Comparison, ComparisonOutcome
from profkit.reporting.forges import Annotation, Annotations, Case, Cases, CaseState
from profkit.reporting.view import Block, plain_text
from profkit.reporting.views.comparison.paired import blamed_text
from profkit.reporting.views.comparison.words import (
    OUTCOME_WORDS,
    cause_text,
    change_text,
    fact_text,
    metric_name,
    seen_text,
    verdict_text,
    why_text,
)

_STATES: dict[ComparisonOutcome, CaseState] = {
    "regressed": "failure",
    "refused": "error",
    "ambiguous": "unknown",
    "changed": "skipped",
    "improved": "passed",
    "same": "passed",
}
_LEVELS: dict[ComparisonOutcome, Literal["error", "warning", "notice"]] = {
    "regressed": "error",
    "refused": "warning",
    "ambiguous": "warning",
    "improved": "notice",
}
_MOST_CAUSES = 3


def machine_blocks(group: str, compared: Sequence[tuple[str, Comparison]]) -> Iterator[Block]:
    """A suite of test cases for each named comparison, and all annotations."""
    for name, comparison in compared:
        yield _cases(group, name, comparison)
    rows = [row for name, comparison in compared for row in _annotations(name, comparison)]
    yield Annotations(tuple(rows))


def why_lines(comparison: Comparison) -> list[str]:
    """The likeliest lines and causes, a sentence each, the best known first, and nothing twice."""
    blamed = comparison.blamed[:_MOST_CAUSES]
    told = tuple(fact_text(line.why) for line in blamed)
    left = [text for text in map(cause_text, comparison.causes) if not text.startswith(told)]
    return [plain_text(blamed_text(line)) for line in blamed] + left[:_MOST_CAUSES]


def _cases(group: str, name: str, comparison: Comparison) -> Cases:
    title = name or f"{comparison.baseline.name} and {comparison.candidate.name}"
    whole = f"{group}.{name}" if name else group
    cases = [_case(whole, change) for change in comparison.changes if change.role == "decides"]
    state = _STATES[comparison.outcome]
    if not any(case.state == state for case in cases):
        reason = why_text(comparison)
        fix = f"\nfix: {fact_text(comparison.fix)}" if comparison.fix else ""
        cases.insert(0, Case(whole, "result", state, reason, reason + fix, kind=comparison.outcome))
    seconds = comparison.pairing.seconds if comparison.pairing is not None else 0.0
    facts: list[tuple[str, str]] = [("outcome", comparison.outcome)]
    for side, what in ((comparison.baseline, "baseline"), (comparison.candidate, "candidate")):
        facts.append((what, side.commit or side.name))
    output = "\n".join(
        filter(None, [why_text(comparison), seen_text(comparison.changes), *why_lines(comparison)])
    )
    return Cases(title, tuple(cases), comparison.candidate.started, seconds, tuple(facts), output)


def _case(group: str, change: Change) -> Case:
    state: CaseState = "passed"
    if change.word == "ambiguous":
        state = "unknown"
    elif change.word == "different" and change.course == "worse":
        state = "failure"
    return Case(group, metric_name(change), state, change_text(change), kind=change.word)


def _annotations(name: str, comparison: Comparison) -> Iterator[Annotation]:
    """One for what somebody must look at, beside the likeliest line where there is one."""
    level = _LEVELS.get(comparison.outcome)
    if level is None:
        return
    word = OUTCOME_WORDS[comparison.outcome].lower()
    title = f"{name}: {word}" if name else word
    lines = [verdict_text(comparison), seen_text(comparison.changes), *why_lines(comparison)]
    lines += [f"fix: {fact_text(comparison.fix)}"] if comparison.fix else []
    message = "\n".join(" ".join(line.split()) for line in lines if line)
    first = comparison.blamed[0] if comparison.blamed and comparison.outcome == "regressed" else None
    if first is None:
        yield Annotation(level, title, message)
    else:
        yield Annotation(level, title, message, first.path, first.line)
