"""What an Apple GPU did for the process, on the page of a run: by encoder, by shader, by command buffer."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.kernel_names import short_name
from profkit.analysis.summaries.metal_readings import INTERVALS, SHADERS
from profkit.analysis.summaries.metal_time import share_reading
from profkit.core.formatting import percent, plural, quantity
from profkit.core.types import MetalTrace, MetalWork, RunDocument, Spread
from profkit.reporting.charts.bars import Bar, bar_chart
from profkit.reporting.html.chart_figures import figures, sentence
from profkit.reporting.html.metal_table import finished, table
from profkit.reporting.html.part import Extras, Part

MOST = 12  # bars of a chart
ROWS = 200  # of a table
LABEL = 60  # characters of a name in a chart


def encoders(document: RunDocument, extras: Extras) -> Part | None:
    """Encoders by GPU time with what they were submitted in; why there are none of a trace without them."""
    trace = document.metal
    if trace is None:
        return None
    buffers = _buffers(trace)
    if not trace.encoders:
        if not buffers:
            return None
        return Part("encoders", "Encoders", buffers)
    body = _chart(trace.encoders, "GPU time, by encoder", INTERVALS, extras)
    body += _table(trace.encoders, "Encoders by GPU time", "encoder", INTERVALS, extras) + buffers
    total = sum(one.seconds for one in trace.encoders)
    count = sum(one.count for one in trace.encoders)
    first = trace.encoders[0]
    share = f"; {_name(first)} takes {percent(100 * first.seconds / total)} % of it" if total > 0 else ""
    labels = f"{plural(count, 'encoder')} of {plural(len(trace.encoders), 'label')}"
    headline = f"{labels}, {quantity(total, 's')} on the GPU{share}."
    return Part("encoders", "Encoders", body, headline)


def shaders(document: RunDocument, extras: Extras) -> Part | None:
    """Shaders by GPU time; why they are not told where a trace was to tell them."""
    trace = document.metal
    if trace is None:
        return None
    if trace.shaders:
        body = _chart(trace.shaders, "GPU time, by shader", SHADERS, extras)
        body += _table(trace.shaders, "Shaders by GPU time", "shader", SHADERS, extras)
        return Part("shaders", "Shaders", body, f"{plural(len(trace.shaders), 'shader')} were timed.")
    missing = next((one for one in trace.absent if one.what == SHADERS), None)
    if missing is None:
        return None
    words = f"{missing.reason[:1].upper()}{missing.reason[1:].rstrip('.')}."
    return Part("shaders", "Shaders", sentence("", missing.fix) if missing.fix else "", words)


def _name(one: MetalWork) -> str:
    return short_name(one.name, LABEL)


def _chart(found: Sequence[MetalWork], title: str, source: str, extras: Extras) -> str:
    total = sum(one.seconds for one in found)
    if total <= 0 or len(found) < 2:
        return ""
    bars = []
    for one in found[:MOST]:
        share = 100 * one.seconds / total
        reading = share_reading("GPU time, share", share, source, "its time / the time of all of them")
        words = f"{quantity(one.seconds, 's')}, {percent(share)} %"
        told = f"{one.name}: {words}, {plural(one.count, 'time')}"
        bars.append(Bar(_name(one), one.seconds, words, told, source=extras.sources.number(reading)))
    more = len(found) - len(bars)
    legend = f"{more} more in the table." if more > 0 else ""
    told = ". ".join(bar.told for bar in bars[:6])
    return figures([bar_chart("metal-work", title, f"{told}.", bars, None, legend)])


def _table(found: Sequence[MetalWork], title: str, what: str, source: str, extras: Extras) -> str:
    total = sum(one.seconds for one in found)
    reading = share_reading("GPU time, share", 0.0, source, "its time / the time of all of them")
    rows: list[tuple[str, ...]] = []
    for one in found[:ROWS]:
        share = extras.sources.link(reading, f"{percent(100 * one.seconds / total)} %") if total > 0 else "-"
        times = (quantity(one.seconds, "s"), finished(share))
        rows.append((one.name, str(one.count), *times, quantity(one.median, "s"), quantity(one.longest, "s")))
    columns = (what, "count", "GPU time", "share", "median", "longest")
    more = len(found) - len(rows)
    return table(title, columns, rows, f"{more} more stand in run.json." if more > 0 else "")


def _buffers(trace: MetalTrace) -> str:
    """Command buffers and the queue, as far as they are told."""
    told: list[tuple[str, Spread | None, str]] = [
        ("On the GPU", trace.command_buffers, ""),
        ("Submission to start", trace.latency, "a queue, no wait of the host"),
        ("Submission to completion", trace.completion, ""),
        ("End until the host is told", trace.notice, ""),
        ("Frame to frame", trace.frames, ""),
    ]
    rows = [
        (
            name + (f" ({note})" if note else ""),
            str(spread.count),
            quantity(spread.median, "s"),
            quantity(spread.p95, "s"),
            quantity(spread.longest, "s"),
        )
        for name, spread, note in told
        if spread is not None and spread.count
    ]
    if not rows:
        return ""
    notes = []
    if trace.queue_depth is not None:
        most = f", {trace.queue_most} at most" if trace.queue_most is not None else ""
        until = "completed" if trace.completion is not None else "done on the GPU"
        notes.append(
            f"On average {trace.queue_depth:.2g} command buffers were submitted and not {until}{most}."
        )
    if trace.failed:
        notes.append(f"{plural(trace.failed, 'command buffer')} ended with an error.")
    columns = ("what", "count", "median", "p95", "longest")
    return table("Command buffers", columns, rows, " ".join(notes))
