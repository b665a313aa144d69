"""What a trace adds up to: against brute force, and against truths that can be counted by hand."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profkit.analysis.timeline import trace as launch_module
from profkit.analysis.timeline.kernel_sums import Durations
from profkit.analysis.timeline.range_paths import MAX_OPEN
from profkit.analysis.timeline.records import Collected, Range, Recording
from profkit.analysis.timeline.time_windows import TimeWindows, merge_intervals
from profkit.analysis.timeline.trace import build_trace
from profkit.core.types import Communication, HoldingCall, HostPauses
from tests.analysis.timeline.recordings import configuration, in_turn, recording
from tests.spoken import spoken

NS = 1e-9
REGION = Range("mlp", "profkit", 1000, 2000, 0, None)


def test_a_region_counts_what_was_launched_in_it_and_all_its_time() -> None:
    kernels = [
        ("before", 500, 900, 400),
        ("a", 1100, 1300, 1050),
        ("b", 1250, 1500, 1060),  # overlaps a
        ("late", 1800, 2300, 1700),  # runs on after the region's end
        ("after", 2400, 2500, 2350),
    ]
    trace, notes = build_trace(recording(kernels, ranges=[REGION]))
    assert {k.kernel.name: k.launches for k in trace.kernels} == {"a": 1, "b": 1, "late": 1}
    assert trace.marked
    assert trace.launches == 3
    assert trace.span == pytest.approx(1300 * NS)  # 1000 to 2300
    assert trace.busy == pytest.approx((400 + 500) * NS)
    # Idle: 1000-1100, 1500-1800. Until 1050 and from 1500 to 1700 the host had launched nothing; a call takes 2.
    assert trace.starved == pytest.approx((52 + 202) / 400)
    assert trace.largest_gap == pytest.approx(300 * NS)
    assert trace.setup_seconds == pytest.approx(400 * NS)
    assert trace.launch_latency == pytest.approx(100 * NS)
    assert trace.launch_call == pytest.approx(2 * NS)
    assert notes == ()


def test_the_wait_after_the_last_kernel_of_a_region_is_want_of_work() -> None:
    trace, _ = build_trace(recording([("a", 1000, 1400, 990)], ranges=[REGION._replace(start=980)]))
    assert trace.span == pytest.approx(1020 * NS)
    assert trace.starved == pytest.approx((10 + 2 + 600) / 620)


def test_only_what_a_device_waits_for_over_a_millisecond_without_a_launch_is_a_pause() -> None:
    us = 1000
    kernels = [
        ("a", 10 * us, 20 * us, 5 * us),
        ("b", 2500 * us, 2600 * us, 2400 * us),  # launched 2,380 us after the end of a
        ("c", 3000 * us, 3100 * us, 2990 * us),  # 400 us
        ("d", 9000 * us, 9100 * us, 3095 * us),  # queued, and waited for an event
    ]
    trace, _ = build_trace(recording(kernels, captured=True, call_ns=0))
    assert trace.pauses == HostPauses(1, pytest.approx(2380e-6), pytest.approx(2380e-6))


def test_calls_that_hold_the_host_count_for_what_the_device_waits_in_them() -> None:
    us = 1000
    kernels = [
        ("a", 10 * us, 20 * us, 5 * us),
        ("b", 500 * us, 600 * us, 490 * us),  # nothing is launched from 20 to 490
        ("c", 5000 * us, 5100 * us, 4990 * us),  # a pause from 600 to 4990
    ]
    calls = [
        ("cuModuleLoadData", 15 * us, 120 * us),  # 5 us of it while a runs
        ("cuModuleUnload", 100 * us, 130 * us),  # of which 10 us are behind the call around it
        ("cudaEventRecord", 200 * us, 300 * us),  # is a part of launching
        ("cuModuleLoadData", 3000 * us, 3500 * us),
        ("cudaFree", 6000 * us, 7000 * us),  # behind all of it
    ]
    made = recording(kernels, calls=calls, captured=True, call_ns=0)
    trace, _ = build_trace(made)
    assert trace.holding == (
        HoldingCall("cuModuleLoadData", 2, 1, pytest.approx(600e-6), pytest.approx(500e-6)),
        HoldingCall("cuModuleUnload", 1, 0, pytest.approx(10e-6)),
        HoldingCall("cudaFree", 1, 1, 0.0),
    )


def test_only_the_thread_that_launches_is_held_up() -> None:
    kernels = [("a", 1000, 2000, 900), ("b", 9000, 9900, 8900)]
    others = recording(kernels, calls=[("cudaHostAlloc", 3000, 8000)], captured=True, threads=[1, 1])
    assert build_trace(others)[0].holding == ()
    own = recording(kernels, calls=[("cudaHostAlloc", 3000, 8000)], captured=True)
    assert build_trace(own)[0].holding == (HoldingCall("cudaHostAlloc", 1, 0, pytest.approx(5e-6)),)


@pytest.mark.parametrize(
    ("kind", "size", "after"),
    [("device to host", 16 << 20, 9.0), ("device to host", 4, 0.0), ("host to device", 16 << 20, 0.0)],
)
def test_pauses_that_begin_after_a_large_copy_to_the_host_are_told(
    kind: str, size: int, after: float
) -> None:
    """Ten steps of a kernel, a copy, and 1 ms in which the host works before it launches the next one."""
    step, us = 1_200_000, 1000
    kernels = [("push", at, at + 50 * us, at - 5 * us) for at in range(step, 11 * step, step)]
    copies = [(kind, at + 60 * us, at + 160 * us, size) for _, at, _, _ in kernels]
    trace, _ = build_trace(recording(kernels, copies=copies, captured=True, call_ns=0))
    assert trace.pauses is not None
    assert trace.pauses.count == 9
    assert trace.pauses.after_copies == pytest.approx(after * 1035e-6)


def test_a_call_that_loads_its_code_first_has_queued_nothing_meanwhile() -> None:
    kernels = [("a", 10_000, 10_100, 1000), ("b", 20_000, 20_100, 10_200)]
    trace, _ = build_trace(recording(kernels, captured=True, call_ns=9_500))  # done at 10,500 and 19,700
    assert trace.starved == pytest.approx((19_700 - 10_100) / 9_900)
    # a kernel may begin before its call is done, which then has no say
    trace, _ = build_trace(recording(kernels, captured=True, call_ns=50_000))
    assert trace.starved == 1.0


def test_a_region_entered_often_is_the_sum_of_its_entries() -> None:
    entries = [REGION._replace(start=1000, end=1200), REGION._replace(start=5000, end=5200)]
    kernels = [("a", 1100, 1200, 1010), ("x", 3000, 3900, 2900), ("a", 5100, 5200, 5010)]
    trace, _ = build_trace(recording(kernels, ranges=entries))
    assert trace.span == pytest.approx(400 * NS)
    assert trace.busy == pytest.approx(200 * NS)
    (kernel,) = trace.kernels
    assert (kernel.launches, kernel.ranges) == (2, ("mlp",))
    (entry,) = trace.ranges
    assert (entry.entries, entry.kernels) == (2, 2)
    assert entry.gpu_seconds == pytest.approx(200 * NS)
    assert entry.seconds == pytest.approx(400 * NS)


def test_work_queued_behind_a_copy_is_no_want_of_work() -> None:
    """Kernel b was launched long before, but waits for the copy that c's launch does not concern."""
    kernels = [("a", 1000, 1100, 990), ("c", 1500, 1600, 1490), ("b", 1700, 1800, 995)]
    trace, _ = build_trace(recording(kernels, captured=True))
    assert trace.starved == 0


