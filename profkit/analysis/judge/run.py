"""The judge, in the order of its steps: targets, places, the account of a step, findings, and trials."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from profkit.analysis.account import make_account
from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.kernels import evaluate_kernel_targets
from profkit.analysis.judge.rules import RULES
from profkit.analysis.judge.target import Target
from profkit.analysis.judge.tried import with_trials
from profkit.analysis.judge.verdicts import context_of, evaluate_targets
from profkit.analysis.kernel_names.forms import bare_name
from profkit.core.types import Account, AccountRow, Fact, Insight, RunDocument, Verdict

ONLY_WAITS = 0.9  # of the wall time: what is left is the start of the process


def judge_run(document: RunDocument, targets: Sequence[Target], count: str = "") -> RunDocument:
    """Return an enriched and summarized document with its verdicts, places, account and findings.

    Each step uses the ones before it: a finding is about a place, and may explain a missed target. `count` is the
    command that counts kernels.
    """
    verdicts = _of_what_works(document, evaluate_run(document, targets, count))
    judged = replace(document, verdicts=verdicts)
    placed = replace(judged, hot_spots=hot_spots(judged))
    placed = replace(placed, account=make_account(placed))
    missed = {
        verdict.target
        for verdict in verdicts
        if verdict.verdict == "fail" and verdict.scope.kind in ("run", "region")
    }
    findings = with_trials(placed, find_insights(placed))
    findings = tuple(replace(insight, targets=_explained(insight, missed)) for insight in findings)
    if placed.account is not None:
        placed = replace(placed, account=without_waste(placed.account, findings))
    return _with_findings(placed, findings)


def evaluate_run(document: RunDocument, targets: Sequence[Target], count: str = "") -> tuple[Verdict, ...]:
    """Return the verdicts on an enriched and summarized document; `count` is the command that counts kernels.

    A run has a verdict on every target, since its summaries include unavailable readings. A report has verdicts on the
    metrics that it contains, and on kernels for targets that are `always` judged.
    """
    summarized = [r for s in document.summaries for r in s.readings] if document.plan is not None else []
    readings = [*document.readings, *summarized]
    trace = document.trace
    if document.plan is None and trace is not None and trace.span is None and trace.kernels:
        # A report of counters has kernels and no timeline, so it cannot show how busy the GPU was.
        readings = [r for r in readings if r.value is not None or not r.metric.startswith("gpu.")]
    return (
        *evaluate_targets(targets, readings, context_of(document)),
        *evaluate_kernel_targets(document, targets, count),
    )


_RULES = {name: rule for rule in RULES for name in (rule.name, *rule.also)}


def _explained(finding: Insight, missed: Collection[str]) -> tuple[str, ...]:
    """Return the missed targets that a finding explains."""
    rule = _RULES.get(finding.rule)
    return tuple(name for name in rule.explains if name in missed) if rule is not None else ()


def without_waste(account: Account, findings: Sequence[Insight]) -> Account:
    """Return the account with the wasted time that findings prove subtracted from the time at the limit of their rows.

    Counters do not distinguish work from waste: a pipe is as busy for a warp with one active lane as for a full one,
    and a cache is as busy for sectors that nobody requested.
    """
    wasted = [
        insight
        for insight in findings
        if insight.gain is not None and insight.rule in _RULES and _RULES[insight.rule].wasted
    ]
    rows = [
        replace(
            row, least=min(row.least, max(0.0, row.seconds - _wasted_seconds(row, wasted, account.seconds)))
        )
        if row.kind == "kernel" and row.least is not None
        else row
        for row in account.rows
    ]
    return replace(account, rows=tuple(rows))


def _wasted_seconds(row: AccountRow, findings: Sequence[Insight], step: float) -> float:
    """Return the most seconds that a single rule could save at a row, over all kernels of the row."""
    by_rule: dict[str, float] = {}
    for insight in findings:
        where = insight.where
        there = row.where.file is not None and (where.file, where.line) == (row.where.file, row.where.line)
        if insight.gain is not None and (there or bare_name(where.kernel or "?") == row.what):
            by_rule[insight.rule] = by_rule.get(insight.rule, 0.0) + insight.gain.at_most * step
    return max(by_rule.values(), default=0.0)


def _with_findings(document: RunDocument, findings: Sequence[Insight]) -> RunDocument:
    """Return the document with its findings; each place has the number of the first finding about it."""
    places = [(insight.where.file, insight.where.line) for insight in findings]
    numbered = tuple(
        replace(spot, insight=places.index((spot.where.file, spot.where.line)))
        if spot.where.file is not None and (spot.where.file, spot.where.line) in places
        else spot
        for spot in document.hot_spots
    )
    return replace(document, hot_spots=numbered, insights=tuple(findings))


def _of_what_works(document: RunDocument, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts; if the program only waits, those on counters and the use of cores do not apply."""
    split = document.time_split
    if split is None or split.waiting is None or split.waiting < ONLY_WAITS * split.wall or document.gpus:
        return tuple(verdicts)
    reason = Fact.of("program-waits", share=split.waiting / split.wall)
    return tuple(
        verdict
        if verdict.metric.startswith(("time.", "memory."))
        else replace(verdict, verdict="not-applicable", reason=reason, advice=())
        for verdict in verdicts
    )
