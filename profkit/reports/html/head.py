"""The top of a run's page: what was profiled, on what, when, and in which state it ended."""

from __future__ import annotations

from profkit.model import RunDocument
from profkit.reports.html.part import Extras
from profkit.reports.html.templates import filled
from profkit.reports.order import command, gpu_lines, machine_line, time_line

STATES = {
    "running": "This run goes on, or its process died: what was finished stands below.",
    "interrupted": "This run was interrupted: what was finished stands below.",
    "failed": "This run failed: what was finished stands below.",
}


def head(document: RunDocument, extras: Extras) -> str:
    """The heading and the facts below it, as HTML."""
    facts: list[tuple[str, str]] = []
    gpu = next((s.headline for s in document.summaries if s.concern == "gpu"), None)
    if gpu is not None:
        facts.append(("GPU", gpu))
    facts += [("Device", line) for line in gpu_lines(document)]
    if (machine := machine_line(document)) is not None:
        facts.append(("Machine", machine))
    if document.started:
        facts.append(("Started", document.started))
    return filled(
        "head.html.j2",
        document=document,
        command=command(document),
        state=STATES.get(document.state),
        time=time_line(document),
        facts=facts,
    )
