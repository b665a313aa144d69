"""What is said first: what to change, or that nothing was found; and last what a further measurement would tell."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from profkit.analysis.kernel_names.owner import is_initialiser
from profkit.analysis.summaries.kernels import kernel_rows
from profkit.backends import backend_named
from profkit.core.formatting import format_percent
from profkit.core.types import RunDocument, Verdict
from profkit.reporting.view import (
    Block,
    Finding,
    Findings,
    OnScreen,
    Paragraph,
    Section,
    Status,
    Text,
    command,
    joined,
    plain_text,
    strong,
)
from profkit.reporting.views.run_insights import gain_text, insight_items, join_insights
from profkit.reporting.views.run_text import NOISE, WORDS, actions, command_line, with_command

_COMMAND = 48  # characters of a command that stands in a line to type; a longer one is COMMAND
_TOLD = 4  # targets that are named
_NEAR = 80.0  # %; a kernel whose busiest unit is that near to its peak has little left to win
_MOST = 0.9  # of the GPU time
_FEW = 3  # met targets: fewer are too little to say that nothing is wrong
INITIALISERS = "The counted kernels are PyTorch's initialisers, which fill tensors with random numbers: set-up, and not your work."


@dataclass(frozen=True)
class Measurement:
    """What to type to know more, and what that would tell."""

    tells: tuple[str, ...]
    line: Text


def concluded(document: RunDocument) -> bool:
    """Whether an insight says what to do."""
    return any(insight.source == "profkit" for insight in document.insights)


def to_do_section(document: RunDocument) -> Section | None:
    """The insights, or what missed targets say; else that nothing was found, if enough was looked at.

    Below stands what a further measurement would tell. A screen has that at its end: see `more_on_screen`.
    """
    blocks: list[Block] = []
    count = 0
    items = insight_items(document)
    if only_initialisers(document):
        blocks.append(Paragraph(INITIALISERS))
    elif items is not None:
        count = len(items.items)
        blocks.append(items)
    elif rows := actions(document):
        count = len(rows)
        blocks.append(
            Findings(
                tuple(Finding(Status.FAIL, WORDS["fail"], with_command(row.what), row.why) for row in rows)
            )
        )
    elif (sentence := nothing_text(document)) is not None:
        blocks.append(Paragraph(sentence))
    title = "What to do first" if count > 1 else "What to do" if blocks else "To know more"
    if (more := more_text(document)) is not None:
        blocks.append(OnScreen((), (Paragraph(more),)))
    return Section(title, tuple(blocks), anchor="actions") if blocks else None


def more_on_screen(document: RunDocument) -> OnScreen | None:
    """The line on further measurements as the last one of a screen."""
    more = more_text(document)
    return OnScreen((Paragraph(""), Paragraph(more)), ()) if more is not None else None


def to_do_lines(document: RunDocument) -> list[tuple[str, str]]:
    """What to do and why, as plain texts: for test reports and notebooks."""
    if only_initialisers(document):
        return []
    insights = [
        (f"{one.insight.title}{plain_text(gain_text(one.gain))}", one.insight.evidence)
        for one in join_insights(document.insights)
    ]
    return insights or [(action.what, action.why) for action in actions(document)]


def only_initialisers(document: RunDocument) -> bool:
    """Whether all kernels of a document are set-up: nothing follows from their values."""
    kernels = document.kernels
    return bool(kernels) and all(is_initialiser(kernel.scope.name or "") for kernel in kernels)


# ---------------------------------------------------------------- nothing was found


def nothing_text(document: RunDocument) -> str | None:
    """That nothing to change was found, with what was looked at; None where that is too little to say so."""
    whole = [verdict for verdict in document.verdicts if verdict.scope.kind in ("run", "region")]
    words = [verdict.verdict for verdict in whole if verdict.metric != "time.interval"]
    if document.state != "complete" or "fail" in words:
        return None
    looked = _near_limits(document) if backend_named(document.backend).per_kernel else None
    if looked is None and not document.kernels and "unknown" not in words and words.count("pass") >= _FEW:
        looked = f"all {words.count('pass')} targets that apply are met"
    return f"Nothing to change was found: {looked}." if looked is not None else None


def _near_limits(document: RunDocument) -> str | None:
    """How near to the limit of their busiest unit the kernels run that take nine tenths of the GPU time."""
    rows = kernel_rows(document)
    near = [row for row in rows if row.bound is not None and (row.bound.nearest or 0.0) >= _NEAR]
    known = any(row.share is not None for row in rows)
    share = sum(row.share or 0.0 for row in near) if known else len(near) / max(1, len(rows))
    trace = document.trace
    idle = trace is not None and trace.span and trace.busy is not None and trace.busy < _MOST * trace.span
    if not near or share < _MOST or idle:
        return None
    least = min(row.bound.nearest or 0.0 for row in near if row.bound is not None)
    far = max(1, ceil(100 - least))
    if len(rows) == 1:
        return f"its kernel runs within {far} % of what limits it"
    part = f"{format_percent(100 * min(1.0, share))} % of the GPU time"
    return f"kernels with {part} run within {far} % of what limits them"


# ---------------------------------------------------------------- what a further measurement would tell


def more_text(document: RunDocument) -> Text | None:
    """`To know more (coalescing, spills): profkit profile --depth full -- COMMAND`; None where nothing is missing."""
    measurement = most_telling(document)
    if measurement is None:
        return None
    named, left = measurement.tells[:_TOLD], len(measurement.tells) - _TOLD
    tells = ", ".join(named) + (f" and {left} more" if left > 0 else "")
    return joined(strong("To know more"), f" ({tells}): ", measurement.line)


def most_telling(document: RunDocument) -> Measurement | None:
    """The measurement that answers the most open questions; before them all one of a time that is mostly noise."""
    lines = backend_named(document.backend).tool_lines
    if only_initialisers(document):
        mark = "or mark the part that counts: with profkit.region(NAME)"
        other = lines.count_other or "another part of the program"
        return Measurement(("the kernels that do the work",), f"{other}; {mark}")
    groups: dict[Text, list[str]] = {}
    for verdict in document.verdicts:
        if verdict.verdict != "unknown" or verdict.scope.kind not in ("run", "region"):
            continue
        line = _line_for(document, verdict)
        if line is None:
            continue
        if verdict.metric == "time.interval" and (verdict.value or 0.0) > NOISE:
            return Measurement((verdict.target,), line)
        groups.setdefault(line, []).append(verdict.target)
    if groups:
        line = max(groups, key=lambda one: len(groups[one]))
        return Measurement(tuple(dict.fromkeys(groups[line])), line)
    return _deeper(document)


def _line_for(document: RunDocument, verdict: Verdict) -> Text | None:
    """What to type to have a value for the verdict; None where nobody knows."""
    lines = backend_named(document.backend).tool_lines
    typed = verdict.advice[0] if verdict.advice else None
    advice = with_command(typed) if typed is not None else None
    if document.plan is None and not document.passes:
        counted = any(reading.scope.kind == "kernel" for reading in document.readings)
        if lines.count and document.kernels and not counted:
            return lines.count
        return lines.count_all if lines.count_all and verdict.code in ("not-collected", "deeper") else advice
    if verdict.metric == "time.interval":
        return _profile_line(document, "--budget SECONDS")
    if verdict.code == "not-asked" and typed is not None:
        return _profile_line(document, typed)
    depth = document.plan.depth if document.plan is not None else None
    counters = next((result for result in document.passes if result.name == "counters"), None)
    finished = counters is not None and counters.state == "finished"
    if depth in ("gate", "standard") and (
        verdict.code in ("not-collected", "deeper")
        or (finished and backend_named(document.backend).per_kernel and bool(document.kernels))
    ):
        standard = depth == "gate" and verdict.code == "deeper"
        return _profile_line(document, "--depth standard" if standard else "--depth full")
    return advice


def _deeper(document: RunDocument) -> Measurement | None:
    """What a deeper look at kernels tells, where every target is known."""
    backend = backend_named(document.backend)
    counted = any(
        reading.scope.kind == "kernel" and reading.value is not None for reading in document.readings
    )
    if not backend.per_kernel or not counted:
        return None
    depth = document.plan.depth if document.plan is not None else None
    if not document.instructions and (depth in ("gate", "standard") or not document.passes):
        tells = ("which instructions and source lines take the time",)
        line = backend.tool_lines.count_all
        return Measurement(tells, _profile_line(document, "--depth full") if document.passes else line)
    trace = document.trace
    if document.plan is None and not document.passes and (trace is None or trace.span is None):
        return Measurement(("how busy the GPU is",), backend.tool_lines.trace)
    return None


def _profile_line(document: RunDocument, options: str) -> Text:
    typed = command_line(document)
    return command(f"profkit profile {options} -- {typed if len(typed) <= _COMMAND else 'COMMAND'}")
