"""What a run's page shows that run.json does not hold: files beside it, sampled stacks, allocations line by line."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from profkit.analysis.stacks.files import read_speedscope
from profkit.core.errors import UnreadableReport
from profkit.core.types import Stacks

if TYPE_CHECKING:
    from profkit.core.types import Allocations

PAGE = "report.html"
_MOST = 5000  # files that are looked at: more is no run of ours


@dataclass(frozen=True)
class RunFile:
    """One file of a run: its path relative to the run's folder, and its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class Extras:
    """All of it may be missing: a page is made of what is there."""

    files: tuple[RunFile, ...] = ()
    stacks: tuple[Stacks, ...] = ()  # for flame graphs: Python's, then native; the fullest first
    allocations: Allocations | None = None  # what tracemalloc saw

    @property
    def paths(self) -> frozenset[str]:
        """The files that the page may link to."""
        return frozenset(file.path for file in self.files)


def read_extras(folder: Path | None) -> Extras:
    """The extras of the run in `folder`; None, or a folder that cannot be read, has none. Never raises."""
    if folder is None:
        return Extras()
    from profkit.runtime.passes.read import read_tracemalloc

    stacks: list[Stacks] = []
    allocations = None
    for name in ("stacks", "trace"):
        with contextlib.suppress(UnreadableReport):
            sampled = read_speedscope(folder / "artifacts" / f"{name}.speedscope.json")
            stacks += sorted(sampled, key=lambda one: -len(one.weights))
    with contextlib.suppress(UnreadableReport):
        allocations = read_tracemalloc(folder / "artifacts" / "tracemalloc.json")
    return Extras(_files(folder), tuple(stacks), allocations)


def _files(folder: Path) -> tuple[RunFile, ...]:
    """What lies in the folder, in the order of names; hidden files, the page itself and what is none are left out."""
    files: list[RunFile] = []
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(at, name)
            with contextlib.suppress(OSError):
                inside = path.relative_to(folder).as_posix()
                status = path.lstat()
                if not name.startswith(".") and inside != PAGE and S_ISREG(status.st_mode):
                    files.append(RunFile(inside, status.st_size))
        if len(files) >= _MOST:
            break
    return tuple(files)
