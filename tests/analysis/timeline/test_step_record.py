"""The record of one typical step: which one it is, what is in it, what is merged, and why devices are idle."""

from __future__ import annotations

import random

import pytest

from profkit.analysis.timeline.joined_recordings import with_operations
from profkit.analysis.timeline.marks import MAX_MARKS, Marks
from profkit.analysis.timeline.placed import placed_timeline
from profkit.analysis.timeline.records import Range, TransferKind
from profkit.analysis.timeline.trace import build_trace
from profkit.core.types import GpuLine, KernelTime, Lane, Timeline
from tests.analysis.timeline.recordings import configuration, in_turn, recording

STEP = tuple("abcdefghijkl")
US = 1000


def timeline_of(recorded: object) -> Timeline:
    made = build_trace(recorded)[0].timeline  # type: ignore[arg-type]
    assert made is not None
    return made


def lane(timeline: Timeline, kind: str, number: int = 0) -> Lane:
    return [one for one in timeline.lanes if one.kind == kind][number]


def marks(timeline: Timeline, one: Lane) -> list[tuple[str, int, int]]:
    labels = [timeline.labels[number] for number in one.labels]
    return [
        (label.name or label.kind, start, length)
        for label, start, length in zip(labels, one.starts, one.lengths, strict=True)
    ]


def test_of_steps_that_repeat_the_one_of_median_length_is_kept_launch_by_launch() -> None:
    kernels = [("init", 0, 50, None)]
    begins = []
    at = 1000
    for wait in (500, 10, 20, 30, 40):
        begins.append(at)
        kernels += [(name, b, e, launch) for name, b, e, launch in in_turn(STEP, begin=at)]
        at += len(STEP) * 110 + wait
    made = timeline_of(recording(kernels))
    assert (made.kind, made.of) == ("step", 5)
    # The lengths are 1820, 1330, 1340 and 1350, and of the last one the time to its own end.
    assert made.seconds == pytest.approx(1340e-9)
    assert made.begin == pytest.approx(begins[2] * 1e-9)
    assert made.whole == pytest.approx((at - 40 - 10) * 1e-9)
    assert marks(made, lane(made, "kernels")) == [(name, 110 * n, 100) for n, name in enumerate(STEP)]
    assert sum(lane(made, "kernels").lengths) + sum(lane(made, "idle").lengths) == 1340
    assert (made.merged, made.shortest, made.left_out) == (0, 0.0, 0)


def test_of_the_entries_of_a_region_the_median_one_is_kept_with_the_host_around_it() -> None:
    ranges, kernels = [], []
    for number, length in enumerate((300, 900, 500)):
        begin = 10_000 * (number + 1)
        ranges.append(Range("mlp", "profkit", begin, begin + length, 0, 0))
        kernels.append(("gemm", begin + 100, begin + length - 50, begin + 20))
    made = timeline_of(recording(kernels, ranges=ranges))
    assert (made.kind, made.of, made.name) == ("region", 3, "mlp")
    assert made.seconds == pytest.approx(500e-9)
    assert marks(made, lane(made, "kernels")) == [("gemm", 100, 350)]
    assert marks(made, lane(made, "range")) == [("mlp", 0, 500)]
    assert marks(made, lane(made, "calls")) == [("cudaLaunchKernel", 20, 2)]


def test_a_trace_in_which_nothing_repeats_is_kept_whole() -> None:
    made = timeline_of(recording([("a", 100, 200, 90), ("b", 300, 700, 250)]))
    assert (made.kind, made.seconds, made.whole) == ("trace", pytest.approx(610e-9), pytest.approx(600e-9))


def test_a_report_without_a_launch_has_no_timeline() -> None:
    assert build_trace(recording([]))[0].timeline is None


def test_one_launch_is_a_timeline_of_one_mark() -> None:
    made = timeline_of(recording([("only", 100, 200, 90)]))
    assert marks(made, lane(made, "kernels")) == [("only", 10, 100)]


