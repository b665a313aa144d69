"""A rule on streams: kernels that could run side by side, and that the default stream puts one behind the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.evidence import RunEvidence
from profkit.analysis.judge.rule import insight_at
from profkit.analysis.judge.rules.gpu.lines import MIN_PER_REPETITION, MIN_SHARE, MIN_WAITS, place_of_line
from profkit.analysis.kernel_names.forms import bare_name
from profkit.core.formatting import percent_text
from profkit.core.types import GpuTrace, Insight, Place, StreamOrder

SMALL = 0.5  # of the multiprocessors have a block: two such kernels fit onto the device
NEVER = 0.01  # of the kernels' time: what runs side by side by chance
ALL = 1.1  # times the operations: calls at the edges of what counts may have theirs outside
MOST = 0.5  # of the changes of the stream, and of the device's time
_WAITS = re.compile(r"^cu(?:da)?StreamWaitEvent")
_CALLS = {"memset": "cudaMemset", "kernel": "", "copy": "cudaMemcpy"}


def ordered_streams(run: RunEvidence) -> Iterator[Insight]:
    """Find small kernels of several streams that never run side by side, with something of the default stream between.

    PyTorch and JAX create streams that do not wait for it. Where streams wait for each other's events, their order is
    meant.
    """
    trace, multiprocessors = run.trace, run.document.gpus[0].multiprocessors if run.document.gpus else None
    order = trace.streams if trace is not None else None
    if trace is None or order is None or not trace.span or not trace.busy or not multiprocessors:
        return
    if run.framework in ("torch", "jax") or order.blocks > SMALL * multiprocessors:
        return
    waits = sum(call.calls for call in trace.api if _WAITS.match(call.name))
    often = order.parted >= max(MIN_WAITS, MIN_PER_REPETITION * (trace.repeats or 0), MOST * order.switches)
    if not often or order.queued < MOST * order.parted or waits >= MOST * order.switches:
        return
    if order.overlap > NEVER * order.seconds or order.seconds < MOST * trace.busy:
        return
    # Side by side they take as long as the longest stream, or until the device is full.
    least = max(order.longest, order.seconds * min(1.0, order.blocks / multiprocessors))
    share = (order.seconds - least) / trace.span
    if share < MIN_SHARE:
        return
    part = order.parted / (trace.repeats or order.parted)
    each = f"{order.parted:,} times{f', {part:,.0f} in each step' if part >= 1.5 else ''}"
    yield insight_at(
        "ordered-streams",
        f"Give the {_named(order)} a stream: it lets {order.streams} streams wait for each other",
        f"kernels of {order.streams} streams never run side by side, although each has {order.blocks:,.0f} blocks for "
        f"{multiprocessors} multiprocessors: {each} an operation of the default stream (most: {_named(order)}) lies "
        f"between two of them, {percent_text(100 * order.queued / order.parted)} of these launched before the one in "
        "front had ended",
        _place(trace, order),
        run.gain(
            share, "as if the streams ran side by side: the time of the longest, or until the device is full"
        ),
    )


def _named(order: StreamOrder) -> str:
    """Return what the default stream does, in words."""
    kind = _kind(order)
    if kind == "kernel":
        return f"kernel {bare_name(order.operation)}"
    return kind if kind == "memset" else f"copy ({order.operation})"


def _kind(order: StreamOrder) -> str:
    if order.operation == "memset":
        return "memset"
    return "copy" if re.search(r" to | (?:managed)|^copy$", order.operation) else "kernel"


def _place(trace: GpuTrace, order: StreamOrder) -> Place:
    """Return the only line that asks for such an operation; else the kernel with most time in these streams.

    A line that is called more often asks for it in other streams, too.
    """
    call = _CALLS[_kind(order)]
    calling = (line for line in trace.lines if call and (line.call or "").startswith(call))
    lines = {place_of_line(line) for line in calling if line.calls <= ALL * order.operations}
    if len(lines) == 1:
        return lines.pop()
    time = next((time for time in trace.kernels if time.kernel.name == order.kernel), None)
    known = time is not None and time.file is not None
    return (
        Place(kernel=order.kernel, function=time.function, file=time.file, line=time.line)
        if time is not None and known
        else Place(kernel=order.kernel)
    )
