"""What a fact says: the sentence of its code (`sentences/`, or facts.yaml), with its numbers and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Any

from profkit.analysis.comparability import all_fields
from profkit.analysis.kernel_names import short_name
from profkit.analysis.metrics.catalogue import title_of
from profkit.analysis.summaries.kernels import stalls
from profkit.core.formatting import (
    format_figures,
    format_percent,
    format_quantity,
    format_threshold,
    joined,
    plural,
    signed,
)
from profkit.core.process import describe_status
from profkit.core.tables import load_yaml
from profkit.core.types import Fact
from profkit.reporting.sentences.brief import REASONS
from profkit.reporting.sentences.table import SentenceTable
from profkit.reporting.sentences.words import METRICS, UNITS, WORDS

_NAME = 48  # characters of a kernel's name


@lru_cache(maxsize=1)
def _texts() -> Mapping[str, Any]:
    texts: Mapping[str, Any] = load_yaml(Path(__file__).with_name("facts.yaml"))
    return texts


@lru_cache(maxsize=1)
def _sentences() -> SentenceTable:
    from profkit.reporting.sentences.catalogue import SENTENCES  # here: a command without a fact needs none

    return SENTENCES


def fact_text(fact: Fact | None) -> str:
    """Return the sentence of a fact; empty for None, and the code itself if it is unknown or lacks its values."""
    if fact is None:
        return ""
    if fact.code in _sentences():
        return _sentences().write(fact, fact_text)
    return _written(fact, _texts().get(fact.code, fact.code))


# What follows from another fact, and which of its parts that is: nearer to the root a reason says more.
_FOLLOWS = {"but": 1, "together": 1, "uncertain": 1, "limit-unknown": 1} | dict.fromkeys(
    (
        *("in-function", "not-known", "needs", "not-python", "not-counted", "not-supported"),
        *("pass-skipped", "pass-failed", "pass-interrupted"),
    ),
    0,
)
BRIEF = 27  # characters that stand beside a number


def brief_reason(fact: Fact | None) -> str:
    """Return why a verdict is neither met nor missed, in a few words; empty where no few words say it."""
    if fact is None or fact.code == "against":
        return ""
    below = fact.parts[_FOLLOWS[fact.code] :][:1] if fact.code in _FOLLOWS else ()
    if below and (why := brief_reason(below[0])):
        return why
    if fact.code in REASONS:
        why = REASONS.write(fact, fact_text)
    else:
        # Of a kernel's verdict the reason is a part: its name in front of it takes three lines.
        known = next((part for part in fact.parts if part.code in REASONS), None)
        why = fact_text(fact) if known is None else brief_reason(known)
    return why if len(why) <= BRIEF else ""


def _written(fact: Fact, text: str) -> str:
    """Fill the numbers and names of the fact into the text; its code where they are not what the text needs."""
    known = {"reason": "", "counters": "", **fact.names, **fact.numbers}
    try:
        return _Words(fact).vformat(text, (), known)
    except (LookupError, ValueError, TypeError):  # a document may say anything
        return fact.code


def has_sentence(code: str) -> bool:
    """Return whether there is a sentence for this code; one of another code is shown as it is."""
    return code in _sentences() or code in _texts()


def word_of(kind: str, name: str) -> str:
    """Return what something of a kind is called; an unknown name is returned unchanged."""
    return WORDS[kind].get(name, name)


def note_text(fact: Fact | None) -> str:
    """Return the fact as a sentence."""
    text = fact_text(fact)
    return f"{text[:1].upper()}{text[1:]}."


def percent_text(part: float) -> str:
    """Return 0.02 as `2 %`."""
    return f"{100 * part:.3g} %"


class _Words(Formatter):
    """Writes the fields of a fact; see the head of facts.yaml."""

    def __init__(self, fact: Fact) -> None:
        self.fact = fact

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        """Return a number or name of the fact, or what is made of several."""
        names, numbers, parts = self.fact.names, self.fact.numbers, self.fact.parts
        if key in _JOINED:
            link, first = _JOINED[key]
            return link.join(map(fact_text, parts[first:]))
        if key in ("rest", "why"):
            first = 1 if key == "rest" else 0
            return "".join(f"{'; ' if first else ': '}{fact_text(part)}" for part in parts[first:])
        if key in ("p0", "p1"):
            place = int(key[1])
            return fact_text(parts[place]) if place < len(parts) else "not known"
        if key == "target":
            return format_threshold(names["operator"], numbers["limit"], names["unit"])
        if key == "quality":
            return _quality(names, numbers)
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
        """Format a field as the part after the colon says."""
        if isinstance(value, str):
            return self._name(value, format_spec)
        if format_spec.startswith("#"):
            one, _, many = format_spec[1:].partition("|")
            return plural(round(value), one, many)
        if format_spec.endswith("@"):
            unit = self.fact.names.get("unit", "")
            if unit == "instructions/cycle":
                return f"{value:.2f}"
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
        if spec == "metric":
            return title_of(value)
        if spec == "term":
            known = _title(value)
            return known if value in METRICS or not known[1:2].islower() else known[0].lower() + known[1:]
        if spec == "unit":
            return UNITS.get(value, value)
        if spec == "units":
            return joined([UNITS.get(name, name) for name in value.split()])
        if spec == "stall":
            return stalls()[value].means if value in stalls() else value.replace("_", " ")
        if spec == "line":
            return value.partition("\n")[0]
        if spec == "said":
            return f" ({value})" if value else ""
        if spec == "many":
            return value.replace("as much", "as many").replace(" less", " fewer")
        if spec == "field":
            return field_title(value)
        if spec == "of":
            return f": not both have {value}" if value else ""
        if spec == "at":
            return f" at {value}" if value else ""
        if spec == "colon":
            return f": {value}" if value else ""
        if spec == "prefix":
            return f"{value}: " if value else ""
        return value


def _quality(names: Mapping[str, str], numbers: Mapping[str, float]) -> str:
    """Return what stands behind a value that was not measured."""
    quality = names.get("quality", "")
    if "counted" in numbers:
        quality += f", counted {format_percent(100 * numbers['counted'])} % of the time"
    return f" ({quality})" if quality else ""


def field_title(name: str) -> str:
    """Return the title of a field of comparability."""
    field = all_fields().get(name)
    return field.title if field is not None else name


def _title(name: str) -> str:
    return METRICS.get(name) or title_of(name)


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
    """Return `12.3 % more`, `8 % less`, `2.4 times as much`."""
    if before <= 0:
        return "more"
    part = after / before - 1
    if part >= 1:
        return f"{format_figures(after / before)} times as much"
    return f"{format_figures(abs(100 * part), 2)} % {'more' if part >= 0 else 'less'}"


# What of the parts of a fact is joined by what, from which part on.
_JOINED = {"parts": ("; ", 0), "listed": (", ", 0), "either": (", or ", 0)}
_CLAUSES: Mapping[str, Callable[[float], str]] = {
    "": lambda value: f"{value:g}",
    "%": percent_text,
    "share": lambda value: f"{format_percent(100 * min(1.0, value))} %",
    "whole%": lambda value: f"{100 * value:.0f} %",
    "busy": lambda value: (
        f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %" if value >= 0.05 else "less than 0.1 %"
    ),
    "waves": lambda value: f" ({format_figures(value)} waves)" if value else "",
    "+%": lambda value: f"{signed(100 * value)} %",
    "figures": format_figures,
    "three": lambda value: f"{value:.3g}",
    "number": format_percent,
    "0": lambda value: f"{value:.0f}",
    "tenths": lambda value: f"{value:.1f}",
    "apart": lambda value: f"{value:.2g} times" if value >= 1.5 else f"{format_figures(100 * (value - 1))} %",
    "floor": lambda value: f"{100 * value:g}%",
    "faster": lambda value: f"{abs(100 * value):.1f} % {'lower' if value < 0 else 'higher'}",
    "seen": lambda value: f" (a change of {percent_text(value)} would have been seen)" if value else "",
    "by": lambda value: f" by {100 * value:+.1f} %" if value else "",
    "status": lambda value: describe_status(round(value)),
    "mended": lambda value: f"; {plural(round(value), 'test')} failed before and passed now" if value else "",
    "calls": lambda value: f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.2f}",
    "and": lambda more: f" and {more:.0f} more are" if more else " is",
    "busiest": lambda lanes: " of the busiest device" if lanes > 1 else "",
    "loop-order": lambda before: "before" if before else "after",
    "after": lambda count: (
        f"; {plural(round(count), 'launch', 'launches')} after it left out" if count else ""
    ),
    "plain": lambda more: f" and {more:.0f} more" if more else "",
}
