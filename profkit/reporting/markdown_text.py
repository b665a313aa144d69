"""Text as GitHub-flavoured Markdown: everything from outside is escaped, so that it is shown and never obeyed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.reporting.plain_text import harmless

# What can begin a span, a heading or a cell; < and & begin HTML.
_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# GitHub looks for mentions (@name) and numbers of issues (#12, GH-12) in the text that Markdown has already made, so
# neither a backslash nor an entity keeps it from them; an empty comment behind the sign does, and is not seen.
_NOTHING = "<!-- -->"
_LINKED = re.compile(r"@|#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)


def escaped(text: str) -> str:
    """Text that Markdown and HTML show as it is, on one line."""
    text = _SPECIAL.sub(r"\\\1", harmless(text))
    text = re.sub(r"[&<>]", lambda found: _HTML[found[0]], text)
    text = _LINKED.sub(lambda found: found[0] + _NOTHING, text)
    return re.sub(r"(https?|ftp|www)([:.])", r"\1&#8203;\2", text)  # a bare address would become a link


def code(text: str) -> str:
    """Text as a code span, fenced by more backticks than it holds in a row."""
    text = harmless(text)
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced_block(text: str) -> str:
    """Lines as they are, tables and plots for a terminal, in a block that is fenced by more backticks than it holds."""
    fence = "`" * max(3, max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}\n"


def grid_of(columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    """A table; titles and cells are Markdown already. `numeric` columns are aligned at the right."""
    aligned = numeric or [False] * len(columns)
    lines = [" | ".join(columns), " | ".join("--:" if right else "---" for right in aligned)]
    return "\n".join(f"| {line} |" for line in [*lines, *(" | ".join(row) for row in rows)])


def folded(title: str, body: str) -> str:
    """What opens at a click; title and body are Markdown already."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def fitted(parts: Sequence[str], limit: int | None = None) -> str:
    """The parts one below the other, in at most `limit` bytes of UTF-8 (None: however long).

    What does not fit is cut at the end of a line, from the last parts on, and how much was left out is said. A single
    line that is longer than the limit is left out whole.
    """
    text = "\n\n".join(parts) + "\n"
    if limit is None or len(text.encode()) <= limit:
        return text
    room = limit - _SAID_ROOM
    kept: list[str] = []
    for number, part in enumerate(parts):
        size = len(part.encode()) + 2
        if size > room:
            piece = _first_lines(part, room)
            lines = sum(one.count("\n") + 1 for one in parts[number:]) - (
                piece.count("\n") + 1 if piece else 0
            )
            kept += [piece] if piece else []
            kept.append(f"*Cut to {limit:,} bytes: {lines:,} further lines are in `--format json`.*")
            break
        kept.append(part)
        room -= size
    return "\n\n".join(kept) + "\n"


_SAID_ROOM = 200  # bytes for what is said of a cut, and
_CLOSING = "\n\n</details>"
_DEEPEST = 3  # sections that are folded inside of each other
_FENCE = re.compile(r"^`{3,}", re.MULTILINE)


def _first_lines(part: str, room: int) -> str:
    """As many whole lines as fit; what they open is closed again. Nothing where that would be a title alone."""
    depth = max(0, part.count("<details>"))
    room -= min(depth, _DEEPEST) * len(_CLOSING)
    room -= max((len(fence) + 1 for fence in _FENCE.findall(part)), default=0)
    kept: list[str] = []
    for line in part.split("\n"):
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    if sum(bool(line) for line in kept) < 5:  # title, head and rule of a table, and a row or two
        return ""
    text = "\n".join(kept)
    fences = _FENCE.findall(text)
    if len(fences) % 2:
        text += "\n" + fences[-1]
    return text + _CLOSING * (text.count("<details>") - text.count("</details>"))
