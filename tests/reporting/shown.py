"""Results as they are shown, for tests: the view of each kind in each format."""

from __future__ import annotations

from profkit.core.types import Comparison
from profkit.reporting import markdown, terminal
from profkit.reporting.views import comparison


def comparison_text(found: Comparison, *, color: bool | None = None, width: int | None = None) -> str:
    """A comparison as `profkit compare` prints it."""
    return terminal.render(comparison.view(found), details=False, color=color, width=width)


def comparison_markdown(found: Comparison, limit: int | None = None) -> str:
    """A comparison as Markdown."""
    return markdown.render(comparison.view(found), limit)
