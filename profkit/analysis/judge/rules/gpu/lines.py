"""Rules on lines of the program: calls that wait for the device, and operations that together are a known one."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

from profkit.analysis.evidence import (
    KernelEvidence,
    RunEvidence,
    idle_share,
    instrument_seconds,
    kernels_at,
    launching_lines,
    looping_call,
    text_at,
    unit_utilization,
)
from profkit.analysis.judge.rule import insight_at, insight_on
from profkit.analysis.judge.words import words, words_for
from profkit.analysis.kernel_names.owner import OWN_CODE, owner_title
from profkit.analysis.summaries.kernels import bottleneck_title
from profkit.analysis.timeline.products import product_share
from profkit.core.formatting import format_quantity, percent_text, plural
from profkit.core.types import CodeSpot, GpuLine, GpuTrace, Insight, KernelTime, Place

MIN_SHARE = 0.03  # of the time: less is not worth a change
PROGRAM = "the time of the program"
WHOLE = 0.98  # of a run: with less of it recorded, counts are estimates
READ_SECONDS = (
    20e-6  # of the host for a number that PyTorch reads, beside the wait: its operation and Python code
)
MIN_WAITS, MIN_PER_REPETITION = 10, 0.5  # waits at a line: in all, and for each repetition
SATURATED = 80.0  # % of DRAM's peak: the compiler's kernel does what it can
MAX_WAITS, HALF = 0.9, 0.5  # of the waits, and of a line's time: then it waits for the device
LARGE = 1e6  # bytes of a copy to the host: a result, and not a number
_SYNCHRONISES = re.compile(r"^cu(?:da)?\w*(?:Synchronize|MemcpyDtoH)")
_WAITING = re.compile(r"^cu(?:da)?\w*(?:Synchronize|MemcpyDtoH|MemcpyAsync$|Memcpy$)")
_WAITS_IN = {
    "size": re.compile(r"aten::(nonzero|masked_select|_?unique\w*) "),
    "check": re.compile(r"aten::_?(linalg_)?(lu_factor|solve|inv|cholesky)(_ex)? "),
}
_READS = re.compile(
    r"\.(?:item|cpu|tolist|numpy|block_until_ready|synchronize)\(|\b(?:float|int|bool|print)\(|asarray\("
)
_STEPS = re.compile(r"^[\w.]+\.step\(\)$")
_SOFTMAX = re.compile(r"^aten::_?softmax \[(?:\d+,)*(\d+),(\d+)\]")
_PRODUCT = re.compile(r"\[((?:\d+,)*)(\d+),(\d+)\] x \[(?:(?:\d+,)*\d+,(\d+)|\d+)\]")
_SHAPE = re.compile(r"\[(?:\d+,)*(\d+),(\d+)\]")


def place_of_line(line: GpuLine) -> Place:
    """Return the line as a place."""
    return Place(function=line.function, file=line.file, line=line.line)


def looping_place(run: RunEvidence) -> Place:
    """Return the place in a loop in which the host spends most, where no lines were recorded; None if unknown.

    A line that waits for all that PyTorch launched is not the one that launched it.
    """
    spot = repeated_spot(run) if run.trace is not None and not run.trace.lines else None
    if spot is not None and run.trace is not None and spot.seconds < OF_HOST * (run.trace.span or 0.0):
        return Place()
    waits = spot is not None and spot.code is not None and _READS.search(spot.code.text) is not None
    return spot.where if spot is not None and not (waits and run.framework == "torch") else Place()


def repeated_spot(run: RunEvidence) -> CodeSpot | None:
    """Return the place with most of the host's time that is in a loop, or in a function that calls torch repeatedly.

    Where no calls of torch were recorded also one in a function that a loop calls.
    """
    lines = run.trace.lines if run.trace is not None else ()
    calling = {(line.file, line.function) for line in lines if line.calls >= MIN_WAITS}
    for hot_spot in run.document.hot_spots:
        repeated = (hot_spot.where.file, hot_spot.where.function) in calling
        repeated = repeated or (not lines and _is_called_in_steps(run, hot_spot.where))
        if (
            hot_spot.kind != "import"
            and hot_spot.code is not None
            and (repeated or hot_spot.code.loop is not None)
        ):
            return hot_spot
    return None


OF_HOST = 0.1  # of the time of the steps: a place with less is not where the host launches all that they need
OF_STEPS = 0.5  # of the time of the steps: a loop that was seen for less is another one


def _is_called_in_steps(run: RunEvidence, where: Place) -> bool:
    """Return whether a line in a loop leads to a place, and most of the time of the steps may be in that loop."""
    call, span = looping_call(run, where), run.trace.span if run.trace is not None else None
    if call == where or not span:
        return False
    seen = (
        line.main_wall
        for sampled in run.document.sampled
        if not sampled.native
        for line in (*sampled.outer, *sampled.lines)
        if (line.file, line.line) == (call.file, call.line)
    )
    return max(seen, default=0.0) >= OF_STEPS * span


def waiting_lines(trace: GpuTrace) -> frozenset[tuple[str, int]]:
    """Return file and line of the main waits for the device: nearly all waits, taking half of its time."""
    if not trace.span or not trace.line_span:
        return frozenset()
    waits = sum(line.waits for line in trace.lines)
    share = sum(call.seconds for call in trace.api if _WAITING.search(call.name)) / trace.span
    return frozenset(
        (line.file, line.line)
        for line in trace.lines
        if line.waits >= MAX_WAITS * waits > 0 and share >= HALF * line.seconds / trace.line_span
    )


def times_text(trace: GpuTrace, count: int) -> str:
    """Return `1,499 times, once in each step`: how often a line does something, from the part of the run that was
    recorded.
    """
    recorded = recorded_part(trace)
    whole = count / recorded if recorded > 0 else count
    each = whole / trace.repeats if trace.repeats else 0.0
    if trace.repeats and 0.8 <= each <= 1.25:
        return f"{trace.repeats:,} times, once in each step"
    about = "about " if recorded < WHOLE else ""
    steps = f", {each:.0f} in each step" if each >= 1.5 else ""
    return f"{about}{round(whole):,} times{steps}"


def recorded_part(trace: GpuTrace) -> float:
    """Return the part (0..1) of the run whose lines are known, by launches (not slowed by recording), else by time."""
    recorded = min(1.0, (trace.line_span or 0.0) / trace.lines_of) if trace.lines_of else 1.0
    launches = sum(line.launches for line in trace.lines)
    return min(1.0, launches / trace.launches) if recorded < WHOLE and launches else recorded


def device_sync(run: RunEvidence) -> Iterator[Insight]:
    """Yield a line that lets the host wait for the device in each step: nothing is queued when it goes on."""
    trace = run.trace
    share = idle_share(run)
    if trace is None or share is None or share < MIN_SHARE:
        return
    waiting = [gpu_line for gpu_line in trace.lines if gpu_line.waits >= MIN_WAITS]
    if not waiting:
        yield from _sampled_sync(run, trace, share)
        return
    # An optimizer's own waits (SparseAdam joins rows) are nothing that the program reads.
    reading = (one for one in waiting if not _STEPS.match(text_at(run, place_of_line(one))))
    line = max(reading, key=lambda gpu_line: gpu_line.waits, default=None)
    won = min(share, _waited(trace))
    # A host that is slower than the device hardly waits: it is the launches that take the time.
    if line is None or won < MIN_SHARE:
        return
    recorded = recorded_part(trace)
    per_launch = trace.launches / trace.repeats if trace.repeats else 0.0
    least = (
        MIN_PER_REPETITION * recorded * trace.repeats if trace.repeats else recorded * trace.launches / 1000
    )
    if line.waits < least:
        return
    back = [transfer for transfer in line.transfers if transfer.kind == "device to host"]
    size = back[0].bytes / max(1, back[0].count) if back else 0.0
    reads = f", {format_quantity(size, 'B')} each" if back else ""
    launched = f"; a step is {plural(round(per_launch), 'kernel')}" if per_launch >= 2 else ""
    yield Insight(
        "device-sync",
        f"Do not wait for the GPU here: this line waits {times_text(trace, line.waits)}",
        f"it {'reads from' if back else 'waits for'} the device{reads}: the host launches nothing until all kernels "
        f"are done, and the GPU is idle for {percent_text(100 * share)} of the time{launched}",
        words("large-result", "torch")
        if size >= LARGE and run.framework == "torch"
        else _wait_less(run, line),
        place_of_line(line),
        run.gain(won, "the time in which the host waits for the GPU, or the GPU for the host: the shorter"),
    )


def _waited(trace: GpuTrace) -> float:
    """Return the most (0..1) of the time that a program can save which does not wait at its lines.

    The host does everything else as before, so this is what the waiting calls took, and what a framework does around
    each of them; ranges that were written for the profiler may have hidden so much more. The lines that wait took no
    less either. On an H200, four programs whose GPU was idle for 77 to 94 % of the time became 0 to 25 % faster.
    """
    if not trace.span:
        return 1.0
    waiting = [call for call in trace.api if _WAITING.search(call.name)]
    reads = sum(call.calls for call in waiting if _SYNCHRONISES.search(call.name))
    hidden = instrument_seconds(trace)
    around = READ_SECONDS * reads if any(line.calls for line in trace.lines) else 0.0
    known = sum(call.seconds for call in waiting) + around + hidden
    part = known / max(known, trace.span - hidden) if waiting else 1.0
    span = trace.line_span or trace.span
    lines = sum(line.seconds for line in trace.lines if line.waits >= MIN_WAITS)
    return min(part, lines / span) if lines else part


def _wait_less(run: RunEvidence, line: GpuLine) -> str:
    """Return what avoids the wait, by the operations of the line: some wait for the size of their result, or for
    its check.
    """
    operations = [kernel.operation or "" for kernel in kernels_at(run, place_of_line(line))]
    known = (name for name, pattern in _WAITS_IN.items() if any(map(pattern.match, operations)))
    return next((words(f"device-sync.{name}", "torch") for name in known), words_for(run, "device-sync"))


def _sampled_sync(run: RunEvidence, trace: GpuTrace, share: float) -> Iterator[Insight]:
    """Yield where no recorded line waits (torch.compile, JAX, synchronize): a line in a loop that does, by
    sampled stacks.
    """
    waits = sum(call.calls for call in trace.api if _SYNCHRONISES.search(call.name))
    waits -= sum(transfer.count for transfer in trace.transfers if transfer.kind == "host to device")
    if not trace.repeats or waits < max(MIN_WAITS, MIN_PER_REPETITION * trace.repeats):
        return
    for spot in run.document.hot_spots:
        if spot.code is None or spot.code.loop is None or _READS.search(spot.code.text) is None:
            continue
        yield Insight(
            "device-sync",
            "Do not wait for the GPU here: this line waits in each step",
            f"`{spot.code.text}` reads from the device or waits for it; the host waits {waits:,} times in "
            f"{trace.repeats:,} steps, and the GPU is idle for {percent_text(100 * share)} of the time",
            words_for(run, "device-sync"),
            spot.where,
            run.gain(share, "the time in which the GPU waits for the host"),
        )
        return


def written_out_attention(run: RunEvidence) -> Iterator[Insight]:
    """Yield a product, a softmax over its rows, and a product with them: attention whose scores go through memory."""
    for scores in attention_scores(run):
        own = [kernel for kernel in run.times if _works_on(kernel, *scores)]
        complete = functools.partial(_has_attention, scores=scores)
        if not is_written_out(run, own, _FUSED_ATTENTION, ("softmax(", "exp("), complete):
            continue
        share = run.share_of(kernel for kernel in own if product_dims(kernel) is None)
        if share < MIN_SHARE:
            continue
        lines = sorted(
            {(kernel.file, kernel.line, kernel.function) for kernel in own if kernel.file and kernel.line}
        )
        softmax = next((kernel for kernel in own if _scores(kernel) == scores), own[0])
        here = [line for line in lines if line[0] == softmax.file and line[2] == softmax.function]
        place = Place(
            operation=softmax.operation,
            function=softmax.function,
            file=softmax.file,
            line=here[0][1] if here else None,
        )
        numbers = ", ".join(dict.fromkeys(str(line) for _, line, _ in here))
        yield insight_at(
            "written-out-attention",
            "Use torch.nn.functional.scaled_dot_product_attention: this is attention, written out",
            f"products, mask and softmax of scores of {scores[0]:,} x {scores[1]:,}"
            f"{f' in lines {numbers}' if numbers else ''}: without the products they take "
            f"{percent_text(100 * share)} of the time, and each reads and writes all scores",
            place,
            run.gain(share, "all that is done to the scores beside the products"),
        )
        return


_FUSED_ATTENTION = re.compile(
    r"_?(scaled_dot_product\w*|(flash|efficient|cudnn|fmha)\w*_attention\w*|native_multi_head_attention)"
)


def is_written_out(
    run: RunEvidence,
    kernels: Sequence[KernelTime],
    fused: re.Pattern[str],
    words_of: Sequence[str],
    complete: Callable[[Sequence[KernelTime]], bool],
) -> bool:
    """Return whether lines of the program write a function out that a library has, by the kernels of its parts.

    They do not where the library's own operation (`fused`) ran in the same function, or where one line launches all
    parts (`complete`) and its text, as far as it is known, says none of `words_of`: it calls a function of the library
    that is itself made of these.
    """
    forward = [kernel for kernel in kernels if kernel.backward_of is None]
    places = {(kernel.file, kernel.function) for kernel in forward}
    for kernel in run.times:
        called = (kernel.backward_of or kernel.operation or "").split(" ")[0].removeprefix("aten::")
        if fused.fullmatch(called) and (kernel.file is None or (kernel.file, kernel.function) in places):
            return False
    for line in launching_lines(forward):
        here = [kernel for kernel in kernels_at(run, line) if kernel.backward_of is None]
        if complete(here) and not any(word in text_at(run, line) for word in words_of):
            return False
    return True


def _scores(kernel: KernelTime) -> tuple[int, int] | None:
    found = _SOFTMAX.match(kernel.operation or "")
    return (int(found[1]), int(found[2])) if found is not None else None


def product_dims(kernel: KernelTime) -> tuple[int, int, int, int] | None:
    """Return batches, rows, inner dimension and columns of a matrix product; a product with a vector has one column."""
    found = _PRODUCT.search(kernel.operation or "")
    if found is None:
        return None
    batches = prod(int(size) for size in found[1].split(",") if size)
    return batches, int(found[2]), int(found[3]), int(found[4] or 1)


def _is_attention(kernels: Sequence[KernelTime], rows: int, columns: int) -> bool:
    """Return whether one product makes a matrix of this shape, from something narrower, and another one takes it."""
    made = taken = False
    for kernel in kernels:
        found = product_dims(kernel)
        if found is None or kernel.backward_of is not None:
            continue
        _, a, b, d = found
        made = made or ((a, d) == (rows, columns) and b <= min(rows, columns))
        taken = taken or ((a, b) == (rows, columns) and d < columns)
    return made and taken


def _has_attention(kernels: Sequence[KernelTime], scores: tuple[int, int]) -> bool:
    """Return whether all parts of attention are among these kernels."""
    return _is_attention(kernels, *scores) and any(_scores(kernel) == scores for kernel in kernels)


def _works_on(kernel: KernelTime, rows: int, columns: int) -> bool:
    text = f"{kernel.operation or ''} {kernel.backward_of or ''}"
    return any((int(a), int(b)) in ((rows, columns), (columns, rows)) for a, b in _SHAPE.findall(text))


def attention_scores(run: RunEvidence) -> list[tuple[int, int]]:
    """Return rows and columns of the scores of each attention that is written out."""
    found = dict.fromkeys(_scores(kernel) for kernel in run.times)
    return [scores for scores in found if scores is not None and _is_attention(run.times, *scores)]


def works_on_attention(kernel: KernelTime, attention: Sequence[tuple[int, int]]) -> bool:
    """Return whether a kernel belongs to attention with such scores: other rules leave it alone."""
    return any(_works_on(kernel, *scores) for scores in attention)


ELEMENTWISE = re.compile(
    r"elementwise|direct_copy|CatArrayBatchedCopy|index_|softmax_warp|fill_|reduce_kernel|roll_cuda"
)


def elementwise_share(run: RunEvidence) -> float:
    """Return the share of the time that ATen's kernels for each element take."""
    return run.share_of(kernel for kernel in run.times if is_elementwise(kernel))


