"""What runs on several streams of a device, and how much of it at once: against a count of every nanosecond."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profkit.analysis.timeline import records
from profkit.analysis.timeline.trace import build_trace
from profkit.core.types import DeviceStreams, GpuTrace
from tests.analysis.timeline.recordings import recording

NS = 1e-9


def trace_of(
    kernels: list[tuple[int, int, int]],
    copies: Sequence[tuple[int, int, int]] = (),
    devices: tuple[int, ...] = (),
) -> GpuTrace:
    """Of each kernel and copy its stream, start and end in ns."""
    made = recording(
        [(f"kernel{stream}", start, end, None) for stream, start, end in kernels],
        captured=True,
        streams=[stream for stream, _, _ in kernels],
        copies=[("host to device", start, end, 4) for _, start, end in copies],
        copy_streams=[stream for stream, _, _ in copies],
        devices=devices,
    )
    return build_trace(made)[0]


def test_a_copy_beside_a_kernel_and_two_kernels_at_once_are_counted_apart() -> None:
    trace = trace_of([(7, 0, 100), (13, 60, 150), (7, 200, 300)], [(20, 120, 240), (7, 400, 410)])
    (device,) = trace.streams
    assert (device.device, device.computing, device.together) == (
        0,
        pytest.approx(250 * NS),
        pytest.approx(40 * NS),
    )
    seven, twenty, thirteen = device.streams
    assert (seven.stream, seven.kernels, seven.copies, seven.kernel) == (7, 2, 1, "kernel7")
    assert (seven.kernel_seconds, thirteen.stream) == (pytest.approx(200 * NS), 13)
    assert (twenty.stream, twenty.copies, twenty.kernel) == (20, 1, None)
    assert (twenty.copy_seconds, twenty.copies_beside) == pytest.approx((120 * NS, 70 * NS))


def test_one_stream_on_each_device_is_no_program_of_several_streams() -> None:
    assert trace_of([(7, 0, 100), (15, 50, 150)], devices=(0, 1)).streams == ()
    assert trace_of([(7, 0, 100), (7, 150, 250)], [(7, 100, 150)]).streams == ()


INTERVALS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 30)).map(
        lambda i: (i[0], i[1], i[1] + i[2])
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(
    INTERVALS, st.lists(st.tuples(st.just(9), st.integers(0, 60), st.just(90)), max_size=2), st.integers(1, 5)
)
def test_every_nanosecond_counts_once_wherever_blocks_end(
    kernels: list[tuple[int, int, int]], copies: list[tuple[int, int, int]], block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "BLOCK", block)
        streams = trace_of(kernels, copies).streams
    used = {stream for stream, _, _ in (*kernels, *copies)}
    if len(used) < 2:
        assert streams == ()
        return
    (device,) = streams
    running = [{s for s, start, end in kernels if start <= now < end} for now in range(100)]
    copying = [any(start <= now < end for _, start, end in copies) for now in range(100)]
    assert device.computing == pytest.approx(sum(map(bool, running)) * NS)
    assert device.together == pytest.approx(sum(len(now) > 1 for now in running) * NS)
    assert _beside(device, 9) == pytest.approx(
        sum(c and bool(r) for c, r in zip(copying, running, strict=True)) * NS
    )
    for one in device.streams:
        mine = [now for now in running if one.stream in now]
        assert one.kernel_seconds == pytest.approx(len(mine) * NS)


def _beside(device: DeviceStreams, stream: int) -> float:
    return sum(one.copies_beside for one in device.streams if one.stream == stream)
