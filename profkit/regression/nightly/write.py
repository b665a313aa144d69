"""A night's reports: the four files in its folder, and what others are told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from profkit.core.errors import MachineError, ProfkitError
from profkit.core.types import Night
from profkit.regression.nightly.config import NotifySpec
from profkit.regression.nightly.document import to_text
from profkit.regression.nightly.state import write_text
from profkit.reporting import junit, markdown
from profkit.reporting.annotations import render as render_annotations
from profkit.reporting.views.night import view


def write_reports(folder: Path, night: Night, *, strict: bool = False, html: bool = True) -> list[str]:
    """night.json, report.md, junit.xml and report.html into `folder`; what could not be written, in words."""
    made: dict[str, Callable[[], str]] = {
        "night.json": lambda: to_text(night),
        "report.md": lambda: markdown.render(view(night)),
        "junit.xml": lambda: junit.render([view(night)], strict=strict),
    }
    if html:
        from profkit.reporting.html import page  # here: its templates cost 50 ms

        made["report.html"] = lambda: page.render(view(night))
    troubles = []
    for name, make in made.items():
        try:
            write_text(folder / name, make())
        except ProfkitError as fault:
            troubles.append(fault.message)
    return troubles


def notify(spec: NotifySpec, night: Night, *, strict: bool = False) -> list[str]:
    """The files for others; what could not be written, in words: a broken notice costs no night."""
    troubles = []
    if spec.junit is not None:
        try:
            write_text(spec.junit, junit.render([view(night)], strict=strict))
        except ProfkitError as fault:
            troubles.append(fault.message)
    summary = spec.summary or _step_summary()
    if summary is not None:
        try:
            _append(summary, night)
        except ProfkitError as fault:
            troubles.append(fault.message)
    return troubles


def annotated(spec: NotifySpec, night: Night) -> str:
    """The lines for GitHub's runner; empty where it does not listen."""
    listening = spec.annotations == "always" or (
        spec.annotations == "auto" and os.environ.get("GITHUB_ACTIONS") == "true"
    )
    return render_annotations(view(night)) if listening else ""


def _step_summary() -> Path | None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(path) if path else None


def _append(path: Path, night: Night) -> None:
    """Behind what is there, within what GitHub shows of one step in all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.stat().st_size if path.exists() else 0
        with path.open("a", encoding="utf-8") as file:
            file.write(markdown.render(view(night), max(4096, markdown.STEP_SUMMARY - there - 1024)) + "\n")
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror}") from error