@pytest.mark.parametrize(
    ("call", "begin", "end", "kind"),
    [
        ("cudaStreamSynchronize", 1_000, 9_000, "wait"),
        ("cudaMalloc", 1_500, 8_000, "memory"),
        ("cudaMemcpyAsync", 1_500, 8_000, "copy"),
        ("cudaLaunchKernelExC", 1_500, 8_000, "launch"),
        ("cudaEventCreate", 1_500, 8_000, "call"),
        ("cudaMalloc", 1_500, 2_500, "program"),  # most of the time is in no call
    ],
)
def test_an_idle_stretch_is_what_the_host_did_in_most_of_it(
    call: str, begin: int, end: int, kind: str
) -> None:
    kernels = [("a", 0, 1_000, None), ("b", 9_100, 9_500, 9_050)]
    made = timeline_of(recording(kernels, calls=[(call, begin, end)], captured=True))
    idle = lane(made, "idle")
    label = made.labels[idle.labels[0]]
    assert (idle.starts, idle.lengths) == ((1_000,), (8_100,))
    assert (label.kind, label.what) == (kind, "" if kind == "program" else call)


def test_an_idle_stretch_whose_next_kernel_was_launched_before_is_no_want_of_work() -> None:
    kernels = [("a", 0, 1_000, None), ("b", 9_100, 9_500, 500)]
    made = timeline_of(recording(kernels, captured=True))
    assert [made.labels[n].kind for n in lane(made, "idle").labels] == ["queued"]


def test_an_idle_stretch_of_a_report_without_calls_is_not_explained() -> None:
    made = timeline_of(recording([("a", 0, 1_000, None), ("b", 9_100, 9_500, None)], captured=True))
    assert [made.labels[n].kind for n in lane(made, "idle").labels] == ["waiting"]


def test_an_idle_stretch_has_the_line_that_the_host_is_in() -> None:
    line = Range("profkit-at train.py:12:step", None, 1_100, 9_080, 0, 0)
    kernels = [("a", 0, 1_000, None), ("b", 9_100, 9_500, 9_050)]
    made = timeline_of(recording(kernels, ranges=[line], captured=True))
    label = made.labels[lane(made, "idle").labels[0]]
    assert (label.kind, label.file, label.line, label.function) == ("program", "train.py", 12, "step")
    kernel = made.labels[lane(made, "kernels").labels[1]]
    assert (kernel.name, kernel.file, kernel.line) == ("b", "train.py", 12)


def test_devices_and_streams_have_lanes_of_their_own_below_each_other() -> None:
    kernels = [("a", 0, 100, None), ("b", 50, 300, None), ("c", 0, 250, None)]
    made = timeline_of(recording(kernels, devices=[0, 1, 1], captured=True))
    found = [(one.kind, one.device, len(one.starts)) for one in made.lanes]
    assert found == [("kernels", 0, 1), ("idle", 0, 1), ("kernels", 1, 2)]
    assert [bins.device for bins in made.activity] == [0, 1]
    assert sum(made.activity[0].shares) / 300 == pytest.approx(100 / 300 * 100, abs=1)


def test_the_strip_of_the_whole_run_adds_up_to_the_busy_time() -> None:
    chance = random.Random(3)
    kernels, at = [], 0
    for number in range(900):
        length = chance.randint(1, 2_000)
        kernels.append((f"k{number}", at, at + length, None))
        at += length + chance.randint(0, 1_500)
    recorded = recording(kernels, captured=True)
    trace = build_trace(recorded)[0]
    assert trace.timeline is not None
    assert trace.busy is not None
    busy = sum(trace.timeline.activity[0].shares) / 100 / 300 * trace.timeline.whole
    assert busy == pytest.approx(trace.busy, rel=0.01)


def test_of_more_marks_than_are_kept_the_short_ones_are_merged_and_nothing_is_lost() -> None:
    kernels: list[tuple[str, int, int, int | None]] = []
    at, chance = 0, random.Random(5)
    for number in range(20_000):
        length = 100 * US if number % 1000 == 0 else 2 * US
        kernels.append(
            (f"k{chance.randrange(200)}" if length < 100 * US else "long", at, at + length, at - 10)
        )
        at += length + 1 * US
    made = timeline_of(recording(kernels, captured=True))
    assert sum(len(one.starts) for one in made.lanes) <= MAX_MARKS
    streams = lane(made, "kernels")
    assert sum(streams.counts) == 20_000
    assert sum(streams.busy) == sum(end - begin for _, begin, end, _ in kernels)
    assert sum(name == "long" for name, _, _ in marks(made, streams)) == 20  # what is seen stays itself
    assert made.merged == sum(sum(one.counts) - len(one.counts) for one in made.lanes if one.counts)
    assert 0 < made.shortest < made.seconds / 200


