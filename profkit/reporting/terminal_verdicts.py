"""The verdicts on the terminal: of the run worst first, then of each function or kernel that is worth it."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.backends import backend_named
from profkit.core.formatting import percent
from profkit.core.types import RunDocument, Scope, Verdict, VerdictWord
from profkit.reporting.order import (
    SIGNS,
    WORDS,
    WORTH,
    actions,
    common_causes,
    counts,
    gain,
    named,
    worst_first,
)
from profkit.reporting.plain_text import typed_apart
from profkit.reporting.screen import Screen

STYLES: dict[VerdictWord, str] = {
    "fail": "bold red",
    "unknown": "yellow",
    "pass": "green",
    "not-applicable": "dim",
}
FUNCTIONS = 3  # functions whose verdicts are shown; the rest stands in run.json
KERNELS = 5  # the same for kernels, of which each is its own piece of work


def show_verdicts(screen: Screen, document: RunDocument, *, details: bool) -> None:
    """Verdicts on the run, then on its hottest functions or kernels; with `details` all of what to try."""
    whole = [v for v in document.verdicts if v.scope.kind in ("run", "region")]
    inner: dict[Scope, list[Verdict]] = {}
    for verdict in document.verdicts:
        if verdict.scope.kind not in ("run", "region"):
            inner.setdefault(verdict.scope, []).append(verdict)
    kernels = any(scope.kind == "kernel" for scope in inner)
    if whole or (inner and (details or kernels)):
        screen.heading("Verdicts")
    regions = {v.scope.name for v in whole if v.scope.kind == "region"}
    common = (
        common_causes(whole) if kernels or not details or backend_named(document.backend).per_kernel else {}
    )
    told_together = [verdict for same in common.values() for verdict in same]
    shown_above = [action.about for action in actions(document)]
    above = [v for v in whole if v in shown_above] if kernels and not details else []
    told_together += above
    if kernels and not details:  # what is as it should be takes a line, and what was told above no more
        kept = [v for v in whole if v.verdict in ("pass", "not-applicable")]
        told_together += kept
        for word, style in STYLES.items():
            names = ", ".join(v.target for v in above if v.verdict == word)
            if names:
                label = (f"{SIGNS[word]} {WORDS[word]}", style)
                screen.labelled(label, (names, "bold"), ("  as told above", "dim"), width=9)
    for verdict in worst_first([v for v in whole if v not in told_together]):
        place = f"{verdict.scope.name}: " if len(regions) > 1 and verdict.scope.name else ""
        _verdict(screen, verdict, place, advice=len(verdict.advice) if details else int(kernels))
    for cause, same in common.items():
        names = ", ".join(verdict.target for verdict in same)
        screen.labelled(
            (f"{SIGNS['unknown']} {WORDS['unknown']}", STYLES["unknown"]),
            (names, "bold"),
            f"  {cause}",
            width=9,
        )
        for line in dict.fromkeys(verdict.advice[0] for verdict in same if verdict.advice) if details else ():
            _try(screen, line)
    if not details and not kernels:
        return
    if not details:
        for word in ("pass", "not-applicable"):
            names = ", ".join(verdict.target for verdict in kept if verdict.verdict == word)
            if names:
                screen.labelled((f"{SIGNS[word]} {WORDS[word]}", STYLES[word]), names, width=9)
    shown = frozenset(v.target for v in whole if v.verdict in ("fail", "unknown"))
    for scope, verdicts in list(inner.items())[: KERNELS if kernels else FUNCTIONS]:
        if kernels and not details and all(v.weight is not None and v.weight < WORTH for v in verdicts):
            continue  # too small to fail a run
        failed = [v for v in worst_first(verdicts) if v.verdict in ("fail", "unknown")]
        weight = next((v.weight for v in verdicts if v.weight is not None), None)
        share = f", {percent(100 * weight)} % of the GPU time" if weight is not None else ""
        screen.line(
            ("in ", "dim"), (named(scope), "bold"), (f"{share}: {counts(verdicts)}", "dim"), indent=2, hang=2
        )
        for verdict in failed if details else [v for v in failed if v.verdict == "fail"]:
            if not _told(verdict, whole):
                few = len(verdict.advice) if details else int(kernels)
                if verdict.target in shown and (not kernels or not details):
                    few = 0  # the run's verdict has it
                _verdict(screen, verdict, "", advice=few)


def _told(verdict: Verdict, whole: Sequence[Verdict]) -> bool:
    """Whether the run's own verdict on that target is this one in other words: the kernel that decided it."""
    return any(v.target == verdict.target and verdict.reason in v.reason for v in whole)


def _verdict(screen: Screen, verdict: Verdict, place: str, *, advice: int) -> None:
    """The verdict and, of what to try, the first so many."""
    label = (f"{SIGNS[verdict.verdict]} {WORDS[verdict.verdict]}", STYLES[verdict.verdict])
    screen.labelled(label, (verdict.target, "bold"), f"  {place}{verdict.reason}{gain(verdict)}", width=9)
    if verdict.verdict in ("fail", "unknown"):
        for line in verdict.advice[:advice]:
            _try(screen, line)


def _try(screen: Screen, advice: str) -> None:
    words, typed = typed_apart(advice)
    if typed is not None and not words:
        screen.typed(f"try: {typed}", "dim", indent=12)
    else:
        screen.labelled(("", ""), (f"try: {advice}", "dim"), width=9)
