"""Rules on several devices and streams: what nothing hides, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from profkit.analysis.insights.evidence import RunEvidence, percent_text
from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Communication, Gain, GpuTrace, Insight, Place

LEAST = 0.03  # of the time: less is not worth a change
_COLLECTIVE = re.compile(r"(AllReduce|AllGather|ReduceScatter|Broadcast|SendRecv|AllToAll|Reduce)")
_CHANGES = {
    "AllReduce": "DDP: larger gradient buckets (bucket_cap_mb), gradient_as_bucket_view=True, and no_sync() in all "
    "but the last of the accumulated steps; reduce in bfloat16 (a communication hook).",
    "AllGather": "FSDP: prefetch the next layer (forward_prefetch, BackwardPrefetch.BACKWARD_PRE), wrap larger groups "
    "of layers, and do not reshard after the forward pass where memory allows.",
    "ReduceScatter": "FSDP: wrap larger groups of layers, reduce in bfloat16 (MixedPrecision), and no_sync() in all "
    "but the last of the accumulated steps.",
    "SendRecv": "Pipelines, ring attention, all-to-all (embeddings, experts): send the next block while this one is "
    "worked on (two buffers), with asynchronous calls on a stream of their own, and more and smaller micro-batches.",
}
# of the kernels' time: a stream with less is not one that the program's work is spread over
LEAST_STREAM = 0.05
_WAITS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMalloc", "cudaFree")
_ANY = "Begin it as soon as its data is there (async_op=True), and wait for it where the result is needed."


def exposed_communication(run: RunEvidence) -> Iterator[Insight]:
    """Time in which a device runs kernels of NCCL and nothing else."""
    trace = run.trace
    if trace is None or not trace.span or trace.communication is None:
        return
    communication = trace.communication
    exposed, waiting = communication.exposed / trace.span, (communication.waiting or 0.0) / trace.span
    if exposed < LEAST:
        return
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
    if waiting > 0.5 * communication.seconds / trace.span:
        yield _waiting_devices(run, communication, evidence, min(exposed, waiting))
        return
    computing = max(0.0, (trace.busy or 0.0) - (trace.copying or 0.0)) / trace.span - exposed
    yield Insight(
        "exposed-communication",
        "Communicate while kernels run",
        evidence,
        _CHANGES.get(name, _ANY),
        Place(kernel=communication.kernel),
        Gain(
            min(exposed, max(0.0, computing)),
            run.time_name,
            "overlap hides no more than the time in which other kernels run",
        ),
    )


def _waiting_devices(run: RunEvidence, communication: Communication, evidence: str, share: float) -> Insight:
    trace = run.trace
    busy = f"; the GPUs are busy for {_busy_text(trace)}" if trace is not None and trace.device_busy else ""
    return Insight(
        "exposed-communication",
        "Give the GPUs the same work at the same time: they wait for each other",
        f"{evidence}{busy}",
        "The last GPU to come to a call decides when it begins. Look for what only one of them does (data loading, "
        "evaluation, logging, a longer batch), give batches of equal length, and let every host launch ahead.",
        Place(kernel=communication.kernel),
        Gain(share, run.time_name, "the time in which calls wait for the last GPU"),
    )


def _busy_text(trace: GpuTrace) -> str:
    return ", ".join(percent_text(100 * share) for share in trace.device_busy[:8])


def serial_streams(run: RunEvidence) -> Iterator[Insight]:
    """Kernels on several streams of which no two run at once, though each leaves multiprocessors without a block."""
    trace = run.trace
    gpu = run.document.gpus[0] if run.document.gpus else None
    if trace is None or not trace.span or len(trace.streams) != 1 or trace.device_busy:
        return
    device = trace.streams[0]
    streams = [one for one in device.streams if one.kernel_seconds >= LEAST_STREAM * device.computing > 0]
    communicating = any(kernel_owner(one.kernel or "") == "nccl" for one in device.streams)
    filled = _filled_share(trace, gpu.multiprocessors) if gpu is not None and gpu.multiprocessors else 1.0
    if len(streams) < 2 or communicating or device.together >= LEAST_STREAM * device.computing:
        return
    shortest = max(*(one.kernel_seconds for one in streams), filled * device.computing)
    launching = trace.launches * (trace.launch_call or 0.0)
    share = (min(device.computing, trace.span) - shortest) / trace.span
    share = min(share, 1 - launching / trace.span)
    if share < LEAST:
        return
    largest = max(streams, key=lambda one: one.kernel_seconds)
    waits = [call for call in trace.api if call.name.startswith(_WAITS) and 4 * call.calls >= trace.launches]
    waiting = f"; the host calls {waits[0].name} {plural(waits[0].calls, 'time')}" if waits else ""
    yield Insight(
        "serial-streams",
        f"Let the kernels of the {len(streams)} streams run at the same time",
        f"{plural(len(streams), 'stream')} run kernels, and those of two run at once for "
        f"{percent_text(100 * device.together / device.computing)} of that time; on average a kernel has blocks for "
        f"{percent_text(100 * filled)} of the multiprocessors{waiting}",
        "Between the launches nothing may make all streams wait: no synchronisation, cudaMalloc, cudaFree or copy of "
        "pageable memory, and nothing on the default stream (cudaStreamNonBlocking, nvcc --default-stream per-thread). "
        "Give each stream its work in turn. Where kernels are alike, one launch with more blocks is simpler.",
        Place(kernel=largest.kernel),
        Gain(
            share,
            run.time_name,
            "until every multiprocessor has a block, or the longest stream is what is left",
        ),
    )


def _filled_share(trace: GpuTrace, multiprocessors: int) -> float:
    """The share of the multiprocessors (0..1) for which the kernels have blocks; 1 where none is told."""
    total = sum(one.total for one in trace.kernels)
    filled = sum(
        one.total * (min(1.0, prod(one.kernel.grid) / multiprocessors) if one.kernel.grid else 1.0)
        for one in trace.kernels
    )
    return filled / total if total > 0 and filled > 0 else 1.0
