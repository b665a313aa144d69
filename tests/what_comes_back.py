"""Of the run that a test made: all would come back from another machine, but the pages that are made anew."""

from __future__ import annotations

from pathlib import Path

from profkit.backends.artifacts import run_files
from profkit.execution.places.files import send_folder

PAGES = {"report.html", "report.md"}


def check_all_comes_back(run: Path) -> None:
    """Each file that its passes left has a name that is accepted."""
    left = send_folder(run, run_files(), lambda name, piece: None)
    assert set(left) <= PAGES, f"no pass says that it leaves {set(left) - PAGES}"
