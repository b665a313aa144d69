"""Operations with shapes, and whose backward pass a kernel is, recorded with `--pytorch=autograd-shapes-nvtx`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from profkit.core.types import GpuTrace, RunDocument
from profkit.profiling.summarize import summarize_report

DATA = Path(__file__).parents[2] / "data" / "cuda" / "nsys" / "operations.sqlite"
FORWARD = "aten::mm [4096,768] x [768,50257]"


@cache
def document() -> RunDocument:
    return summarize_report(DATA)


def trace() -> GpuTrace:
    found = document().trace
    assert found is not None
    return found


def test_each_kernel_has_its_innermost_operation_and_a_backward_kernel_its_forward_one() -> None:
    assert [(time.operation, time.backward_of) for time in trace().kernels[:3]] == [
        (FORWARD, None),
        ("aten::mm [4096,50257] x [50257,768]", FORWARD),
        ("aten::mm [50257,4096] x [4096,768]", FORWARD),
    ]
    pairs = {(time.operation or "").split()[0]: (time.backward_of or "").split() for time in trace().kernels}
    assert pairs["aten::_log_softmax_backward_data"][0] == "aten::_log_softmax"
    assert pairs["aten::native_layer_norm_backward"][0] == "aten::native_layer_norm"
    assert all(time.operation is not None for time in trace().kernels)


def test_operations_are_no_marked_ranges() -> None:
    assert trace().operations == 143
    assert not any(time.ranges for time in trace().kernels)
    assert all(entry.operation for entry in trace().ranges)


def test_the_odd_dimension_is_read_off_the_shapes() -> None:
    (found,) = [one for one in document().insights if one.rule == "unaligned-matrix-product"]
    assert found.title == "Pad the dimension of 50,257 to 50,304"
    assert found.where.operation == FORWARD
