"""Times cut into their parts, as bars: a device's by what limits it, kernels, encoders, libraries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.summaries.cpu import is_sampled
from profkit.analysis.summaries.gpu_time import COPIES, HOST, IDLE, QUEUED, time_by_limit
from profkit.analysis.summaries.kernels import KernelRow
from profkit.analysis.summaries.metal_readings import (
    INTERVALS,
    STATES,
    TOOL,
    idle_causes,
    idle_of,
    window_of,
)
from profkit.core.formatting import format_percent, format_quantity
from profkit.core.types import RUN, GpuTrace, MetalTrace, MetalWork, Profile, Reading, RunDocument, Source
from profkit.reporting.chart_blocks import Piece, StackedBar
from profkit.reporting.footnotes import footnote_of
from profkit.reporting.views.summaries.metal import IDLE as IDLE_OF_PROCESS

MOST_PARTS = 40  # parts that are named; what is smaller than these goes together
_DESCRIBED = 12  # parts in the text of a bar
# The parts of the time in which no kernel ran: title in a chart, and formula.
_WITHOUT_KERNELS = {
    HOST: (
        "the host had launched nothing",
        "(span - busy) / span * share of the idle time in which nothing was launched",
    ),
    QUEUED: (
        "idle with work queued",
        "(span - busy) / span * share of the idle time in which work was queued",
    ),
    IDLE: ("idle", "(span - busy) / span"),
}
_KERNELS = "(busy - only copying) / span * time of these kernels / time of all kernels"
_BUSY = (
    "its time / time of all kernels and copies * busy / span"  # of a trace that does not tell copies apart
)


def time_bars(document: RunDocument, rows: Sequence[KernelRow]) -> list[StackedBar]:
    """The wholes that a document tells of, the widest first."""
    bars = list(metal_bars(document.metal)) if document.metal is not None else []
    if document.trace is not None:
        bars += _limits_bar(document.trace, rows)
    bars += _kernels_bar(document.trace, rows)
    for profile in document.profiles:
        bars += _libraries_bar(profile)
    return bars


def share_reading(name: str, value: float, table: str, formula: str, tool: str = TOOL) -> Reading:
    """A share in % as a reading: it leads to the table that it was computed from, and to how (`formula`, 0..1)."""
    source = Source(tool, table or None, formula=f"100 * {formula}")
    return Reading(name, value, "%", "measured", RUN, source)


def _piece(
    name: str,
    share: float,
    hover: str,
    formula: str = "",
    *,
    table: str = "",
    tool: str = TOOL,
    idle: bool = False,
) -> Piece:
    reading = share_reading("GPU time, share", 100 * share, table, formula, tool)
    return Piece(name, min(1.0, share), hover, idle, footnote_of(reading) if formula else None)


def _bar(title: str, seconds: float | None, pieces: Sequence[Piece]) -> StackedBar:
    text = "; ".join(f"{one.label} {format_percent(100 * one.share)} %" for one in pieces[:_DESCRIBED])
    whole = f"{title} ({format_quantity(seconds, 's')})" if seconds else title
    return StackedBar("time", whole, f"{text}.", tuple(pieces))


def _limits_bar(trace: GpuTrace, rows: Sequence[KernelRow]) -> Iterator[StackedBar]:
    if not trace.span or not rows:
        return
    pieces = []
    for name, share in time_by_limit(trace, rows)[:MOST_PARTS]:
        title, formula = _WITHOUT_KERNELS.get(name, (name, _KERNELS if trace.copying is not None else _BUSY))
        if name == COPIES:
            title, formula = "only copies", formula if trace.copying is None else "only copying / span"
        hover = f"{title}: {format_percent(100 * share)} % of {format_quantity(trace.span, 's')}"
        idle = name in _WITHOUT_KERNELS
        pieces.append(_piece(title, share, hover, formula, tool=trace.tool, idle=idle))
    if pieces:
        yield _bar("The GPU's time, by what limits it", trace.span, pieces)


def _kernels_bar(trace: GpuTrace | None, rows: Sequence[KernelRow]) -> Iterator[StackedBar]:
    timed = [row for row in rows if row.share]
    formula = "its time / the time of all kernels" if trace is not None else ""
    tool = trace.tool if trace is not None else TOOL
    parts = [(row.label, row.label, row.share or 0.0) for row in timed[:MOST_PARTS]]
    if rest := sum(row.share or 0.0 for row in timed[MOST_PARTS:]):
        parts.append((f"{len(timed) - MOST_PARTS} smaller ones", "smaller ones", rest))
    pieces = [
        _piece(name, share, f"{text}: {format_percent(100 * share)} %", formula, tool=tool)
        for name, text, share in parts
    ]
    if pieces:
        total = sum(row.time.total for row in timed if row.time is not None) or None
        yield _bar("The kernels' time, by kernel", total, pieces)


def _libraries_bar(profile: Profile) -> Iterator[StackedBar]:
    """Samples by library, of a profile of a CPU."""
    spots = [spot for spot in profile.hotspots if spot.own > 0][:MOST_PARTS]
    if is_sampled(profile) and profile.kind == "libraries" and profile.total > 0 and spots:
        pieces = [
            _piece(
                spot.function,
                spot.own / profile.total,
                f"{spot.function}: {format_quantity(spot.own, profile.unit)}",
            )
            for spot in spots
        ]
        yield _bar("The CPU's time, by library", profile.total if profile.unit == "s" else None, pieces)


def metal_bars(trace: MetalTrace) -> Iterator[StackedBar]:
    """The process' time, by what it did or waited for, and its GPU time by encoder."""
    yield from _process_bar(trace)
    yield from _work_bar("The process' GPU time, by encoder", trace.encoders)


