"""The words of a comparison: of a change and an outcome by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.core.formatting import format_figures, format_quantity, plural, signed
from profkit.core.inference import Interval, decide
from profkit.core.types import Cause, Change, Comparison, ComparisonOutcome
from profkit.reporting.facts import fact_text, field_title
from profkit.reporting.sentences.formats import percent
from profkit.reporting.view import Label, Status

_NAME = 48  # characters of a kernel's name
_TIMES = 10.0  # a change as large as that is shown as a factor


def why_text(comparison: Comparison) -> str:
    """Return why the outcome is what it is: of what could not be decided with the interval of that."""
    why = comparison.why
    if why.code == "refused":
        remarks = [
            f"{field_title(d.name)} ({d.baseline} against {d.candidate})"
            for d in comparison.differences
            if d.tier == "must"
        ]
        runs = [why.names["runs"]] if why.names["runs"] else []
        return fact_text(replace(why, names={"runs": "; ".join([*runs, *remarks])}))
    open_change = next(
        (
            change
            for change in comparison.changes
            if change.word == "ambiguous"
            and (change.metric, change.scope.name or "") == (why.names.get("metric"), why.names.get("scope"))
        ),
        None,
    )
    if open_change is not None:
        why = replace(why, names={**why.names, "reason": change_text(open_change)})
    return fact_text(why)


def cause_text(cause: Cause) -> str:
    """Return a cause as a sentence."""
    return fact_text(cause.what)


def evidence_texts(cause: Cause) -> list[str]:
    """Return the values that it rests on."""
    return [fact_text(line) for line in cause.evidence]


def change_text(change: Change) -> str:
    """Return `+12.3 % [+9.8, +14.9]: beyond the 2 % that counts`, with what the interval does not know."""
    floor, low, high = percent(change.floor), change.low, change.high
    if change.limit is not None and change.unit == "%":
        floor = f"{format_figures(change.limit)} points"
    elif change.limit is not None and not change.baseline.value:
        floor = format_quantity(change.limit, change.unit)
    by_interval = change.word
    if low is not None and high is not None and change.ratio is not None and change.limit is None:
        by_interval = decide(Interval(low, change.ratio, high), change.floor)
    meaning = {
        "different": f"beyond the {floor} that counts",
        "same": f"within the {floor} that counts",
        "ambiguous": f"it may be more than the {floor} that counts, or less",
    }[by_interval]
    size = size_text(change)
    if change.ratio is None:
        added = change.candidate.value - change.baseline.value
        size = f"{'+' if added >= 0 else '-'}{format_quantity(abs(added), change.unit)}"
    parts = [f"{size}: {meaning}"]
    if low is None and change.word == "ambiguous":
        parts = []
    elif low and high and high > _TIMES * low:
        parts = ["the processes of a run differ too much to tell"]
    link = "; but " if by_interval != change.word else "; "
    return link.join([*parts, "; ".join(map(fact_text, change.doubts))] if change.doubts else parts)


def size_text(change: Change) -> str:
    """Return `+12.3 % [+9.8, +14.9]`, `12.4 x [11.9, 13.0]`, `+2.1 pts [+1.9, +2.3]`; `exact` for an interval of no
    width.

    A dash for no ratio.
    """
    before = change.baseline.value
    if change.ratio is None:
        return "-"
    known = [change.low, change.high] if change.low is not None and change.high is not None else []
    ends = [end for end in known if end is not None]
    if change.unit == "%":
        size = f"{signed((change.ratio - 1) * before)} pts"
        texts = [signed((end - 1) * before, 2) for end in ends]
    elif change.ratio >= _TIMES:
        size = f"{format_figures(change.ratio)} x"
        texts = [format_figures(end) for end in ends]
    else:
        size = f"{100 * (change.ratio - 1):+.1f} %"
        texts = [f"{100 * (end - 1):+.1f}" for end in ends]
    if not ends:
        return size
    return f"{size}, exact" if ends[0] == ends[-1] else f"{size} [{', '.join(texts)}]"


# ---------------------------------------------------------------- the outcome

LABELS: dict[ComparisonOutcome, Label] = {
    "regressed": Label(Status.FAIL, "WORSE"),
    "improved": Label(Status.BETTER, "BETTER"),
    "same": Label(Status.PASS, "SAME"),
    "ambiguous": Label(Status.UNKNOWN, "NOT DECIDED"),
    "changed": Label(Status.CHANGED, "CHANGED"),
    "refused": Label(Status.REFUSED, "REFUSED"),
}


def status_of(change: Change) -> Status:
    """Return how one change stands."""
    if change.word != "different":
        return Status.PASS if change.word == "same" else Status.UNKNOWN
    return {"better": Status.BETTER, "worse": Status.FAIL, "neither": Status.CHANGED}[change.course]


def leading_change(comparison: Comparison) -> Change | None:
    """Return the change that made the outcome, a time before others; None where no single one did."""
    fitting = _deciding(comparison)
    times = [change for change in fitting if change.metric.startswith("time.")]
    if comparison.outcome == "same":
        return max(times or fitting, key=lambda change: change.detectable or 0.0, default=None)
    return next(iter(times or fitting), None)


def _deciding(comparison: Comparison) -> list[Change]:
    """Return the changes that agree with the outcome: those that decide, else stand-ins, else explanations."""
    fitting = [change for change in comparison.changes if _says(comparison.outcome, change)]
    roles = ("decides", "stands-in", *(("supports",) if comparison.outcome == "changed" else ()))
    by_role = ([change for change in fitting if change.role == role] for role in roles)
    return next(filter(None, by_role), [])


def _says(outcome: ComparisonOutcome, change: Change) -> bool:
    if outcome in ("ambiguous", "same"):
        return change.word == outcome
    course = {"regressed": "worse", "improved": "better"}.get(outcome, change.course)
    return outcome != "refused" and change.word == "different" and change.course == course


def metric_name(change: Change) -> str:
    """Return `time.median`, `time.median of step`."""
    return f"{change.metric} of {change.scope.name}" if change.scope.name else change.metric


def verdict_text(comparison: Comparison, *, values: bool = False) -> str:
    """Return `time.median +12.3 % [+9.8, +14.9]; 2 others are worse`, of one its name and size.

    The reason where no change stands for the outcome. With `values` also from what to what.
    """
    lead = leading_change(comparison)
    if lead is None or lead.ratio is None:
        return why_text(comparison)
    text = f"{metric_name(lead)} {size_text(lead)}"
    if values:
        before, after = (format_quantity(side.value, lead.unit) for side in (lead.baseline, lead.candidate))
        text += f", {before} -> {after}"
    text += "".join(
        f"; {fact_text(doubt)}" for doubt in lead.doubts if doubt.code == "settled-by-instructions"
    )
    others = [change for change in _deciding(comparison) if change is not lead]
    if comparison.outcome == "regressed" and len(others) == 1 and others[0].ratio is not None:
        text += f"; {metric_name(others[0])} {size_text(others[0]).partition(' [')[0]} is worse, too"
    elif comparison.outcome == "regressed" and others:
        text += f"; {plural(len(others), 'other')} {'is' if len(others) == 1 else 'are'} worse"
    return text


def seen_text(changes: Sequence[Change]) -> str:
    """Return how small a change of the times would have been seen, and which do not count; empty where that is
    not known.
    """
    sizes = [
        c for c in changes if c.metric.startswith("time.") and c.detectable is not None and c.baseline.groups
    ]
    if not sizes:
        return ""
    worst = max(sizes, key=lambda change: change.detectable or 0.0)
    seen, floor = (f"{format_figures(100 * size, 2)} %" for size in (worst.detectable or 0.0, worst.floor))
    if all(change.word == "same" for change in sizes):
        text = f"The change is smaller than {floor}, which does not count (--floor)"
        return f"{text}; one of {seen} would have been seen."
    return (
        f"These runs call a change of {seen} or more different; one below {floor} does not count (--floor)."
    )
