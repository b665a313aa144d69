"""An nsys export as what happened when, for whoever shows it on a time line. `sqlite.py` sums the same up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.profilers.nsys.database import Database, opened
from profkit.profilers.nsys.sqlite import be_ours

if TYPE_CHECKING:
    from profkit.analysis.timeline.records import Recording


@contextmanager
def open_recording(path: Path) -> Iterator[Recording]:
    """All activities, calls and ranges of the export at `path`, read while they are taken.

    Raises UnreadableReport where the file is damaged, or not nsys'. Its rows are gone through once before, so that
    nothing has been written yet when it turns out that they have to be sorted.
    """
    with opened(path) as database:
        be_ours(path, database)
        yield _recording(database, sort=not _in_order(database))


def _in_order(database: Database) -> bool:
    from profkit.analysis.timeline.records import Tables
    from profkit.profilers.nsys.columns import Activities
    from profkit.profilers.nsys.sorted_blocks import OutOfOrder

    once = Activities(database, Tables(), careful=True)
    try:
        for _ in once.blocks():
            pass
        for _ in once.calls():
            pass
    except OutOfOrder:
        return False
    return True


def _recording(database: Database, *, sort: bool) -> Recording:
    from profkit.analysis.timeline.records import Recording, Tables
    from profkit.profilers.nsys.columns import Activities, NotNumbers
    from profkit.profilers.nsys.ranges import read_profiler, read_ranges
    from profkit.profilers.nsys.session import was_captured

    tables = Tables()
    try:
        activities = Activities(database, tables, sort, careful=True)
        ranges, _ = read_ranges(database, activities.processes, activities.threads)
    except NotNumbers:
        raise sqlite3.DatabaseError("its columns hold no numbers") from None
    return Recording(
        "nsys",
        activities.blocks(),
        activities.calls(),
        tables,
        ranges,
        read_profiler(database),
        was_captured(database),
    )
