"""A set of time over a window, slice by slice: what a chart of it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from profkit.analysis.timeline.spans import clipped

if TYPE_CHECKING:
    from profkit.analysis.timeline.spans import Spans

SLICES = 120  # of a window: a screen shows no more, and a document of them stays small
FIGURES = 4  # of a share


def shares(spans: Spans, begin: int, end: int, count: int = SLICES) -> tuple[float, ...]:
    """The share (0..1) of each of `count` equal slices of [begin, end) in ns that is in the set; empty of no time."""
    return tuple(round(held, FIGURES) for held in _held(spans, begin, end, count))


def states(named: Mapping[str, Spans], begin: int, end: int, count: int = SLICES) -> tuple[str, ...]:
    """For each slice the name that held for most of it, "" where none did; empty where there are no names."""
    held = {name: _held(spans, begin, end, count) for name, spans in named.items()}
    if not any(held.values()):
        return ()
    most = [max(held, key=lambda name: held[name][place]) for place in range(count)]
    return tuple(name if held[name][place] > 0 else "" for place, name in enumerate(most))


def _held(spans: Spans, begin: int, end: int, count: int) -> list[float]:
    import numpy as np

    if end <= begin or count < 1:
        return []
    edges = np.round(np.linspace(begin, end, count + 1)).astype(np.int64)
    inside = clipped(edges[:-1], edges[1:], spans)
    lengths = np.maximum(edges[1:] - edges[:-1], 1)
    return [float(share) for share in np.minimum(1.0, inside / lengths)]
