"""Compare two runs: both documents in, everything that is said about them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from profkit.analysis.comparability import fingerprint_differences, fingerprint_of
from profkit.core.types import (
    Change,
    CodeChange,
    Comparison,
    Fact,
    RunDocument,
    Side,
)
from profkit.regression.compare.cases import MEAN_METRIC, SweepDecision, decide_sweep, outcome_of_sweep
from profkit.regression.compare.causes import causes_of
from profkit.regression.compare.kernels import (
    KernelPair,
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

FORCE, OTHER_WORK = Fact("force"), Fact("force-other-work")


def compare(baseline: RunDocument, candidate: RunDocument, options: CompareOptions = DEFAULTS) -> Comparison:
    """Return what is different in `candidate`, and why.

    If a `must` property differs, the outcome is `refused` and nothing else is looked at, unless `force`. Raises
    nothing for any two documents; the time it takes grows with the number of readings and kernels.
    """
    sides = _side_of(baseline, options.paths[0]), _side_of(candidate, options.paths[1])
    differences = fingerprint_differences(fingerprint_of(baseline), fingerprint_of(candidate))
    refused = [d for d in differences if d.tier == "must"]
    unfit = [
        f"{side} {document.state}"
        for side, document in (("baseline", baseline), ("candidate", candidate))
        if document.state in ("failed", "running")
    ]
    if (refused or unfit) and not options.force:
        why = Fact.of("refused", runs=", ".join(unfit))
        other_work = not unfit and {difference.name for difference in refused} == {"workload.arguments"}
        return Comparison(
            *sides, "refused", why, differences=differences, fix=OTHER_WORK if other_work else FORCE
        )
    matched = match_kernels(baseline, candidate)
    kernels: tuple[CodeChange, ...] = ()
    functions: tuple[CodeChange, ...] = ()
    if not options.metrics:
        kernels = kernel_changes(baseline, candidate, matched, options.floor)
        functions = function_changes(baseline, candidate)
    names = {(k.name, k.launch) for k in kernels if k.share >= KERNEL_SHARE}
    main = tuple(pair for pair in matched.pairs if (pair.candidate.name, pair.candidate.id) in names)
    decided = _decide_metrics(baseline, candidate, options, main)
    changes = decided.changes
    if not changes and not kernels:
        why = Fact.of("nothing-in-common", metrics=", ".join(options.metrics))
        return Comparison(*sides, "refused", why, differences=differences)
    outcome = outcome_of(changes, kernels, metric_named=bool(options.metrics))
    if not options.metrics or MEAN_METRIC in options.metrics:
        outcome = outcome_of_sweep(outcome, decided.grouped, changes)
    if baseline == candidate:
        outcome = ALIKE
    return Comparison(
        *sides,
        outcome.word,
        outcome.why,
        forced=options.force and bool(refused or unfit),
        differences=differences,
        changes=worst_first(changes),
        kernels=kernels,
        functions=functions,
        causes=causes_of(Evidence(baseline, candidate, changes, matched, main, kernels, functions)),
        looked_at=tested_count(changes),
        notes=tuple(_notes(baseline, candidate, decided)),
        fix=outcome.fix,
    )


class _DecidedMetrics(NamedTuple):
    """The changes of all metrics, the pairs behind them, and for two sweeps what was decided together."""

    changes: tuple[Change, ...]
    pairs: tuple[MetricPair, ...]
    grouped: SweepDecision


def _decide_metrics(
    baseline: RunDocument,
    candidate: RunDocument,
    options: CompareOptions,
    kernels: tuple[KernelPair, ...],
) -> _DecidedMetrics:
    metrics = options.metrics
    swept = baseline.is_sweep and candidate.is_sweep
    pairs = pairs_of(baseline, candidate, kernels)
    grouped = decide_sweep(baseline, candidate, pairs, options.floor) if swept else SweepDecision(())
    single = [p for p in pairs if p.metric != "time.median" or p.scope not in grouped.cases]
    changes = (*grouped.changes, *decide_pairs(single, options.floor))
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


def _notes(baseline: RunDocument, candidate: RunDocument, decided: _DecidedMetrics) -> Iterator[Fact]:
    for side, document in (("baseline", baseline), ("candidate", candidate)):
        if document.state == "interrupted":
            yield Fact.of("interrupted", side=side)
        if document.revision is not None and document.revision.dirty:
            yield Fact.of("dirty", side=side)
    if not any(pair.sampled for pair in decided.pairs):
        yield Fact("nothing-sampled")
