"""More work, more bytes, less efficient kernels and caches, more memory held."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.formatting import format_quantity
from profkit.core.types import Cause, Change, RunDocument
from profkit.regression.compare.causes.evidence import (
    Evidence,
    added_value,
    change_text,
    kernel_label,
    relative_change,
    transition,
)

# The metric, whether more of it is the worse, and what it means for the kernel.
_EFFICIENCY = (
    ("memory.spill.loads", True, "reloads registers that did not fit"),
    ("memory.spill.stores", True, "spills registers to memory"),
    ("shared.bank_conflicts", True, "has more bank conflicts in shared memory"),
    ("memory.coalescing", False, "uses less of the sectors that it loads"),
    ("warp.execution_efficiency", False, "leaves more lanes of its warps idle"),
)
# The metric, its title, and what it means where it rose.
_MISSES = (
    ("cache.l1.miss_rate", "accesses that miss L1", "A larger share of the accesses misses the L1 cache."),
    (
        "cache.l2.miss_rate",
        "accesses to L2 that miss it",
        "A larger share of what reaches the L2 cache misses it.",
    ),
    (
        "cache.l3.miss_rate",
        "accesses to L3 that miss it",
        "A larger share of what reaches the L3 cache misses it.",
    ),
    ("branch.miss_rate", "branches mispredicted", "A larger share of the branches is mispredicted."),
)

TOLD_BY_WORK = 0.5  # of the logarithm of the time's ratio: so much of it the instructions tell


def find_transfers(evidence: Evidence) -> Iterator[Cause]:
    """Where the bytes of an iteration's copies between host and device are different, by their kind."""
    for change in evidence.different("transfer.bytes"):
        before, after = _bytes_by_kind(evidence.baseline), _bytes_by_kind(evidence.candidate)
        kinds = [
            transition(kind, before.get(kind, 0.0), after.get(kind, 0.0), "B")
            for kind in dict.fromkeys((*before, *after))
            if before.get(kind) != after.get(kind)
        ]
        yield Cause(
            "transfers",
            f"Each iteration copies {relative_change(change.baseline.value, change.candidate.value)}.",
            evidence=(change_text("bytes copied", change, "B"), *kinds),
        )


def _bytes_by_kind(document: RunDocument) -> dict[str, float]:
    count = traced_iterations(document)
    transfers = document.trace.transfers if document.trace is not None else ()
    return {transfer.kind: transfer.bytes / count for transfer in transfers}


def find_instructions(evidence: Evidence) -> Iterator[Cause]:
    """Instructions of the run, with the functions that grew, and of each kernel whose time changed."""
    for change in evidence.different("instructions"):
        more = relative_change(change.baseline.value, change.candidate.value)
        more = more.replace("as much", "as many").replace(" less", " fewer")
        line = change_text("instructions", change, "")
        if change.scope.kind != "kernel":
            where, lines = _grown_functions(evidence, change)
            yield Cause("work", f"It executes {more} instructions{where}.", change.scope, (line, *lines))
        elif evidence.time_changed(change.scope):
            label = kernel_label(change.scope.name or "")
            yield Cause("work", f"{label} executes {more} instructions.", change.scope, (line,))


def _grown_functions(evidence: Evidence, change: Change) -> tuple[str, list[str]]:
    """The function that most of a change is in, and the three with the largest part of it."""
    size = change.candidate.value - change.baseline.value
    functions = [f for f in evidence.functions if f.unit == "instructions"]
    grown = [f for f in functions if (added_value(f) > 0) == (size > 0)]
    largest = sorted(grown, key=lambda f: -abs(added_value(f)))[:3]
    lines = [
        f"{f.name} {'+' if added_value(f) > 0 else '-'}{format_quantity(abs(added_value(f)))}"
        for f in largest
    ]
    most = bool(largest) and abs(added_value(largest[0])) > abs(size) / 2
    return (f", most of that in {largest[0].name}" if most else ""), lines


def find_memory_traffic(evidence: Evidence) -> Iterator[Cause]:
    """Bytes from and to memory, of the run and of each kernel whose time changed."""
    for change in evidence.different("dram.bytes"):
        verb = f"moves {relative_change(change.baseline.value, change.candidate.value)} between"
        if change.scope.kind != "kernel":
            sentence = f"It {verb} the last cache and memory."
        elif evidence.time_changed(change.scope):
            label = kernel_label(change.scope.name or "")
            sentence = f"{label} {verb} the device's caches and its memory."
        else:
            continue
        yield Cause("bytes", sentence, change.scope, (change_text("memory traffic", change, "B"),))


def find_kernel_efficiency(evidence: Evidence) -> Iterator[Cause]:
    """For each kernel that became slower: idle lanes, half used sectors, bank conflicts, spilled registers."""
    for metric, rises, meaning in _EFFICIENCY:
        for change in evidence.different(metric):
            kernel = evidence.kernel_change(change.scope)
            worse = (change.candidate.value > change.baseline.value) == rises
            if worse and kernel is not None and kernel.word == "slower":
                kind = metric.rpartition(".")[2]
                sentence = f"{kernel_label(change.scope.name or '')} {meaning}."
                yield Cause(kind, sentence, change.scope, (change_text(metric, change),))


def find_cache_misses(evidence: Evidence) -> Iterator[Cause]:
    """Where a miss rate of the CPU's caches or branches rose, and added instructions do not tell the time alone.

    A rate is of the accesses that there are: where a loop was added, it is of other ones.
    """
    work, time = evidence.rose("instructions"), evidence.rose("time.median")
    if work is not None and work.ratio and log(work.ratio) >= TOLD_BY_WORK * log(_ratio_of(time)):
        return
    for metric, title, sentence in _MISSES:
        change = evidence.rose(metric)
        if change is not None:
            yield Cause("misses", sentence, change.scope, (change_text(title, change, "%"),))


def _ratio_of(change: Change | None) -> float:
    return change.ratio if change is not None and change.ratio else 1.0


def find_memory_growth(evidence: Evidence) -> Iterator[Cause]:
    """Where a peak or a growth of the memory rose, and how much of it Python's objects hold."""
    process = evidence.rose("memory.rss_peak")
    python = evidence.both("memory.python_peak", process.scope) if process is not None else None
    if process is not None and python is not None:  # else nothing says whose it is
        share = (python[1] - python[0]) / (process.candidate.value - process.baseline.value)
        if share > 0.5:
            whose = "Python objects hold most of it"
        elif share > 0.1:
            whose = f"Python objects hold {100 * share:.0f} % of it"
        else:
            whose = "hardly any of it is in Python objects"
        lines = (change_text("resident memory", process, "B"), transition("Python's heap", *python, "B"))
        yield Cause("memory", f"The process holds more memory; {whose}.", evidence=lines)
    growth = evidence.rose("memory.python_growth")
    if growth is not None and growth.candidate.value > 0:
        yield Cause(
            "leak", "Python's heap grows with each iteration.", evidence=(change_text("growth", growth),)
        )


def find_slower_imports(evidence: Evidence) -> Iterator[Cause]:
    """Where the time of imports rose: that is start-up, not the work."""
    change = evidence.rose("time.import")
    if change is not None:
        lines = (change_text("imports", change, "s"),)
        yield Cause("imports", "Imports before the work take longer.", evidence=lines)
