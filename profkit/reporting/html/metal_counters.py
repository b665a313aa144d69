"""What the counters of an Apple GPU say, on the page of a run: shares of their peak, and rates against the chip's."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.metrics.catalogue import metal_counter_names
from profkit.analysis.summaries.metal_readings import COUNTERS, SAMPLES, TOOL
from profkit.analysis.summaries.readings import best_reading, main_scopes
from profkit.core.formatting import percent, plural, quantity
from profkit.core.types import RUN, MetalCounter, MetalTrace, Reading, RunDocument, Source
from profkit.reporting.charts.bars import Bar, Mark, bar_chart
from profkit.reporting.html.chart_figures import figures, sentence, threshold
from profkit.reporting.html.metal_table import finished, table
from profkit.reporting.html.part import Extras, Part

TITLE = "GPU counters"
MOST = 16  # bars of a chart
ROWS = 200
TABLES = (COUNTERS, SAMPLES)
WHOLE = "Counters speak of the whole GPU, whoever used it."


def part(document: RunDocument, extras: Extras) -> Part | None:
    """The counters as bars and as a table; why there are none of a trace that has none."""
    trace = document.metal
    if trace is None:
        return None
    if not trace.counters:
        missing = next((one for one in trace.absent if one.what in TABLES), None)
        if missing is None:
            return None
        judged = best_reading(
            document.readings, "gpu.occupancy", (RUN,)
        )  # knows also what the run was asked for
        if judged is None or judged.reason is None or judged.value is not None:
            why, fix = missing.reason, missing.fix
        else:
            why, fix = judged.reason, judged.fix
        words = f"{why[:1].upper()}{why[1:].rstrip('.')}."
        return Part("gpu-counters", TITLE, sentence("", fix) if fix else "", words)
    charts = [chart for chart in (_shares(document, trace, extras), _rates(document, trace, extras)) if chart]
    body = figures(charts, WHOLE) if charts else ""
    shown = f" of the set {trace.counter_set}" if trace.counter_set else ""
    headline = f"{plural(len(trace.counters), 'counter')}{shown}{_covered(trace.counters)}."
    return Part("gpu-counters", TITLE, body + _table(trace.counters, extras), headline)


def _covered(counters: Sequence[MetalCounter]) -> str:
    told = [one.covered for one in counters if one.covered is not None]
    if not told:
        return ""
    low, high = percent(100 * min(told)), percent(100 * max(told))
    return f"; their samples cover {low if low == high else f'{low} to {high}'} % of the time"


def _value(one: MetalCounter) -> tuple[float, str]:
    """The mean while the process had work on the GPU, where that is known; else over the time."""
    if one.active is not None:
        return one.active, "mean by sample duration, while the process worked on the GPU"
    return one.mean, "mean by sample duration"


def _reading(one: MetalCounter) -> Reading:
    value, formula = _value(one)
    return Reading(one.name, value, one.unit, "measured", RUN, Source(TOOL, one.name, formula=formula))


def _held_to(document: RunDocument) -> dict[str, tuple[Mark, ...]]:
    """The targets by the names of the counters that tell what they are on."""
    found: dict[str, tuple[Mark, ...]] = {}
    for metric, names in metal_counter_names().counters.items():
        target = threshold(document, metric)
        if target is not None:
            found |= {name: (Mark(target[0], "target", target[1]),) for name in names}
    return found


def _shares(document: RunDocument, trace: MetalTrace, extras: Extras) -> str | None:
    found = sorted((one for one in trace.counters if one.unit == "%"), key=lambda one: -_value(one)[0])
    held = _held_to(document)
    bars = [_bar(one, extras, held.get(one.name, ())) for one in found[:MOST]]
    if not bars:
        return None
    more = len(found) - len(bars)
    legend = "Light: the highest sample." + (f" {more} more in the table." if more > 0 else "")
    legend += " Dotted line: target." if any(bar.marks for bar in bars) else ""
    told = ". ".join(bar.told for bar in bars[:8])
    return bar_chart("gpu-counters", "Counters, in % of what there is", f"{told}.", bars, 100.0, legend)


def _bar(one: MetalCounter, extras: Extras, marks: tuple[Mark, ...] = ()) -> Bar:
    value, formula = _value(one)
    words = quantity(value, one.unit)
    told = (
        f"{one.name}: {words} ({formula}), {quantity(one.least, one.unit)} to {quantity(one.most, one.unit)}"
    )
    source = extras.sources.number(_reading(one))
    return Bar(one.name, value, words, told, one.most, marks, source=source)


def _rates(document: RunDocument, trace: MetalTrace, extras: Extras) -> str | None:
    found = [one for one in trace.counters if one.unit == "B/s"]
    if not found:
        return None
    peak = next((gpu.bandwidth for gpu in document.gpus if gpu.bandwidth), None)
    marks = (Mark(peak, "peak", f"specified: {quantity(peak, 'B/s')}"),) if peak is not None else ()
    bars = [_bar(one, extras, marks) for one in found[:MOST]]
    both = best_reading(document.readings, "bandwidth.gpu", main_scopes(document))
    if both is not None and both.value is not None:
        words = quantity(both.value, both.unit)
        told = f"Read and written: {words}"
        source = extras.sources.number(both)
        bars.insert(0, Bar("Read and written", both.value, words, told, marks=marks, source=source))
    line = (
        f"Dashed line: what the chip is specified with, {quantity(peak, 'B/s')}."
        if peak is not None
        else "What the chip is specified with is not known."
    )
    told = ". ".join(bar.told for bar in bars[:6])
    return bar_chart("gpu-rates", "Bandwidth", f"{told}.", bars, None, f"Light: the highest sample. {line}")


def _table(counters: Sequence[MetalCounter], extras: Extras) -> str:
    rows = []
    for one in counters[:ROWS]:
        shown = [
            finished(extras.sources.link(_reading(one))),
            quantity(one.mean, one.unit),
            quantity(one.least, one.unit),
            quantity(one.most, one.unit),
            str(one.samples),
        ]
        name = f"{one.name}: {one.description}" if one.description else one.name
        rows.append((name, *shown))
    more = len(counters) - len(rows)
    worked = any(one.active is not None for one in counters)
    columns = ("counter", "while it worked" if worked else "value", "mean", "least", "most", "samples")
    return table("Counters of the GPU", columns, rows, f"{more} more stand in run.json." if more > 0 else "")
