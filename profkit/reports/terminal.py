"""A run for the terminal: what was profiled, its time, the verdicts, what to do first, then the tables."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from profkit.model import RunDocument, Scope, Summary, Verdict, VerdictWord
from profkit.reports.order import (
    FIRST,
    LAST,
    SIGNS,
    WORDS,
    actions,
    command,
    common_causes,
    conditions,
    cost,
    counts,
    gain,
    gpu_lines,
    machine_line,
    named,
    time_line,
    title_of,
    troubles,
    worst_first,
)
from profkit.reports.screen import Screen
from profkit.words import percent, shortened

STYLES: dict[VerdictWord, str] = {
    "fail": "bold red",
    "unknown": "yellow",
    "pass": "green",
    "not-applicable": "dim",
}
STATES = {"complete": "", "running": "bold yellow", "interrupted": "bold yellow", "failed": "bold red"}
FUNCTIONS = 3  # functions whose verdicts are shown; the rest stands in run.json
KERNELS = 5  # the same for kernels, of which each is its own piece of work
BRIEF = (
    "Kernels by GPU time",
    "Timeline",
    "Copies",
)  # tables that are shown where details were not asked for
IN_KERNELS = ("occupancy", "bandwidth", "access", "execution")  # what the table of kernels has in a column
FACT = 48  # characters of a fact about the tool's session; the whole stands in run.json and in report.md
ROWS = 6  # notes of a summary that are shown where details were not asked for


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
    first = [s for s in document.summaries if s.concern in FIRST]
    last = [s for s in document.summaries if s.concern in LAST]
    for summary in first:  # a GPU's kernels and timeline come before what to think of them
        _summary(screen, summary, details=details)
    _to_do(screen, document)
    _verdicts(screen, document, details=details)
    if details:
        for summary in document.summaries:
            if summary not in first and summary not in last:
                _summary(screen, summary)
    else:
        _headlines(screen, document)
    for summary in last:
        _summary(screen, summary, details=details)
    _passes(screen, document)
    _conditions(screen, document)
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
    inner = sum(v.verdict == "fail" for v in document.verdicts) - sum(v.verdict == "fail" for v in whole)
    if inner:
        kind = "kernels" if document.backend == "cuda" else "functions"
        parts.append(f"{'; ' if parts else ''}{inner} FAIL in single {kind}")
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
        if summary.concern not in ("time", *FIRST, *LAST)  # the head has it, or it stands by itself
        and not (document.backend == "cuda" and summary.concern in IN_KERNELS)
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
    inner: dict[Scope, list[Verdict]] = {}
    for verdict in document.verdicts:
        if verdict.scope.kind not in ("run", "region"):
            inner.setdefault(verdict.scope, []).append(verdict)
    kernels = any(scope.kind == "kernel" for scope in inner)
    if whole or (inner and (details or kernels)):
        screen.heading("Verdicts")
    regions = {v.scope.name for v in whole if v.scope.kind == "region"}
    common = common_causes(whole) if kernels or not details or document.backend == "cuda" else {}
    told_together = [verdict for same in common.values() for verdict in same]
    if kernels and not details:  # what is as it should be takes a line
        kept = [v for v in whole if v.verdict in ("pass", "not-applicable")]
        told_together += kept
    for verdict in worst_first([v for v in whole if v not in told_together]):
        place = f"{verdict.scope.name}: " if len(regions) > 1 and verdict.scope.name else ""
        _verdict(screen, verdict, place, advice=len(verdict.advice) if details else int(kernels))
    for cause, same in common.items():
        names = ", ".join(verdict.target for verdict in same)
        screen.labelled(
            (f"{SIGNS['unknown']} {WORDS['unknown']}", STYLES["unknown"]),
            (names, "bold"),
            f"  {cause}",
            width=9,
        )
        for line in dict.fromkeys(verdict.advice[0] for verdict in same if verdict.advice) if details else ():
            screen.labelled(("", ""), (f"try: {line}", "dim"), width=9)
    if not details and not kernels:
        return
    if not details:
        for word in ("pass", "not-applicable"):
            names = ", ".join(verdict.target for verdict in kept if verdict.verdict == word)
            if names:
                screen.labelled((f"{SIGNS[word]} {WORDS[word]}", STYLES[word]), names, width=9)
    shown = frozenset(v.target for v in whole if v.verdict in ("fail", "unknown"))
    for scope, verdicts in list(inner.items())[: KERNELS if kernels else FUNCTIONS]:
        failed = [v for v in worst_first(verdicts) if v.verdict in ("fail", "unknown")]
        weight = next((v.weight for v in verdicts if v.weight is not None), None)
        share = f", {percent(100 * weight)} % of the GPU time" if weight is not None else ""
        screen.line(
            ("in ", "dim"), (named(scope), "bold"), (f"{share}: {counts(verdicts)}", "dim"), indent=2, hang=2
        )
        for verdict in failed if details else [v for v in failed if v.verdict == "fail"]:
            if not _told(verdict, whole):
                few = len(verdict.advice) if details else 1
                _verdict(screen, verdict, "", advice=few if kernels or verdict.target not in shown else 0)


def _told(verdict: Verdict, whole: Sequence[Verdict]) -> bool:
    """Whether the run's own verdict on that target is this one in other words: the kernel that decided it."""
    return any(v.target == verdict.target and verdict.reason in v.reason for v in whole)


def _verdict(screen: Screen, verdict: Verdict, place: str, *, advice: int) -> None:
    """The verdict and, of what to try, the first so many."""
    label = (f"{SIGNS[verdict.verdict]} {WORDS[verdict.verdict]}", STYLES[verdict.verdict])
    screen.labelled(label, (verdict.target, "bold"), f"  {place}{verdict.reason}{gain(verdict)}", width=9)
    if verdict.verdict in ("fail", "unknown"):
        for line in verdict.advice[:advice]:
            screen.labelled(("", ""), (f"try: {line}", "dim"), width=9)


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


def _conditions(screen: Screen, document: RunDocument) -> None:
    """What decides whether these numbers may be compared with others."""
    if document.facts:
        screen.heading("Measured under")
        told = [f"{name}: {shortened(value, FACT)}" for name, value in conditions(document).items()]
        screen.line(("; ".join(told), "dim"), indent=2, hang=0)


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
