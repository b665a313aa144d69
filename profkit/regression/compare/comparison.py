"""Two runs in, everything that is to be said of them out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from profkit.analysis.comparability import all_fields, fingerprint_differences, fingerprint_of
from profkit.backends import backend_named
from profkit.core.types import Change, Comparison, Difference, FunctionChange, KernelChange, RunDocument, Side
from profkit.regression.compare.causes import causes_of
from profkit.regression.compare.causes.evidence import Evidence
from profkit.regression.compare.causes.machine_state import without_machine_effects, without_state_effects
from profkit.regression.compare.decisions import decide_pairs, tested_count
from profkit.regression.compare.insights import insight_changes
from profkit.regression.compare.kernels import (
    KernelPair,
    MatchedKernels,
    function_changes,
    kernel_changes,
    match_kernels,
)
from profkit.regression.compare.outcome import outcome_of, worst_first
from profkit.regression.compare.pairs import KERNEL_SHARE, MetricPair, pairs_of
from profkit.regression.compare.roles import pair_by_role
from profkit.regression.compare.sweeps import (
    MEAN_METRIC,
    SweepDecision,
    decide_sweep,
    is_sweep,
    outcome_of_sweep,
)

ARGUMENTS = "workload.arguments"
ALIKE = "No change: they are one and the same run."


@dataclass(frozen=True)
class CompareOptions:
    """How two runs are compared.

    `force`: although they are not alike. `across` names fields (`workload.arguments`) in which they differ on purpose.
    `metrics` are the only ones to look at, and each of them decides; empty: those of `rules.yaml`. `floor` is the
    relative change that counts (0.02 is 2 %) instead of every metric's own. `paths`: where the two runs are.
    """

    force: bool = False
    across: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    floor: float | None = None
    paths: tuple[str, str] = ("", "")


def compare(
    baseline: RunDocument, candidate: RunDocument, options: CompareOptions = CompareOptions()
) -> Comparison:
    """What is different in `candidate`, and why.

    Where a `must` field differs, the outcome is `refused` and nothing else is looked at, unless `force`. A field that
    concerns one tool only excludes what that tool measured. Raises nothing for any two documents; the time it takes
    grows with the number of readings and kernels.
    """
    sides = _side_of(baseline, options.paths[0]), _side_of(candidate, options.paths[1])
    differences = _with_intended(
        fingerprint_differences(fingerprint_of(baseline), fingerprint_of(candidate)), options.across
    )
    refused = [d for d in differences if d.tier == "must" and not d.tools]
    unfit = _unusable_runs(baseline, candidate)
    if (refused or unfit) and not options.force:
        reason = f"They must not be compared: {'; '.join([*unfit, *map(_difference_text, refused)])}."
        return Comparison(
            *sides, "refused", reason, differences=differences, fix=_fix_for_refusal(refused, unfit)
        )
    barred = [d for d in differences if d.tier == "must" and d.tools] if not options.force else []
    barred_tools = {tool for difference in barred if not difference.metrics for tool in difference.tools}
    traced = not barred_tools & _tracing_tools(baseline, candidate)
    matched = MatchedKernels((), (), ())
    if traced:
        matched = pair_by_role(baseline, candidate, match_kernels(baseline, candidate))
    kernels = kernel_changes(baseline, candidate, matched, options.floor) if not options.metrics else ()
    kernels, disturbed = without_state_effects(kernels, baseline, candidate)
    decided = _decide_metrics(baseline, candidate, options, _main_kernels(matched, kernels), barred)
    changes = decided.changes
    if not changes and not kernels:
        reason = _nothing_in_common(options.metrics, baseline, candidate, barred)
        anyway = "--force compares them anyway" if barred else None
        return Comparison(*sides, "refused", reason, differences=differences, fix=anyway)
    functions: tuple[FunctionChange, ...] = ()
    if not options.metrics and not barred_tools & set(backend_named(baseline.backend).function_tools):
        functions = function_changes(baseline, candidate)
    outcome, reason, fix = outcome_of(changes, kernels, disturbed, asked=bool(options.metrics))
    if not options.metrics or {MEAN_METRIC, "time.median"} & set(options.metrics):
        outcome, reason, fix = outcome_of_sweep((outcome, reason, fix), decided.grouped, changes)
    if baseline == candidate:
        outcome, reason, fix = "same", ALIKE, None
    notes = _collect_notes(baseline, candidate, decided.pairs, differences, force=options.force)
    return Comparison(
        *sides,
        outcome,
        reason,
        forced=options.force and bool(refused or unfit),
        differences=differences,
        changes=worst_first(changes),
        kernels=kernels,
        functions=functions,
        causes=causes_of(Evidence(baseline, candidate, changes, matched, kernels, functions)),
        looked_at=tested_count(changes),
        notes=(*notes, *filter(None, [decided.grouped.note])),
        fix=fix,
        insights=insight_changes(baseline, candidate, matched) if not options.metrics and not barred else (),
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
    swept = is_sweep(baseline) and is_sweep(candidate)
    wanted = {*metrics, "time.median"} if swept and MEAN_METRIC in metrics else metrics
    pairs = pairs_of(baseline, candidate, kernels, wanted, barred)
    grouped = decide_sweep(baseline, candidate, pairs, options.floor) if swept else SweepDecision(())
    changes = (*grouped.changes, *decide_pairs(_other_pairs(pairs, grouped), options.floor))
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


def _with_intended(differences: tuple[Difference, ...], across: Collection[str]) -> tuple[Difference, ...]:
    """The differences; those that are what is compared weigh no more, and say so."""
    why = "this is what is compared, as asked for"
    return tuple(replace(d, tier="should", meaning=why) if d.name in across else d for d in differences)


def _fix_for_refusal(refused: Sequence[Difference], unfit: Sequence[str]) -> str:
    """Two versions of one benchmark often differ by an argument alone: that has a way of its own."""
    if not unfit and {d.name for d in refused} == {ARGUMENTS}:
        return "--across arguments, where the arguments are what is compared (--impl torch against --impl triton)"
    return "--force compares them anyway"


def _unusable_runs(baseline: RunDocument, candidate: RunDocument) -> list[str]:
    """A run that is going on, or whose workload failed, has no numbers to rely on."""
    sentences = {
        "failed": "the workload failed in the {}",
        "running": "the {} is still running, or was killed",
    }
    return [
        sentences[document.state].format(name)
        for name, document in (("baseline", baseline), ("candidate", candidate))
        if document.state in sentences
    ]


def _difference_text(difference: Difference) -> str:
    title = all_fields()[difference.name].title
    return f"{title} ({difference.baseline} against {difference.candidate})"


def _tracing_tools(baseline: RunDocument, candidate: RunDocument) -> set[str]:
    return {document.trace.tool for document in (baseline, candidate) if document.trace is not None}


def _other_pairs(pairs: tuple[MetricPair, ...], grouped: SweepDecision) -> tuple[MetricPair, ...]:
    """The pairs that were not decided together: of a sweep all but the times of its cases."""
    if not grouped.changes:
        return pairs
    together = {change.scope for change in grouped.changes if change.metric == "time.median"}
    return tuple(p for p in pairs if p.metric != "time.median" or p.scope not in together)


def _main_kernels(matched: MatchedKernels, kernels: Sequence[KernelChange]) -> tuple[KernelPair, ...]:
    names = {(k.name, k.launch) for k in kernels if k.share >= KERNEL_SHARE}
    return tuple(pair for pair in matched.pairs if (pair.candidate.name, pair.candidate.id) in names)


def _nothing_in_common(
    metrics: Collection[str], baseline: RunDocument, candidate: RunDocument, barred: Sequence[Difference]
) -> str:
    if barred:
        return f"They must not be compared: {'; '.join(map(_difference_text, barred))}."
    if metrics:
        return f"There is nothing to compare: not both have {', '.join(metrics)}."
    return f"There is nothing to compare: {baseline.name} and {candidate.name} have no metric in common."


def _collect_notes(
    baseline: RunDocument,
    candidate: RunDocument,
    pairs: Sequence[MetricPair],
    differences: Sequence[Difference],
    *,
    force: bool,
) -> tuple[str, ...]:
    notes = []
    for name, document in (("baseline", baseline), ("candidate", candidate)):
        if document.state == "interrupted":
            notes.append(f"The {name} was interrupted: what was measured before is compared.")
        if document.revision is not None and document.revision.dirty:
            notes.append(f"The {name} had changes that are in no commit.")
    for difference in differences:
        if difference.tier == "must" and difference.tools and not force:
            which = " of caches and memory" if difference.metrics else ""
            notes.append(
                f"What {', '.join(difference.tools)} measured{which} is left out: {_difference_text(difference)}."
            )
    if not any(pair.sampled for pair in pairs):
        notes.append(
            "No time was sampled in both runs: single values are compared, with the noise that is usual for them."
        )
    return tuple(notes)
