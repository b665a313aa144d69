"""The reports of runs, sweeps, evaluations and generations, beside their documents: each is whole or not there at all.

None of it raises but for a Ctrl-C: what was measured is kept, whatever becomes of its reports.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from profkit.core.files.safe_folder import write_whole
from profkit.core.types import EvaluationDocument, GenerationDocument, RunDocument, SweepDocument
from profkit.reporting import junit, markdown
from profkit.reporting.html import page
from profkit.reporting.view import View
from profkit.reporting.views import run
from profkit.reporting.views.kernels import evaluation, generation, sweep
from profkit.reporting.views.run_about import PAGE, read_extras

COMPARISON = ("comparison.json", "report.md", PAGE, "junit.xml")
COMMENT_LIMIT = 60_000  # bytes; GitHub takes a comment of 65,536 characters, and GitLab a note of 1,000,000
INDEX = "index.html"  # of a generation: what a folder of many pages is opened with


def write_page(folder: Path, document: RunDocument) -> str | None:
    """Write `folder/report.html`; why it is not there, in one line, or None."""
    return write_report(folder / PAGE, lambda: page.render(run.view(document, extras=read_extras(folder))))


def write_sweep_reports(folder: Path, document: SweepDocument) -> tuple[str, ...]:
    """Write report.md and report.html into `folder`; a line for each that is not there, with the reason."""
    return _write_both(folder, lambda: sweep.view(document, folder))


def write_evaluation_reports(
    folder: Path, document: EvaluationDocument, shown: Path | None = None
) -> tuple[str, ...]:
    """Return the same for an evaluation. `shown` is what its lines to type call the folder."""
    return _write_both(folder, lambda: evaluation.view(document, shown or folder))


def write_generation_reports(folder: Path, document: GenerationDocument) -> tuple[str, ...]:
    """Return the same for a generation, whose page is index.html."""
    return _write_both(folder, lambda: generation.view(document, folder), INDEX)


def write_comparison(
    folder: Path, document: str, shown: View, comment: View, *, strict: bool = False
) -> tuple[str, ...]:
    """Write all files of a comparison: for programs, for a reviewer, and for the forge that shows them."""
    makers = (
        lambda: document,
        lambda: markdown.render(comment, COMMENT_LIMIT),
        lambda: page.render(shown),
        lambda: junit.render([shown], strict=strict),
    )
    faults = (write_report(folder / name, make) for name, make in zip(COMPARISON, makers, strict=True))
    return tuple(fault for fault in faults if fault is not None)


def _write_both(folder: Path, make: Callable[[], View], name: str = PAGE) -> tuple[str, ...]:
    faults = (
        write_report(folder / "report.md", lambda: markdown.render(make())),
        write_report(folder / name, lambda: page.render(make())),
    )
    return tuple(fault for fault in faults if fault is not None)


def write_report(path: Path, make: Callable[[], str]) -> str | None:
    """Write what `make` returns; why the file is not there, in one line, or None."""
    try:
        write_whole(path, (make(),))
    except OSError as error:
        return f"cannot write {path}: {error.strerror or error}"
    except Exception as error:  # a fault of the report is no fault of what was measured
        return f"no {path.name}: profkit could not make it ({type(error).__name__}: {error})"
    return None
