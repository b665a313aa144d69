"""Made-up comparisons of two versions that were run in turn, decided by the rule that decides real ones."""

from __future__ import annotations

import random

from profkit.core.pairs import confirm
from profkit.core.types import (
    RUN,
    BlamedLine,
    Cause,
    Change,
    ComparedSuite,
    ComparedWorkload,
    Comparison,
    Fact,
    Pairing,
    Scope,
    Side,
)
from profkit.regression.compare.outcome import outcome_of, worst_first
from profkit.regression.detection.rules import NightRule
from profkit.regression.paired.interleave import FLOOR, TIME
from profkit.regression.paired.suite import suite_exit_code, suite_outcome


def said(text: str) -> Fact:
    """A fact that is a message of another program."""
    return Fact.of("text", text=text)


BASE, HEAD = "a" * 40, "b" * 40
LINE = BlamedLine(
    "src/parse.py", 12, "    row.upper()", "1a2b3c4" * 5, "Parse twice", "parse", said("own time +38 %")
)


def times(by: float, noise: float = 0.005, pairs: int = 12, seed: int = 0) -> list[tuple[float, float]]:
    """(candidate, baseline) in seconds of each pair."""
    draw = random.Random(seed)
    return [
        ((1 + by) * (1 + draw.gauss(0, noise)) / 50, (1 + draw.gauss(0, noise)) / 50) for _ in range(pairs)
    ]


def change_of(values: list[tuple[float, float]], scope: Scope = RUN) -> Change:
    """What the rule says of the pairs."""
    found = confirm(values, NightRule(TIME, relative=FLOOR), "s", len(values), scope)
    assert found is not None
    return found


def compared(
    by: float = 0.12,
    noise: float = 0.005,
    *,
    blamed: tuple[BlamedLine, ...] = (),
    causes: tuple[Cause, ...] = (),
    waited: float | None = 0.031,
    scope: Scope = RUN,
    seed: int = 0,
) -> Comparison:
    """Two versions, of which the second takes `by` longer."""
    values = times(by, noise, seed=seed)
    change = change_of(values, scope)
    outcome, reason, fix = outcome_of((change,))
    started = "2026-11-20T13:37:20+00:00"
    return Comparison(
        Side("main (aaaaaaaaaaaa)", "", "", started, BASE, False),
        Side("the working tree (bbbbbbbbbbbb)", "", "", started, HEAD, False),
        outcome,
        reason,
        changes=worst_first((change,)),
        causes=causes,
        looked_at=1,
        fix=fix,
        pairing=Pairing(len(values), 6.5, 60.0, waited),
        blamed=blamed,
    )


def suite(*workloads: ComparedWorkload, strict: bool = False, interrupted: bool = False) -> ComparedSuite:
    """A suite as it stands after these workloads."""
    return ComparedSuite(
        "bench",
        suite_outcome(workloads),
        suite_exit_code(workloads, interrupted=interrupted, strict=strict),
        "2026-11-20T13:37:20+00:00",
        42.0,
        workloads,
        interrupted,
    )


def workload(name: str, by: float = 0.0, noise: float = 0.001) -> ComparedWorkload:
    """A workload that takes `by` longer."""
    return ComparedWorkload(name, "compared", compared(by, noise))
