"""The judge, in the order in which it works: targets, places, the account of a step, findings, and what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.account import make_account
from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.kernels import evaluate_run
from profkit.analysis.judge.target import Target
from profkit.analysis.judge.tried import with_trials
from profkit.core.types import Fact, Insight, RunDocument, Verdict

ONLY_WAITS = 0.9  # of the wall time: what is left is the start of the process


def judge_run(document: RunDocument, targets: Sequence[Target], count: str = "") -> RunDocument:
    """Return an enriched and summarized document with its verdicts, places, account and findings.

    Each step stands on those before it: a finding is about a place, and may explain a missed target. `count` is the
    line that counts kernels.
    """
    verdicts = _of_what_works(document, evaluate_run(document, targets, count))
    judged = replace(document, verdicts=verdicts)
    placed = replace(judged, hot_spots=hot_spots(judged))
    placed = replace(placed, account=make_account(placed))
    return _with_findings(placed, with_trials(placed, find_insights(placed)))


def _with_findings(document: RunDocument, findings: Sequence[Insight]) -> RunDocument:
    """Return the document with its findings; each place has the number of the first that is about it."""
    places = [(one.where.file, one.where.line) for one in findings]
    numbered = tuple(
        replace(spot, insight=places.index((spot.where.file, spot.where.line)))
        if spot.where.file is not None and (spot.where.file, spot.where.line) in places
        else spot
        for spot in document.hot_spots
    )
    return replace(document, hot_spots=numbered, insights=tuple(findings))


def _of_what_works(document: RunDocument, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Verdicts on the host's counters and use of cores do not apply to a program that only waits."""
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
