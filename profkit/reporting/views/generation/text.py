"""What is said of a generation: how many operations have a kernel, what it cost, why an operation ended."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from profkit.analysis.generation import (
    FeedbackOutcome,
    GenerationScores,
    Spending,
    generation_scores,
    kept_attempt,
    spending_of,
)
from profkit.core.formatting import format_percent, joined, plural
from profkit.core.types import (
    Attempt,
    AttemptStatus,
    GenerationDocument,
    Insight,
    OperationAttempts,
    StopReason,
)
from profkit.reporting.view import Status
from profkit.reporting.views.cases import format_duration, speedup_text
from profkit.reporting.views.evaluation.text import WORDS

STOPPED: Mapping[StopReason, str] = {
    "bound": "at the hardware's bound",
    "correct": "correct",
    "reached": "faster than PyTorch",
    "attempts": "no attempts left",
    "repeated": "the same code again",
    "budget": "budget spent",
    "failed": "model cannot be asked",
    "interrupted": "interrupted",
    "": "not ended",
}
SIGNS: Mapping[AttemptStatus, Status] = {
    "passed": Status.PASS,
    "skipped": Status.NONE,
    "not-run": Status.UNKNOWN,
    "repeated": Status.NONE,
    "lost": Status.UNKNOWN,
    "no-answer": Status.UNKNOWN,
}
OUTCOMES: Mapping[FeedbackOutcome, str] = {
    "solved": "correct now",
    "faster": "faster",
    "closer": "more tests pass",
    "undecided": "speed not decided",
    "slower": "slower",
    "broken": "broken",
    "repeated": "same code again",
    "failing": "still not correct",
}
OUTCOME_SIGNS: Mapping[FeedbackOutcome, Status] = {
    "solved": Status.PASS,
    "faster": Status.BETTER,
    "closer": Status.CHANGED,
    "slower": Status.FAIL,
    "broken": Status.FAIL,
}


def sign_of(attempt: Attempt) -> Status:
    """How an attempt stands."""
    return SIGNS.get(attempt.status, Status.FAIL)


# ---------------------------------------------------------------- the whole


def title(document: GenerationDocument) -> str:
    """`Generation of triton kernels by a-model-5 on NVIDIA H100`."""
    device = f" on {document.device}" if document.device else ""
    language = f"{document.language} " if document.language else ""
    return f"Generation of {language}kernels by {document.model or document.provider}{device}"


def asked_model(document: GenerationDocument) -> str:
    """`a-model-5 (anthropic)`; with the server where that is not the provider's own."""
    server = f", {document.server}" if document.server else ""
    return f"{document.model} ({document.provider}{server})" if document.model else document.provider + server


def head_line(document: GenerationDocument, scores: GenerationScores | None = None) -> str:
    """`3 of 4 operations have a correct kernel, 2 faster than PyTorch; 14 attempts, 31,000 tokens, 4.1 min`."""
    scores = generation_scores(document) if scores is None else scores
    if not scores.operations:
        return "No operation was to be generated"
    operations = plural(scores.operations, "operation")
    have = "has" if scores.operations == 1 or scores.solved == 1 else "have"
    line = f"{scores.solved} of {operations} {have} a correct kernel"
    if scores.words:
        line += f", {scores.words.get('FASTER', 0)} faster than PyTorch"
    elif scores.solved:
        line += ", none was timed"
    cost = spending_line(whole_spending(document))
    duration = f", {format_duration(document.seconds)}" if document.seconds else ""
    return f"{line}; {cost}{duration}"


def whole_spending(document: GenerationDocument) -> Spending:
    """What all attempts cost; tokens as the document has them."""
    spent = spending_of([attempt for operation in document.operations for attempt in operation.attempts])
    known = document.input_tokens or document.output_tokens
    return replace(
        spent,
        input_tokens=document.input_tokens if known else spent.input_tokens,
        output_tokens=document.output_tokens if known else spent.output_tokens,
    )