def test_several_regions_are_told_apart_and_each_kernel_knows_its_own() -> None:
    regions = [
        Range("first", "profkit", 1000, 1500, 0, None),
        Range("second", "profkit", 2000, 2500, 0, None),
    ]
    kernels = [("a", 1100, 1200, 1050), ("both", 1300, 1350, 1210), ("both", 2100, 2200, 2050)]
    trace, _ = build_trace(recording(kernels, ranges=regions))
    assert {k.kernel.name: set(k.ranges) for k in trace.kernels} == {
        "a": {"first"},
        "both": {"first", "second"},
    }
    assert {r.name: r.kernels for r in trace.ranges} == {"first": 2, "second": 1}


def test_two_regions_in_two_threads_at_once_hold_each_its_own_thread_and_both_a_third() -> None:
    kernels = [("a", 1100, 1200, 1050), ("b", 1200, 1300, 1060), ("c", 1300, 1400, 1070)]
    first = recording(kernels, threads=[1, 2, 3])
    # threads are numbered by the reader; here they are what the test gave
    regions = [Range("one", "profkit", 1000, 2000, 0, 1), Range("two", "profkit", 1000, 2000, 0, 2)]
    trace, _ = build_trace(replace(first, ranges=tuple(regions)))
    assert {k.kernel.name: set(k.ranges) for k in trace.kernels} == {
        "a": {"one"},
        "b": {"two"},
        "c": {"one", "two"},  # autograd launches from a thread of its own
    }


