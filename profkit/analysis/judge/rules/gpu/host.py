"""What the host computes while a device waits for it: a place of the program that is no launch, in what is repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import NamedTuple

from profkit.analysis.account.step_places import is_loader, step_places
from profkit.analysis.evidence import RunEvidence, idle_share, kernels_at, outwards, text_at
from profkit.analysis.function_names import place_name
from profkit.analysis.judge.rule import insight_at
from profkit.analysis.judge.rules.gpu.lines import MIN_PER_REPETITION, MIN_WAITS, place_of_line
from profkit.analysis.judge.rules.spots import LOOKS, OTHER, Find, calls_text, pattern_of, place_alone
from profkit.analysis.judge.rules.work.again import is_started_again, started_again, started_share
from profkit.analysis.judge.words import words
from profkit.analysis.kernel_names.owner import is_cudnn_attention, kernel_owner
from profkit.analysis.stacks.python_code import is_users_code
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import CodeSpot, GpuLine, GpuTrace, Insight, LineSamples, Place

PREPARES = 1e-3  # seconds of the host in a call of a line: with less it launches
CALLED_BACK, _TORCH = 8, "/torch/"  # calls in each step: what is called for each of many items
AS_MANY = 0.2  # two parts of the launches, of a run each: that they differ by at most
_ATTENDS = re.compile(r"attention\w*\(|\battn\w*\(|\bmha\(", re.IGNORECASE)
_LOADS = re.compile(r"^cu(?:Library|Module)Load")
_FRAMEWORKS = ("torch", "jax", "jaxlib", "triton", "numba")
_CALLBACK = "/jax/_src/callback.py"
_RANDOM = re.compile(r"^aten::(?:normal|uniform|random|bernoulli|randperm|exponential|multinomial)")


def host_tensors(run: RunEvidence) -> Iterator[Insight]:
    """Find an operation of torch that the host computes in each step, on host tensors, while a device waits."""
    trace, idle = run.trace, idle_share(run)
    if trace is None or idle is None or not trace.line_span or not trace.lines_of:
        return
    least = _often(run)
    repeated_lines: set[tuple[str | None, int | None]] = (
        set()
    )  # lines of functions that give the same each time
    for again in _made_again(run, least):
        yield again.insight
        repeated_lines |= again.lines
    for line in trace.lines:
        if (line.file, line.line) in repeated_lines:
            continue
        made = line.on_host
        share = min(idle, made.seconds / trace.line_span) if made is not None else 0.0
        if made is None or share < OTHER or made.calls < least or _is_loading(run, line):
            continue
        name, _, shape = made.name.removeprefix("aten::").partition(" ")
        sent = any("to device" in transfer.kind for transfer in line.transfers)
        yield Insight(
            "host-tensors",
            f"Compute this on the GPU: {name.strip('_')} of {shape or 'a tensor'} runs on the CPU",
            f"{format_quantity(made.seconds / made.calls, 's')} each time, {percent_text(100 * share)} of a step, in "
            f"which the GPU is idle for {percent_text(100 * idle)}"
            f"{'; then it is copied to the device' if sent else ''}",
            words(f"host-tensors{'.random' if _RANDOM.match(made.name) else ''}", "torch"),
            place_of_line(line),
            run.gain(share, "as if the host did not compute this"),
        )


class _MadeAgain(NamedTuple):
    """`lines` of the function, and those that call it. `stops`: its result goes to the device by copies that wait."""

    insight: Insight
    lines: set[tuple[str | None, int | None]]
    stops: bool


def _made_again(run: RunEvidence, least: float) -> Iterator[_MadeAgain]:
    """Yield functions that get the same arguments each time and compute tensors on the host in each step.

    A method may look at its object, and what draws numbers gives others each time: neither is one.
    """
    trace, idle = run.trace, idle_share(run) or 0.0
    if trace is None or not trace.line_span:
        return
    own: dict[tuple[str | None, str | None], list[LineSamples]] = {}
    for line in (sample for every in run.document.sampled if not every.native for sample in every.lines):
        if line.arguments == 1 and line.looks >= LOOKS and line.function and "." not in line.function:
            own.setdefault((line.file, line.function), []).append(line)
    for (file, function), samples in own.items():
        lines = [line for line in trace.lines if (line.file, line.function) == (file, function)]
        made = [line for line in lines if line.on_host is not None and line.on_host.calls >= least]
        drawn = any(_RANDOM.match(line.on_host.name) for line in lines if line.on_host is not None)
        share = min(idle, sum(line.seconds for line in lines) / trace.line_span)
        if not made or drawn or share < OTHER or any(line.launches for line in lines):
            continue
        largest = max(made, key=lambda line: line.seconds)
        callers = {(caller.file, caller.line) for sample in samples for caller in sample.callers}
        name = place_name(place_of_line(largest))
        text = f"{name} runs on the CPU for {percent_text(100 * share)} of a step; meanwhile the GPU is idle for "
        text += (
            f"{percent_text(100 * idle)}; {max(sample.looks for sample in samples)} observed calls "
            "had the same arguments"
        )
        sent = [_pageable(line) for line in trace.lines if (line.file, line.line) in callers]
        stops = sum(sent) >= least and mean_kernel(trace) >= (trace.launch_call or 0.0)
        if stops:  # without them the host would be ahead of the kernels
            share, text = (
                idle,
                f"{text}; its copy to the device waits for all kernels before it: pageable memory",
            )
        bound = (
            "as if the GPU waited for the host no more" if stops else "as if the host did not compute this"
        )
        insight = insight_at(
            "made-again",
            f"Make what {name} returns once, and keep it on the device: its arguments are the same each time",
            text,
            place_of_line(largest),
            run.gain(share, bound),
        )
        yield _MadeAgain(insight, {*((line.file, line.line) for line in lines), *callers}, stops)


def _pageable(line: GpuLine) -> int:
    """Return how many copies from pageable memory to the device a line makes."""
    sent = (transfer for transfer in line.transfers if transfer.kind == "host to device")
    return sum(part.count for transfer in sent for part in transfer.memory if part.kind == "pageable")


def mean_kernel(trace: GpuTrace) -> float:
    """Return the mean seconds of a kernel."""
    return sum(kernel.total for kernel in trace.kernels) / max(
        1, sum(kernel.launches for kernel in trace.kernels)
    )


def stops_in_each_step(run: RunEvidence) -> bool:
    """Return whether the host waits in each step for the copy of something that is the same each time."""
    return any(made.stops for made in _made_again(run, _often(run)))


def _often(run: RunEvidence) -> float:
    """Return the recorded calls at a line that is part of each step."""
    trace = run.trace
    if trace is None or not trace.line_span or not trace.lines_of:
        return inf
    return max(MIN_WAITS, MIN_PER_REPETITION * (trace.repeats or 0)) * min(
        1.0, trace.line_span / trace.lines_of
    )


def _is_loading(run: RunEvidence, line: GpuLine) -> bool:
    """Return whether a loader of torch works below a line: what it joins to a batch belongs on the host."""
    for sampled in run.document.sampled:
        for sample in sampled.lines if not sampled.native else ():
            if (sample.file, sample.line) != (line.file, line.line):
                continue
            text = sample.code.text if sample.code is not None else ""
            loaders = (name for name, held in sample.variables.items() if held.type.endswith("DataLoader"))
            below = any(is_loader(called.file) for called in sample.callees)
            if below or (
                any(name in text for name in loaders) and (text.startswith("for ") or "next(" in text)
            ):
                return True
    return False


def preparing_line(run: RunEvidence) -> GpuLine | None:
    """Return a line in which cuDNN prepares kernels again and again, because of new shapes.

    Each call takes milliseconds of the host, and code is loaded in that time.
    """
    trace = run.trace
    if trace is None or not trace.line_span or (idle_share(run) or 0.0) < OTHER:
        return None
    loads = sum(call.calls for call in trace.api if _LOADS.match(call.name))
    line = max(trace.lines, key=lambda gpu_line: gpu_line.seconds, default=None)
    if line is None or line.waits or min(loads, line.calls) < MIN_WAITS:
        return None
    slow = line.seconds >= PREPARES * line.calls and line.seconds >= MIN_PER_REPETITION * trace.line_span
    own = kernels_at(run, place_of_line(line)) if slow else ()
    of_cudnn = any(kernel_owner(kernel.kernel.name) == "cudnn" for kernel in own)
    return line if of_cudnn or (slow and launches_cudnn_attention(run, place_of_line(line))) else None


def launches_cudnn_attention(run: RunEvidence, place: Place) -> bool:
    """Return whether a line launches cuDNN's kernels of attention.

    They may be known to no line, since each new length has kernels of its own. Then it is a line that calls attention,
    and launches as large a part of all kernels as they are.
    """
    trace = run.trace
    if trace is None:
        return False
    if any(is_cudnn_attention(kernel.kernel.name) for kernel in kernels_at(run, place)):
        return True
    lost = [kernel for kernel in trace.kernels if is_cudnn_attention(kernel.kernel.name) and not kernel.file]
    launched = sum(
        line.launches for line in trace.lines if (line.file, line.line) == (place.file, place.line)
    )
    every = sum(line.launches for line in trace.lines)
    if not lost or not launched or not trace.launches or not _ATTENDS.search(text_at(run, place)):
        return False
    of_kernels = sum(kernel.launches for kernel in lost) / trace.launches
    return abs(launched / every - of_kernels) <= AS_MANY * of_kernels


def called_back(run: RunEvidence, line: GpuLine) -> tuple[LineSamples, float] | None:
    """Return the function that a library calls back below a line for many items, and how often in a step.

    A function of the library that was seen below the line calls it; torch itself calls a model's `forward`, which is
    none. How often is not more than each of its lines calls torch. Of several the one with most calls.
    """
    trace = run.trace
    if trace is None or not trace.repeats or not trace.line_span or not trace.lines_of:
        return None
    steps = trace.repeats * min(1.0, trace.line_span / trace.lines_of)
    lines = [sample for every in run.document.sampled if not every.native for sample in every.lines]
    below = {
        (frame.file, frame.function)
        for sample in lines
        if (sample.file, sample.line) == (line.file, line.line)
        for frame in (*sample.callees, *sample.below)
        if not is_users_code(frame.file) and _TORCH not in (frame.file or "").replace("\\", "/")
    }
    found: dict[tuple[str | None, str | None], LineSamples] = {}
    for sample in lines:
        caller = max(sample.callers, key=lambda frame: frame.value, default=None)
        if caller is not None and (caller.file, caller.function) in below:
            found.setdefault((sample.file, sample.function), sample)
    calls = {
        function: min(own) / steps
        for function in found
        if (own := [other.calls for other in trace.lines if (other.file, other.function) == function])
    }
    most = max(calls, key=calls.__getitem__, default=None)
    return (found[most], calls[most]) if most is not None and calls[most] >= CALLED_BACK else None


def calls_framework(run: RunEvidence, spot: CodeSpot) -> bool:
    """Return whether the host mostly launches work at a place, or waits for it: no work of the program itself."""
    if _is_framework(spot):
        return True
    lines = run.trace.lines if run.trace is not None else ()
    here = (line for line in lines if (line.file, line.line) == (spot.where.file, spot.where.line))
    return any(line.launches or line.waits or line.transfers for line in here)


def _is_framework(spot: CodeSpot) -> bool:
    """Return whether a place is in a call of the framework, and not of its loader of data."""
    under = spot.under
    return under is not None and under.library in _FRAMEWORKS and under.name not in ("__next__", "__iter__")


def host_callbacks(run: RunEvidence) -> Iterator[Insight]:
    """Yield a function of the program that a compiled step of JAX calls on the host, while the device waits for it."""
    trace, idle = run.trace, idle_share(run)
    if trace is None or idle is None or not trace.span:
        return
    for spot in run.document.hot_spots:
        share = min(idle, spot.seconds / trace.span)
        callers = [place.file or "" for place, _ in outwards(run, spot.where)]
        if share < OTHER or not any(file.replace("\\", "/").endswith(_CALLBACK) for file in callers):
            continue
        yield insight_at(
            "host-callbacks",
            f"Write {place_name(spot.where)} in jax.numpy: JAX calls it on the host in each step",
            f"it takes {percent_text(100 * share)} of the time, in which the GPU is idle for "
            f"{percent_text(100 * idle)}; its arguments are copied to the host before, and its result to the device "
            "after it",
            spot.where,
            run.gain(share, "as if the host did not compute this"),
        )
        return


def explain_idle_device(run: RunEvidence, patterns: tuple[Find, ...]) -> Insight | None:
    """Return what the host itself computes in each step while a device waits, at the place that takes most of it.

    Seconds are those of the run that recorded lines; a place that only launches is for other rules.
    """
    trace, idle = run.trace, idle_share(run)
    if trace is None or idle is None or not trace.lines_of or not trace.lines:
        return None
    repeated_lines = set().union(
        *(made.lines for made in _made_again(run, _often(run)))
    )  # another rule says it of all of them
    for spot, loaded, sampled in step_places(run):
        if (spot.where.file, spot.where.line) in repeated_lines:
            continue
        share = min(idle, sampled)
        here = (line for line in trace.lines if (line.file, line.line) == (spot.where.file, spot.where.line))
        calls = next(here, None)
        # Where they were counted, another rule says it.
        restarted = run.profile("started-workers") is None and _restarts_workers(spot)
        # Of a line that calls torch the time of these calls alone.
        if calls is not None and spot.kind == "library" and trace.line_span and not restarted:
            share = min(share, calls.seconds / trace.line_span)
        if share < OTHER:
            continue
        if restarted:
            return _restarted_workers(run, spot, share)
        loop = _loading_line(run, spot)
        if loop is not None:
            return _slow_loader(run, loop, idle)
        found = pattern_of(run.document, spot, patterns) or _place_of_host(run, spot)
        text = f"{percent_text(100 * share)} of a step"
        if spot.kind == "python":  # all lines of a function that compute by themselves
            text += f" is in {place_name(spot.where)}"
        elif spot.code is not None:
            text += f" is in `{spot.code.text}`"
        text += f", and the GPU is idle for {percent_text(100 * idle)} of it"
        gain = run.gain(share, "as if the host did this while the GPU works, or not at all")
        if not loaded:
            counted = calls_text(spot)
            return replace(found, evidence=f"{text}; {counted}" if counted else text, gain=gain)
        if _runs_in_workers(run, spot):
            return _slow_workers(run, spot, share)
        return insight_at(
            "slow-loader",
            f"Make {place_name(spot.where)} faster, or load in workers: the GPU waits for its data",
            f"{text}; it runs in the process that trains",
            spot.where,
            gain,
        )
    return None


def _runs_in_workers(run: RunEvidence, spot: CodeSpot) -> bool:
    """Return whether a place was sampled in other processes than the main one alone."""
    lines = [line for sampled in run.document.sampled if not sampled.native for line in sampled.lines]
    here = [line for line in lines if (line.file, line.line) == (spot.where.file, spot.where.line)]
    return bool(here) and not any(line.main_wall for line in here)


def _slow_workers(run: RunEvidence, spot: CodeSpot, share: float) -> Insight | None:
    """Return what a loader's workers compute where the process that trains waits for them; None: it does not."""
    waiting = sum(line.main_wall for line in _loading_lines(run, "_MultiProcessing"))
    lines_of = run.trace.lines_of if run.trace is not None else None
    won = min(share, waiting / lines_of) if lines_of else 0.0
    if won < OTHER:
        return None
    return Insight(
        "slow-loader",
        f"Make {place_name(spot.where)} faster, or take more workers: the GPU waits for their batches",
        f"it runs in the workers of a loader; the process that trains waits for them for {percent_text(100 * won)} of "
        "the time",
        words("slow-loader.workers", "torch"),
        spot.where,
        run.gain(won, "as if no batch came late"),
    )


