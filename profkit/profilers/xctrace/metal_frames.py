"""Frames of a process that draws. Of one that only computes, Metal numbers the command buffers so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from profkit.analysis.timeline.spans import Spans
from profkit.core.types import Spread
from profkit.profilers.xctrace.cells import Process
from profkit.profilers.xctrace.metal_host import Presents
from profkit.profilers.xctrace.metal_sums import spread

_DRAWS = "Fragment"


def frames_in(
    own: Mapping[str, Any],
    channels: Sequence[str],
    presents: Presents | None,
    whose: Collection[Process | None],
    part: Spans,
) -> Spread | None:
    """From the begin of one frame on the GPU to that of the next, both in one stretch of the part that counts.

    A frame is a `frame-number` that was presented; where the table that tells this is not there (`presents` None), each
    of a process that had work on the fragment channel: one that only computes draws nothing.
    """
    import numpy as np

    numbered = own["frame"] > 0
    if presents is None:
        drawing = [number for number, name in enumerate(channels) if name == _DRAWS]
        if not np.isin(own["channel"], drawing).any():
            return None
    else:
        shown = set().union(*(presents.frames.get(process, set()) for process in whose))
        numbered &= np.isin(own["frame"], sorted(shown))
    frame, start = own["frame"][numbered], own["start"][numbered]
    order = np.lexsort((start, frame))
    frame, start = frame[order], start[order]
    if not len(frame):
        return None
    begins = np.sort(start[np.flatnonzero(np.r_[True, frame[1:] != frame[:-1]])])
    begins = begins[part.holds(begins)]
    stretch = np.searchsorted(part.begins, begins, side="right")
    return spread(np.diff(begins)[stretch[1:] == stretch[:-1]])