def test_a_range_of_somebody_else_holds_its_own_thread_only_and_restricts_nothing() -> None:
    kernels = [("a", 1100, 1200, 1050), ("b", 1200, 1300, 1060), ("c", 4000, 4100, 3990)]
    other = Range("layer", None, 1000, 2000, 0, 1)
    trace, _ = build_trace(recording(kernels, threads=[1, 2, 1], ranges=[other]))
    assert {k.kernel.name: k.ranges for k in trace.kernels} == {"a": ("layer",), "b": (), "c": ()}
    assert not trace.marked


def test_nested_ranges_all_hold_a_kernel_once() -> None:
    ranges = [Range("outer", None, 0, 9000, 0, 0), Range("inner", None, 1000, 2000, 0, 0)] * 2
    trace, _ = build_trace(recording([("a", 1100, 1200, 1050)], ranges=ranges, captured=True))
    assert set(trace.kernels[0].ranges) == {"outer", "inner"}
    assert {r.name: (r.entries, r.kernels) for r in trace.ranges} == {"outer": (2, 1), "inner": (2, 1)}


def test_ranges_inside_of_too_many_others_are_in_no_sum() -> None:
    ranges = [Range(f"r{depth}", None, depth, 9000 - depth, 0, 0) for depth in range(MAX_OPEN + 2)]
    trace, _ = build_trace(recording([("a", 1100, 1200, 1050)], ranges=ranges, captured=True))
    launched = {each.name for each in trace.ranges if each.kernels}
    assert launched == {f"r{depth}" for depth in range(MAX_OPEN)}


def test_the_times_in_which_the_profiler_was_on_are_the_part_that_counts() -> None:
    kernels = [
        ("init", 500, 900, 400),
        ("a", 1100, 1200, 1050),
        ("b", 5100, 5200, 5050),
        ("x", 3000, 3100, 2990),
    ]
    trace, _ = build_trace(
        recording(sorted(kernels, key=lambda k: k[1]), profiler=[(1000, 2000), (5000, 6000)])
    )
    assert {k.kernel.name for k in trace.kernels} == {"a", "b"}
    assert trace.marked
    assert trace.setup_seconds == pytest.approx(400 * NS)


def test_a_kernel_whose_launch_was_not_recorded_counts_by_its_start_and_is_not_judged() -> None:
    kernels = [("a", 1000, 1100, None), ("b", 1200, 1300, None)]
    trace, _ = build_trace(recording(kernels, captured=True))
    assert trace.launches == 2
    assert (trace.starved, trace.launch_latency, trace.launch_call) == (None, None, None)
    assert trace.largest_gap == pytest.approx(100 * NS)


def test_two_devices_are_busy_by_their_mean() -> None:
    kernels = [("a", 1000, 2000, 990), ("b", 1000, 1500, 995)]
    trace, _ = build_trace(
        recording(kernels, devices=[0, 1], ranges=[Range("r", "profkit", 1000, 2000, 0, None)])
    )
    # launched before the region: nothing of it counts
    assert trace.launches == 0
    trace, _ = build_trace(
        recording(kernels, devices=[0, 1], ranges=[Range("r", "profkit", 980, 1980, 0, None)])
    )
    assert trace.busy == pytest.approx((1000 + 500) / 2 * NS)
    assert trace.span == pytest.approx(1020 * NS)
    assert trace.device_busy == pytest.approx((1000 / 1020, 500 / 1020))


