"""The places of a program of machine code: where its processor time goes, and the lines at which it waits."""

from __future__ import annotations

import re
from dataclasses import replace

from profkit.analysis.hot_spots.rows import (
    MAJORITY,
    MAX_SPOTS,
    MIN_SHARE,
    SURE,
    WAITS,
    Row,
    group_rows,
    make_spot,
)
from profkit.core.types import Beneath, CodeSpot, LineSamples, RunDocument, SampledTime


def native_spots(document: RunDocument, sampled: SampledTime) -> tuple[list[CodeSpot], float]:
    """Return the places of a compiled program and its wall seconds.

    The samples are of processor time, so the time that the program waited is a separate place.
    """
    split = document.time_split
    waiting = split.waiting / split.wall if split is not None and split.waiting and split.wall > 0 else 0.0
    wall = split.wall if split is not None else sampled.wall
    rows = [Row(line, {"native": line.main_cpu}) for line in sampled.lines]
    spots: list[CodeSpot] = []
    for group in group_rows(rows, sampled.cpu / (1 - waiting) if waiting < 1 else 0.0):
        share = (1 - waiting) * sum(row.seconds for row in group) / sampled.cpu
        if share >= MIN_SHARE and len(spots) < MAX_SPOTS:
            spot = make_spot(document, group, share, share * wall)
            starts = starts_of(sampled, group[0].line)
            spots.append(replace(spot, kind="native", under=_native_beneath(group[0].line), starts=starts))
    placed = _native_waits(document, sampled, waiting, wall)
    left = waiting - sum(spot.share for spot in placed)
    if left >= MIN_SHARE:
        placed.append(CodeSpot(left, left * wall, "waiting"))
    return spots + placed, wall


def starts_of(sampled: SampledTime, line: LineSamples) -> int:
    """Return how many processes were seen of a program that is a place by itself; 0 for a place within the program."""
    if line.file is not None or line.below or line.callees:
        return 0
    return next((program.starts for program in sampled.programs if program.name == line.function), 0)


def program_spots(document: RunDocument, sampled: SampledTime, beside: float, wall: float) -> list[CodeSpot]:
    """Return the programs that a shell started beside those of Python, which take `beside` (0..1) of the wall time."""
    split = document.time_split
    if split is None or split.wall <= 0 or sampled.cpu <= 0:
        return []
    spots = []
    for line in sampled.lines:
        starts = starts_of(sampled, line)
        share = min(line.main_cpu / sampled.cpu * min(1.0, (split.cpu or 0.0) / split.wall), beside)
        if starts and not is_python(line.function) and share >= MIN_SHARE:
            row = Row(line, {"native": line.main_cpu})
            spots.append(
                replace(make_spot(document, [row], share, share * wall), kind="native", starts=starts)
            )
            beside -= share
    return spots


def is_python(name: str) -> bool:
    """Return whether a program's file has the name of an interpreter of Python."""
    return re.fullmatch(r"(python|pypy)[\d.]*", name) is not None


def _native_waits(document: RunDocument, sampled: SampledTime, waiting: float, wall: float) -> list[CodeSpot]:
    """Return the lines at which a compiled program waits, together no more than it waited (0..1 of the wall time).

    That is without the time in which another thread worked while the main one waited.
    """
    if sampled.span <= 0 or waiting < MIN_SHARE:
        return []
    whole = sum(line.main_wall for line in sampled.waiting) / sampled.span
    scale = min(1.0, waiting / whole) / sampled.span if whole > 0 else 0.0
    spots = []
    for line in sampled.waiting[:MAX_SPOTS]:
        share = scale * line.main_wall
        if share >= MIN_SHARE:
            row = Row(line, {WAITS.get(kind, "waiting"): seconds for kind, seconds in line.waits.items()})
            # One call that stores data waits several times, and not all calls were seen.
            least = row.kind == "sync"
            each = line.each_wait if not least else None
            under = Beneath(line.callees[0].function, None, line.waited, each)
            spot = make_spot(document, [row], share, share * wall)
            spots.append(replace(spot, kind=row.kind, under=under, partial=least))
    return spots


def _native_beneath(line: LineSamples) -> Beneath | None:
    """Return what a line of compiled code calls, by where its samples are and what the line calls of a library."""
    public = next((inner.function for inner in line.inside if inner.value >= SURE * line.main_cpu), None)
    if line.own < MAJORITY * line.main_cpu:
        return Beneath(line.callees[0].function, line.callees[0].file, public=public)
    return Beneath(public) if public is not None else None
