"""The top of a run's page: what was profiled, on what, when, and in which state it ended."""

from __future__ import annotations

from profkit.core.formatting import moment
from profkit.core.types import RunDocument
from profkit.reporting.html.part import Extras
from profkit.reporting.html.templates import filled
from profkit.reporting.order import command, gpu_lines, machine_line, time_line

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
        facts.append(("Started", moment(document.started)))
    if (commit := _commit(document)) is not None:
        facts.append(("Commit", commit))
    return filled(
        "head.html.j2",
        document=document,
        command=command(document),
        state=STATES.get(document.state),
        time=_time(document, extras),
        facts=facts,
    )


def _time(document: RunDocument, extras: Extras) -> str | None:
    """How long one iteration takes, as HTML that leads to its source."""
    told = time_line(document)
    of_time = (r for s in document.summaries if s.concern == "time" for r in s.readings)
    median = next((r for r in of_time if r.metric == "time.median" and r.value is not None), None)
    if told is None or median is None:
        return None
    return extras.sources.link(median, told)


def _commit(document: RunDocument) -> str | None:
    """`1a2b3c4d5e6f on main, with changes that are not committed`; None where the run was not asked."""
    revision = document.revision
    if revision is None:
        return None
    if revision.commit is None:
        return f"not known: {revision.reason}" if revision.reason else None
    branch = f" on {revision.branch}" if revision.branch else ""
    return revision.commit[:12] + branch + (", with changes that are not committed" if revision.dirty else "")