def restarted_workers(run: RunEvidence) -> Iterator[Insight]:
    """Yield the line that starts a loader's workers in each epoch, as it was counted, while the device waits."""
    trace, profile, idle = run.trace, run.profile("started-workers"), idle_share(run)
    if trace is None or profile is None or idle is None or not trace.lines_of:
        return
    for started in profile.hotspots:
        share = min(idle, started_share(started, trace.lines_of))
        if is_started_again(started, trace.lines_of) and share >= OTHER:
            title, text, change = started_again(started, trace.lines_of)
            where = Place(function=started.function, file=started.file, line=started.line)
            evidence = f"{text}; the GPU is idle for {percent_text(100 * idle)}"
            gain = run.gain(share, "as if they were started once")
            yield Insight("restarted-workers", title, evidence, change, where, gain)


def _loading_line(run: RunEvidence, spot: CodeSpot) -> LineSamples | None:
    """Return the line that goes through a loader of torch without workers: a place itself, or one that leads to it."""
    sampled = [line for every in run.document.sampled if not every.native for line in every.lines]
    here = [line for line in sampled if (line.file, line.line) == (spot.where.file, spot.where.line)]
    around = {(line.file, line.line) for line in here}
    around |= {(outer.file, outer.line) for line in here for outer in line.within}
    loading = _loading_lines(run, "_SingleProcess")
    return next((line for line in loading if (line.file, line.line) in around), None)