def _process_bar(trace: MetalTrace) -> Iterator[StackedBar]:
    """The window of the process, else all that was recorded: its work, and what the idle time was."""
    whole, idle = window_of(trace), idle_of(trace)
    if not whole or idle is None or trace.process_busy is None:
        return
    own = "union of its intervals / it all"
    rows = [("the process works on the GPU", trace.process_busy, INTERVALS, own)]
    for cause, seconds in idle_causes(trace):
        rows.append((IDLE_OF_PROCESS[cause], seconds, INTERVALS, "gaps of which that is known / it all"))
    rest = idle - sum(seconds for _, seconds, _, _ in rows[1:])
    nobody = "nobody works on the GPU" if trace.others is not None else "the process does not"
    rows.append((nobody, rest, STATES, "the rest / it all"))
    pieces = [
        Piece(
            name,
            min(1.0, seconds / whole),
            f"{name}: {format_quantity(seconds, 's')}, {format_percent(100 * seconds / whole)} %",
            place > 0,
            footnote_of(share_reading("Share of the time", 100 * seconds / whole, table, formula)),
        )
        for place, (name, seconds, table, formula) in enumerate(rows)
        if seconds > 1e-9 * whole
    ]
    recorded = "The time that was recorded"
    title = (
        recorded
        if whole == trace.span and whole != trace.window
        else "From the process' first submission to its last"
    )
    yield _bar("The marked region" if trace.marked else title, whole, pieces)


def _work_bar(title: str, works: tuple[MetalWork, ...]) -> Iterator[StackedBar]:
    """GPU time by encoder: shares of their sum, since some may run side by side. None of one alone, and of no time."""
    total = sum(work.seconds for work in works)
    if total <= 0 or len(works) < 2:
        return
    largest = sorted(works, key=lambda work: -work.seconds)
    formula = "its time / the time of all of them"
    pieces = []
    for work in largest[:MOST_PARTS]:
        share = work.seconds / total
        hover = f"{work.name}: {format_quantity(work.seconds, 's')}, {format_percent(100 * share)} %"
        pieces.append(_piece(work.name, share, hover, formula, table=INTERVALS))
    if rest := sum(work.seconds for work in largest[MOST_PARTS:]):
        pieces.append(_piece(f"{len(largest) - MOST_PARTS} smaller ones", rest / total, "smaller ones"))
    yield _bar(title, total, pieces)
