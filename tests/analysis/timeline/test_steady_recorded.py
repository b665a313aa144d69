"""What repeats in programs that mark nothing, as nsys saw them on an H200 (torch 2.11, Triton 3.6).

Recorded are the launches in their order: which configuration, its mean time, and where code was loaded.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from profkit.analysis.timeline.steady import SteadyPart, fills_memory, find_steady
from tests.conftest import ROOT

FILE = ROOT / "tests" / "data" / "cuda" / "timeline" / "unmarked_sequences.json.gz"


def recorded(title: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(FILE.read_bytes()))[title]
    return found


def steady_of(program: dict[str, Any]) -> SteadyPart:
    filling = [fills_memory(name) for name in program["kernels"]]
    found = find_steady(program["sequence"], program["mean_ns"], filling, program["loads"])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("title", "repeats"),
    [
        # 30 steps; the first one loads 12 libraries. Before them 12,000 launches of six candidates and of the
        # kernel that flushes the cache, which took more GPU time than the steps.
        ("step with autotune", 29),
        ("autotune", 19),  # 20 calls, the first of which is the last of the tuning and compiles
        (
            "training with evaluation",
            44,
        ),  # 3 epochs of 15 steps, 4 evaluations after each; the first step loads
        ("loop", 24),  # 25 times, the first loads
    ],
)
def test_iterations_are_counted_without_the_one_that_loads_its_code(title: str, repeats: int) -> None:
    assert steady_of(recorded(title)).repeats == repeats


def test_nothing_of_the_tuning_is_left_and_all_of_the_steps() -> None:
    program = recorded("step with autotune")
    found = steady_of(program)
    sequence, kernels = program["sequence"], program["kernels"]
    assert found.last == len(sequence)
    inside = sequence[found.first : found.last]
    assert len(inside) == 29 * 18
    assert all(inside.count(kind) % 29 == 0 for kind in set(inside))
    assert len({kind for kind in inside if kernels[kind] == "scale_add"}) == 1  # the winner of six
    outside = sequence[: found.first]
    assert not [kind for kind in inside if "FillFunctor<int>" in kernels[kind]]  # Triton's flush
    assert sum(1 for kind in outside if kernels[kind] == "scale_add") > 6000


def test_evaluations_in_between_are_part_of_the_training() -> None:
    program = recorded("training with evaluation")
    found = steady_of(program)
    assert found.last == len(program["sequence"])
    assert found.first < len(program["sequence"]) / 20


def test_without_the_loads_the_first_iteration_counts_too() -> None:
    program = {**recorded("step with autotune"), "loads": []}
    assert steady_of(program).repeats == 30
