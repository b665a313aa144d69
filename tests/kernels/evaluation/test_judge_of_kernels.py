"""The judge alone: made-up observations go in, verdicts come out. No process, no device and no clock is used."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace

import pytest

pytest.importorskip("torch")

import torch
from judge_documents import BY_CHANCE, times_of

from profkit.analysis.evaluation.witnesses import STORED_PER_SECOND, describe_witnesses, impossible_rate
from profkit.core.errors import MachineError
from profkit.core.types import Fact, MeasuredCeilings, SpeedWord, TestResult, TestStatus
from profkit.execution.child import JobStatus, WorkerEnded
from profkit.kernels.evaluation.judging import judge as judge_module
from profkit.kernels.evaluation.judging.judge import (
    BaselineFailed,
    CallWork,
    Cheat,
    DeviceReport,
    Judge,
    MachineLimits,
    Pair,
    PairedSamples,
    TracedLaunches,
    Unverified,
    WholeBatch,
    find_speedup,
    undisturbed,
)
from profkit.kernels.evaluation.judging.reference import count_written
from profkit.kernels.evaluation.request import PairOptions
from profkit.kernels.evaluation.worker.arguments import KernelError
from profkit.kernels.operations.float64_check import Errors, Incorrect
from tests.evaluation_documents import a_test
from tests.spoken import spoken


def test_pairs_in_which_a_process_waited_are_left_out_while_enough_others_are_there() -> None:
    quiet = [Pair(number, 1.0, 1.0, waited=False) for number in range(6)]
    disturbed = [Pair(number, 9.0, 1.0, waited=True) for number in range(6)]
    assert list(undisturbed([*disturbed, *quiet])) == quiet
    assert len(undisturbed([*disturbed, *quiet[:3]])) == 9


def test_a_round_is_one_answer_however_many_pairs_it_has() -> None:
    lucky = [Pair(0, 1.2, 1.0, waited=False)] * 100
    others = [Pair(number, 1.0, 1.0, waited=False) for number in range(1, 7)]
    speedup = find_speedup([*lucky, *others], PairOptions())
    assert (speedup.median, speedup.word, speedup.pairs) == (1.0, "AMBIGUOUS", 106)
    assert speedup.high == pytest.approx(1.2**0.5)


def test_faster_is_what_a_thousand_equal_pairs_would_hardly_show() -> None:
    def word(*ratios: float) -> str:
        pairs = [Pair(number, ratio, 1.0, waited=False) for number, ratio in enumerate(ratios)]
        return find_speedup(pairs, PairOptions()).word

    assert word(*[1.5, 1.6] * 6) == "FASTER"
    assert word(*[0.6, 0.7] * 6) == "SLOWER"
    assert word(*[1.5, 1.6] * 3) == "FASTER"  # so few are enough where each of them is beyond the floor
    assert word(1.03, *[1.5, 1.6] * 3) == "AMBIGUOUS"
    assert word(*[0.95, 1.3, 1.4, 1.2] * 4) == "AMBIGUOUS"
    assert word(*[1.02, 0.98] * 6) == "SAME"
    assert word(*[1.0] * 5) == "AMBIGUOUS"


JUDGE = Judge(PairOptions(), MachineLimits(units=2, cached_bytes=1 << 20))
RESULT = TestResult(a_test("relu.default"), "skipped")
WORK = CallWork(bytes=1 << 24, bytes_written=1 << 23, flops=None, dtype="float32")


def samples(
    *ratios: float, verified: int = 5, busy_share: float = 0.0, waited: bool = False
) -> PairedSamples:
    pairs = [Pair(number, ratio, 1.0, waited) for number, ratio in enumerate(ratios)]
    batches = [WholeBatch(10.0, 12.0)] * len(pairs)
    return PairedSamples(pairs, 10, verified, busy_share, batches, batches)


def test_it_looks_at_nothing_but_what_it_is_given() -> None:
    imported = {
        name.name.partition(".")[0]
        for node in ast.walk(ast.parse(inspect.getsource(judge_module)))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([ast.alias(node.module or "")] if isinstance(node, ast.ImportFrom) else node.names)
    }
    assert imported.isdisjoint({"torch", "os", "time", "subprocess", "multiprocessing", "signal", "random"})


def test_samples_are_weighed_by_their_rounds_and_a_busy_machine_decides_nothing() -> None:
    times = JUDGE.weigh(samples(*[1.5, 1.6] * 6))
    assert (times.speedup.word, times.seconds, times.whole_seconds, times.threads) == (
        "FASTER",
        1.0,
        1.0,
        1.2,
    )
    assert not times.disturbed
    for busy in (samples(*[1.5, 1.6] * 6, busy_share=0.2), samples(*[1.5, 1.6] * 6, waited=True)):
        times = JUDGE.weigh(busy)
        assert (times.speedup.word, times.disturbed) == ("AMBIGUOUS", True)
        assert times.speedup.low <= 1
    with pytest.raises(Unverified) as unknown:
        JUDGE.weigh(samples(*[1.5] * 6, verified=2))
    assert "new memory each time" in spoken(unknown.value.reason)


@pytest.mark.parametrize(
    ("ratios", "settled"),
    [([1.0, 1.001] * 6, True), ([1.5, 1.502] * 6, True), ([1.0, 1.3] * 3, False), ([1.0] * 5, False)],
)
def test_more_pairs_are_taken_until_they_would_change_nothing(ratios: list[float], settled: bool) -> None:
    assert JUDGE.is_settled(samples(*ratios).pairs) is settled


def test_a_difference_that_new_processes_show_too_is_kept_as_the_smaller_of_both() -> None:
    times, remarks = JUDGE.agree(times_of(1.12, "FASTER"), times_of(1.09, "FASTER"))
    assert (times.speedup.word, times.speedup.median, remarks) == ("FASTER", 1.09, ())
    assert times.verified == 10


def test_a_difference_that_they_do_not_show_is_ambiguous_with_a_remark_unless_the_machine_was_busy() -> None:
    first, again = times_of(1.12, "FASTER"), times_of(1.01, "SAME")
    times, remarks = JUDGE.agree(first, again)
    assert (times.speedup.word, times.speedup.median, remarks) == ("AMBIGUOUS", 1.01, BY_CHANCE)
    assert JUDGE.agree(first, replace(again, disturbed=True))[1] == ()


@pytest.mark.parametrize(
    ("median", "word", "on_cpu", "on_gpu"),
    [
        (1.24, "FASTER", True, False),
        (1.26, "FASTER", False, False),
        (1.14, "FASTER", True, True),
        (0.82, "SLOWER", True, False),
        (0.78, "SLOWER", False, False),
        (1.02, "SAME", False, False),
        (1.1, "AMBIGUOUS", False, False),
    ],
)
def test_only_a_small_difference_may_be_chance(
    median: float, word: SpeedWord, on_cpu: bool, on_gpu: bool
) -> None:
    speedup = times_of(median, word).speedup
    assert JUDGE.may_be_chance(speedup) is on_cpu
    assert Judge(PairOptions(), MachineLimits(on_gpu=True)).may_be_chance(speedup) is on_gpu


def ended(status: JobStatus) -> WorkerEnded:
    return WorkerEnded(status, "its process ended", "half way through")


@pytest.mark.parametrize(
    ("error", "status", "fault"),
    [
        (Incorrect("values", Fact.of("other-value", got="1", right="2")), "incorrect", "values"),
        (Cheat(Fact("wrong-in-timed-call")), "cheat", None),
        (KernelError("ValueError", "no such thing", "Traceback"), "incorrect", "raised"),
        (KernelError("MemoryError", "", "", memory=True), "out-of-memory", None),
        (KernelError("ImportError", "", "", needs_gpu=True), "not-run", None),
        (ended(JobStatus.crash), "crashed", None),
        (ended(JobStatus.timeout), "timeout", None),
        (ended(JobStatus.out_of_memory), "out-of-memory", None),
        (ended(JobStatus.cancelled), "lost", None),
        (MachineError("it is full", "empty it"), "lost", None),
        (ZeroDivisionError("division"), "lost", None),
    ],
)
def test_each_end_has_one_status(error: Exception, status: TestStatus, fault: str | None) -> None:
    timed = replace(
        JUDGE.passed(RESULT, Errors(1.0, 2.0, 0.5)), seconds=1.0, speedup=times_of(2.0, "FASTER").speedup
    )
    result = JUDGE.failed(timed, error)
    assert (result.status, result.fault, result.seconds, result.speedup) == (status, fault, None, None)
    assert result.reason is not None
    is_own_fault = isinstance(error, (MachineError, ZeroDivisionError))
    assert (result.max_abs_error is None) == is_own_fault
    assert result.last_line == ("half way through" if isinstance(error, WorkerEnded) else "")


def test_what_fails_while_it_is_loaded_is_a_load_error_and_needs_a_gpu_only_where_there_is_none() -> None:
    error = KernelError("ImportError", "no triton", "", memory=True, needs_gpu=True)
    assert JUDGE.failed(RESULT, error, loading=True).status == "not-run"
    with_gpu = Judge(PairOptions(), MachineLimits(has_gpu=True))
    assert with_gpu.failed(RESULT, error, loading=True).status == "load-error"
    assert with_gpu.failed(RESULT, error).status == "out-of-memory"


def test_a_time_that_cannot_be_true_is_a_cheat() -> None:
    times = times_of(2.0, "FASTER")
    assert JUDGE.timed(RESULT, times, WORK, DeviceReport()).speedup == times.speedup
    with pytest.raises(Cheat):
        JUDGE.timed(RESULT, times, WORK, DeviceReport(early=Fact.of("worked-early", early=5, checks=9)))
    impossible = replace(times, whole_seconds=WORK.bytes_written / (3 * STORED_PER_SECOND))
    with pytest.raises(Cheat):
        JUDGE.timed(RESULT, impossible, WORK, DeviceReport())


def test_a_time_comes_with_its_bound_and_what_a_reader_must_know() -> None:
    ceilings = {"": MeasuredCeilings(flops=1e9, bandwidth=(1 << 24) / 0.25)}
    judge = Judge(PairOptions(), replace(MachineLimits(units=2), ceilings=ceilings))
    times = times_of(2.0, "FASTER")
    assert judge.timed(RESULT, times, WORK, DeviceReport()).bound_seconds == 0.25
    result = judge.timed(RESULT, times, replace(WORK, flops=1e12), DeviceReport((Fact("busy-machine"),)))
    assert result.bound_seconds is None  # it was faster than the measured peaks
    assert "times as fast as the measured peaks" in spoken(result.remarks[0])
    assert result.remarks[1:] == (Fact("busy-machine"),)
    traced = judge.timed(RESULT, times, WORK, DeviceReport(), TracedLaunches(unknown="it crashed"))
    assert (traced.own_share, traced.remarks[-1].code) == (None, "unknown-launches")
    assert (
        judge.timed(RESULT, times, WORK, DeviceReport(), TracedLaunches((("my_kernel", 1.0),))).own_share
        == 1.0
    )


def test_a_right_kernel_without_a_time_passes_with_a_remark() -> None:
    passed = JUDGE.passed(RESULT, Errors(1.0, 2.0, 0.5))
    for why in (BaselineFailed("it crashed"), Unverified(Fact("gives-memory-back"))):
        result = JUDGE.untimed(passed, why)
        assert (result.status, result.speedup, result.remarks[0].code) == ("passed", None, "not-timed")


def test_only_what_no_processor_can_write_is_impossible() -> None:
    size = 1 << 26
    quickest = size / (2 * STORED_PER_SECOND)
    assert impossible_rate(size, 1.01 * quickest, 2) is None
    assert "ended before their results could have been written" in spoken(
        impossible_rate(size, 0.9 * quickest, 2)
    )
    assert impossible_rate(0, 1e-9, 1) is None  # a view
    h100 = 132
    assert impossible_rate(4 << 20, 2e-6, h100, on_gpu=True) is None  # 2 TB/s
    too_fast = impossible_rate(4 << 20, 5e-8, h100, on_gpu=True)
    assert "before their results could have been written" in spoken(too_fast)
    old, new = torch.ones(8), torch.ones(16)
    known = {old.untyped_storage().data_ptr()}
    assert count_written([old[2:], new, new[1:], torch.ones(1).expand(1000), torch.zeros(9)], known) == 64 + 4


def test_a_time_below_measured_peaks_and_more_threads_are_remarks() -> None:
    assert describe_witnesses(1.5, 2.0, 1.0, 1.0) == ()
    assert "2.0 times as fast as the measured peaks" in spoken(describe_witnesses(1.0, 2.0, 1.0, 1.0)[0])
    assert "keeps 2.0 threads busy, and PyTorch's own 1.0" in spoken(
        describe_witnesses(1.0, None, 2.0, 1.0)[0]
    )
    assert describe_witnesses(1.0, None, 1.9, 1.5) == ()
    assert describe_witnesses(1.0, None, 1.6, 1.0, allowed=1) == ()
    assert "keeps 1.9 processors busy although --threads allows 1" in spoken(
        describe_witnesses(1.0, None, 1.9, 1.9, 1)[0]
    )
