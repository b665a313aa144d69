"""The outcome as a badge: the JSON that shields.io's endpoint badge reads."""

from __future__ import annotations

from profkit.core.codec import json_text
from profkit.core.formatting import shorten
from profkit.core.types import Json, SuiteOutcome
from profkit.reporting.plain_text import without_control_characters

LABEL = "performance"
_COLOURS: dict[SuiteOutcome, str] = {
    "regressed": "red",
    "failed": "red",
    "improved": "brightgreen",
    "same": "green",
    "new": "blue",
    "changed": "yellow",
    "ambiguous": "lightgrey",
    "refused": "lightgrey",
}
_LONGEST = 60  # characters of a badge


def render(outcome: SuiteOutcome, word: str, size: str = "") -> str:
    """`performance | worse +12.3 %`. `word` says the outcome, `size` how much."""
    message = shorten(without_control_characters(f"{word} {size}".strip()), _LONGEST)
    badge: dict[str, Json] = {
        "schemaVersion": 1,
        "label": LABEL,
        "message": message,
        "color": _COLOURS[outcome],
    }
    return json_text(badge)
