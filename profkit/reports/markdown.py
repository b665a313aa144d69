"""A run as GitHub-flavoured Markdown: a CI step summary or report.md. Everything from outside is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.model import RunDocument, Summary, Table, Verdict
from profkit.reports.order import (
    SIGNS,
    WORDS,
    actions,
    command,
    cost,
    counts,
    machine_line,
    time_line,
    troubles,
    where,
    worst_first,
)
from profkit.reports.plain_text import harmless

# What can begin a span, a heading or a cell; < and & begin HTML, @ a mention.
_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def render(document: RunDocument) -> str:
    """The run as Markdown: head, what to do first, verdicts, then every concern folded away."""
    parts = [_head(document), _to_do(document), _verdicts(document.verdicts)]
    parts += [_summary(summary) for summary in document.summaries]
    parts += [_passes(document), _notes("Notes", document.notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


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


def _head(document: RunDocument) -> str:
    state = f" ({document.state})" if document.state != "complete" else ""
    lines = [f"## {escaped(document.name)} on {document.backend}{state}"]
    if document.workload.command:
        lines.append(code(command(document)))
    if document.failure is not None:
        lines.append(f"**Failed:** {escaped(document.failure)}")
    facts: list[str] = []
    if (time := time_line(document)) is not None:
        facts.append(f"**Time:** {escaped(time)}")
    if document.verdicts:
        facts.append(f"**Verdicts:** {counts(document.verdicts)}")
    if (machine := machine_line(document)) is not None:
        facts.append(f"**Machine:** {escaped(machine)}")
    if facts:
        lines.append("  \n".join(facts))
    return "\n\n".join(lines)


def _to_do(document: RunDocument) -> str:
    first = actions(document)
    if not first:
        return ""
    rows = [
        f"{n}. **{escaped(a.what)}**  \n   {SIGNS[a.verdict]} {escaped(a.why)}"
        for n, a in enumerate(first, 1)
    ]
    return "### What to do first\n\n" + "\n".join(rows)


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    rows = [
        (
            f"{SIGNS[v.verdict]} {WORDS[v.verdict]}",
            code(v.target).replace("|", "\\|"),
            escaped(v.threshold),
            escaped(where(v.scope) + v.reason),
        )
        for v in worst_first(verdicts)
    ]
    parts = [_grid(("verdict", "target", "threshold", "why"), rows)]
    for verdict in worst_first(verdicts):
        if verdict.verdict == "fail" and verdict.advice:
            tries = "\n".join(f"- {escaped(line)}" for line in verdict.advice)
            parts.append(f"{escaped(where(verdict.scope))}{code(verdict.target)}: what to try\n\n{tries}")
    return "### Verdicts\n\n" + "\n\n".join(parts)


def _summary(summary: Summary) -> str:
    body = [escaped(summary.headline)]
    body += [_table(table) for table in summary.tables if table.rows]
    body.append("\n".join(f"- {escaped(note)}" for note in summary.notes))
    inner = "\n\n".join(part for part in body if part)
    title = escaped(summary.concern.capitalize())
    return f"<details><summary>{title}</summary>\n\n{inner}\n\n</details>"


def _table(table: Table) -> str:
    rows = [tuple(escaped(cell) for cell in row) for row in table.rows]
    grid = _grid(tuple(escaped(title) for title in table.columns), rows)
    note = f"\n\n{escaped(table.note)}" if table.note else ""
    return f"**{escaped(table.title)}**\n\n{grid}{note}"


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    return "\n".join(f"| {line} |" for line in [*lines, *(" | ".join(row) for row in rows)])


def _passes(document: RunDocument) -> str:
    if not document.passes:
        return ""
    rows = [(p.name, p.tool or "-", p.state, cost(p)) for p in document.passes]
    lines = [_grid(("pass", "tool", "state", "took"), [tuple(escaped(cell) for cell in row) for row in rows])]
    notes = []
    for result in troubles(document):
        fix = f" Fix: {code(result.fix)}" if result.fix else ""
        log = f" Log: {code(result.log)}" if result.log else ""
        notes.append(
            f"- {result.name} {result.state}: {escaped(result.reason or 'no reason is known')}.{fix}{log}"
        )
    return "### Passes\n\n" + "\n\n".join([*lines, *(["\n".join(notes)] if notes else [])])


def _notes(title: str, notes: Sequence[str]) -> str:
    return f"### {title}\n\n" + "\n".join(f"- {escaped(note)}" for note in notes) if notes else ""
