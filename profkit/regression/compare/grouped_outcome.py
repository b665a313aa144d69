"""The outcome of two sweeps: by the means over all shapes, with what must be known beside them."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import plural
from profkit.core.types import Change, ComparisonOutcome
from profkit.regression.compare.decide import share
from profkit.regression.compare.grouped import FIX, METRIC, Grouped

RESUME = "the sweep of the candidate says why; profkit sweep --resume CANDIDATE --again tries them once more"
Outcome = tuple[ComparisonOutcome, str, str | None]


def with_groups(outcome: Outcome, grouped: Grouped, changes: Sequence[Change]) -> Outcome:
    """The outcome of two sweeps, its reason and its fix, with what their cases say beside the means."""
    word, reason, fix = outcome
    if word == "regressed" or not (grouped.changes or grouped.nothing):
        return outcome
    if grouped.nothing:
        return "ambiguous", "Cannot decide: no case has a time in both sweeps.", RESUME
    if grouped.controls is not None:
        return "ambiguous", f"Nothing can be said of the code: {grouped.controls}.", FIX
    if grouped.lost:
        told = f"{plural(len(grouped.lost), 'case')} of the baseline {'have' if len(grouped.lost) > 1 else 'has'}"
        return (
            "ambiguous",
            f"{told} no time in the candidate: {grouped.lost[0]}{_more(grouped.lost)}.",
            RESUME,
        )
    if word in ("same", "changed"):
        means = [c for c in changes if c.metric == METRIC and c.role == "decides"]
        seen = max((c.detectable for c in means if c.detectable is not None), default=None)
        large = f" (a change of {share(seen)} would have been seen)" if seen is not None else ""
        what = plural(len(means), "mean over all shapes is", "means over all shapes are")
        reason = f"No change: {what} the same{large}"
        stand_out = [c for c in changes if c.metric == "time.median" and c.word == "different"]
        few = plural(len(stand_out), "single case stands out", "single cases stand out")
        reason += f", but {few}." if stand_out else "."
    return word, reason, fix


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""
