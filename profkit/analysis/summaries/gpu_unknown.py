"""What could not be told of the kernels, by its reason and not by its kernel, with the line that would change it."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.gpu_time import NO_TIMELINE, TRACE_FIX, without_timeline
from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import plural
from profkit.core.types import RunDocument, Summary

NOT_COLLECTED = "not collected"  # how derive() begins where no counter of a metric is there
COLLECT = "ncu --set full, or profkit profile --backend cuda --depth full -- COMMAND"
# What most kernels and devices do not have, and nobody misses: no word where there is none of it.
_RARE = ("nvlink.", "cluster.", "memory.sectors_per_request.")
NAMED = 12  # metrics named in one line


def summarize_unknown(document: RunDocument, rows: Sequence[KernelRow]) -> Summary | None:
    """Unavailable readings of kernels grouped by reason, then the doubtful ones; None where there are none."""
    grouped: dict[tuple[str, str | None], dict[str, list[str]]] = {}
    doubts: dict[str, list[str]] = {}
    nothing: dict[str, list[str]] = {}
    collect = "--depth full" if document.plan is not None else COLLECT
    counted = [row for row in rows if row.readings]
    told = {name for row in counted for name, reading in row.readings.items() if reading.value is not None}
    for row in counted:
        for name, reading in row.readings.items():
            if reading.value is None and _nothing_there(reading.reason or ""):
                if name in told or name.startswith(_RARE):
                    continue  # where another kernel has it, the table shows which
                nothing.setdefault(f"{metric(name).title} ({reading.reason})", []).append(row.brief)
            elif reading.value is None:
                reason, fix = reading.reason or "", reading.fix
                if _uncollected(reason):
                    reason, fix = NOT_COLLECTED, fix or collect
                grouped.setdefault((reason, fix), {}).setdefault(name, []).append(row.brief)
            elif reading.doubt is not None:
                doubts.setdefault(f"{metric(name).title}: {reading.doubt}", []).append(row.brief)
    notes = [_line(reason, fix, found, len(counted)) for (reason, fix), found in grouped.items()]
    notes += [f"Doubtful, {text} (in {_kernels(labels, len(counted))})." for text, labels in doubts.items()]
    if nothing:
        notes.append(f"Nothing to measure: {'; '.join(nothing)}.")
    if not counted and rows and document.plan is None:
        notes.append(
            "Occupancy, bandwidth, conflicts, coalescing and what limits each kernel: a trace has times and no counters"
            " (profkit profile --backend cuda -- COMMAND, or ncu on the same command)."
        )
    if document.plan is None and document.trace is not None and without_timeline(document.trace):
        notes.append(f"How busy the GPU was: {NO_TIMELINE} ({TRACE_FIX}).")
    if not notes:
        return None
    metrics = len({name for found in grouped.values() for name in found})
    counts = [plural(metrics, "metric")] if metrics else []
    counts += [plural(len(doubts), "doubtful reading")] if doubts else []
    headline = f"{' and '.join(counts)} of the kernels." if counts else "What this report cannot tell."
    return Summary("unknown", headline[0].upper() + headline[1:], (), (), tuple(notes))


def _uncollected(reason: str) -> bool:
    """Whether nobody asked for the counters behind it: which ones in particular is of no use to a reader."""
    return reason.startswith((NOT_COLLECTED, "none of the events")) or reason.endswith("was not collected")


def _nothing_there(reason: str) -> bool:
    """Whether there simply is none of it: no branches, no shared memory, no NVLink. That leaves nothing open."""
    return reason.startswith(
        ("the kernel ", "the device has no ", "no load or store ", "no sample met ", "nothing was looked up")
    )


def _line(reason: str, fix: str | None, found: dict[str, list[str]], counted: int) -> str:
    titles = list(dict.fromkeys(metric(name).title for name in found))
    more = f" and {len(titles) - NAMED} more" if len(titles) > NAMED else ""
    labels = list(dict.fromkeys(label for kernels in found.values() for label in kernels))
    where = f" (in {_kernels(labels, counted)})" if len(labels) < counted else ""
    return f"{', '.join(titles[:NAMED])}{more}: {reason}{where}" + (f" ({fix})" if fix else "") + "."


def _kernels(labels: Sequence[str], counted: int) -> str:
    if len(labels) <= 2:
        return " and ".join(labels)
    return f"{len(labels)} of {counted} kernels"
