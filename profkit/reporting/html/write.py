"""The page of a run, written beside its run.json."""

from __future__ import annotations

from pathlib import Path

from profkit.core.types import RunDocument
from profkit.core.whole_files import write_whole
from profkit.reporting.extras import PAGE, read_extras
from profkit.reporting.html.page import render
from profkit.reporting.views import run


def write_page(folder: Path, document: RunDocument) -> str | None:
    """Write `folder/report.html` whole or not at all; why there is none, in one line, or None where it is there.

    Never raises but for a Ctrl-C: a run is complete when it was measured and judged, whatever becomes of its page.
    """
    try:
        write_whole(folder / PAGE, (render(run.view(document, extras=read_extras(folder))),))
    except OSError as error:
        return f"cannot write {folder / PAGE}: {error.strerror or error}"
    except Exception as error:  # a fault of the page is no fault of the run
        return f"profkit could not make it ({type(error).__name__}: {error})"
    return None
