"""What a run's page shows that run.json does not hold: files beside it, and sampled stacks."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from profkit.analysis.stacks.files import read_speedscope
from profkit.core.errors import UnreadableReport
from profkit.core.types import Stacks

PAGE = "report.html"


@dataclass(frozen=True)
class Extras:
    """All of it may be missing: a page is made of what is there."""

    folder: Path | None = None  # where the page will lie: it links to the files that are there
    stacks: tuple[Stacks, ...] = ()  # for flame graphs: Python's, then native; the fullest first

    def has(self, path: str) -> bool:
        """Whether the file lies beside the page."""
        try:
            return self.folder is not None and (self.folder / path).is_file()
        except (OSError, ValueError):
            return False


def read_extras(folder: Path | None) -> Extras:
    """The extras of the run in `folder`; None, or a folder that cannot be read, has none. Never raises."""
    if folder is None:
        return Extras()
    stacks: list[Stacks] = []
    for name in ("stacks", "trace"):
        with contextlib.suppress(UnreadableReport):
            sampled = read_speedscope(folder / "artifacts" / f"{name}.speedscope.json")
            stacks += sorted(sampled, key=lambda one: -len(one.weights))
    return Extras(folder, tuple(stacks))
