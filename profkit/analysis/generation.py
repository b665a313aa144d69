"""What follows from the attempts of a generation: which kernel is kept, how many operations are solved.

Pure functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from profkit.analysis.evaluation.scores import MeanSpeedup, mean_of_speedups
from profkit.analysis.evaluation.witnesses import DECOY_SHARE
from profkit.core.types import (
    Attempt,
    AttemptStatus,
    GenerationDocument,
    OperationAttempts,
    SpeedWord,
    StopReason,
)

MIN_GAIN = 0.05  # of a later attempt over the one that is kept


# ---------------------------------------------------------------- which is kept


def is_correct(attempt: Attempt) -> bool:
    """Return whether it is a kernel that passed every test that counts."""
    return attempt.status == "passed"


def best_attempt(attempts: Iterable[Attempt]) -> Attempt | None:
    """Return the kernel that is kept; None if none is correct.

    The fastest correct one by its median; a later one must be faster by `MIN_GAIN`, since the largest of several
    measurements is too large. Intervals do not decide: on a busy machine all of them overlap, and the slower kernel is
    not the better guess. One that was timed goes before one that was not.
    """
    kept: Attempt | None = None
    for attempt in sorted(filter(is_correct, attempts), key=lambda each: each.number):
        new, old = attempt.speedup, kept.speedup if kept is not None else None
        if kept is None or (new is not None and (old is None or new.median > old.median * (1 + MIN_GAIN))):
            kept = attempt
    return kept


def kept_attempt(operation: OperationAttempts) -> Attempt | None:
    """Return the attempt that the document says is kept; where it says nothing, `best_attempt`."""
    if operation.best is None:
        return best_attempt(operation.attempts)
    return next((each for each in operation.attempts if each.number == operation.best), None)


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
    # operations whose kept kernel only calls those of others, on a GPU
    without_own_kernels: tuple[str, ...] = ()


def generation_scores(document: GenerationDocument) -> GenerationScores:
    """Return the scores of a generation."""
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
            and attempt.own_share < DECOY_SHARE
        ),
    )
