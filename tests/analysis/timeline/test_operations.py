"""Which operation launched a kernel: the innermost range that is one, in the thread that launched."""

from __future__ import annotations

import pytest

from profkit.analysis.timeline.range_names import operation_text
from profkit.analysis.timeline.records import Range
from profkit.analysis.timeline.trace import build_trace
from profkit.core.types import SourcePlace
from profkit.profilers.redact import Redactor
from tests.analysis.timeline.recordings import in_turn, recording


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


LINE = Range("profkit-at src/train.py:12:Model.forward", None, 950, 1800, 0, 0)


def origin(launch: int, *ranges: Range, thread: int = 0) -> tuple[str | None, ...]:
    """Operation, forward operation and line of one kernel."""
    trace, _ = build_trace(
        recording([("gemm", launch + 9000, launch + 9100, launch)], ranges=ranges, threads=[thread])
    )
    (kernel,) = trace.kernels
    line = f"{kernel.file}:{kernel.line} {kernel.function}" if kernel.file is not None else None
    return kernel.operation, kernel.backward_of, line


def test_a_launch_has_the_line_whose_call_it_is_a_part_of() -> None:
    at = "src/train.py:12 Model.forward"
    assert origin(1200, OUTER, LINE, INNER) == ("aten::mm [4,8] x [8,9]", None, at)
    assert origin(1850, OUTER, LINE, INNER) == ("aten::linear [4,8], [9,8]", None, None)


def test_a_launch_has_the_line_of_a_library_to_which_that_of_the_program_leads() -> None:
    line = LINE._replace(name=f"{LINE.name}\t/lib/net.py:70:Net.forward")
    trace, _ = build_trace(recording([("mm", 10300, 10400, 1200)], ranges=[line, INNER]))
    (work,) = trace.work
    assert (work.file, work.line, work.below) == (
        "src/train.py",
        12,
        SourcePlace("/lib/net.py", 70, "Net.forward"),
    )


@pytest.mark.parametrize("name", ["profkit-at a.py:{}:f", "aten::mm, sizes = [[{}, 1], [1, {}]]"])
def test_a_number_that_no_document_holds_is_not_taken_from_a_range(name: str) -> None:
    written = Range(name.replace("{}", "9" * 5000), None, 1000, 1600, 0, 0)
    assert origin(1200, OUTER, written)[0] in ("aten::linear [4,8], [9,8]", "aten::mm")


def test_a_launch_of_a_backward_pass_has_the_forward_operation_and_its_line() -> None:
    """Of nested operations with one number the innermost has the node: it was the last to take the number."""
    forward = (OUTER._replace(sequence=7), LINE, INNER._replace(sequence=7))
    node = Range("MmBackward0, sizes = [[4, 9]]", None, 5000, 6000, 0, 1, 7)
    inner = Range("aten::mm, sizes = [[9, 4], [4, 8]]", None, 5100, 5900, 0, 1)
    expected = ("aten::mm [9,4] x [4,8]", "aten::mm [4,8] x [8,9]", "src/train.py:12 Model.forward")
    assert origin(5200, *forward, node, inner, thread=1) == expected
    again = INNER._replace(start=7000, end=7100, sequence=7)  # of the next step, in another thread's count
    assert origin(5200, *forward, node, inner, again, thread=1) == expected


def test_lines_are_no_marked_ranges_and_operations_count_by_name() -> None:
    other = Range("aten::mm, sizes = [[1, 1], [1, 1]]", None, 1600, 1700, 0, 0)
    step = Range("step", None, 900, 1900, 0, 0)
    trace, _ = build_trace(recording([("gemm", 9000, 9100, 1200)], ranges=(step, LINE, INNER, other)))
    assert [(entry.name, entry.entries, entry.operation) for entry in trace.ranges] == [
        ("step", 1, False),
        ("aten::mm", 2, True),
    ]
    assert trace.kernels[0].ranges == ("step",)
    assert trace.operations == 2


def test_code_that_is_loaded_after_the_lines_ended_moves_no_begin_behind_them() -> None:
    launched = in_turn(["set-up", *["gemm", "relu"] * 40])
    begins = [launch for _, _, _, launch in launched if launch is not None]
    lines = tuple(
        one._replace(start=begin - 1, end=begin + 1) for begin in begins[1:17] for one in (LINE, INNER)
    )
    load = [("cuLibraryLoadData", begins[30] + 1, begins[30] + 2)]
    trace, _ = build_trace(recording(launched, ranges=lines, calls=load))
    assert [[(one.line, one.launches) for one in kernel.lines] for kernel in trace.kernels] == [
        [(12, 40)],
        [(12, 40)],
    ]


def test_the_path_of_a_line_is_taken_out_as_any_other() -> None:
    assert (
        Redactor().text("profkit-at /home/jane/p/train.py:12:step") == "profkit-at /folder-1/train.py:12:step"
    )
