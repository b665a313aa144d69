"""Rules on the timeline: copies that the device waits for, launches that come too late, pauses of the host; and of
several devices what nothing hides, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from profkit.analysis.evidence import (
    RunEvidence,
    instrument_seconds,
    kernels_at,
    text_at,
)
from profkit.analysis.judge.rule import insight_at
from profkit.analysis.judge.rules.gpu.calls import SMALL, is_copy, shapes
from profkit.analysis.judge.rules.gpu.host import (
    calls_framework,
    mean_kernel,
    preparing_line,
    stops_in_each_step,
)
from profkit.analysis.judge.rules.gpu.lines import (
    LARGE,
    device_sync,
    is_elementwise,
    looping_place,
    place_of_line,
    repeated_spot,
    times_text,
)
from profkit.analysis.judge.rules.gpu.same_copies import same_array
from profkit.analysis.judge.rules.spot_waits import line_ahead
from profkit.analysis.judge.words import words, words_for
from profkit.core.formatting import format_quantity, percent_text, plural
from profkit.core.types import (
    Communication,
    DeviceCommunication,
    GpuLine,
    GpuTrace,
    Insight,
    Place,
    SampledTime,
)

MIN_SHARE = 0.03  # of the time: less is not worth a change
MIN_LAUNCHES = 20  # fewer are no loop
OF_FUNCTION = 0.5  # of the launches: of all lines of one function together
OF_ALL = 0.3  # of the launches: a line with less is not what launches them
MIN_PAUSES = 10  # fewer are no loop, either
BOTH = 0.3  # of the copies of the other direction: both can run at once
_PAGEABLE = (
    "First pin the memory: copies of pageable memory go through a buffer of the driver, and the host waits."
)
NEARLY = 0.9  # of the seconds of all pauses
_AT_ONCE = "as if kernels and the copies of both directions ran at once"
_BEHIND_KERNELS = "overlap hides no more than the time in which kernels run"
_BACK = "device to host"
_HOST_COPIES = ("host to device", _BACK)
_SAVING = re.compile(r"\bsave\w*\(|\bdump\(|\.write\(|\breplace\(")


def exposed_copies(run: RunEvidence) -> Iterator[Insight]:
    """Find copies between host and device while no kernel runs, at the line that copies most."""
    for insight in _exposed_copies(run):
        trace = run.trace
        lines = trace.lines if trace is not None else ()
        line = max(lines, key=_copy_seconds, default=None)
        if trace is None or line is None or not _copy_seconds(line):
            spot = repeated_spot(run)
            known = lines and spot is not None and spot.kind == "library"
            yield replace(insight, where=spot.where) if spot is not None and known else insight
            continue
        copies = [transfer for transfer in line.transfers if transfer.kind in _HOST_COPIES]
        count, size = sum(transfer.count for transfer in copies), sum(transfer.bytes for transfer in copies)
        each = format_quantity(size / count, "B")
        text = f"{insight.evidence}; this line copies {times_text(trace, count)}, {each} each"
        insight = replace(insight, where=place_of_line(line), evidence=text)
        if (name := same_array(run, line)) is not None:
            part = _copy_seconds(line) / sum(map(_copy_seconds, lines))
            gain = insight.gain and replace(insight.gain, at_most=part * insight.gain.at_most)
            told = f"{text}: {name} was the same array with the same numbers whenever it was looked at"
            title, change = f"Copy {name} to the GPU once, before the loop", words("copied-once", "program")
            yield replace(insight, title=title, evidence=told, change=change, gain=gain)
            continue
        if (
            run.framework == "torch"
            and size >= LARGE * count
            and {transfer.kind for transfer in copies} == {_BACK}
        ):
            title = f"Reduce it on the GPU: this line brings {each} to the host {times_text(trace, count)}"
            insight = replace(insight, title=title, change=words("large-result", "torch"))
        yield insight


def _copy_seconds(line: GpuLine) -> float:
    return sum(transfer.seconds for transfer in line.transfers if transfer.kind in _HOST_COPIES)


def _exposed_copies(run: RunEvidence) -> Iterator[Insight]:
    """Find overlap hides no more than kernels run meanwhile."""
    trace = run.trace
    if trace is None or not trace.span or trace.busy is None or not trace.copying:
        return
    copies = [transfer for transfer in trace.transfers if transfer.kind in _HOST_COPIES]
    exposed = trace.copying / trace.span
    moved, seconds = sum(transfer.bytes for transfer in copies), sum(transfer.seconds for transfer in copies)
    every = sum(transfer.seconds for transfer in trace.transfers)
    if (
        exposed < MIN_SHARE
        or not seconds
        or seconds < 0.5 * every
        or moved < SMALL * sum(transfer.count for transfer in copies)
    ):
        return  # of small copies the calls take the time, and not the bytes
    kernels = max(0.0, trace.busy - trace.copying) / trace.span
    ways = {
        kind: sum(transfer.seconds for transfer in copies if transfer.kind == kind) / trace.span
        for kind in _HOST_COPIES
    }
    both = min(ways.values()) >= BOTH * max(ways.values())
    hidden = kernels + sum(ways.values()) - max(kernels, *ways.values()) if both else kernels
    first = max(copies, key=lambda transfer: transfer.seconds)
    held = [memory for transfer in copies for memory in transfer.memory if memory.seconds > 0]
    parts = {kind: sum(part.seconds for part in held if part.kind == kind) for kind in ("pageable", "pinned")}
    kind = next((kind for kind, value in parts.items() if value > 0.5 * seconds), "")
    memory = f", {percent_text(100 * parts[kind] / seconds)} of that time with {kind} memory" if kind else ""
    way = "to" if first.kind == "host to device" else "back"
    evidence = (
        f"for {percent_text(100 * exposed)} of the time the GPU only copies: {format_quantity(moved, 'B')} between "
        f"host and device in {plural(sum(transfer.count for transfer in copies), 'copy', 'copies')}, at "
        f"{format_quantity(moved / seconds, 'B/s')}{memory}"
    )
    pins = kind == "pageable" and run.framework != "jax"  # which has pinned buffers of its own
    lead = _PAGEABLE if pins else "Pin the host's memory."
    pin = f"{lead} {words_for(run, f'pin.{way}')} " if kind != "pinned" and run.framework != "jax" else ""
    if hidden >= exposed / 2:
        yield Insight(
            "exposed-copies",
            "Pin the host memory, then copy while kernels run" if pins else "Copy while kernels run",
            evidence,
            f"{pin}{words_for(run, f'overlap.{way}')}",
            gain=run.gain(min(exposed, hidden), _AT_ONCE if both else _BEHIND_KERNELS),
        )
    else:
        where = "to the device" if way == "to" else "back to the host"
        yield Insight(
            "exposed-copies",
            f"{'Pin the host memory, and move' if pins else 'Move'} less data {where}",
            f"{evidence}; kernels run for {percent_text(100 * kernels)}, so overlapping could hide at most that much",
            f"{pin}{words(f'less.{way}', 'program')}",
            gain=run.gain(exposed, "as if nothing were copied"),
        )


def late_launches(run: RunEvidence) -> Iterator[Insight]:
    """Find a device that waits again and again because the host has launched nothing.

    Long gaps are not meant: in these the host does something else. Nor is the time in which it is in calls that launch
    nothing.
    """
    trace = run.trace
    if trace is None or not trace.span or trace.busy is None or trace.starved is None:
        return
    if run.document.metal is not None:  # which has no graphs to capture a step in
        return
    idle = max(0.0, trace.span - trace.busy)
    starved = idle * trace.starved
    slowed = instrument_seconds(trace)
    paused = trace.pauses.seconds if trace.pauses is not None else 0.0
    starved = max(0.0, starved - paused)
    gap = trace.largest_gap or 0.0
    # The begin of a region, a file that is read: what the rest is, is the loop.
    if not paused and gap > 0.5 * idle:
        starved = max(0.0, starved - gap)
    held = sum(call.starving - call.paused for call in trace.holding)
    starved = max(0.0, starved - held)
    share = max(0.0, starved - slowed) / max(trace.busy, trace.span - slowed)
    if share < MIN_SHARE or trace.launches < MIN_LAUNCHES:
        return
    each = mean_kernel(trace)
    call = f"; a launch call takes {format_quantity(trace.launch_call, 's')}" if trace.launch_call else ""
    slowed_text = f"; {format_quantity(slowed, 's')} caused by tracing are not counted" if slowed else ""
    if held >= MIN_SHARE * trace.span:
        slowed_text += (
            f"; {percent_text(100 * held / trace.span)} in calls that launch nothing are not counted"
        )
        slowed_text += f" ({trace.holding[0].name} most)"
    line = _launching_line(trace)
    function = _launching_function(trace) if line is None else []
    most = line or next(iter(function), None)
    place = place_of_line(most) if most is not None else looping_place(run)
    waits = next(device_sync(run), None)
    if (waits is not None and each >= (trace.launch_call or 0.0)) or stops_in_each_step(run):
        return  # without these waits the host is ahead of the kernels
    launching = [line] if line is not None else function
    of_line = ""
    if launching:
        part = sum(one.launches for one in launching) / sum(gpu_line.launches for gpu_line in trace.lines)
        count = part * trace.launches / (trace.repeats or 1)
        steps = f", {count:,.0f} in each step" if trace.repeats and count >= 2 else ""
        what = "this line launches" if line is not None else f"{len(launching)} lines of this function launch"
        of_line = f"; {what} {percent_text(100 * part)} of them{steps}"
    name = f"late-launches.{run.framework}"
    optimizer = re.search(r"\bopt\w*\.step\(", text_at(run, place))
    if run.framework == "torch" and (waits is not None or optimizer is not None):
        name += ".waits" if waits is not None else ".optimizer"
    elif run.framework == "torch" and _goes_through_tensors(run, place):
        name += ".tensors"
    yield Insight(
        "late-launches",
        words(f"{name}.title", "program"),
        f"for {percent_text(100 * share)} of the time the GPU waits because the host has launched nothing; "
        f"{plural(trace.launches, 'kernel')} of {format_quantity(each, 's')} on average{call}{of_line}{slowed_text}",
        words(name, "program"),
        place,
        gain=run.gain(share, "the time in which the GPU waits for a launch"),
    )


def _goes_through_tensors(run: RunEvidence, place: Place) -> bool:
    """Return whether a line in a loop does the same to each of a list of tensors: element by element, of several
    shapes.

    Time steps and layers of one shape depend on each other; parameters of a model do not.
    """
    looped = any(
        line.code is not None and line.code.loop is not None
        for every in run.document.sampled
        for line in (every.lines if not every.native else ())
        if (line.file, line.line) == (place.file, place.line)
    )
    own = kernels_at(run, place) if looped else ()
    sizes = {size for kernel in own for size in shapes(kernel.operation)[:1]}
    return len(sizes) > 1 and all(is_elementwise(kernel) or is_copy(kernel) for kernel in own)


def _launching_line(trace: GpuTrace) -> GpuLine | None:
    """Return the line that launches most; None where it is one of many, or where lines are not known."""
    line = max(trace.lines, key=lambda gpu_line: gpu_line.launches, default=None)
    every = sum(gpu_line.launches for gpu_line in trace.lines)
    return line if line is not None and line.launches >= max(1, OF_ALL * every) else None


def _launching_function(trace: GpuTrace) -> list[GpuLine]:
    """Return the lines of the function that launches half of all or more, the one that launches most first."""
    every = sum(gpu_line.launches for gpu_line in trace.lines)
    by_function: dict[tuple[str, str | None], list[GpuLine]] = {}
    for gpu_line in sorted(trace.lines, key=lambda candidate: -candidate.launches):
        if gpu_line.function is not None and gpu_line.launches:
            by_function.setdefault((gpu_line.file, gpu_line.function), []).append(gpu_line)
    return next(
        (
            lines
            for lines in by_function.values()
            if sum(one.launches for one in lines) >= OF_FUNCTION * every
        ),
        [],
    )


def host_pauses(run: RunEvidence) -> Iterator[Insight]:
    """Find a device that repeatedly waits for similar times while the host does something other than launching.

    A few pauses, or a few of them that are most of it, are the first use of a library, or a file that is read once.
    """
    trace = run.trace
    if trace is None or not trace.span or trace.pauses is None or not (trace.marked or trace.repeats):
        return
    pauses = trace.pauses
    regular = pauses.count * pauses.median >= 0.5 * pauses.seconds
    share, preparing = pauses.seconds / trace.span, preparing_line(run)
    if share < MIN_SHARE or pauses.count < MIN_PAUSES or not (regular or preparing is not None):
        return
    spot = repeated_spot(run)
    place = spot.where if spot is not None and spot.seconds >= 0.5 * pauses.seconds else Place()
    text = spot.code.text if spot is not None and spot.code is not None and place.file is not None else ""
    name = "host-pauses.saving" if _SAVING.search(text) else f"host-pauses.{run.framework}"
    if preparing is not None:
        place, name = place_of_line(preparing), "host-pauses.shapes"
        text = text_at(run, place)
    elif name != "host-pauses.saving" and spot is not None and text and calls_framework(run, spot):
        return  # the host launches there: what holds it up is not work of the program
    copied = pauses.after_copies >= NEARLY * pauses.seconds
    if copied and not text:  # what the host does is not known, but when it begins to
        name = "host-pauses.copied"
        place = place_of_line(max(trace.lines, key=_returned)) if any(map(_returned, trace.lines)) else place
    meanwhile = f"; it is in `{text}` meanwhile" if text else ""
    back = sum(transfer.bytes for transfer in trace.transfers if transfer.kind == _BACK) / (
        trace.repeats or 1
    )
    if copied:
        each = " in each step" if trace.repeats else ""
        meanwhile += f"; they begin after copies to the host, {format_quantity(back, 'B')}{each}"
    yield Insight(
        "host-pauses",
        words(f"{name}.title", "program"),
        f"for {percent_text(100 * share)} of the time the GPU is idle in {plural(pauses.count, 'gap')} of over 1 ms "
        f"({format_quantity(pauses.median, 's')} each), in which the host launches nothing{meanwhile}",
        words(name, "program"),
        place,
        gain=run.gain(share, "as if the GPU had work in these gaps"),
    )


def _returned(line: GpuLine) -> float:
    """Return the seconds in which a line copies to the host."""
    return sum(transfer.seconds for transfer in line.transfers if transfer.kind == _BACK)


SELDOM = 0.25  # of what the others wait: a device that waits less than that is the last one
MAX_DEVICES = 8  # devices that are named
_COLLECTIVE = re.compile(r"(AllReduce|AllGather|ReduceScatter|Broadcast|SendRecv|AllToAll|Reduce)")


class _ExposedCommunication(NamedTuple):
    """Time in which a device runs kernels of NCCL and nothing else. Shares of the traced time."""

    communication: Communication
    collective: str  # `AllReduce`: the one with most time
    share: float
    waiting: float  # for another GPU to begin the same call
    late: bool  # that is most of the communication
    evidence: str


def exposed_communication(run: RunEvidence) -> Iterator[Insight]:
    """Yield communication that other kernels could hide."""
    trace, exposed = run.trace, _exposed_communication(run)
    if trace is None or not trace.span or exposed is None or exposed.late:
        return
    computing = max(0.0, (trace.busy or 0.0) - (trace.copying or 0.0)) / trace.span - exposed.share
    yield Insight(
        "exposed-communication",
        "Communicate while kernels run",
        exposed.evidence,
        words(f"communication.{'jax' if run.framework == 'jax' else exposed.collective}", "collective"),
        Place(kernel=exposed.communication.kernel),
        run.gain(
            min(exposed.share, max(0.0, computing)),
            "overlap hides no more than the time in which other kernels run",
        ),
    )


def gpu_behind(run: RunEvidence) -> Iterator[Insight]:
    """Yield that devices wait for one that comes last to each call."""
    exposed = _exposed_communication(run)
    if exposed is not None and exposed.late:
        share = min(exposed.share, exposed.waiting)
        yield _waiting_devices(run, exposed.communication, exposed.evidence, share)


def _exposed_communication(run: RunEvidence) -> _ExposedCommunication | None:
    trace = run.trace
    if trace is None or not trace.span or trace.communication is None:
        return None
    communication = trace.communication
    exposed, waiting = communication.exposed / trace.span, (communication.waiting or 0.0) / trace.span
    if exposed < MIN_SHARE:
        return None
    matched = _COLLECTIVE.search(communication.kernel)
    name = matched[1] if matched is not None else "NCCL"
    hidden = 1 - communication.exposed / communication.seconds
    beside = f"{percent_text(100 * hidden)} of it" if hidden >= 0.001 else "none of it"
    evidence = (
        f"for {percent_text(100 * exposed)} of the time nothing but NCCL runs on a GPU: "
        f"{plural(communication.calls, 'call')} ({name} most), {format_quantity(communication.seconds, 's')} in all, "
        f"{beside} beside other kernels"
    )
    if communication.waiting is not None:
        part = percent_text(100 * communication.waiting / communication.seconds)
        evidence += f"; {part} of their time is waiting for another GPU to begin the same call"
    late = waiting > 0.5 * communication.seconds / trace.span
    return _ExposedCommunication(communication, name, exposed, waiting, late, evidence)


def _waiting_devices(run: RunEvidence, communication: Communication, evidence: str, share: float) -> Insight:
    """Return which device the others wait for, and the line in which its rank spends more than theirs."""
    each = communication.by_device
    last = min(each, key=lambda device: device.waiting or 0.0, default=None)
    waits = ", ".join(
        f"GPU {device.device} {format_quantity(device.waiting or 0.0, 's')}" for device in each[:MAX_DEVICES]
    )
    rest = [device.waiting or 0.0 for device in each if device is not last]
    has_straggler = (
        last is not None and bool(rest) and (last.waiting or 0.0) <= SELDOM * sum(rest) / len(rest)
    )
    place, line = Place(kernel=communication.kernel), None
    sampled = next((samples for samples in run.document.sampled if not samples.native), None)
    if has_straggler and last is not None and sampled is not None and _is_rank_of(sampled, last.device, each):
        found, more = line_ahead(sampled, str(last.device))
        if more > 0:
            line, place = found, Place(function=found.function, file=found.file, line=found.line)
    text = line.code.text if line is not None and line.code is not None else None
    meanwhile = f"; its rank is in `{text}` meanwhile" if text else ""
    return insight_at(
        "gpu-behind",
        f"GPU {last.device} comes last to each call: the others wait for it"
        if has_straggler and last is not None
        else "Give the GPUs the same work at the same time: they wait for each other",
        f"{evidence}{f': {waits}' if waits else ''}{meanwhile}",
        place,
        run.gain(share, "the time in which calls wait for the last GPU"),
    )


def _is_rank_of(sampled: SampledTime, device: int, each: Sequence[DeviceCommunication]) -> bool:
    """Return whether ranks were told apart, one for each device: torchrun gives a rank the device of its number."""
    ranks = {rank for line in sampled.lines for rank in line.ranks}
    return str(device) in ranks and len(ranks) == len(each) > 1
