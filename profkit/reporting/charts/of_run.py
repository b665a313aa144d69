"""The flame graphs of a run. Text formats leave them out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profkit.analysis.stacks.files import flame_of, read_speedscope
from profkit.core.errors import UnreadableReport
from profkit.core.types import Stacks
from profkit.reporting.charts.marks import FlameGraph
from profkit.reporting.view import Section

_FLAMES = 3  # sampled events that are drawn


def flame_section(extras: Extras) -> Iterator[Section]:
    """The fullest flame graphs; nothing where nothing was sampled."""
    flames = [flame for stacks in extras.stacks if (flame := flame_of(stacks)) is not None]
    if flames:
        graphs = tuple(map(FlameGraph, flames[:_FLAMES]))
        yield Section("Flame graph", graphs, anchor="flame-graph", repeats=True)


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
