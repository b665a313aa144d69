"""What a page shows beside run.json: the files that lie around it in the run's folder."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from profkit.model import RunDocument
from profkit.reports.html.part import Extras, RunFile

NAME = "report.html"
MOST = 5000  # files that are looked at: more is no run of ours


def extras_of(folder: Path | None, document: RunDocument) -> Extras:
    """The extras for the page of the run in `folder`; None, or a folder that cannot be read, gives none.

    Never raises: a page says less where something is missing, and is still a page.
    """
    return Extras(files=_files(folder) if folder is not None else ())


def _files(folder: Path) -> tuple[RunFile, ...]:
    """What lies in the folder by name, in the order of names; hidden files, links and the page itself are left out."""
    found: list[RunFile] = []
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(at, name)
            with contextlib.suppress(OSError):
                inside = path.relative_to(folder).as_posix()
                if not name.startswith(".") and not path.is_symlink() and inside != NAME:
                    found.append(RunFile(inside, path.stat().st_size))
        if len(found) >= MOST:
            break
    return tuple(found)
