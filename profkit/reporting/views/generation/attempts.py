"""A generation attempt by attempt: each with its files, and what the feedback on it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from profkit.analysis.generation import (
    OUTCOMES as OUTCOME_ORDER,
)
from profkit.analysis.generation import (
    FeedbackEffect,
    FeedbackStep,
    feedback_effects,
    feedback_steps,
    is_correct,
    kept_attempt,
)
from profkit.core.formatting import joined, plural, shorten
from profkit.core.types import Attempt, GenerationDocument, OperationAttempts
from profkit.reporting.view import Block, Detail, Section, Span, Text, plain_text, soft, table
from profkit.reporting.view import joined as joined_text
from profkit.reporting.views.evaluation.text import percent, ratio
from profkit.reporting.views.generation.links import Linker
from profkit.reporting.views.generation.text import (
    OUTCOME_SIGNS,
    OUTCOMES,
    attempt_speed,
    counted_words,
    insight_text,
    sign_of,
    tests_text,
)

_MANY = 400  # rows of a page
_TOLD: Mapping[str, str] = {
    "insight": "speed and insights of a correct kernel",
    "passed": "speed of a correct kernel",
    "incorrect": "wrong results",
    "load-error": "it cannot be loaded",
    "crashed": "a crash",
    "timeout": "a time limit",
    "out-of-memory": "too little memory",
    "cheat": "a cheat",
    "no-code": "no code in the answer",
    "repeated": "the same code again",
}


def attempts_section(operations: Sequence[OperationAttempts], links: Linker) -> Iterator[Section]:
    """Every attempt with its files."""
    pairs = [(one, each) for one in operations for each in one.attempts]
    if not pairs:
        return
    columns: list[tuple[str, Callable[[OperationAttempts, Attempt], Text]]] = [
        ("Operation", lambda one, _: shorten(one.operation, 48)),
        ("Attempt", lambda one, each: f"{each.number}{' (kept)' if kept_attempt(one) == each else ''}"),
        ("Status", lambda _, each: Span(each.status, status=sign_of(each))),
        ("Passed", lambda _, each: tests_text(each) or "-"),
        ("Speed-up", lambda _, each: attempt_speed(each)),
        ("Bound", lambda _, each: percent(each.bound_share)),
        ("Own kernels", lambda _, each: percent(each.own_share)),
        ("Why, or what limits it", lambda _, each: shorten(each.reason or each.bottleneck or "", 160)),
        ("Files", links.files),
    ]
    body = _table_of_known(columns, pairs)
    headline = f"{plural(len(pairs), 'attempt')} with their files"
    yield Section("Attempts", (Detail((body,), (), "Attempts"),), headline, anchor="attempts", repeats=True)


def _table_of_known(
    columns: Sequence[tuple[str, Callable[..., Text]]], rows: Sequence[tuple[Any, ...]], title: str = ""
) -> Block:
    """A row for each, without the columns that know nothing of any."""
    shown = rows[:_MANY]
    cells = [(name, [cell(*row) for row in shown]) for name, cell in columns]
    known = [(name, own) for name, own in cells if any(plain_text(text) not in ("", "-") for text in own)]
    texts = list(zip(*(own for _, own in known), strict=True))
    names = [name for name, _ in known]
    return table(names, texts, words=len(names), title=title, left=len(rows) - len(shown))


# ---------------------------------------------------------------- feedback


def feedback_section(document: GenerationDocument, links: Linker) -> Iterator[Section]:
    """What became of each kind of feedback, and from each attempt to the next."""
    steps = feedback_steps(document)
    if not steps:
        return
    effects = feedback_effects(steps)
    kinds = table(
        ["What was told", "Times", "What became of it"],
        [
            (_TOLD.get(effect.told, effect.told), str(effect.steps), _effect_text(effect))
            for effect in effects
        ],
        words=3,
        title="By what was told",
    )
    one_by_one = Detail((_steps_table(steps, links),), (), "Feedback by feedback")
    yield Section("What each feedback changed", (kinds, one_by_one), feedback_line(steps), anchor="feedback")


def _effect_text(effect: FeedbackEffect) -> str:
    counts = [(effect.outcomes.get(outcome, 0), OUTCOMES[outcome]) for outcome in OUTCOME_ORDER]
    return counted_words(counts)


def feedback_line(steps: Sequence[FeedbackStep]) -> str:
    """`Of 10 feedbacks 2 led to a correct kernel and none to a faster one; 1 did harm.`"""
    counts = {outcome: sum(step.outcome == outcome for step in steps) for outcome in OUTCOME_ORDER}
    harm = counts["slower"] + counts["broken"]
    solved, faster = (counts[outcome] or "none" for outcome in ("solved", "faster"))
    parts = [f"{solved} led to a correct kernel", f"{faster} to a faster one"]
    line = f"Of {plural(len(steps), 'feedback')} {joined(parts)}"
    return f"{line}; {harm} did harm." if harm else f"{line}."


def _steps_table(steps: Sequence[FeedbackStep], links: Linker) -> Block:
    columns: list[tuple[str, Callable[[FeedbackStep], Text]]] = [
        ("Operation", lambda step: shorten(step.operation.operation, 48)),
        ("Attempts", lambda step: f"{step.before.number} to {step.after.number}"),
        ("Before", lambda step: _step_text(step.before)),
        ("After", lambda step: _step_text(step.after)),
        ("Changed", _changed_text),
        ("First insight that was told", _insights_text),
        (
            "Feedback",
            lambda step: links.span("feedback" if step.before.feedback else "-", step.before.feedback),
        ),
    ]
    return _table_of_known(columns, [(step,) for step in steps], "From each attempt to the next")


def _step_text(attempt: Attempt) -> Text:
    words = attempt_speed(attempt) if is_correct(attempt) and attempt.speedup is not None else ""
    tests = tests_text(attempt) if not is_correct(attempt) else ""
    return joined_text(Span(attempt.status, status=sign_of(attempt)), f" {words or tests}".rstrip())


def _changed_text(step: FeedbackStep) -> Text:
    word = Span(OUTCOMES[step.outcome], status=OUTCOME_SIGNS.get(step.outcome))
    return joined_text(word, f", {ratio(step.ratio)}" if step.ratio is not None else "")


def _insights_text(step: FeedbackStep) -> Text:
    if step.insight is None:
        return ""
    more = len(step.before.insights) - 1
    rest = soft(f" and {plural(more, 'more', 'more')}") if more else ""
    return joined_text(shorten(insight_text(step.insight), 160), rest)