def spending_line(spent: Spending) -> str:
    """`14 attempts, 31,000 tokens`."""
    tokens = tokens_of(spent)
    attempts = plural(spent.attempts, "attempt")
    return attempts if tokens is None else f"{attempts}, {tokens:,} {'token' if tokens == 1 else 'tokens'}"


def tokens_of(spent: Spending) -> int | None:
    """In and out together; None where neither is known."""
    if spent.input_tokens is None and spent.output_tokens is None:
        return None
    return (spent.input_tokens or 0) + (spent.output_tokens or 0)


def cost_line(whole: Spending) -> str:
    """Tokens of the whole."""
    if tokens_of(whole) is None:
        return "tokens are not known"
    return f"{whole.input_tokens or 0:,} tokens in, {whole.output_tokens or 0:,} out"


def stop_text(operation: OperationAttempts, document: GenerationDocument) -> str:
    """Why an operation has no further attempt, with what is known of it."""
    words = STOPPED[operation.stopped]
    if operation.stopped == "attempts":
        words = f"all {document.limits.attempts} attempts made"
    return f"{words}: {operation.reason}" if operation.reason else words


def counted_words(counts: Iterable[tuple[int, str]]) -> str:
    """`no attempts left (2), interrupted (1)`: of words that read badly after a number."""
    return ", ".join(f"{words} ({number})" for number, words in counts if number)


def words_of(scores: GenerationScores) -> str:
    """`1 faster, 1 the same`, of the kept kernels."""
    counts = [f"{scores.words[word]} {text}" for word, text in WORDS.items() if scores.words.get(word, 0)]
    return joined(counts)


# ---------------------------------------------------------------- one attempt, one insight


def attempt_speed(attempt: Attempt | None) -> str:
    """`1.64 x (1.59-1.69, FASTER)`; `-` where it is not correct or was not timed."""
    return speedup_text(attempt.speedup) if attempt is not None else "-"


def tests_text(attempt: Attempt) -> str:
    """`4 of 6`, the tests that passed; nothing where none decided anything."""
    return f"{attempt.passed} of {attempt.tests}" if attempt.tests else ""


def insight_text(insight: Insight) -> str:
    """The change, with the most that it can win."""
    gain = insight.gain
    at_most = f" (at most {format_percent(100 * gain.at_most)} % of {gain.of})" if gain is not None else ""
    return insight.title + at_most


def last_failure(operation: OperationAttempts) -> Attempt | None:
    """The last attempt that was tested and did not pass, else the last one; None without any."""
    tested = [attempt for attempt in operation.attempts if attempt.tests]
    return next(reversed(tested or operation.attempts), None)


# ---------------------------------------------------------------- lines to type


def evaluate_line(document: GenerationDocument, folder: Path | str) -> str:
    """The line that measures the kept kernels anew, on the tests of the same suite."""
    words = ["profkit", "evaluate", "--suite", document.suite]
    for option in ("--traces", "--device"):
        if option in document.command[:-1]:
            words += [option, document.command[document.command.index(option) + 1]]
    if document.dtype:
        words += ["--dtype", document.dtype]
    return shlex.join([*words, "--backend", "directory", "--kernels", str(folder)])


def resume_line(folder: Path | str) -> str:
    """The line that goes on with it."""
    return f"profkit generate --resume {shlex.quote(str(folder))}"


def continue_line(document: GenerationDocument, folder: Path | str) -> str | None:
    """The line that goes on: with what is left, with twice the budget that is spent, or with twice the attempts for
    what has no correct kernel. None where there is nothing to go on with."""
    ends = {operation.stopped for operation in document.operations}
    limits, line = document.limits, resume_line(folder)
    if not document.complete or "failed" in ends:
        return line
    if "budget" in ends and limits.tokens is not None:
        return f"{line} --max-tokens {2 * limits.tokens}"
    unsolved = [one for one in document.operations if kept_attempt(one) is None]
    if any(operation.stopped == "attempts" for operation in unsolved):
        return f"{line} --max-attempts {2 * limits.attempts}"
    return None
