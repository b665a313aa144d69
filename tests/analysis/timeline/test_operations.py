"""Which operation launched a kernel: the innermost range that is one, in the thread that launched."""

from __future__ import annotations

import pytest

from profkit.analysis.timeline.operations import operation_text
from profkit.analysis.timeline.records import Range
from profkit.analysis.timeline.trace import build_trace
from tests.analysis.timeline.recordings import recording


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::mm, sizes = [[4096, 768], [768, 50257]]", "aten::mm [4096,768] x [768,50257]"),
        ("aten::bmm, sizes = [[96, 512, 64], [96, 64, 512]]", "aten::bmm [96,512,64] x [96,64,512]"),
        (
            "aten::addmm, sizes = [[768], [4096, 3072], [3072, 768], [], []]",
            "aten::addmm [768] + [4096,3072] x [3072,768]",
        ),
        ("aten::add_, sizes = [[8, 512], [8, 512], []]", "aten::add_ [8,512], [8,512]"),
        ("aten::cat, sizes = [[[2, 3], [4, 3]], []]", "aten::cat [2,3], [4,3]"),
        ("AddmmBackward0, sizes = [[4096, 768]]", "AddmmBackward0 [4096,768]"),
        ("aten::empty, sizes = [[], []]", "aten::empty"),
        ("aten::mm", "aten::mm"),
        ("step 12", None),
        ("Solver::step", None),
    ],
)
def test_an_operation_is_said_with_the_shapes_of_its_inputs(name: str, expected: str | None) -> None:
    assert operation_text(name, None) == expected


def test_a_range_of_a_library_is_no_operation() -> None:
    assert operation_text("nccl::send", "NCCL") is None


OUTER = Range("aten::linear, sizes = [[4, 8], [9, 8]]", None, 900, 1900, 0, 0)
INNER = Range("aten::mm, sizes = [[4, 8], [8, 9]]", None, 1000, 1500, 0, 0)


def launched(*times: int, ranges: tuple[Range, ...], thread: int = 0) -> tuple[str | None, int, int]:
    """The operation of one kernel that was launched at these times, how often, and of how many."""
    kernels = [("gemm", time + 1000, time + 1100, time) for time in times]
    trace, _ = build_trace(recording(kernels, ranges=ranges, threads=[thread] * len(kernels)))
    (kernel,) = trace.kernels
    return kernel.operation, kernel.operation_launches, kernel.operations


def test_the_innermost_operation_counts_until_it_ends() -> None:
    product = "aten::mm [4,8] x [8,9]"
    step = Range("step", None, 1000, 1400, 0, 0)  # within, and no operation
    assert launched(1200, ranges=(OUTER, INNER, step)) == (product, 1, 1)
    assert launched(1501, ranges=(OUTER, INNER)) == ("aten::linear [4,8], [9,8]", 1, 1)
    assert launched(1901, ranges=(OUTER, INNER)) == (None, 0, 0)


def test_of_two_that_begin_at_once_the_shorter_one_is_the_inner_one() -> None:
    inner = Range("aten::mm", None, 900, 1500, 0, 0)
    assert launched(1000, ranges=(inner, OUTER))[0] == "aten::mm"


def test_an_operation_of_another_thread_did_not_launch_it() -> None:
    assert launched(1200, ranges=(OUTER, INNER), thread=1) == (None, 0, 0)


def test_of_several_operations_the_commonest_is_named() -> None:
    other = Range("aten::bmm", None, 3000, 3500, 0, 0)
    assert launched(1100, 1200, 3100, ranges=(OUTER, INNER, other)) == ("aten::mm [4,8] x [8,9]", 2, 2)
