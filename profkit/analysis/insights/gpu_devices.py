"""Rules on several devices: what nothing hides, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence, percent_text
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
