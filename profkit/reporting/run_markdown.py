"""A run as GitHub-flavoured Markdown: a CI step summary or report.md. Everything from outside is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import plural
from profkit.core.types import RunDocument, Summary, Table, Verdict, VerdictWord
from profkit.reporting.kernel_details import kernel_details
from profkit.reporting.markdown_text import code, escaped, fitted, folded, grid_of
from profkit.reporting.order import (
    FIRST,
    SIGNS,
    WORDS,
    actions,
    command,
    cost,
    gain,
    gpu_lines,
    machine_line,
    time_line,
    title_of,
    troubles,
    where,
    worst_first,
)
from profkit.reporting.plain_text import typed_apart

STEP_SUMMARY = (
    1 << 20
)  # bytes; a longer summary of a step is not shown at all (GitHub's documentation, job summaries)


def render(document: RunDocument, limit: int | None = None) -> str:
    """The run as Markdown: the verdict in one line, what to do first, the verdicts, then every concern folded away.

    `limit` is in bytes of UTF-8: what does not fit is left out from the end, and that is said.
    """
    first = [s for s in document.summaries if s.concern in FIRST]
    rest = [s for s in document.summaries if s not in first]
    parts = [_head(document), _to_do(document), *(_open_summary(summary) for summary in first)]
    parts += [_verdicts(document.verdicts), _tries(document.verdicts)]
    parts += [_summary(summary) for summary in rest]
    parts += [*kernel_details(document), _passes(document), _notes("Notes", document.notes)]
    return fitted([part for part in parts if part], limit)


def _head(document: RunDocument) -> str:
    state = f" ({document.state})" if document.state != "complete" else ""
    lines = [f"## {escaped(document.name)} on {document.backend}{state}"]
    if document.failure is not None:
        lines.append(f"**✗ Failed:** {escaped(document.failure)}")
    if document.verdicts:
        lines.append(_headline(document.verdicts))
    if document.workload.command:
        lines.append(code(command(document)))
    facts: list[str] = []
    if (time := time_line(document)) is not None:
        facts.append(f"**Time:** {escaped(time)}")
    if (gpu := next((s.headline for s in document.summaries if s.concern == "gpu"), None)) is not None:
        facts.append(f"**GPU:** {escaped(gpu)}")
    facts += [f"**Device:** {escaped(line)}" for line in gpu_lines(document)]
    if (machine := machine_line(document)) is not None:
        facts.append(f"**Machine:** {escaped(machine)}")
    if facts:
        lines.append("  \n".join(facts))
    return "\n\n".join(lines)


_SAID: dict[VerdictWord, str] = {
    "fail": "missed",
    "unknown": "not known",
    "pass": "met",
    "not-applicable": "not applicable",
}


def _headline(verdicts: Sequence[Verdict]) -> str:
    """`✗ 2 targets missed: l1-miss-rate, l2-miss-rate; 2 not known, 4 met`, of the run; its parts behind it."""
    whole = [v for v in verdicts if v.scope.kind in ("run", "region")]
    by_word = {word: [v for v in whole if v.verdict == word] for word in WORDS}
    worst: VerdictWord = next((word for word, found in by_word.items() if found), "pass")
    named = (
        ", ".join(dict.fromkeys(code(v.target) for v in by_word[worst]))
        if worst in ("fail", "unknown")
        else ""
    )
    told = [f"{len(found)} {_SAID[word]}" for word, found in by_word.items() if found]
    first = f"**{SIGNS[worst]} {plural(len(by_word[worst]), 'target')} {_SAID[worst]}**" if told else ""
    line = "; ".join(part for part in (f"{first}: {named}" if named else first, ", ".join(told[1:])) if part)
    missed = {v.target for v in by_word["fail"]}
    parts = [v for v in verdicts if v not in whole and v.verdict == "fail" and v.target not in missed]
    alone = f"{plural(len(parts), 'miss', 'misses')} in single kernels or functions alone" if parts else ""
    return "; ".join(part for part in (line, alone) if part)


def _to_do(document: RunDocument) -> str:
    first = actions(document)
    if not first:
        return ""
    rows = [
        f"{n}. **{_typed(a.what)}**  \n   {SIGNS[a.verdict]} {escaped(a.why)}" for n, a in enumerate(first, 1)
    ]
    return "### What to do first\n\n" + "\n".join(rows)


def _typed(text: str) -> str:
    """What is said, and a line to type as code: as prose it would hold what keeps Markdown from obeying it."""
    words, typed = typed_apart(text)
    if typed is None:
        return escaped(text)
    return f"{escaped(words)}: {code(typed)}" if words else code(typed)


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    """Those on the run open, those on each kernel and function folded away below."""
    if not verdicts:
        return ""
    inner = {kind: [v for v in verdicts if v.scope.kind == kind] for kind in ("kernel", "function")}
    whole = [v for v in verdicts if v.scope.kind not in inner]
    parts = ["### Verdicts", _verdict_table(whole)]
    parts += [
        folded(f"Verdicts on each {kind}", _verdict_table(found)) for kind, found in inner.items() if found
    ]
    return "\n\n".join(part for part in parts if part)


def _verdict_table(verdicts: Sequence[Verdict]) -> str:
    rows = [
        (
            f"{SIGNS[v.verdict]} {WORDS[v.verdict]}",
            code(v.target).replace("|", "\\|"),
            escaped(v.threshold),
            escaped(where(v.scope) + v.reason + gain(v)),
        )
        for v in worst_first(verdicts)
    ]
    return grid_of(("verdict", "target", "threshold", "why"), rows) if rows else ""


def _tries(verdicts: Sequence[Verdict]) -> str:
    """What to try, once for each target that was missed anywhere."""
    advice: dict[str, dict[str, None]] = {}
    for verdict in verdicts:
        if verdict.verdict == "fail" and verdict.advice:
            advice.setdefault(verdict.target, {}).update(dict.fromkeys(verdict.advice))
    told = [
        f"{code(name)}\n\n" + "\n".join(f"- {_typed(line)}" for line in lines)
        for name, lines in advice.items()
    ]
    return folded("What to try", "\n\n".join(told)) if told else ""


def _summary(summary: Summary) -> str:
    return folded(escaped(title_of(summary.concern)), _body(summary))


def _open_summary(summary: Summary) -> str:
    return f"### {escaped(title_of(summary.concern))}\n\n{_body(summary)}"


def _body(summary: Summary) -> str:
    body = [escaped(summary.headline)] if summary.concern != "gpu" else []  # the head has it
    body += [_table(table) for table in summary.tables if table.rows]
    body.append("\n".join(f"- {_typed(note)}" for note in summary.notes))
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
