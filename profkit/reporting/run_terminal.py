"""A run for the terminal: what was profiled, its time, the verdicts, what to do first, then the tables."""

from __future__ import annotations

import shlex
from pathlib import Path

from profkit.backends import backend_named
from profkit.core.types import RunDocument, Summary
from profkit.reporting.order import (
    FIRST,
    LAST,
    SIGNS,
    WORDS,
    actions,
    command,
    common_causes,
    conditions,
    cost,
    gpu_lines,
    machine_line,
    time_line,
    title_of,
    troubles,
)
from profkit.reporting.plain_text import typed_apart
from profkit.reporting.screen import Screen
from profkit.reporting.terminal_verdicts import STYLES, show_verdicts

STATES = {"complete": "", "running": "bold yellow", "interrupted": "bold yellow", "failed": "bold red"}
BRIEF = (
    "Kernels by GPU time",
    "Timeline",
    "Copies",
    "Encoders by GPU time",
)  # tables that are shown where details were not asked for
IN_KERNELS = ("occupancy", "bandwidth", "access", "execution")  # what the table of kernels has in a column
FACT = 64  # characters of a fact about the tool's session: longer ones (lists of metrics) stand in report.md alone
ROWS = 4  # notes of a summary that are shown where details were not asked for


def render(
    document: RunDocument,
    folder: Path | None = None,
    *,
    details: bool = True,
    color: bool | None = None,
    width: int | None = None,
) -> str:
    """The run as text of at most `width` (80) columns; a long line to type is not broken.

    `folder` is the run's folder, for the closing lines. Without `details` it fits two screens: the verdicts, and of
    every concern its headline. `color` None: colour where standard output is a terminal and NO_COLOR is not set.
    """
    screen = Screen(color, width)
    _head(screen, document)
    first = [s for s in document.summaries if s.concern in FIRST]
    last = [s for s in document.summaries if s.concern in LAST]
    _to_do(screen, document)
    for summary in first:
        _summary(screen, summary, details=details)
    show_verdicts(screen, document, details=details)
    if details:
        for summary in document.summaries:
            if summary not in first and summary not in last:
                _summary(screen, summary)
    else:
        _headlines(screen, document)
    for summary in last:
        _summary(screen, summary, details=details)
    _notes(screen, document, details=details)
    _passes(screen, document)
    _conditions(screen, document)
    _where_next(screen, document, folder)
    return screen.text()


def _head(screen: Screen, document: RunDocument) -> None:
    state = document.state if document.state != "complete" else ""
    screen.line(
        (document.name, "bold"),
        f" on {document.backend}",
        (f"  [{state}]" if state else "", STATES[document.state]),
    )
    if document.workload.command:
        screen.line(("$ " + command(document), "dim"), hang=2)
    machine = machine_line(document)
    for line in (*gpu_lines(document), *([machine] if machine is not None else [])):
        screen.line((line, "dim"), hang=2)
    if document.failure is not None:
        screen.line(("FAILED: ", "bold red"), document.failure, hang=2)
    time = time_line(document)
    gpu = next((s.headline for s in document.summaries if s.concern == "gpu"), None)
    if time is not None or gpu is not None or document.verdicts or troubles(document):
        screen.blank()
    if time is not None:
        screen.line("Time      ", (time, "bold"))
    if gpu is not None:
        screen.line("GPU       ", (gpu, "bold"), hang=10)
    if document.verdicts:
        screen.line("Verdicts  ", *_counted(document), hang=10)
    finished = len(document.passes) - len(troubles(document))
    if document.passes and troubles(document):
        screen.line(f"Passes    {finished} of {len(document.passes)} finished; what did not is below")


def _counted(document: RunDocument) -> list[str | tuple[str, str]]:
    """How many of each word for the run and its regions, and how many failures in single functions or kernels."""
    whole = [v for v in document.verdicts if v.scope.kind in ("run", "region")]
    parts: list[str | tuple[str, str]] = []
    for word, style in STYLES.items():
        number = sum(verdict.verdict == word for verdict in whole)
        if number:
            parts += [", " if parts else "", (f"{SIGNS[word]} {number} {WORDS[word]}", style)]
    failed = (
        {v.target for v in whole if v.verdict == "fail"}
        if backend_named(document.backend).per_kernel
        else set()
    )
    inner = [
        v for v in document.verdicts if v.verdict == "fail" and v not in whole and v.target not in failed
    ]
    if inner:
        kind = "kernels alone" if backend_named(document.backend).per_kernel else "functions"
        parts.append(f"{'; ' if parts else ''}{len(inner)} FAIL in single {kind}")
    return parts


