"""How busy an Apple GPU was, on the page of a run: by the process and by all, as sums and over the window."""

from __future__ import annotations

from profkit.analysis.summaries.metal_readings import INTERVALS, STATES
from profkit.analysis.summaries.metal_time import share_reading
from profkit.analysis.summaries.readings import best_reading, main_scopes
from profkit.core.formatting import percent, plural, quantity
from profkit.core.types import MetalTrace, Reading, RunDocument
from profkit.reporting.charts.bars import Bar, Mark, bar_chart
from profkit.reporting.charts.over_time import over_time_chart
from profkit.reporting.html.chart_figures import figures, sentence, summary_of, threshold
from profkit.reporting.html.part import Extras, Part

TITLE = "GPU utilization"
MOST = 6  # processes that are named
LEGEND = "Light: the GPU, whoever used it. Solid: the process that was profiled."


def part(document: RunDocument, extras: Extras) -> Part | None:
    """Bars of the process, the GPU and its other users, and both over time; why there are none of a Metal run."""
    trace = document.metal
    summary = summary_of(document, "gpu")
    headline = summary.headline if summary is not None else None
    if trace is None:
        if summary is None or not extras.of_metal(document):
            return None
        fix = next((reading.fix for reading in summary.readings if reading.fix), None)
        return Part("gpu-use", TITLE, sentence("", fix) if fix else "", headline)
    charts = [chart for chart in (_bars(document, trace, extras), _over_time(trace)) if chart is not None]
    if not charts:
        return None
    return Part("gpu-use", TITLE, figures(charts), headline)


def _bars(document: RunDocument, trace: MetalTrace, extras: Extras) -> str | None:
    if not trace.span:
        return None
    bars: list[Bar] = []

    def add(label: str, seconds: float, whole: float, reading: Reading, marks: tuple[Mark, ...] = ()) -> None:
        share = 100 * seconds / whole
        words = f"{percent(share)} %"
        part = f"{quantity(seconds, 's')} of {quantity(whole, 's')}"
        told = f"{label}: {part}, {words}"
        if trace.marked:
            part += " in the region"
        elif whole != trace.span:
            part += " from its first work to its last"
        source = extras.sources.number(reading)
        bars.append(Bar(label, min(100.0, share), words, told, marks=marks, note=part, source=source))

    if trace.process_busy is not None:
        whole = trace.window or trace.span
        target = threshold(document, "gpu.utilization")
        marks = (Mark(target[0], "target", target[1]),) if target is not None else ()
        name = next((one.name for one in trace.processes if one.target), "the process that was profiled")
        within = "window" if trace.window else "span"
        made = share_reading(
            "gpu.utilization",
            100 * trace.process_busy / whole,
            INTERVALS,
            f"union of its intervals / {within}",
        )
        add(name, trace.process_busy, whole, _told(document, "gpu.utilization", made), marks)
    if trace.device_busy is not None:
        made = share_reading(
            "gpu.utilization.device", 100 * trace.device_busy / trace.span, STATES, "union of Active / span"
        )
        known = _told(document, "gpu.utilization.device", made)
        add("The GPU, whoever used it", trace.device_busy, trace.span, known)
    others = [one for one in trace.processes if not one.target]
    for one in others[:MOST]:
        made = share_reading(
            "GPU time of another process",
            100 * one.busy / trace.span,
            INTERVALS,
            "union of its intervals / span",
        )
        pid = f" ({one.pid})" if one.pid is not None else ""
        add(f"{one.name}{pid}", one.busy, trace.span, made)
    if not bars:
        return None
    more = len(others) - MOST
    legend = f"{plural(more, 'further process', 'further processes')} not drawn. " if more > 0 else ""
    if any(bar.marks for bar in bars):
        legend += "Dotted line: target."
    told = ". ".join(bar.told for bar in bars)
    return bar_chart("gpu-use", "Busy, of the time", f"{told}.", bars, 100.0, legend.strip())


def _told(document: RunDocument, metric: str, otherwise: Reading) -> Reading:
    """The run's own reading of a metric, so that one number has one footnote; else how the chart made it."""
    found = best_reading(document.readings, metric, main_scopes(document))
    if found is None or found.value is None or otherwise.value is None:
        return otherwise
    return found if abs(found.value - otherwise.value) <= 0.001 * max(1.0, abs(found.value)) else otherwise


def _over_time(trace: MetalTrace) -> str | None:
    slices = trace.over_time
    if slices is None or not (slices.device or slices.process):
        return None
    told = (
        f"{plural(max(len(slices.device), len(slices.process)), 'slice')} of {quantity(slices.seconds, 's')}"
    )
    busiest = max(slices.process, default=None)
    peak = f"; the process was busy for {percent(100 * busiest)} % of its busiest slice" if busiest else ""
    legend = LEGEND + (" Below: the performance state of the GPU." if any(slices.performance) else "")
    return over_time_chart(
        "Busy, over time",
        f"{told}{peak}.",
        slices.seconds,
        slices.device,
        slices.process,
        slices.performance,
        legend,
    )
