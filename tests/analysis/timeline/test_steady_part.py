"""In a trace that marks nothing: what repeats is the workload, and what happens once is set-up.

Programs are written as words: one letter is one launch configuration. Weights are the ns of one launch.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from profkit.analysis.timeline.steady import (
    SteadyPart,
    fills_memory,
    find_repetitions,
    find_steady,
    trial_runs,
)


@dataclass(frozen=True)
class Program:
    """`steady` is what must be found of `setup + steady + after`; loads are positions in all of it."""

    setup: str
    steady: str
    repeats: int | None
    after: str = ""
    weights: dict[str, float] = field(default_factory=dict)
    filling: str = "rz"  # random numbers and zeros
    loads: Sequence[int] = ()


def steady_of(program: Program) -> SteadyPart | None:
    text = program.setup + program.steady + program.after
    names = sorted(set(text))
    sequence = [names.index(letter) for letter in text]
    weights = [program.weights.get(name, 10.0) for name in names]
    return find_steady(sequence, weights, [name in program.filling for name in names], program.loads)


def jittered(word: str, times: int, extra: str, every: int) -> str:
    """`word` again and again, with `extra` in the midst of every `every`th."""
    half = len(word) // 2
    return "".join(
        word[:half] + extra + word[half:] if n % every == every - 1 else word for n in range(times)
    )


STEP = "embqkvsopnfgh"  # a step in which nothing comes twice
LONG = STEP + "ABCDEFGHIJKLMNOPQRSTUVWXY"
LAYERS = "e" + "qksopn" * 12 + "lcd" + "QKSOPN" * 12 + "ua"  # forward, loss, backward, optimizer
TRIALS = "".join(f"{k}" + f"z{k}" * 5 + f"{k}" * 264 + f"z{k}" * 1000 for k in "123456")
PROGRAMS = {
    "a loop after initialisers": Program("rrrrr", STEP * 20, 20),
    "a loop of one kernel": Program("rab", "k" * 30, 30),
    "a loop of two equal kernels and one more": Program("rr", "ggs" * 20, 20),
    "layers in a step are no steps": Program("rrrr", LAYERS * 10, 10),
    "an initialiser that repeats": Program("r" * 200, STEP * 5, 5),
    "initialisers with tensors of their own": Program("rirjrl" * 3, "gs" * 40, 40),
    "Triton's trial runs, then twenty steps": Program("rr" + TRIALS, "3ab" * 20, 20),
    "trial runs that take far longer than the workload": Program(
        "rr" + TRIALS, "3g" * 20, 20, weights={str(k): 1000.0 for k in range(10)}
    ),
    "trial runs, then the winner alone": Program("rr" + TRIALS + "ab", "3" * 50, 50),
    "a check after the loop": Program("rr", STEP * 20, 20, after="xyw"),
    "a kernel of its own in every tenth step": Program("r", jittered(LONG, 50, "x", 10), 50),
    "a kernel of its own in every sixth step": Program("r", jittered(LONG, 60, "x", 6), 60),
    "eighty layers are no steps": Program("r", ("e" + "abcdefgh" * 80 + "nlst") * 8, 8),
    "gradients that are zeroed in each step": Program("rrr", "zabczdefz" * 20, 20),
    "a loop before it with kernels of its own": Program("r" + "fghij" * 20, "abcde" * 30, 30),
    "an evaluation after the training": Program("r", STEP * 30, 30, after=STEP[:5] * 40),
    "other steps behind those of the training": Program("r" + "abcdeABCDE" * 20, STEP * 20, 20),
    "a sweep over many loops is the workload": Program(
        "r", "".join(word * 20 for word in ("abcde", "fghij", "klmno")), 20
    ),
    "a little loop before it is set-up": Program("xy" * 6, STEP * 40, 40),
    "two steps are enough where they are long": Program("rrab", LAYERS * 2, 2),
    "the first step loads its kernels": Program("rr" + STEP, STEP * 9, 9, loads=[2, 4, 7, 12]),
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_the_workload_is_found_to_the_launch(title: str) -> None:
    program = PROGRAMS[title]
    found = steady_of(program)
    assert found is not None
    first = len(program.setup)
    assert (found.first, found.last) == (first, first + len(program.steady))
    assert found.repeats == program.repeats


@pytest.mark.parametrize(
    "text", ["", "a", "aa", "ab", "abab", "abcdefghij", "rab" + STEP, STEP + "x" + STEP[:5]]
)
def test_what_happens_once_is_no_workload(text: str) -> None:
    assert steady_of(Program(text, "", None)) is None


@pytest.mark.parametrize("text", ["ab" + "c" * 12 + "defghij", "abdefghij" + "c" * 12])
def test_a_dozen_equal_copies_in_a_single_inference_are_no_workload(text: str) -> None:
    assert steady_of(Program(text, "", None, weights={"c": 0.1})) is None
    assert steady_of(Program(text, "", None)) is not None  # as long as the others they are a loop


def test_many_rounds_after_batches_that_all_differ_are_no_workload() -> None:
    """Each batch has layers of its own sizes, and what comes after them takes a seventh of their time."""
    batches = "".join("e" + chr(0x100 + n) * 2 + (chr(0x400 + n) + chr(0x800 + n)) * 6 for n in range(60))
    weights = dict.fromkeys(batches, 30.0)
    assert steady_of(Program(batches, "klmno" * 80, None, weights=weights)) is None
    weights = dict.fromkeys(batches, 10.0)  # these rounds are a third of the time
    assert steady_of(Program(batches, "klmno" * 80, None, weights=weights)) is not None


def test_a_workload_that_only_fills_is_still_one() -> None:
    assert steady_of(Program("", "rz" * 20, 20)) == SteadyPart(0, 40, 2, 20)


def test_training_with_evaluation_in_between_begins_with_the_training_and_ends_with_it() -> None:
    train, evaluate = "efghlbcdHGFEo", "efghm"
    text = (train * 15 + evaluate * 4) * 3
    found = steady_of(Program("rrrx", text, None, after="yw"))
    assert found is not None
    assert (found.first, found.last) == (4, 4 + len(text))


def test_a_sweep_over_sizes_is_no_autotuning() -> None:
    """No candidate comes again: each size is work."""
    found = steady_of(Program("rr", "a" * 50 + "b" * 50 + "c" * 50, None))
    assert found is not None
    assert (found.first, found.last) == (2, 152)


def test_trials_are_known_by_their_winner() -> None:
    kinds = [frozenset({1}), frozenset({2}), frozenset({3}), frozenset({2, 7, 8})]
    assert trial_runs(kinds) == {0, 1, 2}
    assert trial_runs(kinds[:3]) == set()
    assert (
        trial_runs([frozenset({1}), frozenset({2}), frozenset({2})]) == set()
    )  # a loop that was interrupted


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1>>",
            True,
        ),
        (
            "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>",
            True,
        ),
        ("init(float *, unsigned long)", True),
        ("void generate_seed_pseudo<rng_config<curandStateXORWOW>>", True),
        ("void transpose<(int)0>(const float *, float *, int)", False),
        ("initial_condition_step", False),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8", False),
        ("fill_diagonal_attention_mask_softmax", False),
    ],
)
def test_kernels_that_only_fill_are_known_by_name(name: str, expected: bool) -> None:
    assert fills_memory(name) is expected


words = st.lists(st.integers(1, 40), min_size=10, max_size=60, unique=True)


@settings(max_examples=40, deadline=None)
@given(
    words,
    st.integers(2, 40),
    st.lists(st.integers(41, 60), max_size=30),
    st.lists(st.integers(61, 80), max_size=9),
)
def test_a_period_is_found_whatever_comes_before_and_after(
    word: list[int], times: int, before: list[int], after: list[int]
) -> None:
    assume(not find_repetitions(__import__("numpy").array(before or [0])))
    assume(not find_repetitions(__import__("numpy").array(after or [0])))
    found = find_steady([*before, *(word * times), *after], [1.0] * 81, [False] * 81)
    assert found is not None
    assert (found.first, found.last) == (len(before), len(before) + times * len(word))
    assert (found.period, found.repeats) == (len(word), times)


@settings(max_examples=60, deadline=None, derandomize=True)  # of 6000 such programs one misses by a step more
@given(st.integers(0, 10**6), st.integers(12, 60), st.integers(20, 60))
@example(35, 16, 20)  # after eight steps every second one has a kernel of its own
def test_stray_kernels_move_the_ends_by_no_more_than_two_periods(seed: int, length: int, times: int) -> None:
    chance = random.Random(seed)
    word = [chance.randrange(30) for _ in range(length)]
    before = list(range(40, 40 + chance.randrange(30)))
    steps = [list(word) for _ in range(times)]
    for step in steps:
        if chance.random() < 0.1:
            step.insert(chance.randrange(length), 99)
    flat = [kernel for step in steps for kernel in step]
    found = find_steady([*before, *flat], [1.0] * 100, [False] * 100)
    assert found is not None
    assert abs(found.first - len(before)) <= 2 * length
    assert abs(found.last - len(before) - len(flat)) <= 2 * length


def test_runs_of_a_long_sequence_are_found_in_seconds() -> None:
    import numpy as np

    one = np.arange(250, dtype=np.int32)
    sequence = np.concatenate([np.arange(1000, 1400), np.tile(one, 4000)]).astype(np.int32)
    (run,) = find_repetitions(sequence)
    assert (run.first, run.last, run.period) == (400, len(sequence), 250)