def is_elementwise(kernel: KernelTime) -> bool:
    """Return whether it is a kernel of ATen that only moves elements or applies a function to each."""
    name = kernel.kernel.name
    return "at::native" in name and "distribution" not in name and ELEMENTWISE.search(name) is not None


# ------------------------------------------------------------ nothing to change


def _does_what_it_can(kernel: KernelEvidence) -> bool:
    """Return whether a kernel that nobody here can change is near the limit of what it uses most, or may be: not
    counted.
    """
    if kernel.owner not in (*OWN_CODE, "xla") and kernel.busiest is None:
        return True
    time = kernel.row.time
    reached = product_share(time, kernel.gpu) if time is not None else None
    near = max(kernel.busiest or 0.0, 100 * (reached or 0.0))
    return kernel.owner != "user" and near >= SATURATED


def largest_kernel(run: RunEvidence) -> Insight | None:
    """Return the kernel that takes most of the time, where its line is known or a compiler made it: no rule has
    an answer.
    """
    known = (
        kernel
        for kernel in run.kernels
        if kernel.owner in ("xla", "inductor") or kernel.place.file is not None
    )
    first = max(known, key=lambda kernel: kernel.share, default=None)
    if first is None or run.trace is None or first.share * run.gpu_share < MIN_SHARE:
        return None
    if first.above("bandwidth.dram.share", SATURATED) or _does_what_it_can(first):
        return None
    busiest, place, other = first.busiest, first.place, looping_place(run)
    if place.file is None and other.file is not None:
        place = replace(place, file=other.file, line=other.line, function=other.function)
    limited = first.bound not in ("unknown", "latency", "launch")
    limit = f"; {bottleneck_title(first.bound)} limits it" if limited else ""
    unit = next(iter(unit_utilization(first)), "")
    near = f", at {percent_text(busiest)} of its peak" if limit and busiest is not None else ""
    if unit and not limit and busiest is not None:
        near = f"; its busiest unit, {unit}, is at {percent_text(busiest)} of its peak"
    if first.language == "triton" and first.below("tensor.utilization", 1.0):
        near += "; the tensor cores do nothing"
    return insight_on(
        "hot-spot",
        first,
        f"{first.row.brief} takes {percent_text(100 * first.share * run.gpu_share)} of the time",
        f"it is a kernel of {owner_title(first.owner)}{limit}{near}",
        run.gain(first.share * run.gpu_share, "all of its time"),
        where=place,
        change=words(f"hot-spot.{first.bound if first.owner == 'user' else 'library'}"),
    )
