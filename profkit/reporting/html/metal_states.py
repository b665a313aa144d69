"""In which state an Apple GPU and its machine were, on the page of a run: what slows a device explains slow runs."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.summaries.metal_time import share_reading
from profkit.core.formatting import percent, quantity
from profkit.core.types import MetalState, MetalTrace, RunDocument
from profkit.reporting.charts.stacked import Piece, stacked_bar
from profkit.reporting.html.chart_figures import figures
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.sources import Sources

PERFORMANCE, THERMAL = "gpu-performance-state-intervals", "device-thermal-state-intervals"


def part(document: RunDocument, extras: Extras) -> Part | None:
    """A bar of performance states and one of thermal ones; None of a trace that tells neither."""
    trace = document.metal
    if trace is None:
        return None
    charts = [
        chart
        for chart in (
            _bar("Performance state of the GPU", trace.performance, PERFORMANCE, extras.sources),
            _bar("Thermal state", trace.thermal, THERMAL, extras.sources),
        )
        if chart is not None
    ]
    notes = _notes(trace)
    if not charts and not notes:
        return None
    return Part("gpu-states", "States", figures(charts, " ".join(notes)))


def _bar(title: str, states: Sequence[MetalState], table: str, sources: Sources) -> str | None:
    total = sum(one.seconds for one in states)
    if total <= 0:
        return None
    pieces = []
    for one in states:
        share = 100 * one.seconds / total
        told = f"{one.name}: {quantity(one.seconds, 's')}, {percent(share)} %"
        if one.busy is not None:
            told += f"; {quantity(one.busy, 's')} of it the process worked on the GPU"
        reading = share_reading("Share of the time", share, table, "time in this state / time that is told")
        pieces.append(Piece(one.name, one.seconds / total, told, source=sources.number(reading)))
    described = ". ".join(piece.told for piece in pieces)
    return stacked_bar("gpu-states", f"{title} ({quantity(total, 's')})", f"{described}.", pieces)


def _notes(trace: MetalTrace) -> list[str]:
    notes = []
    worked = [one for one in trace.performance if one.busy]
    if worked:
        told = ", ".join(f"{one.name} {quantity(one.busy, 's')}" for one in worked)
        notes.append(f"While the process worked on the GPU: {told}.")
    if trace.induced:
        notes.append(f"The recording asked for the performance state {trace.induced}.")
    if trace.low_power:
        notes.append("Low power mode was on.")
    return notes
