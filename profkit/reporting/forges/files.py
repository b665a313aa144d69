"""The folder of a comparison: for programs, for a reviewer, and for the forge that shows them. Each file is whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from profkit.core.types import ComparedSuite, Comparison, SuiteOutcome
from profkit.reporting import json, junit, markdown
from profkit.reporting.extras import PAGE
from profkit.reporting.forges import badge, code_quality, sarif
from profkit.reporting.forges.regressions import regressions
from profkit.reporting.report_files import write_report
from profkit.reporting.view import View
from profkit.reporting.views import comparison as one_view
from profkit.reporting.views.comparison import comment as one_comment
from profkit.reporting.views.comparison import suite as suite_view
from profkit.reporting.views.comparison.sizes import leading_change, size_text

FILES = (
    "comparison.json",
    "report.md",
    PAGE,
    "results.sarif",
    "code-quality.json",
    "junit.xml",
    "badge.json",
)


def write_comparison(
    folder: Path, found: Comparison, changed_file: str | None = None, *, strict: bool = False
) -> tuple[str, ...]:
    """Write all files of one comparison; a line for each that is not there, with the reason."""
    return _write(
        folder,
        lambda: json.comparison(found) + "\n",
        lambda: one_view.view(found),
        lambda: one_comment.comment(found),
        [("", found)],
        lambda: _badge_of(found.outcome, [("", found)]),
        changed_file,
        strict=strict,
    )


def write_suite(
    folder: Path, suite: ComparedSuite, changed_file: str | None = None, *, strict: bool = False
) -> tuple[str, ...]:
    """The same of several workloads."""
    compared = [(w.name, w.comparison) for w in suite.workloads if w.comparison is not None]
    return _write(
        folder,
        lambda: json.comparisons(suite) + "\n",
        lambda: suite_view.view(suite),
        lambda: suite_view.comment(suite),
        compared,
        lambda: _badge_of(suite.outcome, compared),
        changed_file,
        strict=strict,
    )


def _write(
    folder: Path,
    document: Callable[[], str],
    view: Callable[[], View],
    comment: Callable[[], View],
    compared: Sequence[tuple[str, Comparison]],
    badge_text: Callable[[], str],
    changed_file: str | None,
    *,
    strict: bool,
) -> tuple[str, ...]:
    from profkit.reporting.html import page  # here: its templates cost 50 ms

    makers: Mapping[str, Callable[[], str]] = {
        "comparison.json": document,
        "report.md": lambda: markdown.render(comment(), one_comment.LIMIT),
        PAGE: lambda: page.render(view()),
        "results.sarif": lambda: sarif.render(regressions(compared, changed_file)),
        "code-quality.json": lambda: code_quality.render(regressions(compared, changed_file)),
        "junit.xml": lambda: junit.render([view()], strict=strict),
        "badge.json": badge_text,
    }
    faults = (write_report(folder / name, makers[name]) for name in FILES)
    return tuple(fault for fault in faults if fault is not None)


def _badge_of(outcome: SuiteOutcome, compared: Sequence[tuple[str, Comparison]]) -> str:
    """The word, and of the worst workload how much and its name."""
    word = suite_view.label_of(outcome).word.lower()
    first = next((pair for pair in compared if pair[1].outcome == outcome), None)
    lead = leading_change(first[1]) if first is not None and outcome in ("regressed", "improved") else None
    if first is None or lead is None:
        return badge.render(outcome, word)
    size = size_text(lead).partition(" [")[0]
    return badge.render(outcome, word, f"{size} ({first[0]})" if first[0] else size)
