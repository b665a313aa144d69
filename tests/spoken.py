"""What a comparison's facts say, as its views say it."""

from __future__ import annotations

from profkit.core.types import BlamedLine, Cause, Change, Comparison, Fact
from profkit.reporting.views.comparison.words import change_text, fact_text, why_text


def spoken(what: Comparison | Change | Cause | BlamedLine | Fact | None) -> str:
    """The sentence of one of them; nothing of None."""
    match what:
        case None:
            return ""
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