def test_a_device_that_works_for_a_tenth_of_the_time_is_not_busy_all_the_time() -> None:
    kernels = [("a", 1000, 2000, 990), ("b", 1000, 1100, 995)]
    trace, _ = build_trace(recording(kernels, devices=[0, 1], captured=True))
    assert (trace.span, trace.busy) == pytest.approx((1000 * NS, 550 * NS))
    assert trace.device_busy == pytest.approx((1.0, 0.1))
    assert trace.largest_gap == pytest.approx(900 * NS)
    # entered twice, and one device has nothing to do in the second entry
    entries = [Range("r", "profkit", 900, 2000, 0, None), Range("r", "profkit", 3000, 4000, 0, None)]
    trace, _ = build_trace(recording([*kernels, ("a", 3000, 4000, 3000)], devices=[0, 1, 0], ranges=entries))
    assert trace.span == pytest.approx(2100 * NS)
    assert trace.device_busy == pytest.approx((2000 / 2100, 100 / 2100))


def test_only_copying_is_what_no_kernel_hides() -> None:
    copies = [
        ("host to device", 1000, 1600, 64),
        ("memset", 2100, 2200, 8),
        ("device to host", 2500, 2600, 64),
    ]
    trace, _ = build_trace(
        recording([("a", 1500, 2000, 990), ("b", 2150, 2550, 1000)], copies=copies, captured=True)
    )
    assert trace.busy == pytest.approx((1000 + 100 + 400) * NS)
    assert trace.copying == pytest.approx((500 + 50 + 50) * NS)
    trace, _ = build_trace(recording([("a", 1500, 2000, 990)], captured=True))
    assert trace.copying == 0


def test_a_device_that_runs_no_kernel_is_none_that_should_work() -> None:
    copies = [("host to device", 1000, 1010, 64)]
    trace, _ = build_trace(recording([("a", 1000, 2000, 990)], devices=[1], copies=copies, captured=True))
    assert trace.busy == trace.span == pytest.approx(1000 * NS)
    assert trace.device_busy == ()


def test_copies_are_busy_time_and_summed_by_kind() -> None:
    copies = [
        ("host to device", 1000, 1100, 4096),
        ("host to device", 1200, 1300, 4096),
        ("memset", 1300, 1310, 8),
    ]
    trace, _ = build_trace(recording([], copies=copies, captured=True))
    assert trace.busy == pytest.approx(210 * NS)
    assert [(t.kind, t.count, t.bytes) for t in trace.transfers] == [
        ("host to device", 2, 8192),
        ("memset", 1, 8),
    ]


def test_code_that_is_loaded_in_the_region_is_told() -> None:
    calls = [
        ("cudaMalloc", 0, 1000),
        ("cuModuleLoadData", 50_001_000, 50_101_000),
        ("cuLibraryLoadData", 90_000_000, 90_500_000),
    ]
    kernels = [("a", 200_000_100, 200_000_200, 200_000_000)]
    region = Range("r", "profkit", 199_000_000, 201_000_000, 0, None)
    _, notes = build_trace(recording(kernels, calls=calls, ranges=[region]))
    assert notes == ()
    _, notes = build_trace(recording(kernels, calls=calls, ranges=[region._replace(start=10)]))
    assert "2 times within the marked region (600 µs)" in spoken(notes[0])


