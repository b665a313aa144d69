"""Blocks of rows in the order of their starts: one stream put in order, several made one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from profkit.analysis.timeline.records import Columns


class OutOfOrder(Exception):
    """A table is not in the order of its starts; it has to be sorted."""


def in_order(blocks: Iterable[Columns]) -> Iterator[Columns]:
    """Each block sorted, as nsys leaves a table in all but a few places.

    Raises OutOfOrder where a block begins before the one before it ends.
    """
    import numpy as np

    last = -(1 << 62)
    for block in blocks:
        starts = block["start"]
        if len(starts):
            if (starts[1:] < starts[:-1]).any():
                block = block[np.argsort(starts, kind="stable")]
            if int(block["start"][0]) < last:
                raise OutOfOrder
            last = int(block["start"][-1])
        yield block


def merged(streams: list[Iterator[Columns]]) -> Iterator[Columns]:
    """Several sorted streams as one. What is given out lies before everything that is still to come."""
    import numpy as np

    waiting: list[Columns | None] = [next(stream, None) for stream in streams]
    while True:
        there = [block for block in waiting if block is not None and len(block)]
        for at, block in enumerate(waiting):
            if block is not None and not len(block):
                waiting[at] = next(streams[at], None)
                break
        else:
            if not there:
                return
            horizon = min(int(block["start"][-1]) for block in there)
            parts = []
            for at, block in enumerate(waiting):
                if block is None:
                    continue
                cut = int(np.searchsorted(block["start"], horizon, side="right"))
                parts.append(block[:cut])
                waiting[at] = block[cut:] if cut < len(block) else next(streams[at], None)
            joined = np.concatenate(parts)
            yield joined[np.argsort(joined["start"], kind="stable")]
