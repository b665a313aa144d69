"""Two runs in, everything that is to be said of them out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from profkit.analysis.comparability import fingerprint_differences, fingerprint_of
from profkit.backends import backend_named
from profkit.core.types import (
    Change,
    Comparison,
    Difference,
    Fact,
    FunctionChange,
    KernelChange,
    RunDocument,
    Side,
)
from profkit.regression.compare.cases import MEAN_METRIC, SweepDecision, decide_sweep, outcome_of_sweep
from profkit.regression.compare.causes import causes_of
from profkit.regression.compare.kernels import (
    KernelPair,
    MatchedKernels,
    function_changes,
    kernel_changes,
    match_kernels,
)
from profkit.regression.compare.machine import without_machine_effects
from profkit.regression.compare.metrics import KERNEL_SHARE, MetricPair, decide_pairs, pairs_of, tested_count
from profkit.regression.compare.outcome import (
    ALIKE,
    DEFAULTS,
    CompareOptions,
    Evidence,
    outcome_of,
    worst_first,
)

ARGUMENTS = "workload.arguments"
FORCE = Fact("force")


def compare(baseline: RunDocument, candidate: RunDocument, options: CompareOptions = DEFAULTS) -> Comparison:
    """What is different in `candidate`, and why.

    Where a `must` field differs, the outcome is `refused` and nothing else is looked at, unless `force`. A field that
    concerns one tool only excludes what that tool measured. Raises nothing for any two documents; the time it takes
    grows with the number of readings and kernels.
    """
    sides = _side_of(baseline, options.paths[0]), _side_of(candidate, options.paths[1])
    differences = tuple(
        replace(d, tier="should", intended=True) if d.name in options.across else d
        for d in fingerprint_differences(fingerprint_of(baseline), fingerprint_of(candidate))
    )
    must = [d for d in differences if d.tier == "must"]
    refused = [d for d in must if not d.tools]
    unfit = [
        f"{side} {document.state}"
        for side, document in (("baseline", baseline), ("candidate", candidate))
        if document.state in ("failed", "running")
    ]
    if (refused or unfit) and not options.force:
        why = Fact.of("refused", runs=", ".join(unfit))
        # two versions of one benchmark often differ by an argument alone: that has a way of its own
        arguments = not unfit and {d.name for d in refused} == {ARGUMENTS}
        fix = Fact("across-arguments") if arguments else FORCE
        return Comparison(*sides, "refused", why, differences=differences, fix=fix)
    barred = [d for d in must if d.tools] if not options.force else []
    barred_tools = {tool for difference in barred if not difference.metrics for tool in difference.tools}
    matched = MatchedKernels((), (), ())
    if not barred_tools & {document.trace.tool for document in (baseline, candidate) if document.trace}:
        matched = match_kernels(baseline, candidate)
    kernels: tuple[KernelChange, ...] = ()
    functions: tuple[FunctionChange, ...] = ()
    if not options.metrics:
        kernels = kernel_changes(baseline, candidate, matched, options.floor)
        if not barred_tools & set(backend_named(baseline.backend).function_tools):
            functions = function_changes(baseline, candidate)
    decided = _decide_metrics(baseline, candidate, options, _main_kernels(matched, kernels), barred)
    changes = decided.changes
    if not changes and not kernels:
        why = Fact.of("nothing-in-common", metrics=", ".join(options.metrics))
        if barred:
            why = Fact.of("refused", runs="")
        return Comparison(*sides, "refused", why, differences=differences, fix=FORCE if barred else None)
    found = outcome_of(changes, kernels, asked=bool(options.metrics))
    if not options.metrics or MEAN_METRIC in options.metrics:
        found = outcome_of_sweep(found, decided.grouped, changes)
    if baseline == candidate:
        found = ALIKE
    return Comparison(
        *sides,
        found.word,
        found.why,
        forced=options.force and bool(refused or unfit),
        differences=differences,
        changes=worst_first(changes),
        kernels=kernels,
        functions=functions,
        causes=causes_of(Evidence(baseline, candidate, changes, matched, kernels, functions)),
        looked_at=tested_count(changes),
        notes=tuple(_notes(baseline, candidate, decided, barred)),
        fix=found.fix,
    )


class _DecidedMetrics(NamedTuple):
    """The changes of all metrics, the pairs that they were decided on, and of two sweeps what was decided together."""

    changes: tuple[Change, ...]
    pairs: tuple[MetricPair, ...]
    grouped: SweepDecision


def _decide_metrics(
    baseline: RunDocument,
    candidate: RunDocument,
    options: CompareOptions,
    kernels: tuple[KernelPair, ...],
    barred: Sequence[Difference],
) -> _DecidedMetrics:
    metrics = options.metrics
    swept = baseline.is_sweep and candidate.is_sweep
    wanted = {*metrics, "time.median"} if swept and MEAN_METRIC in metrics else metrics
    pairs = pairs_of(baseline, candidate, kernels, wanted, barred)
    grouped = decide_sweep(baseline, candidate, pairs, options.floor) if swept else SweepDecision(())
    others = [p for p in pairs if p.metric != "time.median" or p.scope not in grouped.cases]
    changes = (*grouped.changes, *decide_pairs(others, options.floor))
    if metrics:
        changes = tuple(replace(change, role="decides") for change in changes if change.metric in metrics)
    return _DecidedMetrics(without_machine_effects(changes, baseline, candidate), pairs, grouped)


def _side_of(document: RunDocument, path: str) -> Side:
    revision = document.revision
    return Side(
        document.name,
        path,
        document.backend,
        document.started,
        revision.commit if revision is not None else None,
        revision.dirty if revision is not None else None,
    )


def _main_kernels(matched: MatchedKernels, kernels: Sequence[KernelChange]) -> tuple[KernelPair, ...]:
    names = {(k.name, k.launch) for k in kernels if k.share >= KERNEL_SHARE}
    return tuple(pair for pair in matched.pairs if (pair.candidate.name, pair.candidate.id) in names)


def _notes(
    baseline: RunDocument, candidate: RunDocument, decided: _DecidedMetrics, barred: Sequence[Difference]
) -> Iterator[Fact]:
    for side, document in (("baseline", baseline), ("candidate", candidate)):
        if document.state == "interrupted":
            yield Fact.of("interrupted", side=side)
        if document.revision is not None and document.revision.dirty:
            yield Fact.of("dirty", side=side)
    for difference in barred:
        code = "left-out-caches" if difference.metrics else "left-out"
        yield Fact.of(code, tools=", ".join(difference.tools), field=difference.name)
    if not any(pair.sampled for pair in decided.pairs):
        yield Fact("nothing-sampled")
    yield from decided.grouped.notes
