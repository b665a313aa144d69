"""A run document as the entry that a history keeps of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator

from profkit.analysis.comparability import fingerprint_of
from profkit.analysis.metrics import direction_of
from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.codec import to_plain_data
from profkit.core.errors import UsageError
from profkit.core.statistics import combine_processes
from profkit.core.types import Entry, Reading, RunDocument, Scope, SeriesKey, Timing, Value
from profkit.hardware.conditions import lost_shares

# Largest GPU time first; what is counted makes up 95 % of it, in real programs some ten kernels.
KERNELS_KEPT = 20
ID_LENGTH = 16  # hexadecimal digits: a billion runs share one with a chance of 3 %
# Of a kernel is kept what is good in one direction, and these, which tell why that moved.
_CAUSES = ("launch.registers", "launch.shared", "launch.blocks", "clock.sm", "instructions", "flops.tensor")
# Sums over all that was traced, and a trace repeats the work as often as fits its budget: kept for one iteration.
COUNTED = "counted iterations"  # the fact of a run that says what its counts per iteration are the mean of
LOST = "time lost"  # the fact of a run that says which share of its time others had the processor
_SUMS = ("time.gpu", "time.gpu.idle", "launch.count", "buffer.count", "transfer.bytes", "transfer.seconds")


def entry_of(
    document: RunDocument, *, path: str | None = None, night: str | None = None, id: str | None = None
) -> Entry:
    """What a history keeps of a run: all readings of the run and its regions that have a value, and those of kernels.

    The median time of a region comes with its interval. Kernels are the 20 with
    the most GPU time. Functions are not kept: their names change with every build. `id` names a report that holds no
    run, by its content. Raises UsageError (2) for a run that is still under way, or does not say when it started.
    """
    if document.state == "running":
        raise UsageError(
            f"the run {path or document.name} is not finished: its run.json says `running`",
            "add it when it is; where it was killed, what it holds can be read: profkit summarize",
        )
    if not document.started:
        raise UsageError(f"the run {path or document.name} does not say when it started")
    print_ = fingerprint_of(document)
    revision = document.revision
    iterations = traced_iterations(document)
    values = {value.key: value for value in _collect_values(document, iterations)}
    valid = document.state == "complete"
    return Entry(
        id=id or run_id(document),
        started=document.started,
        workload=document.workload.name or document.name,
        backend=document.backend,
        state=document.state,
        source=_source(document),
        machine=print_.id,
        features=print_.features,
        commit=revision.commit if revision is not None else None,
        dirty=revision.dirty if revision is not None else None,
        path=path,
        night=night,
        facts=_collect_facts(document, iterations),
        values=tuple(values.values()),
        valid=valid,
        reason=None if valid else document.failure or f"the run was {document.state}",
    )


def _source(document: RunDocument) -> str:
    """Who measured: profkit a run, else the tool whose report it is."""
    if document.passes or document.timings:
        return "profkit"
    traced = document.trace.tool if document.trace is not None else None
    return next(
        iter(document.tools),
        traced or next((reading.source.tool for reading in document.readings), "profkit"),
    )


def run_id(document: RunDocument) -> str:
    """The name of a run for ever: made of what no copy, move or newer reading of it changes.

    That is its start, its samples, and how long each pass took, to the nanosecond.
    """
    passes = to_plain_data([[done.name, done.state, done.seconds] for done in document.passes])
    samples = [
        [timing.name, [process.seconds for process in timing.processes]] for timing in document.timings
    ]
    body = [document.started, document.backend, document.name, passes, to_plain_data(samples)]
    if not passes and not samples:
        body.append(to_plain_data(document.readings))
    return hashlib.sha256(json.dumps(body, allow_nan=False).encode()).hexdigest()[:ID_LENGTH]


def _collect_facts(document: RunDocument, iterations: int) -> dict[str, str]:
    facts = {
        "tools": ", ".join(f"{name} {version}" for name, version in sorted(document.tools.items())),
        "depth": document.plan.depth if document.plan is not None else "",
        "traced iterations": str(iterations) if iterations > 1 else "",
        COUNTED: document.facts.get(COUNTED, ""),
        LOST: f"{min(1.0, lost):.3f}" if (lost := sum(lost_shares(document.disturbances))) >= 0.0005 else "",
        "branch": (document.revision.branch or "") if document.revision is not None else "",
        "kernels": _left_out(document),
    }
    return {name: text for name, text in facts.items() if text}


def _left_out(document: RunDocument) -> str:
    """How many kernels there were, where some are not kept."""
    known = _kernels(document)
    return f"the {KERNELS_KEPT} with the most GPU time of {len(known)}" if len(known) > KERNELS_KEPT else ""


# ---------------------------------------------------------------- values


def _collect_values(document: RunDocument, iterations: int) -> Iterator[Value]:
    stored = set(_kernels(document)[:KERNELS_KEPT])
    timings = {timing.name: timing for timing in document.timings}
    for reading in document.readings:
        if reading.value is None or not math.isfinite(reading.value):
            continue
        if reading.scope.kind in ("run", "region") or (
            reading.scope in stored and _is_stored(reading.metric)
        ):
            yield _value(document, reading, timings.get(reading.scope.name or ""), iterations)
    if document.trace is not None:
        for timed in document.trace.kernels:
            if timed.kernel.scope in stored:
                for name, unit, value in (
                    ("time.gpu", "s", timed.total / iterations),
                    ("launch.count", "count", timed.launches / iterations),
                ):
                    if math.isfinite(value):
                        key = _key(document, name, timed.kernel.scope)
                        yield Value(key, unit, direction_of(name), value, "measured")


def _value(document: RunDocument, reading: Reading, timing: Timing | None, iterations: int) -> Value:
    value = float(reading.value or 0.0)
    low = high = None
    if reading.scope.kind == "run" and reading.metric in _SUMS:
        value /= iterations
    if reading.metric == "time.median" and timing is not None:
        groups = tuple(process.seconds for process in timing.processes if process.seconds)
        centre = combine_processes(groups)
        if centre is not None:
            low, high = centre.low, centre.high
    key = _key(document, reading.metric, reading.scope)
    better = direction_of(reading.metric)
    return Value(key, reading.unit, better, value, reading.quality, low, high, reading.doubt)


def _key(document: RunDocument, name: str, scope: Scope) -> SeriesKey:
    return SeriesKey(document.workload.name or document.name, document.backend, name, scope)


def _is_stored(name: str) -> bool:
    return name in _CAUSES or direction_of(name) != "none"


def _kernels(document: RunDocument) -> list[Scope]:
    """The kernels by GPU time, the largest first; those of counters alone as they come."""
    timed = document.trace.kernels if document.trace is not None else ()
    by_time = sorted(timed, key=lambda kernel_time: kernel_time.total, reverse=True)
    counted = (reading.scope for reading in document.readings if reading.scope.kind == "kernel")
    return list(dict.fromkeys([*(kernel_time.kernel.scope for kernel_time in by_time), *counted]))


def lost_of(entry: Entry) -> float:
    """The share of the run's time that was lost to others, 0 where nobody tells."""
    try:
        share = float(entry.facts.get(LOST, "0"))
    except ValueError:
        return 0.0
    return share if 0 <= share <= 1 else 0.0