def _loading_lines(run: RunEvidence, kind: str) -> list[LineSamples]:
    """Return the lines that go through a loader of torch of one kind."""
    return [
        line
        for sampled in run.document.sampled
        if not sampled.native
        for line in sampled.lines
        if line.code is not None
        and any(is_loader(called.file) and kind in called.function for called in (*line.callees, *line.below))
    ]


def _slow_loader(run: RunEvidence, loop: LineSamples, idle: float) -> Insight:
    """Say how long the loader of a line takes, including joining batches, and the dataset line with most of it."""
    here, parts = 0.0, []
    for step_spot in step_places(run):
        if (step_spot.spot.where.file, step_spot.spot.where.line) == (loop.file, loop.line):
            here += step_spot.share
        elif step_spot.loaded:
            parts.append(step_spot)
    share = min(idle, here + sum(step_spot.share for step_spot in parts))
    most = max(parts, key=lambda step_spot: step_spot.share, default=None)
    text = f"{percent_text(100 * share)} of a step is in the loader of "
    text += f"`{loop.code.text if loop.code else ''}` (line {loop.line})"
    text += f", and the GPU is idle for {percent_text(100 * idle)} of it"
    if most is not None and most.share >= OTHER:
        text += f"; {percent_text(100 * most.share)} of a step is in line {most.spot.where.line} of "
        text += place_name(most.spot.where)
    where = Place(function=loop.function, file=loop.file, line=loop.line)
    return insight_at(
        "slow-loader",
        "Load in workers, or do less for each sample: the loader works in the process that trains",
        text,
        most.spot.where if most is not None and most.share >= here else where,
        run.gain(share, "as if the host did this while the GPU works, or not at all"),
    )


