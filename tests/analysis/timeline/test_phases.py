"""Loops that follow one another are told apart; a step is one of the longest."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from profkit.analysis.timeline.phases import LaunchClues
from profkit.analysis.timeline.records import Range
from profkit.analysis.timeline.steady import SteadyPart, find_steady
from profkit.analysis.timeline.time_windows import EVER
from profkit.analysis.timeline.trace import build_trace, launched_programs
from profkit.core.types import GpuLoop, GpuTrace, TimeSplit
from profkit.profiling.summarize import judge_document
from profkit.reporting.facts import fact_text
from profkit.reporting.views.run_insights import time_split_text
from tests import documents
from tests.analysis.timeline.recordings import in_turn, recording
from tests.conftest import ROOT

TWO_GPUS = ROOT / "tests" / "data" / "jax" / "shard_map_then_pmap.order.json.gz"
TRAIN, EVALUATE = (
    ["embed", "gemm", "relu", "loss", "relu_back", "gemm_back", "adam", "norm"],
    ["embed", "gemm", "relu"],
)


def recorded(*, programs: bool) -> SteadyPart:
    """Return what counts of two loops on two H200s, of which one has two reductions in a step and the other one."""
    found: dict[str, Any] = json.loads(gzip.decompress(TWO_GPUS.read_bytes()))
    step, later = found["shard_map"], found["pmap"]
    sequence = [*step * found["steps"][0], *later * found["steps"][1]]
    import numpy as np

    of = np.array([0] * len(step) * found["steps"][0] + [1] * len(later) * found["steps"][1])
    kernels = found["mean_ns"]
    clues = LaunchClues(of) if programs else LaunchClues()
    part = find_steady(sequence, kernels, [False] * len(kernels), clues=clues)
    assert part is not None
    return part


def test_steps_of_two_programs_of_xla_are_two_loops_though_their_kernels_are_the_same() -> None:
    found = recorded(programs=True)
    assert (found.first, found.period, found.repeats) == (0, 7, 799)
    assert [(loop.period, loop.repeats) for loop in found.others] == [(6, 800)]


def test_without_the_programs_they_are_one_loop_that_changes() -> None:
    assert recorded(programs=False).others == ()


def steps(word: list[str], times: int, begin: int) -> list[tuple[str, int, int, int | None]]:
    return in_turn(word * times, begin=begin)


def test_an_evaluation_after_the_training_is_told_and_is_no_part_of_a_step() -> None:
    train = steps(TRAIN, 40, 1000)
    evaluate = steps(EVALUATE, 50, 10_000_000)
    trace, notes = build_trace(recording([*train, *evaluate]))
    assert trace.repeats == 40
    assert trace.launches == 40 * 8
    assert trace.span == pytest.approx(40 * 8 * 110e-9, rel=0.01)
    (loop,) = trace.loops
    assert (loop.repeats, loop.before) == (50, False)
    assert loop.seconds == pytest.approx(150 * 110e-9, rel=0.01)
    said = " ".join(map(fact_text, notes))
    assert "another loop after the analysed one is not part of a step: 50 times in 16.5 µs" in said
    assert "launches after it left out" not in said


def test_training_and_evaluation_that_take_turns_are_one_workload() -> None:
    rows = in_turn((TRAIN * 20 + EVALUATE * 20) * 3)
    trace, _ = build_trace(recording(rows))
    assert trace.loops == ()
    assert trace.launches == len(rows)


def test_the_same_step_with_other_sizes_is_the_same_loop() -> None:
    """Batches of one length after batches of another: kernels have other grids, and the names are the same."""
    rows = in_turn([f"{name}_{size}" for size in (128, 256) for name in TRAIN * 30])
    assert build_trace(recording(rows))[0].loops == ()


def test_a_launch_belongs_to_the_program_that_runs_on_the_host() -> None:
    import numpy as np

    ranges = [
        Range("XlaModule:#hlo_module=jit_step#", None, 10, 20, 0, 1),
        Range("XlaModule:#hlo_module=jit_eval,program_id=3#", None, 30, 40, 0, 1),
        Range("profkit:", None, 0, EVER[1], 0, 1),
    ]
    found = launched_programs(ranges, np.array([5, 10, 15, 25, 35, 45])).tolist()
    assert found == [-1, 1, 1, -1, 0, -1]
    assert not len(launched_programs([], np.array([5])))


def test_what_a_program_does_after_the_traced_window_is_no_start_up() -> None:
    """As of 1,000 steps of 7 ms, of which a window of 2 s saw 277: the rest was said to be start-up."""
    trace = GpuTrace("jax_profiler", (), span=2.0, busy=0.1, repeats=277, untraced=5.5)
    document = replace(documents.document(), trace=trace, time_split=TimeSplit(wall=15.5, waiting=0.0))
    split = judge_document(document, ()).time_split
    assert split is not None
    assert (split.startup, split.steady, split.untraced) == (8.0, 2.0, 5.5)
    said = time_split_text(split)
    assert said is not None
    assert said.endswith("start-up 8.00 s, then a step of 7.22 ms 277 times; 5.50 s after that not traced")
    again = judge_document(replace(document, time_split=split), ()).time_split
    assert again is not None
    assert again.startup == 8.0
    longer = replace(document, trace=replace(trace, untraced=30.0))  # its traced run was slower
    split = judge_document(longer, ()).time_split
    assert split is not None
    assert (split.startup, split.untraced) == (0.0, 13.5)


def test_another_loop_is_no_start_up() -> None:
    trace = GpuTrace("test", (), span=2.0, busy=1.0, repeats=100, loops=(GpuLoop(50, 3.0, before=False),))
    document = replace(documents.document(), trace=trace, time_split=TimeSplit(wall=9.0, waiting=0.0))
    split = judge_document(document, ()).time_split
    assert split is not None
    assert (split.startup, split.steady, split.loops) == (4.0, 2.0, 3.0)
    said = time_split_text(split)
    assert said is not None
    assert said.endswith("start-up 4.00 s, then a step of 20.0 ms 100 times; 3.00 s in another loop")
