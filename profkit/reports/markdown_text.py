"""Text as GitHub-flavoured Markdown: everything from outside is escaped, so that it is shown and never obeyed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.reports.plain_text import harmless

# What can begin a span, a heading or a cell; < and & begin HTML, @ a mention.
_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def escaped(text: str) -> str:
    """Text that Markdown and HTML show as it is, on one line."""
    text = _SPECIAL.sub(r"\\\1", harmless(text))
    text = re.sub(r"[&<>@]", lambda found: _HTML[found[0]], text)
    return re.sub(r"(https?|ftp|www)([:.])", r"\1&#8203;\2", text)  # a bare address would become a link


def code(text: str) -> str:
    """Text as a code span, fenced by more backticks than it holds in a row."""
    text = harmless(text)
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def grid_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; titles and cells are Markdown already."""
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    return "\n".join(f"| {line} |" for line in [*lines, *(" | ".join(row) for row in rows)])


def folded(title: str, body: str) -> str:
    """What opens at a click; title and body are Markdown already."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"
