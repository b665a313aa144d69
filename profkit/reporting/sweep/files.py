"""The reports of a sweep, beside its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from profkit.core.types import SweepDocument
from profkit.core.whole_files import write_whole


def load() -> None:
    """Load what renders while there is time: it takes up to a second, and is needed when nothing else is left to do."""
    from profkit.reporting.sweep import html, markdown, terminal  # noqa: F401


def write_reports(folder: Path, document: SweepDocument) -> tuple[str, ...]:
    """Write report.md and report.html into `folder`, each whole or not at all; why one is missing, in a line for each.

    Never raises but for a Ctrl-C: the cases are measured and kept, whatever becomes of their reports.
    """
    from profkit.reporting.sweep import html, markdown

    made: Mapping[str, Callable[[], str]] = {
        "report.md": lambda: markdown.render(document),
        "report.html": lambda: html.render(document),
    }
    return tuple(why for name, make in made.items() if (why := _written(folder / name, make)) is not None)


def _written(path: Path, make: Callable[[], str]) -> str | None:
    try:
        write_whole(path, (make(),))
    except OSError as error:
        return f"cannot write {path}: {error.strerror or error}"
    except Exception as error:  # a fault of the report is no fault of the sweep
        return f"no {path.name}: profkit could not make it ({type(error).__name__}: {error})"
    return None