def _place_of_host(run: RunEvidence, spot: CodeSpot) -> Insight:
    """Return a place of the host without a pattern, for which the device waits."""
    name = place_name(spot.where)
    where = f"in {name}" if name not in ("", "top level") else "at the top level"
    title = f"The GPU waits while the host works {where}"
    kind = "call" if _is_framework(spot) else run.framework
    return replace(place_alone(spot), title=title, change=words(f"host-place.{kind}", "program"))


def _restarts_workers(spot: CodeSpot) -> bool:
    """Return whether a line begins to go through a loader of torch, again and again: there its workers are started."""
    code = spot.code if spot.under is not None and spot.under.name == "__iter__" else None
    loaders = [name for name, kind in spot.variables.items() if kind.type.endswith("DataLoader")]
    return code is not None and bool(code.find("nested-loop")) and any(name in code.text for name in loaders)


def _restarted_workers(run: RunEvidence, spot: CodeSpot, share: float) -> Insight:
    return insight_at(
        "restarted-workers",
        "Keep the loader's workers (persistent_workers=True): each epoch starts them again",
        f"for {percent_text(100 * share)} of the time the host is at the start of "
        f"`{spot.code.text if spot.code else ''}`, and the GPU waits",
        spot.where,
        run.gain(share, "as if they were started once"),
    )
