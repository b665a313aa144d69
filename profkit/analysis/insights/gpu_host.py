"""What the host computes while a device waits for it: a place of the program that is no launch, in what is repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from profkit.analysis.insights.evidence import RunEvidence, idle_share, outwards, percent_text
from profkit.analysis.insights.gpu_lines import MANY, OFTEN, place_of_line
from profkit.analysis.insights.spots import OTHER, Find, calls_text, pattern_of, place_alone
from profkit.core.formatting import format_quantity
from profkit.core.types import Gain, GpuTrace, HotSpot, Insight, LineSamples

_LOADER = "/torch/utils/data/"
_OF_LOADERS = (".__getitem__", ".__getitems__", "collate_fn")  # methods that a loader calls for its batches
SEVERAL = 5  # calls of torch: a line with fewer belongs to what comes before the steps
_CALLBACK = "/jax/_src/callback.py"
_RANDOM = re.compile(r"^aten::(?:normal|uniform|random|bernoulli|randperm|exponential|multinomial)")


def host_tensors(run: RunEvidence) -> Iterator[Insight]:
    """An operation of torch that the host computes in each step, on tensors in its own memory, while a device waits."""
    trace, idle = run.trace, idle_share(run)
    if trace is None or idle is None or not trace.line_span or not trace.lines_of:
        return
    recorded = min(1.0, trace.line_span / trace.lines_of)
    least = max(MANY, OFTEN * (trace.repeats or 0)) * recorded
    for line in trace.lines:
        made = line.on_host
        share = min(idle, made.seconds / trace.line_span) if made is not None else 0.0
        if made is None or share < OTHER or made.calls < least:
            continue
        name, _, shape = made.name.removeprefix("aten::").partition(" ")
        sent = (
            "; then it is copied to the device"
            if any("to device" in one.kind for one in line.transfers)
            else ""
        )
        yield Insight(
            "host-tensors",
            f"This line computes on the CPU: {name.strip('_')} of {shape or 'a tensor'}",
            f"{format_quantity(made.seconds / made.calls, 's')} each time, {percent_text(100 * share)} of a step, in "
            f"which the GPU is idle for {percent_text(100 * idle)}{sent}",
            'Draw the numbers on the device: device="cuda" in this call, with torch.Generator(device="cuda") where '
            "they are seeded."
            if _RANDOM.match(made.name)
            else 'Move its tensors to the device first (.to("cuda"), or make them there), so that the GPU computes '
            "this; what belongs to loading the data can also be done in the DataLoader's workers.",
            place_of_line(line),
            Gain(share, run.time_name, "as if the host did not compute this"),
        )


def host_callbacks(run: RunEvidence) -> Iterator[Insight]:
    """A function of the program that a compiled step of JAX calls on the host, while the device waits for it."""
    trace, idle = run.trace, idle_share(run)
    if trace is None or idle is None or not trace.span:
        return
    for spot in run.document.hot_spots:
        share = min(idle, spot.seconds / trace.span)
        callers = [place.file or "" for place, _ in outwards(run, spot.where)]
        if share < OTHER or not any(file.replace("\\", "/").endswith(_CALLBACK) for file in callers):
            continue
        yield Insight(
            "host-callbacks",
            f"JAX calls {spot.where.function} on the host in each step",
            f"it takes {percent_text(100 * share)} of the time, in which the GPU is idle for "
            f"{percent_text(100 * idle)}; its arguments are copied to the host before, and its result to the device "
            "after it",
            "Write it with jax.numpy, so that it is compiled with the step; where numpy is needed, call it once before "
            "the loop, or for several steps at a time.",
            spot.where,
            Gain(share, run.time_name, "as if the host did not compute this"),
        )
        return


def explain_idle_device(run: RunEvidence, patterns: tuple[Find, ...]) -> Insight | None:
    """What the host itself computes in each step while a device waits, at the place that takes most of it.

    Seconds are those of the run that recorded lines; a place that only launches is for other rules.
    """
    trace, idle = run.trace, idle_share(run)
    if trace is None or idle is None or not trace.lines_of or not trace.lines:
        return None
    launching = {(one.file, one.line) for one in trace.lines if one.launches or one.waits or one.transfers}
    for spot in run.document.hot_spots:
        if spot.kind not in ("python", "library", "file", "network", "sleep", "child", "lock"):
            continue
        if (spot.where.file, spot.where.line) in launching:
            continue
        through_loader = _leads_from_step(run, spot)
        share = min(idle, spot.seconds / trace.lines_of)
        calls = next(
            (one for one in trace.lines if (one.file, one.line) == (spot.where.file, spot.where.line)), None
        )
        restarted = _restarts_workers(spot)
        if (
            calls is not None and spot.kind == "library" and trace.line_span and not restarted
        ):  # calls of torch alone
            share = min(share, calls.seconds / trace.line_span)
        if through_loader is None or share < OTHER:
            continue
        if restarted:
            return _restarted_workers(run, spot, share)
        found = pattern_of(run.document, spot, patterns) or place_alone(spot)
        text = f"{percent_text(100 * share)} of a step"
        if spot.kind == "python":  # all lines of a function that compute by themselves
            text += f" is in {spot.where.function}"
        elif spot.code is not None:
            text += f" is in `{spot.code.text}`"
        text += f", and the GPU is idle for {percent_text(100 * idle)} of it"
        gain = Gain(share, run.time_name, "as if the host did this while the GPU works, or not at all")
        if not through_loader:
            counted = calls_text(spot)
            return replace(found, evidence=f"{text}; {counted}" if counted else text, gain=gain)
        return Insight(
            "slow-loader",
            f"{spot.where.function} makes the GPU wait for its data",
            f"{text}; it runs in the process that trains",
            "Make it faster first (whole arrays or tensors instead of single elements, work that is done once and "
            "kept), then DataLoader(num_workers=4, persistent_workers=True) prepares batches meanwhile.",
            spot.where,
            gain,
        )
    return None


def _restarts_workers(spot: HotSpot) -> bool:
    """Whether a line begins to go through a loader of torch, again and again: there its workers are started."""
    begins = spot.under is not None and spot.under.name == "__iter__" and spot.code is not None
    if not begins or spot.code is None or not spot.code.find("nested-loop"):
        return False
    return any(
        kind.type.endswith("DataLoader") and name in spot.code.text for name, kind in spot.variables.items()
    )


def _restarted_workers(run: RunEvidence, spot: HotSpot, share: float) -> Insight:
    return Insight(
        "restarted-workers",
        "The loader starts its workers again in each epoch",
        f"{percent_text(100 * share)} of the time is in the begin of `{spot.code.text if spot.code else ''}`, and the "
        "GPU waits meanwhile",
        "DataLoader(persistent_workers=True) starts them once. Where an epoch is short, fewer workers or none are "
        "faster; data that fits stays on the device.",
        spot.where,
        Gain(share, run.time_name, "as if they were started once"),
    )


def _leads_from_step(run: RunEvidence, spot: HotSpot) -> bool | None:
    """Whether a place belongs to what is repeated: True through a loader of torch, False without; None: it does not.

    It does where one of its callers is a loader, or stands among the lines of a function that use the device.
    """
    trace = run.trace
    steady: dict[tuple[str | None, str | None], list[int]] = {}
    for line in trace.lines if trace is not None else ():
        if line.calls >= SEVERAL:
            steady.setdefault((line.file, line.function), []).append(line.line)
    for place, lines in outwards(run, spot.where):
        if _LOADER in (place.file or "").replace("\\", "/") or (place.function or "").endswith(_OF_LOADERS):
            return True
        around = steady.get((place.file, place.function))
        known = around is not None and place.line is not None
        if known and _calls_torch_only_there(place.file, place.function, trace):
            return False if _is_among(around or (), place.line or 0, lines) else None
    return None


def _is_among(around: Sequence[int], number: int, lines: Sequence[LineSamples]) -> bool:
    """Whether a line of a function lies between those that use the device, or in the same loop."""
    loops = {one.line: one.code.loop for one in lines if one.code is not None}
    heads = [head for line in around if (head := loops.get(line)) is not None]
    return min(*heads, *around) <= number <= max(around) if heads else min(around) <= number <= max(around)


def _calls_torch_only_there(file: str | None, function: str | None, trace: GpuTrace | None) -> bool:
    """Whether a function uses the device itself, and does not only make tensors on the host."""
    return trace is not None and any(
        (one.file, one.function) == (file, function) and (one.launches or one.waits or one.transfers)
        for one in trace.lines
    )
