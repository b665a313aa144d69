"""What a step of GitHub Actions is told: its summary and its annotations. The nightly and compare share it."""

from __future__ import annotations

import os
from pathlib import Path

from profkit.core.files.safe_folder import check_links, make_parents
from profkit.reporting import markdown
from profkit.reporting.forges.ci import annotation_lines
from profkit.reporting.view import View

_BETWEEN = 1024  # bytes that are left free between two summaries of one step


def summary_file() -> Path | None:
    """The file that GitHub's runner shows as the step's summary; None where there is no such runner."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(name) if name else None


def append_summary(path: Path, view: View) -> str | None:
    """Append the view, within what GitHub shows of one step in all; why it could not be written, or None."""
    try:
        make_parents(path.parent)
        check_links(path)
        size = path.stat().st_size if path.exists() else 0
        with path.open("a", encoding="utf-8") as file:
            file.write(markdown.render(view, max(4096, markdown.STEP_SUMMARY - size - _BETWEEN)) + "\n")
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    return None


def annotations_in_step(view: View) -> str:
    """The lines for GitHub's runner; empty where it does not listen."""
    return annotation_lines(view) if os.environ.get("GITHUB_ACTIONS") == "true" else ""