def test_nothing_at_all_is_no_trace_of_zeros() -> None:
    trace, _ = build_trace(recording([]))
    assert (trace.span, trace.busy, trace.starved, trace.largest_gap, trace.setup_seconds) == (None,) * 5
    assert trace.kernels == ()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.integers(0, 300), st.integers(0, 400), st.integers(0, 2)),
        min_size=1,
        max_size=40,
    ),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 800)), min_size=1, max_size=4),
)
def test_busy_and_span_are_what_counting_each_nanosecond_gives(
    shapes: list[tuple[int, int, int, int]], entries: list[tuple[int, int]]
) -> None:
    kernels = [
        (f"k{name}", launch + wait, launch + wait + length, launch) for launch, wait, length, name in shapes
    ]
    ranges = [Range("r", "profkit", begin, begin + length, 0, None) for begin, length in entries]
    trace, _ = build_trace(recording(kernels, ranges=ranges))
    bounds = merge_intervals([(r.start, r.end or 0) for r in ranges])
    inside = [k for k in kernels if any(b <= k[3] <= e for b, e in bounds)]
    assert trace.launches == len(inside)
    assert sum(k.total for k in trace.kernels) == pytest.approx(sum(k[2] - k[1] for k in inside) * NS)
    if not inside:
        assert trace.span is None
        return
    busy = {t for k in inside for t in range(k[1], k[2])}
    assert trace.busy == pytest.approx(len(busy) * NS)
    for kernel in trace.kernels:
        times = [k[2] - k[1] for k in inside if k[0] == kernel.kernel.name]
        assert kernel.median == pytest.approx(statistics.median(times) * NS)
        assert kernel.least == pytest.approx(min(times) * NS)
        assert kernel.most == pytest.approx(max(times) * NS)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10**9)), min_size=1, max_size=300),
    st.integers(1, 50),
)
def test_sums_and_medians_of_groups_are_those_of_the_library(
    pairs: list[tuple[int, int]], block: int
) -> None:
    import numpy as np

    durations = Durations()
    for at in range(0, len(pairs), block):
        part = pairs[at : at + block]
        durations.add(np.array([g for g, _ in part]), np.array([v for _, v in part], dtype=np.int64))
    of = {group: [value for other, value in pairs if other == group] for group, _ in pairs}
    assert durations.summed() == {
        group: (len(own), sum(own), min(own), max(own), statistics.median(own)) for group, own in of.items()
    }


def test_launches_are_joined_across_blocks_and_the_oldest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from profkit.analysis.timeline import records

    monkeypatch.setattr(records, "BLOCK", 7)
    monkeypatch.setattr(launch_module, "MAX_KEPT", 64)
    kernels = in_turn(["a", "b"] * 300)
    trace, _ = build_trace(recording(kernels, captured=True))
    assert trace.launch_latency == pytest.approx(5 * NS)
    assert trace.starved == pytest.approx(0.7)  # of gaps of 10 ns: launched 5 before their end, by calls of 2


def test_windows_give_each_time_its_number() -> None:
    import numpy as np

    windows = TimeWindows(((10, 20), (30, 40)), marked=True, tight=False)
    assert windows.number(np.array([5, 10, 20, 25, 30, 40, 41])).tolist() == [-1, 0, 0, -1, 1, 1, -1]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), min_size=1),
    st.integers(0, 50),
    st.integers(0, 20),
)
def test_a_time_touches_a_window_where_comparing_with_each_says_so(
    pieces: list[tuple[int, int]], start: int, length: int
) -> None:
    windows = TimeWindows(
        merge_intervals((begin, begin + size) for begin, size in pieces), marked=True, tight=False
    )
    found = any(begin <= start + length and start <= end for begin, end in windows.bounds)
    assert windows.touched(start, start + length) == found


def test_a_range_outside_of_what_counts_is_not_told() -> None:
    ranges = [REGION, Range("set-up", None, 100, 900, 0, 3), Range("step", None, 1900, 2600, 0, 3)]
    trace, _ = build_trace(recording([("a", 1100, 1300, 1050)], ranges=ranges))
    assert {found.name: found.entries for found in trace.ranges} == {"mlp": 1, "step": 1}


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [
        ("i", "o", {"i": 5, "o": 5}),  # copy in, compute, copy out
        ("", "o", {"o": 5}),
        ("ii", "", {"i": 10}),
        ("", "", {}),
    ],
)
def test_a_loop_begins_with_its_first_copy_and_ends_with_its_last(
    before: str, after: str, counted: dict[str, int]
) -> None:
    """Set-up copies in too, so often that it could be several iterations; behind the loop comes one copy more."""
    kernels: list[tuple[str, int, int, int | None]] = []
    copies: list[tuple[str, int, int, int]] = []
    at = 0
    for step in ["iiiix", *[before + "k" + after] * 5, "oy" if after else "y"]:
        for what in step:
            if what in "io":
                copies.append((what, at, at + 40, 8))
            else:
                kernels.append((what, at, at + 40, at - 1))
            at += 50
    trace = build_trace(recording(kernels, copies=copies))[0]
    assert (trace.repeats, trace.launches) == (5, 5)
    assert {copy.kind: copy.count for copy in trace.transfers} == counted
    assert trace.span == pytest.approx(((len(before) + 1 + len(after)) * 250 - 10) * 1e-9)


