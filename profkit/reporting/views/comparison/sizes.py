"""What a comparison comes to in a few words: the change that made its outcome, with its size."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import format_figures, format_quantity, plural, signed
from profkit.core.types import Change, ChangeWord, Comparison, ComparisonOutcome, Course
from profkit.reporting.view import Label, Status

OUTCOMES: dict[ComparisonOutcome, Status] = {
    "regressed": Status.FAIL,
    "refused": Status.REFUSED,
    "ambiguous": Status.UNKNOWN,
    "changed": Status.CHANGED,
    "improved": Status.BETTER,
    "same": Status.PASS,
}
COURSES: dict[Course, Status] = {
    "better": Status.BETTER,
    "worse": Status.FAIL,
    "neither": Status.CHANGED,
}
WORDS: dict[ChangeWord, Status] = {"same": Status.PASS, "ambiguous": Status.UNKNOWN}
OUTCOME_WORDS: dict[ComparisonOutcome, str] = {
    "regressed": "WORSE",
    "improved": "BETTER",
    "same": "SAME",
    "ambiguous": "NOT DECIDED",
    "changed": "CHANGED",
    "refused": "REFUSED",
}
_TIMES = 10.0  # a change as large as that is shown as a factor


def outcome_label(comparison: Comparison) -> Label:
    """`✗ WORSE`."""
    return Label(OUTCOMES[comparison.outcome], OUTCOME_WORDS[comparison.outcome])


def status_of(change: Change) -> Status:
    """How one change stands."""
    return WORDS.get(change.word) or COURSES[change.course]


def leading_change(comparison: Comparison) -> Change | None:
    """The change that made the outcome, a time before others; None where no single one did."""
    fitting = _deciding(comparison)
    times = [change for change in fitting if change.metric.startswith("time.")]
    if comparison.outcome == "same":
        return max(times or fitting, key=lambda change: change.detectable or 0.0, default=None)
    return next(iter(times or fitting), None)


def _deciding(comparison: Comparison) -> list[Change]:
    """The changes that say what the outcome says; what decides before what stands in for it or only explains."""
    fitting = [change for change in comparison.changes if _says(comparison.outcome, change)]
    roles = ("decides", "stands-in", *(("supports",) if comparison.outcome == "changed" else ()))
    by_role = ([change for change in fitting if change.role == role] for role in roles)
    return next(filter(None, by_role), [])


def _says(outcome: ComparisonOutcome, change: Change) -> bool:
    match outcome:
        case "regressed":
            return change.word == "different" and change.course == "worse"
        case "improved":
            return change.word == "different" and change.course == "better"
        case "ambiguous":
            return change.word == "ambiguous"
        case "changed":
            return change.word == "different"
        case "same":
            return change.word == "same"
    return False


def size_text(change: Change) -> str:
    """`+12.3 % [+9.8, +14.9]`, `12.4 x [11.9, 13.0]`, `+2.1 pts [+1.9, +2.3]`; `exact` for an interval of no width.

    A dash for no ratio.
    """
    if change.ratio is None:
        return "-"
    ends = [change.low, change.high] if change.low is not None and change.high is not None else []
    known = [end for end in ends if end is not None]
    if change.unit == "%":
        base = change.baseline.value
        size = f"{signed((change.ratio - 1) * base)} pts"
        texts = [signed((end - 1) * base, 2) for end in known]
    elif change.ratio >= _TIMES:
        size = f"{format_figures(change.ratio)} x"
        texts = [format_figures(end) for end in known]
    else:
        size = f"{100 * (change.ratio - 1):+.1f} %"
        texts = [f"{100 * (end - 1):+.1f}" for end in known]
    if not known:
        return size
    return f"{size}, exact" if known[0] == known[-1] else f"{size} [{', '.join(texts)}]"


def metric_name(change: Change) -> str:
    """`time.median`, `time.median of step`."""
    return f"{change.metric} of {change.scope.name}" if change.scope.name else change.metric


def verdict_text(comparison: Comparison, *, values: bool = False) -> str:
    """`time.median +12.3 % [+9.8, +14.9]; 2 others are worse`, of one its name and size.

    The reason where no change stands for the outcome. With `values` also from what to what.
    """
    lead = leading_change(comparison)
    if lead is None or lead.ratio is None:
        return comparison.reason
    text = f"{metric_name(lead)} {size_text(lead)}"
    if values:
        before, after = (format_quantity(side.value, lead.unit) for side in (lead.baseline, lead.candidate))
        text += f", {before} -> {after}"
    others = [change for change in _deciding(comparison) if change is not lead]
    if comparison.outcome == "regressed" and len(others) == 1 and others[0].ratio is not None:
        text += f"; {metric_name(others[0])} {size_text(others[0]).partition(' [')[0]} is worse, too"
    elif comparison.outcome == "regressed" and others:
        text += f"; {plural(len(others), 'other')} {'is' if len(others) == 1 else 'are'} worse"
    return text


def seen_text(changes: Sequence[Change]) -> str:
    """How small a change of the times would have been seen, and which do not count; empty where that is not known."""
    sizes = [
        c for c in changes if c.metric.startswith("time.") and c.detectable is not None and c.baseline.groups
    ]
    if not sizes:
        return ""
    worst = max(sizes, key=lambda change: change.detectable or 0.0)
    seen, floor = (f"{format_figures(100 * size, 2)} %" for size in (worst.detectable or 0.0, worst.floor))
    if all(change.word == "same" for change in sizes):
        return (
            f"The change is smaller than {floor}, and so small a change does not count (--floor). "
            f"One of {seen} or more would have been called different; one between the two would have been left open."
        )
    return (
        f"These runs call a change of {seen} or more different; one below {floor} does not count (--floor)."
    )
