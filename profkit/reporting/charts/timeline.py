"""A timeline as a block of a view: its marks, and the words that a page shows of them."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.core.types import MarkKind, Timeline
from profkit.reporting.view import Block, DataTable, Text


@dataclass(frozen=True)
class TimelineGraph(Block):
    """Lanes of marks over time; only a page has it.

    `texts` has two lines for each label of the timeline: what a mark is, and where it is from.
    """

    timeline: Timeline
    texts: tuple[tuple[str, str], ...]
    lanes: tuple[str, ...]  # their names,
    activity: tuple[str, ...]  # and those of the rows of the strip above
    kinds: tuple[tuple[MarkKind, str], ...]  # that are in it, with what they mean
    summary: str  # what a person who does not see it is told
    table: DataTable  # the same in short
    note: Text = ""
