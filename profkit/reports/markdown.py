"""A run as GitHub-flavoured Markdown: a CI step summary or report.md. Everything from outside is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.model import RunDocument, Summary, Table, Verdict
from profkit.reports.kernel_details import kernel_details
from profkit.reports.markdown_text import code, escaped, folded, grid_of
from profkit.reports.order import (
    FIRST,
    SIGNS,
    WORDS,
    actions,
    command,
    cost,
    counts,
    gain,
    gpu_lines,
    machine_line,
    time_line,
    title_of,
    troubles,
    where,
    worst_first,
)


def render(document: RunDocument) -> str:
    """The run as Markdown: head, what to do first, verdicts, then every concern folded away."""
    first = [s for s in document.summaries if s.concern in FIRST]
    rest = [s for s in document.summaries if s not in first]
    missed = any(action.verdict == "fail" for action in actions(document))
    parts = [_head(document), _to_do(document) if missed else ""]
    parts += [_open_summary(summary) for summary in first]
    parts += ["" if missed else _to_do(document), _verdicts(document.verdicts)]
    parts += [_summary(summary) for summary in rest]
    parts += [*kernel_details(document), _passes(document), _notes("Notes", document.notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


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
    if (gpu := next((s.headline for s in document.summaries if s.concern == "gpu"), None)) is not None:
        facts.append(f"**GPU:** {escaped(gpu)}")
    if document.verdicts:
        facts.append(f"**Verdicts:** {_counted(document.verdicts)}")
    facts += [f"**Device:** {escaped(line)}" for line in gpu_lines(document)]
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


def _counted(verdicts: Sequence[Verdict]) -> str:
    whole = [v for v in verdicts if v.scope.kind != "kernel"]
    missed = {v.target for v in whole if v.verdict == "fail"}
    failed = sum(
        v.scope.kind == "kernel" and v.verdict == "fail" and v.target not in missed for v in verdicts
    )
    alone = f"{failed} FAIL in single kernels alone" if failed else ""
    return "; ".join(part for part in (counts(whole), alone) if part)


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    """Those on the run open, those on each kernel folded away below."""
    kernels = [v for v in verdicts if v.scope.kind == "kernel"]
    parts = ["### Verdicts", _verdict_table([v for v in verdicts if v.scope.kind != "kernel"])]
    if kernels:
        parts.append(folded("Verdicts on each kernel", _verdict_table(kernels)))
    return "\n\n".join(part for part in parts if part) if verdicts else ""


def _verdict_table(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    rows = [
        (
            f"{SIGNS[v.verdict]} {WORDS[v.verdict]}",
            code(v.target).replace("|", "\\|"),
            escaped(v.threshold),
            escaped(where(v.scope) + v.reason + gain(v)),
        )
        for v in worst_first(verdicts)
    ]
    parts = [grid_of(("verdict", "target", "threshold", "why"), rows)]
    for verdict in worst_first(verdicts):
        if verdict.verdict == "fail" and verdict.advice:
            tries = "\n".join(f"- {escaped(line)}" for line in verdict.advice)
            parts.append(f"{escaped(where(verdict.scope))}{code(verdict.target)}: what to try\n\n{tries}")
    return "\n\n".join(parts)


def _summary(summary: Summary) -> str:
    return folded(escaped(title_of(summary.concern)), _body(summary))


def _open_summary(summary: Summary) -> str:
    return f"### {escaped(title_of(summary.concern))}\n\n{_body(summary)}"


def _body(summary: Summary) -> str:
    body = [escaped(summary.headline)] if summary.concern != "gpu" else []  # the head has it
    body += [_table(table) for table in summary.tables if table.rows]
    body.append("\n".join(f"- {escaped(note)}" for note in summary.notes))
    return "\n\n".join(part for part in body if part)


def _table(table: Table) -> str:
    rows = [tuple(escaped(cell.strip()) for cell in row) for row in table.rows]
    grid = grid_of(tuple(escaped(title) for title in table.columns), rows)
    note = f"\n\n{escaped(table.note)}" if table.note else ""
    return f"**{escaped(table.title)}**\n\n{grid}{note}"


def _passes(document: RunDocument) -> str:
    if not document.passes:
        return ""
    rows = [(p.name, p.tool or "-", p.state, cost(p)) for p in document.passes]
    lines = [
        grid_of(("pass", "tool", "state", "took"), [tuple(escaped(cell) for cell in row) for row in rows])
    ]
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
