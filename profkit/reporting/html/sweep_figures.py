"""Charts as they stand on the page of a sweep."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.reporting.html.escape import text

# What begins like a sentence, or goes on like one, is nothing to type.
_PROSE = re.compile(r"(?:an?|the|choose|record|launch) |.*[,;] (?:or|and|attached|recorded) ", re.DOTALL)


def figures(charts: Sequence[str], note: str = "") -> str:
    """Charts side by side where the page is wide, one below the other where it is not; `note` is plain text."""
    boxes = "".join(f'<figure class="chart-box">{chart}</figure>' for chart in charts)
    below = f'<p class="note">{text(note)}</p>' if note else ""
    return f'<div class="charts">{boxes}</div>{below}'


def sentence(words: str, fix: str | None = None) -> str:
    """Why there is no chart, and what would change that: a line to type as such, advice in words as words."""
    shown = "" if not fix else text(fix) if _PROSE.match(fix) else f"<code>{text(fix)}</code>"
    line = f' <span class="fix">To have it: {shown}</span>' if fix else ""
    return f'<p class="missing">{text(words)}{line}</p>'
