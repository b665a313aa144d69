"""The words of a comparison: of a fact by its code (words.yaml), of a change and an outcome by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Any

from profkit.analysis.comparability import all_fields
from profkit.analysis.kernel_names import short_name
from profkit.analysis.metrics import title_of
from profkit.core.formatting import format_figures, format_percent, format_quantity, joined, plural, signed
from profkit.core.inference import Interval, decide
from profkit.core.tables import load_yaml
from profkit.core.types import Cause, Change, Comparison, ComparisonOutcome, Fact
from profkit.reporting.view import Label, Status

_NAME = 48  # characters of a kernel's name
_TIMES = 10.0  # a change as large as that is shown as a factor


@lru_cache(maxsize=1)
def _texts() -> Mapping[str, Any]:
    texts: Mapping[str, Any] = load_yaml(Path(__file__).with_name("words.yaml"))
    return texts


def fact_text(fact: Fact) -> str:
    """The sentence of a fact."""
    return _Words(fact).vformat(_texts()[fact.code], (), {"reason": "", **fact.names, **fact.numbers})


def why_text(comparison: Comparison) -> str:
    """Why the outcome is what it is: of what could not be decided with the interval of that."""
    why = comparison.why
    if why.code == "refused":
        told = [
            f"{_field(d.name)} ({d.baseline} against {d.candidate})"
            for d in comparison.differences
            if d.tier == "must"
        ]
        runs = [why.names["runs"]] if why.names["runs"] else []
        return fact_text(replace(why, names={"runs": "; ".join([*runs, *told])}))
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
    """A cause as a sentence."""
    return fact_text(cause.what)


def evidence_texts(cause: Cause) -> list[str]:
    """The values that it rests on."""
    return [fact_text(line) for line in cause.evidence]


def change_text(change: Change) -> str:
    """`+12.3 % [+9.8, +14.9]: beyond the 2 % that counts`, with what the interval does not know."""
    floor, low, high = percent_text(change.floor), change.low, change.high
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
    """`+12.3 % [+9.8, +14.9]`, `12.4 x [11.9, 13.0]`, `+2.1 pts [+1.9, +2.3]`; `exact` for an interval of no width.

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


def percent_text(part: float) -> str:
    """0.02 as `2 %`."""
    return f"{100 * part:.3g} %"


class _Words(Formatter):
    """Writes the fields of a fact; see the head of words.yaml."""

    def __init__(self, fact: Fact) -> None:
        self.fact = fact

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        """A number or name of the fact, or what is made of several."""
        names, numbers = self.fact.names, self.fact.numbers
        if key == "relative":
            return _relative(numbers["before"], numbers["after"])
        if key == "risen":
            return joined(
                [_title(name) for risen, name in sorted(names.items()) if risen.startswith("risen")]
            )
        if key == "subject":
            return _subject(names)
        if key == "movement":
            return f"{_subject(names)} {_movement(names['unit'], numbers)}"
        return super().get_value(key, args, kwargs)

    def format_field(self, value: Any, format_spec: str) -> str:
        """As the part behind the colon says."""
        if isinstance(value, str):
            return self._name(value, format_spec)
        if format_spec.startswith("#"):
            one, _, many = format_spec[1:].partition("|")
            return plural(round(value), one, many)
        if format_spec.endswith("@"):
            unit = self.fact.names.get("unit", "")
            sign = ("+" if value > 0 else "-") if format_spec == "+@" else ""
            return sign + format_quantity(abs(value) if sign else value, unit)
        if format_spec.startswith(";"):
            one, many = format_spec[1:].split("|")
            return f"; {value:.0f} more {one if round(value) == 1 else many}" if value else ""
        clause = _CLAUSES.get(format_spec)
        return clause(value) if clause is not None else format_quantity(value, format_spec)

    def _name(self, value: str, spec: str) -> str:
        if spec == "k":
            return short_name(value, _NAME)
        if spec == "title":
            return _title(value)
        if spec == "term":
            known = _title(value)
            return (
                known
                if value in _texts()["titles"] or not known[1:2].islower()
                else known[0].lower() + known[1:]
            )
        if spec == "many":
            return value.replace("as much", "as many").replace(" less", " fewer")
        if spec == "field":
            return _field(value)
        if spec == "of":
            return f": not both have {value}" if value else ""
        if spec == "colon":
            return f": {value}" if value else ""
        if spec == "prefix":
            return f"{value}: " if value else ""
        return value


