"""What follows from the attempts of a generation: which kernel is kept, how many operations are solved after how many
attempts, what each feedback changed, what it cost. Pure functions.

Attempts are not independent: each knows the feedback of those before it. So "solved within k" is the share of the
operations that had a correct kernel after k attempts, and not the estimate of pass@k from independent samples.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from profkit.analysis.evaluation.feedback import NO_OWN_KERNEL
from profkit.analysis.evaluation.scores import FastPoint
from profkit.analysis.evaluation.speedups import MeanSpeedup, least_speedup, mean_of_speedups
from profkit.core.types import (
    Attempt,
    AttemptStatus,
    GenerationDocument,
    Insight,
    OperationAttempts,
    Speedup,
    SpeedWord,
    StopReason,
)

_Number = TypeVar("_Number", int, float)
PLACES = (0.5, 1.0, 1.2, 1.5, 2.0)  # of p in fast_p
LEAST_GAIN = 0.05  # of a later attempt over the one that is kept


# ---------------------------------------------------------------- which is kept


def is_correct(attempt: Attempt) -> bool:
    """Whether it is a kernel that passed every test that counts."""
    return attempt.status == "passed"


def is_surely_faster(one: Speedup, other: Speedup) -> bool:
    """Whether the interval of `one` lies above that of `other`."""
    return one.low > other.high


def best_attempt(attempts: Iterable[Attempt]) -> Attempt | None:
    """The kernel that is kept; None where none is correct.

    The fastest correct one by its median; a later one must be faster by `LEAST_GAIN`, since the largest of several
    measurements is too large. Intervals do not decide: on a busy machine all of them overlap, and the slower kernel is
    not the better guess. One that was timed goes before one that was not.
    """
    kept: Attempt | None = None
    for attempt in sorted(filter(is_correct, attempts), key=lambda each: each.number):
        if kept is None or (attempt.speedup is not None and _is_better(attempt.speedup, kept.speedup)):
            kept = attempt
    return kept


def _is_better(speedup: Speedup, kept: Speedup | None) -> bool:
    return kept is None or speedup.median > kept.median * (1 + LEAST_GAIN)


def kept_attempt(operation: OperationAttempts) -> Attempt | None:
    """The attempt that the document says is kept; where it says nothing, `best_attempt`."""
    if operation.best is None:
        return best_attempt(operation.attempts)
    return next((each for each in operation.attempts if each.number == operation.best), None)


# ---------------------------------------------------------------- by number of attempts


@dataclass(frozen=True)
class WithinAttempts:
    """What the first `attempts` of each operation reach, over all operations, also those that had fewer.

    `fast`: the share that is correct and whose kept kernel is surely more than p times as fast as PyTorch (see
    `least_speedup`); empty where no attempt of the generation was timed. `geomean` is over the kept kernels that were
    timed.
    """

    attempts: int
    solved: int
    share: float
    fast: tuple[FastPoint, ...]
    geomean: MeanSpeedup | None


def within_attempts(document: GenerationDocument) -> tuple[WithinAttempts, ...]:
    """For 1, 2, ... up to the most attempts that an operation had; empty without any."""
    numbers = [attempt.number for operation in document.operations for attempt in operation.attempts]
    timed = any(
        attempt.speedup is not None for operation in document.operations for attempt in operation.attempts
    )
    return tuple(_within(document, most, timed=timed) for most in range(1, max(numbers, default=0) + 1))


def _within(document: GenerationDocument, most: int, *, timed: bool) -> WithinAttempts:
    kept = [
        best_attempt(attempt for attempt in operation.attempts if attempt.number <= most)
        for operation in document.operations
    ]
    correct = [attempt for attempt in kept if attempt is not None]
    speedups = [attempt.speedup for attempt in correct if attempt.speedup is not None]
    operations = len(document.operations)
    fast = [FastPoint(p, sum(least_speedup(one) > p for one in speedups) / operations) for p in PLACES]
    return WithinAttempts(
        most,
        len(correct),
        len(correct) / operations,
        tuple(fast) if timed else (),
        mean_of_speedups(speedups, document.floor),
    )


# ---------------------------------------------------------------- the whole


@dataclass(frozen=True)
class GenerationScores:
    """The numbers of a generation. What is None has nothing behind it.

    `geomean` is over the kept kernels that were timed, `geomean_with_fallback` over all operations, where those that
    have no correct kernel count as 1.0: PyTorch does them. `words`: of the kept kernels, against PyTorch.
    """

    operations: int
    solved: int
    words: Mapping[SpeedWord, int]
    geomean: MeanSpeedup | None
    geomean_with_fallback: MeanSpeedup | None
    attempts: int
    statuses: Mapping[AttemptStatus, int]
    stopped: Mapping[StopReason, int]
    without_own_kernels: tuple[
        str, ...
    ] = ()  # operations whose kept kernel only calls those of others, on a GPU


def generation_scores(document: GenerationDocument) -> GenerationScores:
    """The scores of a generation."""
    kept = [attempt for operation in document.operations if (attempt := kept_attempt(operation)) is not None]
    speedups = [attempt.speedup for attempt in kept if attempt.speedup is not None]
    attempts = [attempt for operation in document.operations for attempt in operation.attempts]
    unsolved = len(document.operations) - len(kept)
    return GenerationScores(
        len(document.operations),
        len(kept),
        Counter(speedup.word for speedup in speedups),
        mean_of_speedups(speedups, document.floor),
        mean_of_speedups(speedups, document.floor, unchanged=unsolved),
        len(attempts),
        Counter(attempt.status for attempt in attempts),
        Counter(operation.stopped for operation in document.operations),
        tuple(
            operation.operation
            for operation in document.operations
            if (attempt := kept_attempt(operation)) is not None
            and attempt.own_share is not None
            and attempt.own_share < NO_OWN_KERNEL
        ),
    )


# ---------------------------------------------------------------- what each feedback changed

FeedbackOutcome = Literal[
    "solved",  # it was not correct, and is
    "faster",  # surely; both are correct
    "slower",
    "undecided",  # both are correct, and none is surely faster
    "broken",  # it was correct, and is not
    "closer",  # not correct yet, and a larger share of the tests passes
    "failing",  # not correct, as before
    "repeated",  # the same code once more
]
OUTCOMES: tuple[FeedbackOutcome, ...] = (
    "solved",
    "faster",
    "closer",
    "undecided",
    "slower",
    "broken",
    "repeated",
    "failing",
)


@dataclass(frozen=True)
class FeedbackStep:
    """From one attempt to the next of the same operation.

    `ratio` is the speed-up of the second over that of the first, None where not both have one. `insight` is the first
    of those that the feedback held.
    """

    operation: OperationAttempts
    before: Attempt
    after: Attempt
    outcome: FeedbackOutcome
    ratio: float | None = None
    insight: Insight | None = None


def feedback_steps(document: GenerationDocument) -> tuple[FeedbackStep, ...]:
    """Every step, by operation."""
    steps = []
    for operation in document.operations:
        attempts = sorted(operation.attempts, key=lambda each: each.number)
        steps += [_feedback_step(operation, before, after) for before, after in itertools.pairwise(attempts)]
    return tuple(steps)


def _feedback_step(operation: OperationAttempts, before: Attempt, after: Attempt) -> FeedbackStep:
    first, second = before.speedup, after.speedup
    ratio = second.median / first.median if first is not None and second is not None else None
    insight = before.insights[0] if before.insights else None
    return FeedbackStep(operation, before, after, _outcome(before, after), ratio, insight)


def _outcome(before: Attempt, after: Attempt) -> FeedbackOutcome:
    if after.status == "repeated":
        return "repeated"
    if is_correct(before) != is_correct(after):
        return "solved" if is_correct(after) else "broken"
    if is_correct(after):
        if before.speedup is None or after.speedup is None:
            return "undecided"
        if is_surely_faster(after.speedup, before.speedup):
            return "faster"
        return "slower" if is_surely_faster(before.speedup, after.speedup) else "undecided"
    if after.status == "cheat":  # of which nobody knows how many tests it would pass
        return "failing"
    return "closer" if _passed_share(after) > _passed_share(before) else "failing"


def _passed_share(attempt: Attempt) -> float:
    return attempt.passed / attempt.tests if attempt.tests else 0.0


@dataclass(frozen=True)
class FeedbackEffect:
    """All steps after attempts of one kind: `told` is their status; of correct ones with an insight, `insight`."""

    told: str
    steps: int
    outcomes: Mapping[FeedbackOutcome, int]


def feedback_effects(steps: Iterable[FeedbackStep]) -> tuple[FeedbackEffect, ...]:
    """What became of each kind of feedback, the most frequent kind first."""
    kinds: dict[str, Counter[FeedbackOutcome]] = defaultdict(Counter)
    for step in steps:
        told = "insight" if is_correct(step.before) and step.insight is not None else step.before.status
        kinds[told][step.outcome] += 1
    effects = (FeedbackEffect(told, counts.total(), counts) for told, counts in kinds.items())
    return tuple(sorted(effects, key=lambda effect: -effect.steps))


# ---------------------------------------------------------------- what it cost


@dataclass(frozen=True)
class Spending:
    """What attempts cost. Seconds are sums: several operations at once spend more than passes.

    Each is a request to a model, with its `retries`. Tokens are None where nobody says.
    """

    attempts: int
    retries: int
    input_tokens: int | None
    output_tokens: int | None
    asking: float
    evaluating: float
    profiling: float


def spending_of(attempts: Sequence[Attempt]) -> Spending:
    """What these attempts cost together."""
    calls = [attempt.call for attempt in attempts]
    return Spending(
        len(attempts),
        sum(call.retries for call in calls),
        _sum_known([call.input_tokens for call in calls]),
        _sum_known([call.output_tokens for call in calls]),
        sum(call.seconds for call in calls),
        sum(attempt.evaluated_seconds for attempt in attempts),
        sum(attempt.profiled_seconds for attempt in attempts),
    )


def spending_by_attempt(document: GenerationDocument) -> Mapping[int, Spending]:
    """What the first attempts of all operations cost, the second ones, and so on."""
    groups: dict[int, list[Attempt]] = defaultdict(list)
    for operation in document.operations:
        for attempt in operation.attempts:
            groups[attempt.number].append(attempt)
    return {number: spending_of(groups[number]) for number in sorted(groups)}


def _sum_known(values: Sequence[int | None]) -> int | None:
    """Of those that are known; None of none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