def test_merged_marks_are_called_after_the_longest_and_never_overlap() -> None:
    merged = Marks.of([0, 4, 9, 30, 100], [3, 9, 10, 90, 101], [1, 2, 3, 4, 5]).merged(20)
    assert merged.start.tolist() == [0, 30, 100]
    assert merged.end.tolist() == [10, 90, 101]
    assert merged.what.tolist() == [2, 4, 5]
    assert merged.count.tolist() == [3, 1, 1]
    assert merged.busy.tolist() == [9, 60, 1]


def test_lines_of_another_run_come_to_kernels_to_their_launches_and_to_a_lane_of_their_own() -> None:
    kernels = [("gemm", 100, 1_000, 50), ("gemm", 1_100, 2_000, 70), ("add", 2_100, 2_200, 90)]
    trace = build_trace(recording(kernels, captured=True))[0]
    lines = (GpuLine("train.py", 9, "step", launches=20),)
    known = KernelTime(configuration("gemm"), 20, 1.0, file="train.py", line=9, function="step", lines=lines)
    made = placed_timeline(trace.timeline, [known])
    assert made is not None
    assert marks(made, lane(made, "line")) == [("step", 0, 22)]  # from one launch call to the other
    places = {(label.name, label.kind, label.file, label.line) for label in made.labels if label.file}
    assert ("gemm", "kernel", "train.py", 9) in places
    assert ("cudaLaunchKernel", "launch", "train.py", 9) in places
    whole = with_operations(trace, build_trace(recording(kernels, captured=True))[0])
    assert whole is not None
    assert whole.timeline is not None


def test_a_kernel_that_several_lines_launch_is_at_none_of_them() -> None:
    trace = build_trace(recording([("add", 100, 200, 50)], captured=True))[0]
    lines = (GpuLine("train.py", 9, launches=6), GpuLine("train.py", 4, launches=4))
    known = KernelTime(configuration("add"), 10, 1.0, file="train.py", line=9, lines=lines)
    made = placed_timeline(trace.timeline, [known])
    assert made is not None
    assert not any(label.file for label in made.labels)


def test_copies_have_a_lane_of_their_own() -> None:
    recorded = recording([("a", 0, 100, None)], copies=[("host to device", 120, 180, 4096)], captured=True)
    made = timeline_of(recorded)
    assert marks(made, lane(made, "copies")) == [("host to device", 120, 60)]
    assert TransferKind("host to device") in recorded.tables.transfers


@pytest.mark.parametrize(
    ("call", "begin", "end", "kind"),
    [
        (
            "cudaMemcpyAsync",
            1_000,
            31_000,
            "wait",
        ),  # of memory that is not pinned: it comes back behind the copy
        ("cudaMemcpyAsync", 1_000, 20_000, "copy"),
        ("cudaMemcpyAsync", 29_000, 31_000, "copy"),  # of a few bytes that were there at once
        ("cudaMemcpy", 1_000, 31_000, "wait"),
        ("cudaStreamWaitEvent", 1_000, 31_000, "call"),  # the stream waits, and the host goes on
        ("cudaStreamSynchronize", 1_000, 31_000, "wait"),
    ],
)
def test_the_host_waits_for_the_device_in_a_call_that_comes_back_behind_its_copy(
    call: str, begin: int, end: int, kind: str
) -> None:
    copies, copying = [("device to host", 29_500, 30_000, 64)], [(call, begin, end)]
    made = timeline_of(recording([("a", 500, 29_000, 100)], copies=copies, copying=copying, captured=True))
    found = {made.labels[n].name: made.labels[n].kind for n in lane(made, "calls").labels}
    assert found[call] == kind
