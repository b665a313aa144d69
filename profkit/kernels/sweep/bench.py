"""The worker of a sweep: it makes a point's inputs, checks implementations against float64, and times them.

It survives wrong results and refusals; what ends it (a segmentation fault, a device that no longer answers)
costs the case that was running. Imports torch, so only the worker's process imports this.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from profkit.core import codec, statistics
from profkit.core.types import CaseResult, Fact, GridPoint, Json, SampleSet
from profkit.execution.worker import DeviceError, limit_memory
from profkit.kernels.operations.definitions import Call, Draw, FactError, Problem, Tensor
from profkit.kernels.operations.float64_check import (
    RepeatedCheck,
    check_result,
    fingerprint,
    own_tensors,
    reference_result,
    result_tensors,
)
from profkit.kernels.operations.registry import OPERATIONS, Unavailable, build_call, run_file
from profkit.kernels.sweep.device import call_memory, describe_device, free_memory, measure_ceilings, wait_for
from profkit.kernels.sweep.request import TimingOptions

MAX_STORED = 100  # of a case that are stored: a thousand cases with all of them would be 10 MB and more
DIGITS = 6  # that are kept of a time: a device's clock has four


class MeasuringWorker:
    """A worker that measures implementations on `device`, after it has run the users' `files`."""

    def __init__(self, device: str, *files: str) -> None:
        for file in files:
            run_file(Path(file))
        self._device = device
        self._bench: Any = None

    def open(self, settings: dict[str, Any]) -> Json:
        """Describe the device; the first worker also measures its ceilings."""
        timing = TimingOptions(**settings["timing"])
        self._bench = Bench(self._device, timing)
        device = self._bench.device
        roofs = codec.to_plain_data(measure_ceilings(device)) if settings["first"] else None
        return {**describe_device(device), "roofs": roofs}

    def run(self, data: Any) -> Json:
        """Measure one implementation at one point. Raises DeviceError."""
        point = codec.from_plain_data(GridPoint, data["point"])
        return codec.to_plain_data(self._bench.measure(point, data["implementation"]))


@dataclass(frozen=True)
class _Point:
    """What all implementations share at one point."""

    problem: Problem
    expected: tuple[Tensor, ...]
    second: RepeatedCheck
    numbers: Any  # the fingerprint of its inputs


