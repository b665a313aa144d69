"""Where the time goes, as shares of a whole: of a device's time line, of its kernels, or of a CPU's samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.model import Profile, RunDocument
from profkit.summaries.gpu_time import limits
from profkit.summaries.kernels import KernelRow
from profkit.summaries.trace import is_traced
from profkit.words import percent, quantity

MOST = 40  # parts that are named; what is smaller than these goes together


@dataclass(frozen=True)
class Part:
    """A part of the whole, 0..1; `idle` where nothing was done in it."""

    name: str
    share: float
    told: str
    idle: bool = False


@dataclass(frozen=True)
class Whole:
    """A time and what it is made of. `seconds` is None where the parts are of samples or counts."""

    title: str
    seconds: float | None
    parts: tuple[Part, ...]


def where_time_goes(document: RunDocument, rows: Sequence[KernelRow]) -> tuple[Whole, ...]:
    """The wholes that a document tells of, the widest first; empty where it tells of none."""
    found = [_time_line(document, rows), _kernels(rows)] if rows else []
    found += [_libraries(profile) for profile in document.profiles]
    return tuple(whole for whole in found if whole is not None and whole.parts)


def _time_line(document: RunDocument, rows: Sequence[KernelRow]) -> Whole | None:
    trace = document.trace
    if trace is None or not trace.span:
        return None
    waiting = {"the host", "idle", "nothing"}
    words = {
        "the host": "the host had launched nothing",
        "idle": "idle with work queued",
        "nothing": "idle",
        "copies": "only copies",
    }
    parts = tuple(
        Part(
            words.get(name, name),
            share,
            f"{words.get(name, name)}: {percent(100 * share)} % of {quantity(trace.span, 's')}",
            name in waiting,
        )
        for name, share in limits(trace, rows)[:MOST]
    )
    return Whole("The GPU's time, by what limits it", trace.span, parts)


def _kernels(rows: Sequence[KernelRow]) -> Whole | None:
    timed = [row for row in rows if row.share]
    total = sum(row.time.total for row in timed if row.time is not None) or None
    parts = [
        Part(row.label, row.share or 0.0, f"{row.label}: {percent(100 * (row.share or 0.0))} %")
        for row in timed[:MOST]
    ]
    rest = sum(row.share or 0.0 for row in timed[MOST:])
    if rest > 0:
        parts.append(
            Part(f"{len(timed) - MOST} smaller ones", rest, f"smaller ones: {percent(100 * rest)} %")
        )
    return Whole("The kernels' time, by kernel", total, tuple(parts)) if parts else None


def _libraries(profile: Profile) -> Whole | None:
    """Samples by library, of a profile of a CPU."""
    if not (is_traced(profile) and profile.title.endswith(" by library")) or profile.total <= 0:
        return None
    spots = [spot for spot in profile.hotspots if spot.own > 0]
    parts = [
        Part(spot.function, spot.own / profile.total, f"{spot.function}: {quantity(spot.own, profile.unit)}")
        for spot in spots[:MOST]
    ]
    seconds = profile.total if profile.unit == "s" else None
    return Whole("The CPU's time, by library", seconds, tuple(parts))
