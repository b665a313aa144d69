"""What a fact says: the sentence of its code (`sentences/`), with its numbers and names."""

from __future__ import annotations

from functools import lru_cache

from profkit.analysis.comparability import all_fields
from profkit.core.types import Fact
from profkit.reporting.sentences.brief import REASONS
from profkit.reporting.sentences.table import SentenceTable
from profkit.reporting.sentences.words import WORDS, WordKind

BRIEF = 27  # characters that stand beside a number
# What follows from another fact, and which of its parts that is: nearer to the root a reason says more.
_FOLLOWS = {"but": 1, "together": 1, "uncertain": 1, "limit-unknown": 1} | dict.fromkeys(
    (
        *("in-function", "not-known", "needs", "not-python", "not-counted", "not-supported"),
        *("pass-skipped", "pass-failed", "pass-interrupted"),
    ),
    0,
)


@lru_cache(maxsize=1)
def _sentences() -> SentenceTable:
    from profkit.reporting.sentences.catalogue import SENTENCES  # here: a command without a fact needs none

    return SENTENCES


def fact_text(fact: Fact | None) -> str:
    """Return the sentence of a fact; empty for None, and the code itself if it is unknown or lacks its values."""
    return "" if fact is None else _sentences().write(fact, fact_text)


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


def has_sentence(code: str) -> bool:
    """Return whether there is a sentence for this code; a fact of another code is shown as that code."""
    return code in _sentences()


def word_of(kind: WordKind, name: str) -> str:
    """Return what something of a kind is called; an unknown name is returned unchanged."""
    return WORDS[kind].get(name, name)


def note_text(fact: Fact | None) -> str:
    """Return the fact as a sentence."""
    text = fact_text(fact)
    return f"{text[:1].upper()}{text[1:]}."


def field_title(name: str) -> str:
    """Return the title of a field of comparability."""
    field = all_fields().get(name)
    return field.title if field is not None else name
