"""What facts say, as views say it; and facts out of plain texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profkit.core.codec import from_plain_data
from profkit.core.types import BlamedLine, Cause, Change, Comparison, Fact
from profkit.reporting.facts import fact_text
from profkit.reporting.views.comparison.words import change_text, why_text


def spoken(what: Comparison | Change | Cause | BlamedLine | Fact | str | None) -> str:
    """The sentence of one of them; nothing of None."""
    match what:
        case None:
            return ""
        case str():
            return what
        case Change():
            return change_text(what)
        case Cause():
            return fact_text(what.what)
        case Comparison():
            return why_text(what)
        case Fact():
            return fact_text(what)
    return fact_text(what.why)


def spoken_lines(facts: tuple[Fact, ...]) -> tuple[str, ...]:
    """A sentence each."""
    return tuple(map(fact_text, facts))


def spoken_notes(run: Mapping[str, Any]) -> tuple[str, ...]:
    """What a run's JSON notes, a sentence each."""
    return spoken_lines(from_plain_data(tuple[Fact, ...], run["notes"]))


def message(text: Fact | str | None) -> Fact | None:
    """A text as the fact that another program said it."""
    return Fact.message(text) if isinstance(text, str) else text


# What may be a text of many words: the message of another program, a line to type, a name, a formula, ...
_TEXTS = {
    "text", "said", "message", "last_line", "traceback", "log", "command", "setup", "arguments", "fix", "advice",
    "counter", "counters", "what", "formula", "name", "names", "kernel", "label", "scope", "device", "subject",
}  # fmt: skip
# The messages of commits, and the conclusions from a profile.
_APART = {"subjects", "insights"}


def sentences(data: object, key: str = "") -> list[str]:
    """The texts in a document, or a part of one, that somebody has worded: more than three words, and no message."""
    match data:
        case dict():
            kept = {name: value for name, value in data.items() if name not in _APART}
            return [text for name, value in kept.items() for text in sentences(value, name)]
        case list():
            return [text for value in data for text in sentences(value, key)]
        case str() if key not in _TEXTS and len(data.split()) > 3:
            return [f"{key}: {data}"]
    return []


def run_sentences(run: dict[str, object]) -> list[str]:
    """Those in what a run says: its passes, counters, readings, notes and all else but its advice."""
    said = (
        "passes",
        "counters",
        "readings",
        "summaries",
        "verdicts",
        "kernels",
        "allocations",
        "revision",
        "notes",
        "plan",
        "timings",
        "metal",
    )
    return sentences({key: run[key] for key in said})
