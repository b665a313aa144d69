"""Rules on several devices: what nothing hides, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from profkit.analysis.insights.evidence import RunEvidence, insight_at, percent_text, words
from profkit.analysis.insights.spot_waits import line_ahead
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Communication, DeviceCommunication, Insight, Place, SampledTime

LEAST = 0.03  # of the time: less is not worth a change
SELDOM = 0.25  # of what the others wait: a device that waits less than that is the last one
MOST = 8  # devices that are named
_COLLECTIVE = re.compile(r"(AllReduce|AllGather|ReduceScatter|Broadcast|SendRecv|AllToAll|Reduce)")


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
        words(f"communication.{name}", "collective"),
        Place(kernel=communication.kernel),
        run.gain(
            min(exposed, max(0.0, computing)),
            "overlap hides no more than the time in which other kernels run",
        ),
    )


def _waiting_devices(run: RunEvidence, communication: Communication, evidence: str, share: float) -> Insight:
    """Which device the others wait for, and the line in which its rank spends more than theirs."""
    each = communication.by_device
    last = min(each, key=lambda one: one.waiting or 0.0, default=None)
    waits = ", ".join(f"GPU {one.device} {format_quantity(one.waiting or 0.0, 's')}" for one in each[:MOST])
    rest = [one.waiting or 0.0 for one in each if one is not last]
    one_is_last = last is not None and bool(rest) and (last.waiting or 0.0) <= SELDOM * sum(rest) / len(rest)
    place, line = Place(kernel=communication.kernel), None
    sampled = next((one for one in run.document.sampled if not one.native), None)
    if one_is_last and last is not None and sampled is not None and _is_rank_of(sampled, last.device, each):
        found, more = line_ahead(sampled, str(last.device))
        if more > 0:
            line, place = found, Place(None, None, found.function, found.file, found.line)
    text = line.code.text if line is not None and line.code is not None else None
    meanwhile = f"; its rank is in `{text}` meanwhile" if text else ""
    return insight_at(
        "gpu-behind",
        f"GPU {last.device} comes last to each call: the others wait for it"
        if one_is_last and last is not None
        else "Give the GPUs the same work at the same time: they wait for each other",
        f"{evidence}{f': {waits}' if waits else ''}{meanwhile}",
        place,
        run.gain(share, "the time in which calls wait for the last GPU"),
    )


def _is_rank_of(sampled: SampledTime, device: int, each: Sequence[DeviceCommunication]) -> bool:
    """Whether ranks were told apart, one for each device: torchrun gives a rank the device of its number."""
    ranks = {rank for line in sampled.lines for rank in line.ranks}
    return str(device) in ranks and len(ranks) == len(each) > 1