def _field(name: str) -> str:
    field = all_fields().get(name)
    return field.title if field is not None else name


def _title(name: str) -> str:
    titles: Mapping[str, str] = _texts()["titles"]
    return titles.get(name) or title_of(name)


def _subject(names: Mapping[str, str]) -> str:
    name = names["scope"]
    if names["kind"] == "run" or not name:
        return names["metric"]
    return f"{names['metric']} of {short_name(name) if names['kind'] == 'kernel' else name}"


def _movement(unit: str, numbers: Mapping[str, float]) -> str:
    before, after, ratio = numbers["before"], numbers["after"], numbers.get("ratio")
    by = ""
    if ratio is not None:
        by = (
            f" to {format_figures(ratio)} times as much"
            if ratio >= 3
            else f" by {format_figures(abs(100 * (ratio - 1)))} %"
        )
    verb = "rose" if after > before else "fell"
    return f"{verb}{by}, from {format_quantity(before, unit)} to {format_quantity(after, unit)}"


def _relative(before: float, after: float) -> str:
    """`12.3 % more`, `8 % less`, `2.4 times as much`."""
    if before <= 0:
        return "more"
    part = after / before - 1
    if part >= 1:
        return f"{format_figures(after / before)} times as much"
    return f"{format_figures(abs(100 * part), 2)} % {'more' if part >= 0 else 'less'}"


_CLAUSES: Mapping[str, Callable[[float], str]] = {
    "": lambda value: f"{value:g}",
    "%": percent_text,
    "+%": lambda value: f"{signed(100 * value)} %",
    "figures": format_figures,
    "number": format_percent,
    "0": lambda value: f"{value:.0f}",
    "tenths": lambda value: f"{value:.1f}",
    "apart": lambda value: f"{value:.2g} times" if value >= 1.5 else f"{format_figures(100 * (value - 1))} %",
    "floor": lambda value: f"{100 * value:g}%",
    "faster": lambda value: f"{abs(100 * value):.1f} % {'lower' if value < 0 else 'higher'}",
    "seen": lambda value: f" (a change of {percent_text(value)} would have been seen)" if value else "",
    "mended": lambda value: f"; {plural(round(value), 'test')} failed and passed now" if value else "",
    "calls": lambda value: f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.2f}",
    "and": lambda more: f" and {more:.0f} more are" if more else " is",
    "plain": lambda more: f" and {more:.0f} more" if more else "",
}


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
    """How one change stands."""
    if change.word != "different":
        return Status.PASS if change.word == "same" else Status.UNKNOWN
    return {"better": Status.BETTER, "worse": Status.FAIL, "neither": Status.CHANGED}[change.course]


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
    if outcome in ("ambiguous", "same"):
        return change.word == outcome
    course = {"regressed": "worse", "improved": "better"}.get(outcome, change.course)
    return outcome != "refused" and change.word == "different" and change.course == course


def metric_name(change: Change) -> str:
    """`time.median`, `time.median of step`."""
    return f"{change.metric} of {change.scope.name}" if change.scope.name else change.metric


def verdict_text(comparison: Comparison, *, values: bool = False) -> str:
    """`time.median +12.3 % [+9.8, +14.9]; 2 others are worse`, of one its name and size.

    The reason where no change stands for the outcome. With `values` also from what to what.
    """
    lead = leading_change(comparison)
    if lead is None or lead.ratio is None:
        return why_text(comparison)
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
        told = f"The change is smaller than {floor}, which does not count (--floor)"
        return f"{told}; one of {seen} would have been seen."
    return (
        f"These runs call a change of {seen} or more different; one below {floor} does not count (--floor)."
    )
