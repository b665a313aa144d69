"""What cannot be in a report or a run, whoever wrote it: parts above their whole, windows of decades, counts below 0.

A file that holds such a thing is refused: which of its numbers is wrong cannot be known. What may be a fault of
one value alone is marked instead, and decides nothing: `doubt_impossible` for readings, `derive` for counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from profkit.analysis.metrics.catalogue import find_metric, impossible
from profkit.core.errors import UnreadableReport
from profkit.core.formatting import format_quantity
from profkit.core.types import Fact, GpuTrace, KernelTime, Profile, Reading

LONGEST = 1e8  # s: three years. No program was recorded for longer without a pause
# Kernels that one device runs side by side (CUDA C++ Programming Guide, technical specifications).
MAX_CONCURRENT = 128
SLACK = 0.01  # sums and means are printed with three digits and more
# Of these no function has more than all have together. Those of a processor's time add up over its threads.
_PARTS = (
    "own-time",
    "imports",
    "functions",
    "libraries",
    "threads",
    "python-functions",
    "counted-functions",
    "counted-lines",
)


def check_possible(profiles: Sequence[Profile], trace: GpuTrace | None) -> None:
    """Raise UnreadableReport where these cannot be, with what contradicts what."""
    faults = [*(fault for profile in profiles for fault in _profile_faults(profile))]
    if trace is not None:
        faults += _trace_faults(trace)
    if faults:
        raise UnreadableReport(f"{faults[0]}: no tool measured that", "let its tool write it again")


def _profile_faults(profile: Profile) -> Iterable[str]:
    title, total = profile.title, profile.total
    if profile.kind == "own-time" and total > LONGEST:
        yield f"{title}: {_seconds(total)} in all is longer than any program runs"
    for spot in profile.hotspots:
        if spot.calls is not None and spot.calls < 0:
            yield f"{title}: {spot.function[:80]} has {spot.calls} calls"
        if spot.own < 0 or (spot.total or 0.0) < 0:
            yield f"{title}: {spot.function[:80]} has less than none"
        if profile.kind in _PARTS and spot.own > total * (1 + SLACK):
            yield f"{title}: {spot.function[:80]} has {spot.own:.6g} of {total:.6g} {profile.unit} in all"


def _trace_faults(trace: GpuTrace) -> Iterable[str]:
    span, busy = trace.span, trace.busy
    if span is not None and not 0 <= span <= LONGEST:
        yield f"the trace is {_seconds(span)} long, and no machine was recorded for so long"
    if span is not None and busy is not None and not 0 <= busy <= span * (1 + SLACK) + 1e-6:
        yield f"the device is busy for {_seconds(busy)} of {_seconds(span)}"
    for kernel in trace.kernels:
        yield from _kernel_faults(kernel)
    working = sum(kernel.total for kernel in trace.kernels)
    if span is not None and working > MAX_CONCURRENT * max(1, len(trace.device_busy)) * (span + 1e-6):
        yield f"its kernels take {_seconds(working)} of {_seconds(span)}, more than a device runs side by side"
    for copies in trace.transfers:
        if copies.count < 0 or copies.bytes < 0 or copies.seconds < 0:
            yield f"{copies.kind[:80]}: {copies.count} copies of {copies.bytes} bytes"


def _kernel_faults(kernel: KernelTime) -> Iterable[str]:
    name, count, total = kernel.kernel.name[:80], kernel.launches, kernel.total
    if count < 0 or not 0 <= total <= LONGEST * max(1, count):
        yield f"{name}: {count} launches in {_seconds(total)}"
    if kernel.most is not None and total > kernel.most * count * (1 + SLACK) + 1e-9:
        yield f"{name}: {_seconds(total)} for {count} launches of at most {_seconds(kernel.most)}"
    if kernel.least is not None and total < kernel.least * count * (1 - SLACK) - 1e-9:
        yield f"{name}: {_seconds(total)} for {count} launches of at least {_seconds(kernel.least)}"
    ordered = [value for value in (kernel.least, kernel.median, kernel.most) if value is not None]
    if any(late < soon * (1 - SLACK) - 1e-9 for soon, late in pairwise(ordered)):
        yield f"{name}: its shortest, middle and longest launch are not in this order"


def _seconds(value: float) -> str:
    return format_quantity(value, "s")


def doubt_impossible(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """Return the readings, those in doubt whose metric cannot have such a value."""
    return tuple(map(_doubt_impossible, readings))


def _doubt_impossible(reading: Reading) -> Reading:
    info = find_metric(reading.metric)
    if info is None or reading.value is None or reading.doubt is not None or reading.unit != info.unit:
        return reading
    why: Fact | None = impossible(info, reading.value)
    return reading if why is None else replace(reading, doubt=why)
