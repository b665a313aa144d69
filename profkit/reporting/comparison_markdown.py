"""A comparison as Markdown: for a pull request's comment or a CI step's summary."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import plural, work_word
from profkit.core.types import Comparison
from profkit.reporting.comparison_words import (
    CHANGE_COLUMNS,
    FUNCTION_COLUMNS,
    KERNEL_COLUMNS,
    MOST,
    SIGNS,
    cases_line,
    causes_told,
    change_rows,
    difference_line,
    different,
    function_tables,
    is_case,
    kernel_line,
    kernel_rows,
    looked_line,
    open_lines,
    over_shapes,
    over_shapes_rows,
    over_shapes_title,
    same_line,
    side_line,
)
from profkit.reporting.markdown_text import code, escaped, fitted, folded, grid_of


def render(comparison: Comparison, limit: int | None = None) -> str:
    """The comparison as GitHub-flavoured Markdown, in at most `limit` bytes of UTF-8."""
    parts = [f"## {SIGNS[comparison.outcome]} {comparison.outcome.upper()}", escaped(comparison.reason)]
    if comparison.forced:
        parts.insert(1, "**Forced: these two must not be compared; what follows may mean nothing.**")
    if comparison.fix is not None:
        parts.append(f"Fix: {escaped(comparison.fix)}")
    sides = (("baseline", comparison.baseline), ("candidate", comparison.candidate))
    parts.append("\n".join(f"- {name}: {escaped(side_line(side))}" for name, side in sides))
    if comparison.differences:
        lines = [
            f"**{escaped(difference_line(d))}**" if d.tier == "must" else escaped(difference_line(d))
            for d in comparison.differences
        ]
        parts += ["### Not alike", _list(lines)]
    over = over_shapes(comparison)
    if over:
        parts += [f"### {over_shapes_title(over)}", _table(CHANGE_COLUMNS, over_shapes_rows(over))]
    if (cases := cases_line(comparison)) is not None:
        parts.append(escaped(cases))
    changes = different(comparison)
    if changes:
        title = "Single cases that stand out" if all(map(is_case, changes)) else "What changed"
        parts += [f"### {title}", _table(CHANGE_COLUMNS, change_rows(changes[:MOST]))]
        if len(changes) > MOST:
            parts.append(f"and {len(changes) - MOST} more")
    for heading, causes in causes_told(comparison):
        lines = [escaped(c.sentence) + _evidence(c.evidence) for c in causes]
        parts += [f"### {heading}", _list(lines)]
    if comparison.kernels:
        what = work_word(comparison.baseline.backend)
        parts.append(f"### {what.capitalize()}s: {escaped(kernel_line(comparison.kernels))}")
        rows = kernel_rows(comparison.kernels)
        if rows:
            parts.append(_table((what, *KERNEL_COLUMNS), rows, first=code))
    for title, rows in function_tables(comparison.functions):
        body = _table(FUNCTION_COLUMNS, rows, first=code)
        parts.append(folded(f"Changed {escaped(title)}", body))
    parts += _rest(comparison)
    return fitted(parts, limit)


def _rest(comparison: Comparison) -> list[str]:
    parts = []
    lines = open_lines(comparison)
    if lines:
        parts.append(
            folded(f"{plural(len(lines), 'metric')} not decided", _list([escaped(x) for x in lines]))
        )
    same = same_line(comparison)
    if same is not None:
        parts.append(f"The same (and the smallest change that would have been seen): {escaped(same)}")
    notes = [*comparison.notes, *([looked] if (looked := looked_line(comparison)) else [])]
    if notes:
        parts.append(_list([escaped(note) for note in notes]))
    return parts


def _evidence(evidence: Sequence[str]) -> str:
    return f" ({escaped('; '.join(evidence))})" if evidence else ""


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], first: object = escaped) -> str:
    named = code if first is code else escaped
    cells = [[_cell(named(row[0])), *(escaped(cell) for cell in row[1:])] for row in rows]
    return grid_of([title or " " for title in columns], cells)


def _cell(text: str) -> str:
    """A bar inside of a code span would still end a table's cell."""
    return text.replace("\\|", "|").replace("|", "\\|")
