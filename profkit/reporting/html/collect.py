"""What a page shows beside run.json: the files that lie around it in the run's folder."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from profkit.analysis.stacks.files import read_speedscope
from profkit.core.errors import UnreadableReport
from profkit.core.types import RunDocument, Stacks
from profkit.reporting.html.part import Extras, RunFile
from profkit.runtime.passes.read_tracemalloc import Allocations, read_tracemalloc

NAME = "report.html"
MOST = 5000  # files that are looked at: more is no run of ours


def extras_of(folder: Path | None, document: RunDocument) -> Extras:
    """The extras for the page of the run in `folder`; None, or a folder that cannot be read, gives none.

    Never raises: a page says less where something is missing, and is still a page.
    """
    if folder is None:
        return Extras()
    return Extras(files=_files(folder), stacks=_stacks(folder), allocations=_allocations(folder))


def _stacks(folder: Path) -> tuple[Stacks, ...]:
    """What the trace sampled, the event with most weight first, of the file that it left for flame graph viewers."""
    with contextlib.suppress(UnreadableReport):
        found = read_speedscope(folder / "artifacts" / "trace.speedscope.json")
        return tuple(sorted(found, key=lambda stacks: -len(stacks.weights)))
    return ()


def _allocations(folder: Path) -> Allocations | None:
    with contextlib.suppress(UnreadableReport):
        return read_tracemalloc(folder / "artifacts" / "tracemalloc.json")
    return None


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
