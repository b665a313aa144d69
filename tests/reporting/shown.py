"""Results as the commands show them, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from profkit.core.types import Comparison, Night, Reading, RunDocument, Summary
from profkit.profiling.summarize import enrich_document, summarize_document
from profkit.reporting import junit, markdown, terminal
from profkit.reporting.forges import annotation_lines
from profkit.reporting.html import page
from profkit.reporting.view import DataTable, ItemList, Section, View, plain_text
from profkit.reporting.views import night, run
from profkit.reporting.views.comparison import view as comparison
from profkit.reporting.views.run_about import Extras
from profkit.reporting.views.summaries import concern_sections
from tests import documents


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
    return annotation_lines(night.view(one))


def run_text(
    document: RunDocument,
    folder: Path | None = None,
    *,
    details: bool = True,
    color: bool | None = None,
    width: int | None = None,
) -> str:
    """A run as `profkit profile` (short) or `profkit report` prints it."""
    return text_of(run.view(document, folder), details=details, color=color, width=width)


def run_markdown(document: RunDocument, limit: int | None = None) -> str:
    """A run as report.md."""
    return markdown.render(run.view(document), limit)


def run_junit(documents: Sequence[RunDocument], *, strict: bool = False) -> str:
    """Runs as JUnit XML."""
    return junit.render(list(map(run.view, documents)), strict=strict)


def run_page(document: RunDocument, extras: Extras | None = None) -> str:
    """A run as report.html."""
    return page.render(run.view(document, extras=extras))


def sections_of(document: RunDocument) -> dict[str, Section]:
    """What is said of each concern of a document, by what follows from it."""
    document = enrich_document(document)
    return concern_sections(replace(document, summaries=summarize_document(document)))


def concern_section(concern: str, *readings: Reading, **changes: object) -> Section:
    """What is said of a concern with these readings, of a run that has `changes` beside."""
    document = replace(documents.document(), summaries=(Summary(concern, readings),), **changes)  # type: ignore[arg-type]
    return concern_sections(document)[concern]


def notes_of(section: Section) -> tuple[str, ...]:
    """The notes below its tables."""
    return tuple(
        plain_text(item) for block in section.blocks if isinstance(block, ItemList) for item in block.items
    )


def tables_of(section: Section) -> tuple[DataTable, ...]:
    """Its tables."""
    return tuple(block for block in section.blocks if isinstance(block, DataTable))


def table_of(section: Section, title: str) -> DataTable:
    """The table of that title."""
    (found,) = [table for table in tables_of(section) if table.title == title]
    return found


def rows_of(section: Section, title: str) -> list[tuple[str, ...]]:
    """The rows of the table of that title, as plain texts."""
    return [tuple(map(plain_text, row)) for row in table_of(section, title).rows]


def cells_of(section: Section, title: str, row: int = 0) -> dict[str, str]:
    """A row of that table, by the titles of the columns."""
    titles = [column.title for column in table_of(section, title).columns]
    return dict(zip(titles, rows_of(section, title)[row], strict=True))
