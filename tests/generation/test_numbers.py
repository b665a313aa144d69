"""What follows from attempts: which is kept, what is solved, what it cost."""

from __future__ import annotations

import pytest

from profkit.analysis.generation import (
    best_attempt,
    generation_scores,
)
from profkit.core.types import Attempt
from profkit.generation.loop import reason_to_stop
from tests.generation.documents import (
    correct,
    every_way,
    failed,
    generation,
    operation,
)


@pytest.mark.parametrize(
    ("attempts", "kept"),
    [
        ((), None),
        ((failed(1), failed(2, "cheat")), None),
        ((failed(1), correct(2, 0.5), failed(3)), 2),
        ((correct(1, 1.0), correct(2, 1.5)), 2),
        ((correct(1, 1.5), correct(2, 1.0)), 1),
        ((correct(1, 1.50, 0.05), correct(2, 1.52, 0.05)), 1),  # chance may tell them apart
        ((correct(1, 1.50, 0.05), correct(2, 1.55, 0.05), correct(3, 1.8, 0.05)), 3),
        ((correct(1, None), correct(2, None)), 1),
        ((correct(1, None), correct(2, 0.5)), 2),
        ((correct(1, 0.5), correct(2, None)), 1),
        ((correct(2, 1.5), correct(1, 1.5)), 1),  # whatever their order
    ],
)
def test_the_first_correct_attempt_is_kept_until_one_is_faster_by_a_twentieth(
    attempts: tuple[Attempt, ...], kept: int | None
) -> None:
    best = best_attempt(attempts)
    assert (best.number if best is not None else None) == kept


def test_a_kept_kernel_that_only_calls_others_is_named() -> None:
    own, others = correct(1, 1.5, own_share=0.9), correct(1, 1.0, own_share=0.0)
    document = generation(operation("relu.default", own), operation("mm.default", others))
    assert generation_scores(document).without_own_kernels == ("mm.default",)


def test_scores_count_pytorch_for_what_has_no_kernel() -> None:
    scores = generation_scores(every_way())
    assert (scores.operations, scores.solved, scores.attempts) == (4, 2, 14)
    assert scores.words == {"FASTER": 1, "SAME": 1}
    assert scores.geomean is not None
    assert scores.geomean_with_fallback is not None
    assert scores.geomean_with_fallback.value == pytest.approx((1.64 * 1.01) ** 0.25)
    assert scores.geomean_with_fallback.n == 4
    assert scores.statuses["incorrect"] == 2
    assert scores.stopped == {
        "attempts": 2,
        "bound": 1,
        "interrupted": 1,
    }
    assert generation_scores(generation()).geomean is None


@pytest.mark.parametrize(
    ("attempts", "reason"),
    [
        ([correct(1, None)], "correct"),  # nothing is timed
        ([correct(1, 1.5)], ""),
        ([correct(1, 2.4)], "bound"),
        ([correct(1, 0.357), correct(2, 0.4), correct(3, 0.5)], "attempts"),
        ([], ""),
    ],
)
def test_an_operation_ends_for_a_reason(attempts: list[Attempt], reason: str) -> None:
    assert reason_to_stop(attempts, 3) == reason
