"""More work, more bytes, less efficient kernels and caches, more memory held."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.formatting import quantity
from profkit.core.types import Cause, Change, FunctionChange, RunDocument
from profkit.regression.compare.causes.evidence import Evidence, kernel_label, relative_change, transition


def find_transfers(view: Evidence) -> Iterator[Cause]:
    """Where the bytes of an iteration's copies are different, by their kind."""
    for change in view.different("transfer.bytes"):
        before, after = _kinds(view.baseline), _kinds(view.candidate)
        evidence = [
            transition(kind, before.get(kind, 0.0), after.get(kind, 0.0), "B")
            for kind in dict.fromkeys((*before, *after))
            if before.get(kind) != after.get(kind)
        ]
        yield Cause(
            "transfers",
            f"Each iteration copies {relative_change(change.baseline.value, change.candidate.value)}.",
            evidence=(
                transition("bytes copied", change.baseline.value, change.candidate.value, "B"),
                *evidence,
            ),
        )


def _kinds(document: RunDocument) -> dict[str, float]:
    count = traced_iterations(document)
    transfers = document.trace.transfers if document.trace is not None else ()
    return {transfer.kind: transfer.bytes / count for transfer in transfers}


_NAMED = 3


def find_instructions(view: Evidence) -> Iterator[Cause]:
    """Of the run with the functions that grew, and of each kernel that takes another time."""
    for change in view.different("instructions"):
        if change.scope.kind != "kernel":
            yield _of_run(view, change)
        elif view.retimed(change.scope):
            yield Cause(
                "work",
                f"{kernel_label(change.scope.name or '')} executes {_relative_count(change)} instructions.",
                change.scope,
                (transition("instructions", change.baseline.value, change.candidate.value),),
            )


def _of_run(view: Evidence, change: Change) -> Cause:
    more = change.candidate.value > change.baseline.value
    grown = [f for f in view.functions if f.unit == "instructions" and (_added(f) > 0) == more]
    named = sorted(grown, key=lambda f: -abs(_added(f)))[:_NAMED]
    evidence = [f"{f.name} {'+' if _added(f) > 0 else '-'}{quantity(abs(_added(f)))}" for f in named]
    where = f", most of that in {named[0].name}" if named and _most(named[0], change) else ""
    return Cause(
        "work",
        f"It executes {_relative_count(change)} instructions{where}.",
        change.scope,
        (transition("instructions", change.baseline.value, change.candidate.value), *evidence),
    )


def _relative_count(change: Change) -> str:
    """`12 % more`, `8 % fewer`, `2.4 times as many`."""
    return (
        relative_change(change.baseline.value, change.candidate.value)
        .replace("as much", "as many")
        .replace(" less", " fewer")
    )


def _most(function: FunctionChange, change: Change) -> bool:
    return abs(_added(function)) > abs(change.candidate.value - change.baseline.value) / 2


def _added(function: FunctionChange) -> float:
    return (function.candidate or 0.0) - (function.baseline or 0.0)


def find_memory_traffic(view: Evidence) -> Iterator[Cause]:
    """Of the run, and of each kernel that takes another time."""
    for change in view.different("dram.bytes"):
        before, after = change.baseline.value, change.candidate.value
        says = f"moves {relative_change(before, after)} between"
        if change.scope.kind != "kernel":
            sentence = f"It {says} the last cache and memory."
        elif view.retimed(change.scope):
            sentence = f"{kernel_label(change.scope.name or '')} {says} the device's caches and its memory."
        else:
            continue
        yield Cause("bytes", sentence, change.scope, (transition("memory traffic", before, after, "B"),))


# The metric, whether more of it is the worse, and what it means for the kernel.
_SIGNS = (
    ("memory.spill.loads", True, "reloads registers that did not fit"),
    ("memory.spill.stores", True, "spills registers to memory"),
    ("shared.bank_conflicts", True, "has more bank conflicts in shared memory"),
    ("memory.coalescing", False, "uses less of the sectors that it loads"),
    ("warp.execution_efficiency", False, "leaves more lanes of its warps idle"),
)


def find_kernel_efficiency(view: Evidence) -> Iterator[Cause]:
    """For each kernel that became slower and shows such a sign."""
    for metric, rises, says in _SIGNS:
        for change in view.different(metric):
            if (change.candidate.value > change.baseline.value) != rises:
                continue
            fate = view.fate(change.scope)
            if fate is not None and fate.word == "slower":
                yield Cause(
                    metric.rpartition(".")[2],
                    f"{kernel_label(change.scope.name or '')} {says}.",
                    change.scope,
                    (transition(metric, change.baseline.value, change.candidate.value, change.unit),),
                )


_SAYS = {
    "cache.l1.miss_rate": "A larger share of the accesses misses the L1 cache.",
    "cache.l2.miss_rate": "A larger share of what reaches the L2 cache misses it.",
    "cache.l3.miss_rate": "A larger share of what reaches the L3 cache misses it.",
    "branch.miss_rate": "A larger share of the branches is mispredicted.",
}

_TITLES = {
    "cache.l1.miss_rate": "accesses that miss L1",
    "cache.l2.miss_rate": "accesses to L2 that miss it",
    "cache.l3.miss_rate": "accesses to L3 that miss it",
    "branch.miss_rate": "branches mispredicted",
}


def find_cache_misses(view: Evidence) -> Iterator[Cause]:
    """Where a rate rose."""
    for metric, says in _SAYS.items():
        change = view.rose(metric)
        if change is not None:
            yield Cause(
                "misses",
                says,
                change.scope,
                (transition(_TITLES[metric], change.baseline.value, change.candidate.value, "%"),),
            )


def find_memory_growth(view: Evidence) -> Iterator[Cause]:
    """Where a peak or a growth rose; what rose with the process is told with it."""
    process = view.rose("memory.rss_peak")
    if process is not None:
        more = process.candidate.value - process.baseline.value
        both = view.both("memory.python_peak", process.scope)
        evidence = [transition("resident memory", process.baseline.value, process.candidate.value, "B")]
        if both is not None:  # else nothing tells whose it is, and that it holds more is the change itself
            evidence.append(transition("Python's heap", *both, "B"))
            whose = _whose((both[1] - both[0]) / more)
            yield Cause("memory", f"The process holds more memory; {whose}.", evidence=tuple(evidence))
    growth = view.rose("memory.python_growth")
    if growth is not None and growth.candidate.value > 0:
        yield Cause(
            "leak",
            "Python's heap grows with each iteration.",
            evidence=(transition("growth", growth.baseline.value, growth.candidate.value, growth.unit),),
        )


def _whose(share: float) -> str:
    if share > 0.5:
        return "Python objects hold most of it"
    return (
        f"Python objects hold {100 * share:.0f} % of it"
        if share > 0.1
        else "hardly any of it is in Python objects"
    )


def find_slower_imports(view: Evidence) -> Iterator[Cause]:
    """Where the time of imports rose."""
    change = view.rose("time.import")
    if change is not None:
        yield Cause(
            "imports",
            "Imports before the work take longer.",
            evidence=(transition("imports", change.baseline.value, change.candidate.value, "s"),),
        )
