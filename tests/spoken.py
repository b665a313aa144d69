"""What facts say, as views say it; and facts out of plain texts."""

from __future__ import annotations

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


def message(text: Fact | str | None) -> Fact | None:
    """A text as the fact that another program said it."""
    return Fact.message(text) if isinstance(text, str) else text
