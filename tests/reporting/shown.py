"""Results as the commands show them, for tests."""

from __future__ import annotations

from pathlib import Path

from profkit.core.types import Comparison, Night
from profkit.reporting import annotations as github
from profkit.reporting import junit, markdown, terminal
from profkit.reporting.html import page
from profkit.reporting.view import View
from profkit.reporting.views import comparison, night


def text_of(view: View, *, details: bool = True, color: bool | None = False, width: int | None = None) -> str:
    """A view for the terminal."""
    return terminal.render(view, details=details, color=color, width=width)


def comparison_text(found: Comparison, *, color: bool | None = None, width: int | None = None) -> str:
    """A comparison as `profkit compare` prints it."""
    return text_of(comparison.view(found), details=False, color=color, width=width)


def comparison_markdown(found: Comparison, limit: int | None = None) -> str:
    """A comparison as Markdown."""
    return markdown.render(comparison.view(found), limit)


def night_text(one: Night, folder: Path | None = None, *, width: int | None = None) -> str:
    """A night as `profkit nightly` prints it."""
    return text_of(night.view(one, folder), details=False, width=width)


def night_markdown(one: Night, limit: int | None = None) -> str:
    """A night as report.md."""
    return markdown.render(night.view(one), limit)


def night_page(one: Night) -> str:
    """A night as report.html."""
    return page.render(night.view(one))


def night_junit(one: Night, *, strict: bool = False) -> str:
    """A night as junit.xml."""
    return junit.render([night.view(one)], strict=strict)


def night_annotations(one: Night) -> str:
    """A night as GitHub's runner is told it."""
    return github.render(night.view(one))
