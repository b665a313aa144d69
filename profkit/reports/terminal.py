"""A run for the terminal: what was profiled, its time, the verdicts, what to do first, then the tables."""

from __future__ import annotations

import shlex
from pathlib import Path

from profkit.model import RunDocument, Summary, Verdict, VerdictWord
from profkit.reports.order import (
    SIGNS,
    WORDS,
    actions,
    command,
    common_causes,
    cost,
    counts,
    machine_line,
    time_line,
    troubles,
    worst_first,
)
from profkit.reports.screen import Screen

STYLES: dict[VerdictWord, str] = {
    "fail": "bold red",
    "unknown": "yellow",
    "pass": "green",
    "not-applicable": "dim",
}
STATES = {"complete": "", "running": "bold yellow", "interrupted": "bold yellow", "failed": "bold red"}
FUNCTIONS = 3  # functions whose verdicts are shown; the rest stands in run.json


def render(
    document: RunDocument,
    folder: Path | None = None,
    *,
    details: bool = True,
    color: bool | None = None,
    width: int | None = None,
) -> str:
    """The run as text of at most `width` (80) columns.

    `folder` is the run's folder, for the closing lines. Without `details` it fits two screens: the verdicts, and of
    every concern its headline. `color` None: colour where standard output is a terminal and NO_COLOR is not set.
    """
    screen = Screen(color, width)
    _head(screen, document)
    _to_do(screen, document)
    _verdicts(screen, document, details=details)
    if details:
        for summary in document.summaries:
            _summary(screen, summary)
    else:
        _headlines(screen, document)
    _passes(screen, document)
    if document.notes and details:
        screen.heading("Notes")
        for note in document.notes:
            screen.line(f"- {note}", indent=2, hang=2)
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
    if machine is not None:
        screen.line((machine, "dim"), hang=2)
    if document.failure is not None:
        screen.line(("FAILED: ", "bold red"), document.failure, hang=2)
    time = time_line(document)
    if time is not None or document.verdicts or troubles(document):
        screen.blank()
    if time is not None:
        screen.line("Time      ", (time, "bold"))
    if document.verdicts:
        screen.line("Verdicts  ", *_counted(document), hang=10)
    finished = len(document.passes) - len(troubles(document))
    if document.passes and troubles(document):
        screen.line(f"Passes    {finished} of {len(document.passes)} finished; what did not is below")


def _counted(document: RunDocument) -> list[str | tuple[str, str]]:
    """How many of each word for the run and its regions, and how many failures in single functions."""
    whole = [v for v in document.verdicts if v.scope.kind in ("run", "region")]
    parts: list[str | tuple[str, str]] = []
    for word, style in STYLES.items():
        number = sum(verdict.verdict == word for verdict in whole)
        if number:
            parts += [", " if parts else "", (f"{SIGNS[word]} {number} {WORDS[word]}", style)]
    inner = sum(v.verdict == "fail" for v in document.verdicts) - sum(v.verdict == "fail" for v in whole)
    if inner:
        parts.append(f"{'; ' if parts else ''}{inner} FAIL in single functions")
    return parts


def _to_do(screen: Screen, document: RunDocument) -> None:
    first = actions(document)
    if not first:
        return
    screen.heading("What to do first" if len(first) > 1 else "What to do")
    for number, action in enumerate(first, start=1):
        screen.line(f"{number}. ", (action.what, "bold"), indent=2, hang=3)
        screen.line((f"{SIGNS[action.verdict]} {action.why}", "dim"), indent=5, hang=2)


def _headlines(screen: Screen, document: RunDocument) -> None:
    causes = common_causes(document.verdicts)
    told = [
        summary
        for summary in document.summaries
        if summary.concern != "time"  # the head has it
        and not any(cause in summary.headline for cause in causes)  # said once, at the verdicts
    ]
    if not told:
        return
    screen.heading("In short")
    width = max(len(summary.concern) for summary in told) + 1
    for summary in told:
        screen.labelled((summary.concern, "dim"), summary.headline, width=width)


def _verdicts(screen: Screen, document: RunDocument, *, details: bool) -> None:
    whole = [v for v in document.verdicts if v.scope.kind in ("run", "region")]
    functions: dict[str, list[Verdict]] = {}
    for verdict in document.verdicts:
        if verdict.scope.kind not in ("run", "region"):
            functions.setdefault(verdict.scope.name or "?", []).append(verdict)
    if whole:
        screen.heading("Verdicts")
    regions = {v.scope.name for v in whole if v.scope.kind == "region"}
    common = {} if details else common_causes(whole)
    told_together = [verdict for same in common.values() for verdict in same]
    for verdict in worst_first([v for v in whole if v not in told_together]):
        place = f"{verdict.scope.name}: " if len(regions) > 1 and verdict.scope.name else ""
        _verdict(screen, verdict, place, advice=details)
    for cause, same in common.items():
        names = ", ".join(verdict.target for verdict in same)
        screen.labelled(
            (f"{SIGNS['unknown']} {WORDS['unknown']}", STYLES["unknown"]),
            (names, "bold"),
            f"  {cause}",
            width=9,
        )
    if not details:
        return
    shown = frozenset(v.target for v in whole if v.verdict in ("fail", "unknown"))
    for name, verdicts in list(functions.items())[:FUNCTIONS]:
        failed = [v for v in worst_first(verdicts) if v.verdict in ("fail", "unknown")]
        screen.line(("in ", "dim"), (name, "bold"), (f": {counts(verdicts)}", "dim"), indent=2, hang=2)
        for verdict in failed:
            _verdict(screen, verdict, "", advice=verdict.target not in shown)


def _verdict(screen: Screen, verdict: Verdict, place: str, *, advice: bool) -> None:
    """The verdict and, with `advice`, what to try."""
    label = (f"{SIGNS[verdict.verdict]} {WORDS[verdict.verdict]}", STYLES[verdict.verdict])
    screen.labelled(label, (verdict.target, "bold"), f"  {place}{verdict.reason}", width=9)
    if advice and verdict.verdict in ("fail", "unknown"):
        for line in verdict.advice:
            screen.labelled(("", ""), (f"try: {line}", "dim"), width=9)


def _summary(screen: Screen, summary: Summary) -> None:
    screen.heading(summary.concern.capitalize())
    screen.line(summary.headline, indent=2)
    for table in summary.tables:
        if not table.rows:
            continue
        screen.blank()
        screen.line((table.title, "underline"), indent=2)
        screen.table(table.columns, table.rows)
        if table.note:
            screen.line((table.note, "dim"), indent=2)
    if summary.notes and summary.tables:
        screen.blank()
    for note in summary.notes:
        screen.line((f"- {note}", "dim"), indent=2, hang=2)


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


def _where_next(screen: Screen, document: RunDocument, folder: Path | None) -> None:
    if folder is None:
        return
    screen.heading("Files")
    screen.line(str(folder), indent=2)
    screen.line(("run.json  report.md  artifacts/  logs/", "dim"), indent=4)
    flame = next((a for p in document.passes for a in p.artifacts if a.endswith(".speedscope.json")), None)
    if flame is not None:
        screen.line((f"{flame}: a flame graph, opens at speedscope.app", "dim"), indent=4, hang=2)
    screen.heading("Next")
    screen.line(f"profkit summarize {shlex.quote(str(folder))}", indent=2, hang=2)
    if document.state in ("interrupted", "failed"):
        screen.line("profkit doctor", indent=2, hang=2)