class Bench:
    """A device, its clock, and the last point, whose inputs and reference are kept."""

    def __init__(self, device: str, timing: TimingOptions) -> None:
        self.device, self._timing = torch.device(device), timing
        self._timer: Any = None
        self._point: _Point | None = None
        if timing.threads:
            torch.set_num_threads(timing.threads)
        if self.device.type == "cuda":
            torch.zeros(1, device=self.device)  # the context is made before anything is timed
            torch.cuda.set_device(self.device)

    def measure(self, point: GridPoint, name: str) -> CaseResult:
        """Return the result of one implementation. Raises DeviceError."""
        begin = perf_counter()
        try:
            at = self._prepare(point)
        except Exception as error:
            self._recover(error)
            if _is_memory(error):
                return CaseResult(point, name, "too large", Fact.of("out-of-memory", _message(error)))
            return CaseResult(point, name, "failed", Fact.of("inputs-fail", _message(error)))
        result = self._measure_case(at, name)
        if result.state == "too large":  # what the cases before left may have been in its way
            result = self._measure_case(at, name)
        if fingerprint(at.problem) != at.numbers:  # those after it would be measured with what it left
            self._point = None
            if result.state in ("measured", "wrong"):
                result = _without_time(result, Fact("changes-inputs"))
        return replace(result, spent=perf_counter() - begin)

    def _prepare(self, point: GridPoint) -> _Point:
        """Make the inputs and the reference of a point, unless it is the last one."""
        if self._point is None or self._point.problem.point != point:
            self._point = None
            if self.device.type == "cpu":
                limit_memory(free_memory(self.device))
            problem = make_problem(point, self.device)
            expected = reference_result(problem)
            second = RepeatedCheck(problem, expected)
            self._point = _Point(problem, expected, second, fingerprint(problem))
        return self._point

    def _measure_case(self, at: _Point, name: str) -> CaseResult:
        """Check and time one implementation; any failure becomes a state of the result."""
        problem, expected = at.problem, at.expected
        operation, point = problem.operation, problem.point
        result = CaseResult(
            point,
            name,
            "failed",
            flops=operation.flops(point),
            bytes=operation.bytes(point),
            device=self.device.index,
        )
        try:
            begin = perf_counter()
            call = build_call(name, own_tensors(problem))
            value = call()
            self._wait()
            result = replace(result, first=perf_counter() - begin)
            result = replace(result, error=check_result(problem, result_tensors(value), expected))
            del value
            inputs = [*problem.inputs, *([problem.above] if problem.above is not None else [])]
            result = replace(result, memory=call_memory(call, inputs, self.device, self._wait))
            result = self._time_call(call, result)
            at.second.ask(problem, call, self._wait)
            return result
        except Unavailable as missing:
            return replace(result, state="unavailable", reason=missing.reason, fix=missing.fix)
        except FactError as wrong:
            return _without_time(result, wrong.reason)
        except Exception as error:
            self._recover(error)
            if _is_memory(error):
                return replace(result, state="too large", reason=Fact.of("out-of-memory", _message(error)))
            return replace(result, state="failed", reason=_message(error))
        finally:
            gc.collect(0)

    def _time_call(self, call: Call, result: CaseResult) -> CaseResult:
        """Return the result with its times."""
        samples = self._sample(call)
        seconds = samples.seconds
        return replace(
            result,
            state="measured",
            median=statistics.median(seconds),
            half_width=statistics.relative_half_width(seconds),
            samples=len(seconds),
            precise=samples.precise,
            seconds=thin_out(seconds),
            clock=samples.clock,
            calls=samples.loops if samples.clock != "wall" else result.calls,
            cache="cold" if samples.clock == "cuda-events" else "warm",
            clocks=samples.clocks,
            throttled=samples.throttle_reasons,
            remarks=samples.remarks,
        )

    def _sample(self, call: Call) -> SampleSet:
        """Sample the call's time, with a flushed L2 on a GPU."""
        timing = self._timing
        if self.device.type == "cuda":
            from profkit.kernels.sweep.device import time_cold

            clock, watch = self._clock()
            return time_cold(call, clock, watch, precision=timing.precision, max_seconds=timing.budget)
        from profkit.runtime.passes.timing import TimedCalls, time_calls

        calls = TimedCalls(call)
        from profkit.runtime.passes.processor import ProcessorWatch

        with ProcessorWatch() as calls.watch:
            return time_calls(calls, precision=timing.precision, max_seconds=timing.budget)

    def _clock(self) -> Any:
        """Return the device's clock and watch, opened once."""
        if self._timer is None:
            from profkit.runtime.passes.device_samples import DeviceWatch, open_clock
            from profkit.runtime.region.cuda import driver_in_use

            driver = driver_in_use()
            if driver is None:
                raise RuntimeError("the CUDA driver is not in use in this process")
            clock = open_clock(driver)
            self._timer = (clock, DeviceWatch(clock.address()))
        return self._timer

    def _wait(self) -> None:
        """Wait for the device."""
        wait_for(self.device)

    def _recover(self, error: BaseException) -> None:
        """Go on after an error, or raise DeviceError where the device does not answer any more."""
        if self.device.type != "cuda":
            return
        with suppress(Exception):
            error.__traceback__ = None  # frames hold tensors
        try:
            torch.cuda.synchronize(self.device)
            torch.cuda.empty_cache()
        except Exception as dead:
            raise DeviceError(_error_text(error)) from dead


def _without_time(result: CaseResult, why: Fact) -> CaseResult:
    """Return a wrong case without a time, measured or not."""
    return replace(
        result,
        state="wrong",
        reason=why,
        median=None,
        half_width=None,
        samples=0,
        precise=False,
        seconds=(),
        clocks=(),
        throttled=(),
    )


def thin_out(seconds: Sequence[float]) -> tuple[float, ...]:
    """Return at most MAX_STORED samples, evenly chosen and in order, with as many digits as a clock has."""
    step = max(1.0, len(seconds) / MAX_STORED)
    chosen = (seconds[int(place * step)] for place in range(min(MAX_STORED, len(seconds))))
    return tuple(float(f"{each:.{DIGITS}g}") for each in chosen)


def make_problem(point: GridPoint, device: torch.device) -> Problem:
    """Make the point's inputs on the device: the same numbers every time, for every implementation."""
    draw = Draw(point, device)
    operation = OPERATIONS[point.operation]
    inputs = operation.inputs(point, draw)
    above = operation.upstream_gradient(point, draw, inputs) if point.direction == "backward" else None
    return Problem(point, operation, inputs, above)


def _is_memory(error: BaseException) -> bool:
    """Return whether an error is a lack of memory."""
    message = str(error)
    words = ("not enough memory", "can't allocate memory")  # torch's allocator for the CPU
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(word in message for word in words)


def _message(error: BaseException) -> Fact:
    """Return the error's text as a fact."""
    return Fact.message(_error_text(error))


def _error_text(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line[:300]}" if line else type(error).__name__