def communication(*kernels: tuple[str, int, int, int]) -> Communication | None:
    """Of kernels as (name, start, end, device)."""
    launched = [(name, start, end, start - 10) for name, start, end, _ in kernels]
    trace, _ = build_trace(recording(launched, devices=[kernel[3] for kernel in kernels]))
    return trace.communication


REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"


def test_communication_is_exposed_where_no_other_kernel_runs() -> None:
    found = communication(("gemm", 1000, 2000, 0), (REDUCE, 1500, 2600, 0), ("gemm", 2500, 3000, 0))
    assert found is not None
    assert (found.seconds, found.exposed, found.waiting) == (
        pytest.approx(1.1e-6),
        pytest.approx(0.5e-6),
        None,
    )
    assert communication(("gemm", 1000, 2000, 0)) is None


def test_a_call_waits_until_the_last_device_has_begun_it() -> None:
    first, second = (REDUCE, 2000, 3000, 0), (REDUCE, 2900, 3000, 1)
    found = communication(("gemm", 1000, 2000, 0), ("gemm", 1000, 2900, 1), first, second)
    assert found is not None
    assert found.waiting == pytest.approx(0.45e-6)
    assert [one.waiting for one in found.by_device] == [pytest.approx(0.9e-6), 0.0]
    assert found.calls == 1
    alone = communication(first, ("gemm", 1000, 2900, 1), second, (REDUCE, 4000, 4100, 1))
    assert alone is not None
    assert alone.waiting is None  # calls that cannot be paired


# A sequence that grows by a token each step: the same kernels with other grids, of products now and then another tile.
GROWING = (
    "norm", "sm90_xmma_gemm_tile{}", "qkv", "fmha", "sm90_xmma_gemm_tile{}", "add", "gelu", "cat", "log_softmax",
    "gather", "out",
)  # fmt: skip


def growing(steps: int, *, warmup: int = 0) -> list[tuple[str, int, int, int | None]]:
    """Steps of which each has launch configurations of its own, but for the last kernels; told by their names."""
    lengths = [*range(1, warmup + 1), *range(1, steps + 1)]
    names = [
        f"{name.format(64 if length < 20 else 128)}#{length if place < 8 else 1}"
        for length in lengths
        for place, name in enumerate(GROWING)
    ]
    kernels, at = [], 1000
    for name in names:
        took = 100 * int(name.partition("#")[2])
        kernels.append((name, at, at + took, at - 5))
        at += took + 10
    return kernels


def test_steps_that_grow_are_steps_though_each_has_launch_configurations_of_its_own() -> None:
    trace, notes = build_trace(growing_recording(growing(60)))
    assert trace.repeats == pytest.approx(60, abs=2)
    assert trace.launches == pytest.approx(60 * len(GROWING), rel=0.05)
    assert any("the part that repeats" in spoken(note) for note in notes)


def test_a_warm_up_that_begins_again_is_not_taken_for_the_two_steps_of_the_workload() -> None:
    """The warm-up's 16 steps and the first 16 are two equal pieces; all of them are the loop."""
    trace, _ = build_trace(growing_recording(growing(200, warmup=16)))
    assert trace.repeats == pytest.approx(216, abs=4)


def test_a_step_of_equal_configurations_stays_the_step_it_is() -> None:
    """One that repeats as it is is looked at no further: layers in it have equal names, too."""
    step = [f"{name.format(64)}#{grid}" for grid in (3, 4, 5, 6) for name in GROWING]
    trace, _ = build_trace(growing_recording(in_turn(step * 20)))
    assert trace.repeats == 20


def growing_recording(kernels: list[tuple[str, int, int, int | None]]) -> Recording:
    """Of `name#grid`."""
    collected = Collected()
    for number, (text, start, end, launch) in enumerate(kernels):
        name, _, grid = text.partition("#")
        collected.kernel(configuration(name, int(grid)), start, end, key=number, device=0)
        assert launch is not None
        collected.call("cudaLaunchKernel", launch, launch + 2, key=number, thread=0)
    return Recording("test", collected.activities(), collected.calls(), collected.tables, (), (), False)
