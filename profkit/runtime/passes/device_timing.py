"""How the device is while it is timed: its clock, and whether it slows itself down. Asked between samples only.

Times a function that leaves its work to a CUDA device: which samples, how many, and whether to believe them.

`seconds` is what a call costs as the workload runs it, back to back: the slower of host and device. Beside it stands
what it costs each of them alone. With `cold`, and with a `setup`, it is the device's time of single calls.

The events' time is held against the wall clock of the same samples: where that says more, work went past the stream
that the events are on (to another stream or device), and where nothing was launched there, there was nothing to time.
In both cases the caller is told, and takes the wall clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_void_p
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

from profkit.core.statistics import median
from profkit.core.types import SampleSet
from profkit.hardware.nvml import REASONS, SM_CLOCK, Nvml, NvmlError, open_nvml
from profkit.runtime.passes.device_samples import DeviceCalls, DeviceSample
from profkit.runtime.passes.timing import (
    MOST_SAMPLES,
    SampleAssessment,
    assess_samples,
    sample_until,
)


class DeviceState(NamedTuple):
    """One look: SM clock in Hz, and the bits of REASONS that hold."""

    clock: float | None = None
    throttle: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        """The reasons in words."""
        return tuple(word for bit, word in REASONS.items() if self.throttle & bit)


class DeviceWatch:
    """Looks at one device. Where the driver does not tell, every look is empty."""

    def __init__(self, address: bytes | None) -> None:
        self._device: c_void_p | None = None
        try:
            self._library: Nvml = open_nvml()
        except (OSError, NvmlError):
            return
        self._device = self._library.by_bus(address) if address is not None else None

    def look(self) -> DeviceState:
        """The device as it is now; some tens of microseconds."""
        if self._device is None:
            return DeviceState()
        clock = self._library.number("nvmlDeviceGetClockInfo", self._device, SM_CLOCK)
        return DeviceState(clock * 1e6 if clock else None, self._library.slowdowns(self._device))


# The first launch of a sample finds an idle device and shows: 5 to 15 µs on an H200. Of 4 ms that is below 0.4 %.
SAMPLE_SECONDS = 4e-3
MOST_LOOPS = 1 << 16
CLOCK_TOLERANCE = 1.05  # host and device, and two clocks, are told apart from here on
WAIT_SECONDS = 30e-6  # what waiting for an idle device may cost a sample by the wall clock (10 µs on an H200)
# Per call: two events with nothing between them lie 1.3 µs apart, the shortest kernel 2 µs
EMPTY_SECONDS = 0.2e-6
CHECKS, DOUBTED, ALONE_FIRST, ALONE = 5, 15, 3, 15
CHECK_SHARE = 10  # each of these may take a tenth of the budget


class EventTimingError(Exception):
    """The events do not enclose the work; the sentence says why."""


@dataclass
class _SampleLog:
    """Samples, as many as were taken at once together with what the device said right after."""

    blocks: list[tuple[list[float], DeviceState]] = field(default_factory=list)
    count: int = 0

    def add(self, seconds: list[float], state: DeviceState) -> None:
        if seconds:
            self.blocks.append((seconds, state))
            self.count += len(seconds)

    def kept(self) -> list[tuple[list[float], DeviceState]]:
        """The blocks that count: those of an unhindered device; all, where those are less than half of the samples."""
        free = [block for block in self.blocks if not block[1].throttle]
        return free if 2 * sum(len(seconds) for seconds, _ in free) >= self.count else self.blocks

    def seconds(self) -> list[float]:
        return [value for seconds, _ in self.kept() for value in seconds]

    def clocks(self) -> tuple[float, ...]:
        return tuple(state.clock for _, state in self.kept() if state.clock is not None)

    def reasons(self) -> tuple[str, ...]:
        bits = 0
        for _, state in self.blocks:
            bits |= state.throttle
        return tuple(word for bit, word in REASONS.items() if bits & bit)


def time_on_device(
    calls: DeviceCalls,
    watch: DeviceWatch,
    *,
    precision: float,
    budget: float,
    warmup: int = 1,
) -> SampleSet:
    """Samples of `calls` until the median's 95 % interval is ±`precision` (relative) or `budget` seconds are gone.

    Raises EventTimingError where the wall clock must be used, DriverError, and what the function raises.
    """
    begin = perf_counter()
    warm = _calibrate_loops(calls, budget)
    if perf_counter() - begin >= budget:
        return SampleSet(
            (warm[-1].wall,), calls.loops, warm=False, precise=False, spent=perf_counter() - begin
        )
    while len(warm) < warmup and perf_counter() - begin < budget / 2:
        warm.append(calls.back_to_back(calls.loops))
    checks = _check_events(calls, warm[-1], budget)
    like = _median_sample(checks)
    calls.fit_blocks(like)
    single = calls.cold or calls.setup is not None
    alone = (
        []
        if calls.setup is not None
        else calls.sample_alone(_affordable_count(ALONE_FIRST, like, calls, budget))
    )
    if alone and _median_sample(alone).device < EMPTY_SECONDS:
        raise EventTimingError("nothing was launched on the current CUDA stream")
    bound = bool(alone) and like.device <= CLOCK_TOLERANCE * _median_sample(alone).device  # by the device
    # so that an idle device does not wait for the first launch
    stall = 1e-4 + 4 * _median_sample(alone).host if bound else 0.0
    log = _SampleLog()

    def take(_: int) -> list[float]:
        sample = calls.time_singly() if single else [calls.back_to_back(calls.loops, stall).device]
        log.add(sample, watch.look())
        return sample

    def assess(_: object) -> SampleAssessment:
        return assess_samples(log.seconds(), precision)

    sample_until(take, assess, begin=begin, budget=budget)
    samples, assessment = log.seconds(), assess(log)
    seconds = samples[assessment.warmup :]
    if alone and not bound:
        alone = calls.sample_alone(_affordable_count(ALONE, like, calls, budget)) or alone
    device: float | None = None
    if (single and not calls.hurried) or (bound and not single):
        device = median(seconds)
    elif alone and not single:
        device = _median_sample(alone).device
    return SampleSet(
        seconds=tuple(seconds),
        loops=1 if single else calls.loops,
        warmup=tuple(samples[: assessment.warmup])
        if single
        else (*(s.device for s in warm), *samples[: assessment.warmup]),
        warm=assessment.warm,
        precise=assessment.precise,
        spent=perf_counter() - begin,
        clock="cuda-events",
        cache="cold" if calls.cold else "warm",
        batching=_describe_batching(calls, single, bool(alone) and not bound),
        device_seconds=device,
        host_seconds=_median_sample(alone).host if alone else None,
        clocks=log.clocks(),
        throttled=log.count - len(samples),
        throttle_reasons=log.reasons(),
        remarks=tuple(_timing_remarks(checks, calls.loops, single and calls.hurried)),
    )


HOST_WAITS = "the host waits for the device inside a call, so that its launches are in these times"


def _timing_remarks(checks: list[DeviceSample], loops: int, hurried: bool) -> Iterator[str]:
    if hurried:
        yield HOST_WAITS
    least = min(_wall_ratio(check) for check in checks)
    if least > CLOCK_TOLERANCE and min(check.wall - check.device for check in checks) * loops > WAIT_SECONDS:
        yield f"the wall clock saw at least {least - 1:.0%} more than the events: perhaps others keep the host busy"


def _calibrate_loops(calls: DeviceCalls, budget: float) -> list[DeviceSample]:
    """Double `calls.loops` until a sample is long enough; the samples on the way are warm-up."""
    least = max(SAMPLE_SECONDS, budget / MOST_SAMPLES)
    probes = [calls.back_to_back(1)]
    while calls.setup is None and calls.loops < MOST_LOOPS:
        if probes[-1].wall * calls.loops < least:
            calls.loops *= 2
        elif probes[-1].wall * calls.loops > budget / 4:
            break
        probes.append(calls.back_to_back(calls.loops))
        if min(probes[-1].wall, probes[-2].wall) * calls.loops >= least:
            break
    return probes


def _check_events(calls: DeviceCalls, like: DeviceSample, budget: float) -> list[DeviceSample]:
    """Samples whose events enclose the work; raises EventTimingError where they do not.

    Whoever else uses the processor adds to what the wall clock says of some of them, so the least decides.
    """
    most = _affordable_count(DOUBTED, like, calls, budget)
    checks: list[DeviceSample] = []
    while len(checks) < most and (len(checks) < CHECKS or _explain_event_mismatch(checks, calls.loops)):
        checks.append(calls.back_to_back(calls.loops))
    doubt = _explain_event_mismatch(checks, calls.loops)
    if doubt is not None:
        raise EventTimingError(doubt)
    return checks


def _explain_event_mismatch(checks: list[DeviceSample], loops: int) -> str | None:
    rest, event_seconds = (
        min(check.rest for check in checks),
        median([check.device for check in checks]) * loops,
    )
    if rest > max(WAIT_SECONDS, (CLOCK_TOLERANCE - 1) * event_seconds):
        share = event_seconds / (event_seconds + rest)
        return f"CUDA events see {share:.0%} of it: part of the work is on another stream or device"
    least = min(_wall_ratio(check) for check in checks)
    if least < 1 / CLOCK_TOLERANCE:
        return f"CUDA events claim {1 / least:.2f} times the seconds that passed"
    return None


def _wall_ratio(sample: DeviceSample) -> float:
    return sample.wall / max(sample.device, 1e-9)


def _affordable_count(count: int, like: DeviceSample, calls: DeviceCalls, budget: float) -> int:
    return max(1, min(count, int(budget / CHECK_SHARE / max(like.wall * calls.loops, 1e-9))))


def _median_sample(samples: list[DeviceSample]) -> DeviceSample:
    """The medians of the parts."""
    return DeviceSample(
        median([s.device for s in samples]),
        median([s.wall for s in samples]),
        median([s.host for s in samples]),
        True,
    )


def _describe_batching(calls: DeviceCalls, single: bool, alone: bool) -> str | None:
    if single:
        return f"{calls.ahead} calls queued before the first begins" if not calls.hurried else None
    parts = [f"{calls.loops} calls back to back"] if calls.loops > 1 else []
    if alone:
        parts.append(f"the device alone: {calls.queued} queued before the first begins")
    return "; ".join(parts) or None
