"""Where the time goes, as shares of a whole: of a device's time line, of its kernels, or of a CPU's samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.analysis.summaries.gpu_time import limits
from profkit.analysis.summaries.kernels import KernelRow
from profkit.analysis.summaries.trace import is_traced
from profkit.core.formatting import percent, quantity
from profkit.core.types import RUN, GpuTrace, Profile, Reading, RunDocument, Source

MOST = 40  # parts that are named; what is smaller than these goes together

# How the shares came about.
BUSY = "(busy - only copying) / span * time of these kernels / time of all kernels"
LIMITED = {
    "the host": "(span - busy) / span * share of the idle time in which nothing was launched",
    "idle": "(span - busy) / span * share of the idle time in which work was queued",
    "nothing": "(span - busy) / span",
    "copies": "only copying / span",
}
OF_KERNELS = "its time / the time of all kernels"


@dataclass(frozen=True)
class Part:
    """A part of the whole, 0..1; `idle` where nothing was done in it."""

    name: str
    share: float
    told: str
    idle: bool = False
    reading: Reading | None = None  # how its share came about


@dataclass(frozen=True)
class Whole:
    """A time and what it is made of. `seconds` is None where the parts are of samples or counts."""

    title: str
    seconds: float | None
    parts: tuple[Part, ...]


def where_time_goes(document: RunDocument, rows: Sequence[KernelRow]) -> tuple[Whole, ...]:
    """The wholes that a document tells of, the widest first; empty where it tells of none."""
    found = [_time_line(document, rows), _kernels(document, rows)] if rows else []
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
            _told_by(trace, share, _how(trace, name)),
        )
        for name, share in limits(trace, rows)[:MOST]
    )
    return Whole("The GPU's time, by what limits it", trace.span, parts)


def _how(trace: GpuTrace, name: str) -> str:
    if trace.copying is None and name not in ("the host", "idle", "nothing"):
        return "its time / time of all kernels and copies * busy / span"
    return LIMITED.get(name, BUSY)


def _told_by(trace: GpuTrace, share: float, formula: str) -> Reading:
    """A share of the time as a reading: it leads to the tool that timed it and to how it was computed."""
    return Reading("GPU time, share", 100 * share, "%", "measured", RUN, Source(trace.tool, formula=formula))


def _kernels(document: RunDocument, rows: Sequence[KernelRow]) -> Whole | None:
    timed = [row for row in rows if row.share]
    total = sum(row.time.total for row in timed if row.time is not None) or None
    trace = document.trace

    def part(name: str, told: str, share: float) -> Part:
        reading = _told_by(trace, share, OF_KERNELS) if trace is not None else None
        return Part(name, share, f"{told}: {percent(100 * share)} %", reading=reading)

    parts = [part(row.label, row.label, row.share or 0.0) for row in timed[:MOST]]
    rest = sum(row.share or 0.0 for row in timed[MOST:])
    if rest > 0:
        parts.append(part(f"{len(timed) - MOST} smaller ones", "smaller ones", rest))
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
