"""Any view as GitHub-flavoured Markdown: a CI summary, a comment, report.md. Everything from outside is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.reporting.plain_text import text_for_others
from profkit.reporting.view import (
    Block,
    DataTable,
    Detail,
    FieldList,
    Fold,
    Item,
    ItemList,
    Paragraph,
    Section,
    Span,
    Style,
    Text,
    View,
    joined,
    plain_text,
    spans,
)

# What can begin a span, a heading or a cell; < and & begin HTML.
_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# GitHub looks for mentions (@name) and numbers of issues (#12, GH-12) in the text that Markdown has already made, so
# neither a backslash nor an entity keeps it from them; an empty comment behind the sign does, and is not seen.
_NOTHING = "<!-- -->"
_LINKED = re.compile(r"@|#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown and HTML show it unchanged, on one line."""
    text = _SPECIAL.sub(r"\\\1", text_for_others(text))
    text = re.sub(r"[&<>]", lambda match: _HTML[match[0]], text)
    text = _LINKED.sub(lambda match: match[0] + _NOTHING, text)
    return re.sub(r"(https?|ftp|www)([:.])", r"\1&#8203;\2", text)  # a bare address would become a link


def inline_code(text: str) -> str:
    """Return text as a code span, fenced by more backticks than it contains in a row."""
    text = text_for_others(text)
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def grid_of(columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    """Return a table; titles and cells are Markdown already. `numeric` columns are aligned at the right."""
    aligned = numeric or [False] * len(columns)
    lines = [" | ".join(columns), " | ".join("--:" if right else "---" for right in aligned)]
    return "\n".join(f"| {line} |" for line in [*lines, *(" | ".join(row) for row in rows)])


def escape_summary(text: str) -> str:
    """Escape text for a line of HTML, where Markdown is not read and a backslash would be visible."""
    text = re.sub(r"[&<>]", lambda match: _HTML[match[0]], text_for_others(text))
    return _LINKED.sub(lambda match: match[0] + _NOTHING, text)


def folded_block(title: str, body: str) -> str:
    """Return what opens at a click; the title is HTML already, and the body Markdown."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def limit_length(parts: Sequence[str], limit: int | None = None) -> str:
    """Return the parts one below the other, in at most `limit` bytes of UTF-8 (None: however long).

    What does not fit is cut at the end of a line, and how much was left out is said.
    """
    text = "\n\n".join(parts) + "\n"
    if limit is None or len(text.encode()) <= limit:
        return text
    lines, room = text.rstrip("\n").split("\n"), limit - _SAID_ROOM
    kept: list[str] = []
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    left = len(lines) - len(kept)
    open_folds = sum(line.count("<details>") - line.count("</details>") for line in kept)
    kept += ["", "</details>"] * open_folds  # what the cut leaves open is closed
    return "\n".join(
        [*kept, "", f"*Cut to {limit:,} bytes: {left:,} further lines are in `--format json`.*", ""]
    )


_SAID_ROOM = 300  # bytes for what is said of a cut, and for what it leaves open
STEP_SUMMARY = 1 << 20  # bytes; a longer summary of a step is not shown at all (GitHub's documentation)


def render(view: View, limit: int | None = None) -> str:
    """Return the view as Markdown. `limit` is in bytes of UTF-8: what does not fit is left out from the end, and
    counted.
    """
    return limit_length([part for part in (_head(view), *_blocks(view.blocks, 3)) if part], limit)


def render_spans(text: Text) -> str:
    """Return a text as Markdown on one line."""
    return "".join(map(_span, spans(text)))


def _span(span: Span) -> str:
    mark = f" ({escape_markdown(span.mark)})" if span.mark else ""
    if span.style in (Style.CODE, Style.COMMAND):
        return inline_code(span.text) + mark
    words = escape_markdown(span.text)
    if span.style is Style.STRONG and words.strip():
        words = words.replace(words.strip(), f"**{words.strip()}**")  # blanks stay outside
    return words + mark


def _head(view: View) -> str:
    verdict = f"{view.label.status.sign} {view.label.word}: " if view.label is not None else ""
    lines = [f"## {escape_markdown(verdict + plain_text(view.title))}"]
    lines += [render_spans(line) for line in (view.warning, *view.headline) if line]
    if view.command:
        lines.append(inline_code(view.command))
    if view.facts:
        lines.append(
            "  \n".join(f"**{escape_markdown(name)}:** {render_spans(text)}" for name, text in view.facts)
        )
    return "\n\n".join(lines)


def _blocks(blocks: Sequence[Block], level: int) -> list[str]:
    return [part for block in blocks for part in _block(block, level)]


def _block(block: Block, level: int) -> list[str]:
    match block:
        case Section():
            return _section(block, level)
        case Paragraph():
            return [render_spans(block.text)]
        case ItemList():
            return [_items(block)]
        case FieldList():
            return [
                "\n".join(f"- {escape_markdown(name)}: {render_spans(text)}" for name, text in block.rows)
            ]
        case DataTable():
            return [_table(block)]
        case Detail(title=title) if title:
            body = _blocks(block.blocks, level)
            return [folded_block(escape_summary(title), "\n\n".join(body))] if body else []
    return _blocks(block.plain(), level)


def _section(section: Section, level: int) -> list[str]:
    """Return a heading with what stands below it as pieces, so that a text that is too long ends where one does."""
    inside = _blocks(section.blocks, min(6, level + 1))
    if not inside and (section.repeats or not section.headline):
        return []
    body = [*([render_spans(section.headline)] if section.headline else []), *inside]
    if section.fold is not Fold.OPEN:
        return [folded_block(escape_summary(plain_text(section.title)), "\n\n".join(filter(None, body)))]
    title = escape_markdown(plain_text(section.title))
    first = "\n\n".join([f"{'#' * level} {title}", *body[:1]])
    return [first, *filter(None, body[1:])]


def _items(items: ItemList) -> str:
    lines = []
    for number, item in enumerate(items.items, 1):
        first = f"{number}. " if items.ordered else "- "
        known = item if isinstance(item, Item) else Item(item)
        lines.append(first + render_spans(known.text))
        lines += [f"{' ' * len(first)}- {render_spans(text)}" for text in known.below]
    return "\n".join(lines)


def _table(table: DataTable) -> str:
    titles = [escape_markdown(column.title) or " " for column in table.columns]
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    parts = [f"**{escape_markdown(table.title)}**"] if table.title else []
    parts += [grid_of(titles, rows, [column.numeric for column in table.columns])]
    parts += [render_spans(table.note)] if table.note else []
    parts += [f"{table.left} more are in the JSON document."] if table.left else []
    return "\n\n".join(parts)


def _cell(text: Text) -> str:
    """Return a bar ends a table's cell, even inside of a code span."""
    return render_spans(tuple(joined(text))).strip().replace("\\|", "|").replace("|", "\\|")