def _to_do(screen: Screen, document: RunDocument) -> None:
    first = actions(document)
    if not first:
        return
    screen.heading("What to do first" if len(first) > 1 else "What to do")
    for number, action in enumerate(first, start=1):
        words, typed = typed_apart(action.what)
        if typed is not None and not words:
            screen.typed(f"{number}. {typed}", "bold", indent=2)
        else:
            screen.line(f"{number}. ", (action.what, "bold"), indent=2, hang=3)
        screen.line((f"{SIGNS[action.verdict]} {action.why}", "dim"), indent=5, hang=2)


def _headlines(screen: Screen, document: RunDocument) -> None:
    causes = common_causes(document.verdicts)
    told = [
        summary
        for summary in document.summaries
        if summary.concern not in ("time", *FIRST, *LAST)  # the head has it, or it stands by itself
        and not (backend_named(document.backend).per_kernel and summary.concern in IN_KERNELS)
        and not any(cause in summary.headline for cause in causes)  # said once, at the verdicts
    ]
    if not told:
        return
    screen.heading("In short")
    width = max(len(summary.concern) for summary in told) + 1
    for summary in told:
        screen.labelled((summary.concern, "dim"), summary.headline, width=width)


def _summary(screen: Screen, summary: Summary, *, details: bool = True) -> None:
    screen.heading(title_of(summary.concern))
    if summary.concern != "gpu":  # the head has it
        screen.line(summary.headline, indent=2)
    for table in summary.tables:
        if not table.rows or (not details and table.title not in BRIEF):
            continue
        screen.blank()
        screen.line((table.title, "underline"), indent=2)
        screen.table(table.columns, table.rows)
        if table.note:
            screen.line((table.note, "dim"), indent=2)
    if summary.notes and summary.tables:
        screen.blank()
    for note in summary.notes[: None if details else ROWS]:
        words, typed = typed_apart(note)
        screen.line((f"- {words}", "dim"), indent=2, hang=2)
        if typed is not None:
            screen.typed(typed, "dim", indent=4)


def _passes(screen: Screen, document: RunDocument) -> None:
    if not document.passes:
        return
    screen.heading("Passes")
    rows = tuple((result.name, result.tool or "-", result.state, cost(result)) for result in document.passes)
    screen.table(("pass", "tool", "state", "took"), rows)
    for result in troubles(document):
        reason = result.reason or "no reason is known"
        screen.line(f"- {result.name} {result.state}: {reason}", indent=2, hang=2)
        if result.fix:
            screen.line(("  fix: ", "dim"), result.fix, indent=2, hang=7)
        if result.log:
            screen.line((f"  log: {result.log}", "dim"), indent=2, hang=7)


def _conditions(screen: Screen, document: RunDocument) -> None:
    """What decides whether these numbers may be compared with others."""
    if document.facts:
        screen.heading("Measured under")
        told = [f"{name}: {value}" for name, value in conditions(document).items() if len(value) <= FACT]
        screen.line(("; ".join(told), "dim"), indent=2, hang=0)


def _notes(screen: Screen, document: RunDocument, *, details: bool) -> None:
    """What readers had to say of their reports; in brief without how the workload was found, which the GPU has."""
    told = [note for note in document.notes if details or not note.startswith("nothing is marked")]
    if not told:
        return
    screen.heading("Notes")
    for note in told[: None if details else ROWS]:
        screen.line(f"- {note}", indent=2, hang=2)


def _where_next(screen: Screen, document: RunDocument, folder: Path | None) -> None:
    if folder is None:
        return
    screen.heading("Files")
    screen.line(str(folder), indent=2)
    page = "report.html  " if (folder / "report.html").is_file() else ""
    screen.line((f"{page}report.md  run.json  artifacts/  logs/", "dim"), indent=4)
    flame = next((a for p in document.passes for a in p.artifacts if a.endswith(".speedscope.json")), None)
    if flame is not None:
        screen.line((f"{flame}: a flame graph, opens at speedscope.app", "dim"), indent=4, hang=2)
    screen.heading("Next")
    screen.line(f"profkit summarize {shlex.quote(str(folder))}", indent=2, hang=2)
    if document.state == "complete":
        screen.line(f"profkit compare {shlex.quote(str(folder))} LATER_RUN", indent=2, hang=2)
    if document.state in ("interrupted", "failed"):
        screen.line("profkit doctor", indent=2, hang=2)
