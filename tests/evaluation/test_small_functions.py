"""The pure functions of the guides: errors, time, streams, arguments as text."""

from __future__ import annotations

import functools
import math
import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from profkit.core.types import EvaluationTest, Fact, Speedup, TestResult  # noqa: E402
from profkit.evaluation import (  # noqa: E402
    cleanup_memory_and_gpu,
    compute_errors,
    cpu_bench,
    deserialize_args,
    serialize_args,
    uses_cuda_stream,
)
from profkit.evaluation.records import correctness_record, performance_record  # noqa: E402

pytestmark = pytest.mark.torch
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("ref", "res", "absolute", "relative"),
    [
        ([1.0, 2.0], [1.0, 2.5], 0.5, 0.25),
        ([NAN, INF, -INF], [NAN, INF, -INF], 0.0, 0.0),
        ([1.0, NAN], [1.0, 3.0], INF, INF),
        ([], [], 0.0, 0.0),
        ([1.0], [1.0, 2.0], None, None),
    ],
)
def test_errors_are_the_largest_and_what_is_not_finite_is_infinitely_wrong(
    ref: list[float], res: list[float], absolute: float | None, relative: float | None
) -> None:
    got = compute_errors(torch.tensor(ref), torch.tensor(res))
    assert got == (absolute, pytest.approx(relative) if relative is not None else None)


def test_errors_of_a_tuple_use_its_eps_and_leave_out_what_is_no_tensor() -> None:
    zero, one = torch.zeros(1), torch.ones(1)
    assert compute_errors((zero, 3), (one, 4), eps=1.0) == (1.0, 1.0)
    assert compute_errors((3,), (4,)) == (None, None)
    assert compute_errors(torch.tensor([1 + 1j]), torch.tensor([1 + 0j])) == pytest.approx(
        (1.0, math.sqrt(0.5))
    )


def test_the_time_of_the_cpu_bench_is_in_seconds_of_one_call() -> None:
    calls = []
    assert 1e-3 <= cpu_bench(lambda: calls.append(time.sleep(1e-3)), num_runs=5) < 0.5
    assert len(calls) == 15
    cleanup_memory_and_gpu()  # without a GPU it only collects garbage


# ---------------------------------------------------------------- streams


def makes(x: Any) -> Any:
    with torch.cuda.stream(torch.cuda.Stream()):
        return x


class Kernel:
    def __call__(self, x: Any) -> Any:
        return torch.cuda.ExternalStream(0), x


def asks_for_the_current_one(x: Any, stream: torch.cuda.Stream | None = None) -> Any:
    """Not even torch.cuda.Stream() in a text."""
    return torch.cuda.current_stream(), x, stream  # torch.cuda.Stream()


@pytest.mark.parametrize(
    ("kernel", "uses"),
    [
        (makes, True),
        (Kernel(), True),
        (functools.partial(makes), True),
        (asks_for_the_current_one, False),
        (len, False),
        (torch.ops.aten.relu.default, False),
    ],
)
def test_a_stream_is_found_where_code_makes_or_enters_one(kernel: Any, uses: bool) -> None:
    assert uses_cuda_stream(kernel) is uses


# ---------------------------------------------------------------- arguments


def test_arguments_survive_as_text_with_their_shapes_strides_tuples_and_dtypes() -> None:
    args = (
        torch.ones(2, 3),
        torch.ones(4, 4, dtype=torch.float16).t()[1:],
        (torch.ones(1, dtype=torch.bool), [torch.zeros(0, 3)]),
        1.5,
        -INF,
    )
    kwargs = {
        "dtype": torch.bfloat16,
        "index": torch.ones(2, dtype=torch.int64),
        "device": torch.device("cpu"),
    }
    text = serialize_args(args, kwargs)
    again, named = deserialize_args(text)
    assert serialize_args(again, named) == text
    assert again[1].stride() == (1, 4)
    assert isinstance(again[2], tuple)
    assert (again[3], again[4], named["dtype"]) == (1.5, -INF, torch.bfloat16)


def test_a_text_is_never_executed() -> None:
    with pytest.raises(ValueError, match="neither a literal"):
        deserialize_args("((__import__('os').getcwd(),), {})")


@pytest.mark.parametrize("dtype", [torch.float16, "float16", "f16"])
def test_a_tensor_is_made_of_size_dtype_and_stride_as_the_guide_has_it(dtype: Any) -> None:
    from profkit.evaluation import _deserialize_tensor, deserialize_tensor

    assert _deserialize_tensor is deserialize_tensor
    tensor = _deserialize_tensor([2, 3], dtype, stride=[1, 2])
    assert (tensor.shape, tensor.stride(), tensor.dtype) == ((2, 3), (1, 2), torch.float16)
    assert 0 <= float(tensor.min()) <= float(tensor.max()) <= 1
    assert tensor.device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert _deserialize_tensor((2, 3), dtype, device="cpu").device.type == "cpu"
    assert _deserialize_tensor((0, 4), dtype, (4, 1)).stride() == (4, 1)
    assert _deserialize_tensor((), torch.bool).shape == ()
    assert _deserialize_tensor((3,), torch.float32, (0,)).unique().numel() == 1


def test_the_cpu_takes_the_place_of_cuda_only_where_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from profkit.evaluation import functions

    assert functions._device("cpu") == "cpu"
    for there, wanted in ((False, ["cpu", "cpu"]), (True, ["cuda", "cuda:1"])):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert [functions._device(name) for name in ("cuda", "cuda:1")] == wanted


@pytest.mark.parametrize(
    ("size", "dtype", "stride", "said"),
    [
        ([2], torch.quint8, None, "not a dtype"),
        ([2], "f17", None, "not a dtype"),
        ([-1], torch.float32, None, "no stride"),
        ([2, 2], torch.float32, [1], "no stride"),
        ([2], torch.float32, [-1], "no stride"),
    ],
)
def test_what_is_no_tensor_is_a_value_error(size: Any, dtype: Any, stride: Any, said: str) -> None:
    from profkit.evaluation import deserialize_tensor

    with pytest.raises(ValueError, match=said):
        deserialize_tensor(size, dtype, stride)


# ---------------------------------------------------------------- records

TEST = EvaluationTest("0" * 12, "smoke", "relu.default", "float32", "((T([2], f32),), {})")


def test_times_of_records_are_milliseconds_and_only_what_passed_ran_successfully() -> None:
    speedup = Speedup(2.0, 1.9, 2.1, "FASTER", 30)
    passed = TestResult(
        TEST, "passed", speedup=speedup, seconds=1e-3, reference_seconds=2e-3, max_abs_error=0.0
    )
    record = performance_record(passed)
    assert (record.speedup, record.benchmark_time_ms, record.reference_time_ms) == (2.0, 1.0, 2.0)
    assert (record.successfully_ran, record.word) == (True, "FASTER")
    assert correctness_record(passed).max_abs_error == 0.0
    crashed = TestResult(TEST, "crashed", Fact.message("signal 11 (SIGSEGV)"))
    record = performance_record(crashed)
    assert (math.isnan(record.speedup), math.isnan(record.benchmark_time_ms)) == (True, True)
    assert not record.successfully_ran
    assert correctness_record(crashed).error_msg == "crashed: signal 11 (SIGSEGV)"
    assert not correctness_record(crashed).is_correct
