"""Any view as GitHub-flavoured Markdown: a CI summary, a comment, report.md. Everything from outside is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.reporting.markdown_text import code, escaped, fenced_block, fitted, folded, grid_of
from profkit.reporting.view import (
    Block,
    DataTable,
    Facts,
    Findings,
    Fold,
    Item,
    Items,
    Paragraph,
    Section,
    Span,
    Style,
    Text,
    View,
    has_content,
    joined,
    plain_text,
    spans,
)

STEP_SUMMARY = 1 << 20  # bytes; a longer summary of a step is not shown at all (GitHub's documentation)


def render(view: View, limit: int | None = None) -> str:
    """The view as Markdown. `limit` is in bytes of UTF-8: what does not fit is left out from the end, and counted."""
    return fitted([part for part in (_head(view), *_blocks(view.blocks, 3)) if part], limit)


def inline(text: Text) -> str:
    """A text as Markdown on one line."""
    return "".join(map(_span, spans(text)))


def _span(span: Span) -> str:
    mark = f" ({escaped(span.mark)})" if span.mark else ""
    if span.style in (Style.CODE, Style.COMMAND):
        return code(span.text) + mark
    words = escaped(span.text)
    if span.style is Style.STRONG and words.strip():
        words = words.replace(words.strip(), f"**{words.strip()}**")  # blanks stay outside
    return words + mark


def _head(view: View) -> str:
    verdict = f"{view.label.sign} {view.label.word}: " if view.label is not None else ""
    lines = [f"## {escaped(verdict + plain_text(view.title))}"]
    lines += [inline(line) for line in (view.warning, *view.headline) if line]
    if view.command:
        lines.append(code(view.command))
    if view.facts:
        lines.append("  \n".join(f"**{escaped(name)}:** {inline(text)}" for name, text in view.facts))
    return "\n\n".join(lines)


def _blocks(blocks: Sequence[Block], level: int) -> list[str]:
    return [part for block in blocks for part in _block(block, level)]


def _block(block: Block, level: int) -> list[str]:
    match block:
        case Section():
            return _section(block, level) if has_content(block) else []
        case Paragraph(pre=True):
            return [fenced_block(plain_text(block.text)).rstrip()]
        case Paragraph():
            return [inline(block.text)]
        case Items():
            return [_items(block)]
        case Facts():
            rows = [f"- {escaped(name)}: {inline(text)}" for name, text in block.rows]
            return ["\n".join([*([f"**{escaped(block.title)}**\n"] if block.title else []), *rows])]
        case DataTable():
            return [_table(block)]
        case Findings():
            rows = [
                f"{n}. **{_strong(one.what)}**"
                + (f"  \n   {one.status.sign} {inline(one.why)}" if one.why else "")
                for n, one in enumerate(block.findings, 1)
            ]
            return ["\n".join(rows)]
    return _blocks(block.plain(), level)


def _strong(text: Text) -> str:
    """A text that is bold as a whole."""
    return inline(tuple(Span(one.text) if one.style is Style.STRONG else one for one in spans(text)))


def _section(section: Section, level: int) -> list[str]:
    """A heading with what stands below it as pieces, so that a text that is too long ends where one does."""
    body = [inline(section.headline)] if section.headline else []
    body += _blocks(section.blocks, min(6, level + 1))
    title = escaped(plain_text(section.title))
    if section.fold is not Fold.OPEN:
        return [folded(title, "\n\n".join(filter(None, body)))]
    first = "\n\n".join([f"{'#' * level} {title}", *body[:1]])
    return [first, *filter(None, body[1:])]


def _items(items: Items) -> str:
    lines = []
    for number, item in enumerate(items.items, 1):
        first = f"{number}. " if items.ordered else "- "
        known = item if isinstance(item, Item) else Item(item)
        lines.append(first + inline(known.text))
        lines += [f"{' ' * len(first)}- {inline(text)}" for text in known.below]
    return "\n".join(lines)


def _table(table: DataTable) -> str:
    titles = [escaped(column.title) or " " for column in table.columns]
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    parts = [f"**{escaped(table.title)}**"] if table.title else []
    parts += [grid_of(titles, rows, [column.numeric for column in table.columns])]
    parts += [inline(table.note)] if table.note else []
    parts += [f"{table.left} more are in the JSON document."] if table.left else []
    return "\n\n".join(parts)


def _cell(text: Text) -> str:
    """A bar ends a table's cell, even inside of a code span."""
    return inline(tuple(joined(text))).strip().replace("\\|", "|").replace("|", "\\|")
