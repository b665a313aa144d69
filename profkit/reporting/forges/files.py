"""The folder of a comparison: for programs, for a reviewer, and for the forge that shows them. Each file is whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from profkit.core.types import ComparedSuite, Comparison
from profkit.reporting import json, junit, markdown
from profkit.reporting.extras import PAGE
from profkit.reporting.report_files import write_report
from profkit.reporting.view import View
from profkit.reporting.views import comparison as one_view
from profkit.reporting.views.comparison import comment as one_comment
from profkit.reporting.views.comparison import suite as suite_view

FILES = ("comparison.json", "report.md", PAGE, "junit.xml")


def write_comparison(folder: Path, found: Comparison, *, strict: bool = False) -> tuple[str, ...]:
    """Write all files of one comparison; a line for each that is not there, with the reason."""
    return _write(
        folder,
        lambda: json.comparison(found) + "\n",
        lambda: one_view.view(found),
        lambda: one_comment.comment(found),
        strict=strict,
    )


def write_suite(folder: Path, suite: ComparedSuite, *, strict: bool = False) -> tuple[str, ...]:
    """The same of several workloads."""
    return _write(
        folder,
        lambda: json.comparisons(suite) + "\n",
        lambda: suite_view.view(suite),
        lambda: suite_view.comment(suite),
        strict=strict,
    )


def _write(
    folder: Path,
    document: Callable[[], str],
    view: Callable[[], View],
    comment: Callable[[], View],
    *,
    strict: bool,
) -> tuple[str, ...]:
    from profkit.reporting.html import page  # here: its templates cost 50 ms

    makers: Mapping[str, Callable[[], str]] = {
        "comparison.json": document,
        "report.md": lambda: markdown.render(comment(), one_comment.LIMIT),
        PAGE: lambda: page.render(view()),
        "junit.xml": lambda: junit.render([view()], strict=strict),
    }
    faults = (write_report(folder / name, makers[name]) for name in FILES)
    return tuple(fault for fault in faults if fault is not None)
