"""A run on an Apple GPU: how busy it was, encoders and shaders, counters, states, and what the trace does not hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.kernel_names import short_name
from profkit.analysis.metrics.catalogue import metal_counter_names
from profkit.analysis.summaries.metal_readings import COUNTERS, INTERVALS, SAMPLES, SHADERS, STATES, TOOL
from profkit.analysis.summaries.metal_time import share_reading
from profkit.analysis.summaries.readings import best_reading, main_scopes
from profkit.backends import backend_named
from profkit.core.formatting import percent, plural, quantity
from profkit.core.types import (
    RUN,
    MetalCounter,
    MetalState,
    MetalTrace,
    MetalWork,
    Reading,
    RunDocument,
    Source,
)
from profkit.reporting.chart_blocks import Bar, Bars, Mark, OverTime, Piece, StackedBar
from profkit.reporting.footnotes import footnote_of, reading_span
from profkit.reporting.view import Block, DataTable, Fold, Section, Sourced, Text, table
from profkit.reporting.views.run_charts import charted, summary_of, threshold_mark, without_chart

_BARS = 12  # of encoders and shaders
_COUNTER_BARS = 16
_PROCESSES = 6  # that are named
_ROWS = 200  # of a table
_LABEL = 60  # characters of a name in a chart
_PERFORMANCE, _THERMAL = "gpu-performance-state-intervals", "device-thermal-state-intervals"


def _sourced(*blocks: Block) -> Sourced:
    """Tables that repeat those of the summaries, with the source of every number."""
    return Sourced(blocks)


def _capitalized(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:].rstrip('.')}."


# ---------------------------------------------------------------- how busy it was


def use_section(document: RunDocument) -> Section | None:
    """Shares of the process, the GPU and its other users, and both over time."""
    trace = document.metal
    summary = summary_of(document, "gpu")
    headline = summary.headline if summary is not None else ""
    if trace is None:
        if summary is None or backend_named(document.backend).work != "encoder":
            return None
        fix = next((reading.fix for reading in summary.readings if reading.fix), None)
        return without_chart("gpu-use", "GPU utilization", headline, fix)
    charts = [*_shares_of_time(document, trace), *_over_time(trace)]
    return (
        Section("GPU utilization", (charted(charts),), headline, anchor="gpu-use", repeats=True)
        if charts
        else None
    )


def _shares_of_time(document: RunDocument, trace: MetalTrace) -> Iterator[Bars]:
    if not trace.span:
        return
    bars: list[Bar] = []
    if trace.process_busy is not None:
        whole = trace.window or trace.span
        formula = f"union of its intervals / {'window' if trace.window else 'span'}"
        made = share_reading("gpu.utilization", 100 * trace.process_busy / whole, INTERVALS, formula)
        name = next((one.name for one in trace.processes if one.target), "the process that was profiled")
        reading = _known(document, made)
        marks = threshold_mark(document, "gpu.utilization")
        bars.append(_busy(name, trace.process_busy, whole, trace, reading, marks))
    if trace.device_busy is not None:
        share = 100 * trace.device_busy / trace.span
        made = share_reading("gpu.utilization.device", share, STATES, "union of Active / span")
        reading = _known(document, made)
        bars.append(_busy("The GPU, whoever used it", trace.device_busy, trace.span, trace, reading))
    others = [one for one in trace.processes if not one.target]
    for one in others[:_PROCESSES]:
        share, formula = 100 * one.busy / trace.span, "union of its intervals / span"
        made = share_reading("GPU time of another process", share, INTERVALS, formula)
        pid = f" ({one.pid})" if one.pid is not None else ""
        bars.append(_busy(f"{one.name}{pid}", one.busy, trace.span, trace, made))
    if bars:
        more = len(others) - _PROCESSES
        legend = f"{plural(more, 'further process', 'further processes')} not drawn. " if more > 0 else ""
        legend += "Dotted line: target." if any(bar.marks for bar in bars) else ""
        told = ". ".join(bar.hover for bar in bars)
        yield Bars("gpu-use", "Busy, of the time", f"{told}.", tuple(bars), 100.0, legend.strip())


def _busy(
    label: str,
    seconds: float,
    whole: float,
    trace: MetalTrace,
    reading: Reading,
    marks: tuple[Mark, ...] = (),
) -> Bar:
    share = 100 * seconds / whole
    part = f"{quantity(seconds, 's')} of {quantity(whole, 's')}"
    told = f"{label}: {part}, {percent(share)} %"
    if trace.marked:
        part += " in the region"
    elif whole != trace.span:
        part += " from its first work to its last"
    source = footnote_of(reading)
    return Bar(label, min(100.0, share), f"{percent(share)} %", told, marks=marks, note=part, source=source)


def _known(document: RunDocument, otherwise: Reading) -> Reading:
    """The run's own reading of a metric, so that one number has one footnote; else how the chart made it."""
    found = best_reading(document.readings, otherwise.metric, main_scopes(document))
    if found is None or found.value is None or otherwise.value is None:
        return otherwise
    return found if abs(found.value - otherwise.value) <= 0.001 * max(1.0, abs(found.value)) else otherwise


def _over_time(trace: MetalTrace) -> Iterator[OverTime]:
    slices = trace.over_time
    if slices is None or not (slices.device or slices.process):
        return
    number = max(len(slices.device), len(slices.process))
    told = f"{plural(number, 'slice')} of {quantity(slices.seconds, 's')}"
    busiest = max(slices.process, default=None)
    peak = f"; the process was busy for {percent(100 * busiest)} % of its busiest slice" if busiest else ""
    legend = "Light: the GPU, whoever used it. Solid: the process that was profiled."
    legend += " Below: the performance state of the GPU." if any(slices.performance) else ""
    yield OverTime(
        "Busy, over time",
        f"{told}{peak}.",
        slices.seconds,
        tuple(slices.device),
        tuple(slices.process),
        tuple(slices.performance),
        legend,
    )


# ---------------------------------------------------------------- encoders and shaders


def encoders_section(document: RunDocument) -> Section | None:
    """Encoders by GPU time."""
    trace = document.metal
    if trace is None or not trace.encoders:
        return None
    total = sum(one.seconds for one in trace.encoders)
    first = trace.encoders[0]
    share = f"; {_name(first)} takes {percent(100 * first.seconds / total)} % of it" if total > 0 else ""
    count = sum(one.count for one in trace.encoders)
    labels = f"{plural(count, 'encoder')} of {plural(len(trace.encoders), 'label')}"
    headline = f"{labels}, {quantity(total, 's')} on the GPU{share}."
    return Section("Encoders", _work("encoder", trace.encoders, INTERVALS), headline, repeats=True)


def shaders_section(document: RunDocument) -> Section | None:
    """Shaders by GPU time; why they are not known where a trace was to tell them."""
    trace = document.metal
    if trace is None:
        return None
    if trace.shaders:
        headline = f"{plural(len(trace.shaders), 'shader')} were timed."
        return Section("Shaders", _work("shader", trace.shaders, SHADERS), headline, repeats=True)
    missing = next((one for one in trace.absent if one.what == SHADERS), None)
    if missing is None:
        return None
    return without_chart("shaders", "Shaders", _capitalized(missing.reason), missing.fix)


def _name(one: MetalWork) -> str:
    return short_name(one.name, _LABEL)


def _work(what: str, found: Sequence[MetalWork], origin: str) -> tuple[Block, ...]:
    """A chart of what took most time, and a table of all."""
    total = sum(one.seconds for one in found)
    formula = "its time / the time of all of them"
    made = share_reading("GPU time, share", 0.0, origin, formula)
    bars = []
    for one in found[:_BARS] if total > 0 and len(found) > 1 else ():
        share = 100 * one.seconds / total
        words = f"{quantity(one.seconds, 's')}, {percent(share)} %"
        told = f"{one.name}: {words}, {plural(one.count, 'time')}"
        bars.append(Bar(_name(one), one.seconds, words, told, source=footnote_of(made)))
    more = len(found) - len(bars)
    legend = f"{more} more in the table." if bars and more > 0 else ""
    told = ". ".join(bar.hover for bar in bars[:6])
    chart = Bars("metal-work", f"GPU time, by {what}", f"{told}.", tuple(bars), None, legend)
    rows: list[tuple[Text, ...]] = []
    for one in found[:_ROWS]:
        part: Text = reading_span(made, f"{percent(100 * one.seconds / total)} %") if total > 0 else "-"
        times = (quantity(one.seconds, "s"), part, quantity(one.median, "s"), quantity(one.longest, "s"))
        rows.append((one.name, str(one.count), *times))
    columns = (what, "count", "GPU time", "share", "median", "longest")
    left = len(found) - len(rows)
    body = table(columns, rows, title=f"{what.capitalize()}s by GPU time", left=left)
    return (*([charted([chart])] if bars else []), _sourced(body))


# ---------------------------------------------------------------- counters


def counters_section(document: RunDocument) -> Section | None:
    """The counters as bars and as a table; why there are none of a trace that has none."""
    trace = document.metal
    if trace is None:
        return None
    if not trace.counters:
        missing = next((one for one in trace.absent if one.what in (COUNTERS, SAMPLES)), None)
        if missing is None:
            return None
        why, fix = missing.reason, missing.fix
        judged = best_reading(
            document.readings, "gpu.occupancy", (RUN,)
        )  # knows also what the run was asked for
        if judged is not None and judged.reason is not None and judged.value is None:
            why, fix = judged.reason, judged.fix
        return without_chart("gpu-counters", "GPU counters", _capitalized(why), fix)
    charts = [*_percentages(document, trace), *_rates(document, trace)]
    blocks: list[Block] = []
    if charts:
        blocks.append(charted(charts, "Counters speak of the whole GPU, whoever used it."))
    shown = f" of the set {trace.counter_set}" if trace.counter_set else ""
    headline = f"{plural(len(trace.counters), 'counter')}{shown}{_covered(trace.counters)}."
    blocks.append(_sourced(_counter_table(trace.counters)))
    return Section("GPU counters", tuple(blocks), headline, repeats=True)


def _covered(counters: Sequence[MetalCounter]) -> str:
    covered = [one.covered for one in counters if one.covered is not None]
    if not covered:
        return ""
    low, high = percent(100 * min(covered)), percent(100 * max(covered))
    return f"; their samples cover {low if low == high else f'{low} to {high}'} % of the time"


def _value(one: MetalCounter) -> tuple[float, str]:
    """The mean while the process had work on the GPU, where that is known; else over the time."""
    if one.active is not None:
        return one.active, "mean by sample duration, while the process worked on the GPU"
    return one.mean, "mean by sample duration"


def _counter_reading(one: MetalCounter) -> Reading:
    value, formula = _value(one)
    return Reading(one.name, value, one.unit, "measured", RUN, Source(TOOL, one.name, formula=formula))


def _percentages(document: RunDocument, trace: MetalTrace) -> Iterator[Bars]:
    found = sorted((one for one in trace.counters if one.unit == "%"), key=lambda one: -_value(one)[0])
    marks: dict[str, tuple[Mark, ...]] = {}  # by the names of the counters that tell what a target is on
    for metric, names in metal_counter_names().counters.items():
        target = threshold_mark(document, metric)
        marks |= dict.fromkeys(names, target) if target else {}
    bars = tuple(_counter(one, marks.get(one.name, ())) for one in found[:_COUNTER_BARS])
    if bars:
        more = len(found) - len(bars)
        legend = "Light: the highest sample." + (f" {more} more in the table." if more > 0 else "")
        legend += " Dotted line: target." if any(bar.marks for bar in bars) else ""
        told = ". ".join(bar.hover for bar in bars[:8])
        yield Bars("gpu-counters", "Counters, in % of what there is", f"{told}.", bars, 100.0, legend)


def _counter(one: MetalCounter, marks: tuple[Mark, ...] = ()) -> Bar:
    value, formula = _value(one)
    words = quantity(value, one.unit)
    reach = f"{quantity(one.least, one.unit)} to {quantity(one.most, one.unit)}"
    told = f"{one.name}: {words} ({formula}), {reach}"
    return Bar(one.name, value, words, told, one.most, marks, source=footnote_of(_counter_reading(one)))


def _rates(document: RunDocument, trace: MetalTrace) -> Iterator[Bars]:
    found = [one for one in trace.counters if one.unit == "B/s"]
    if not found:
        return
    peak = next((gpu.bandwidth for gpu in document.gpus if gpu.bandwidth), None)
    marks: tuple[Mark, ...] = ()
    line = "What the chip is specified with is not known."
    if peak is not None:
        marks = (Mark(peak, "peak", f"specified: {quantity(peak, 'B/s')}"),)
        line = f"Dashed line: what the chip is specified with, {quantity(peak, 'B/s')}."
    bars = [_counter(one, marks) for one in found[:_COUNTER_BARS]]
    both = best_reading(document.readings, "bandwidth.gpu", main_scopes(document))
    if both is not None and both.value is not None:
        words = quantity(both.value, both.unit)
        told = f"Read and written: {words}"
        bars.insert(
            0, Bar("Read and written", both.value, words, told, marks=marks, source=footnote_of(both))
        )
    told = ". ".join(bar.hover for bar in bars[:6])
    legend = f"Light: the highest sample. {line}"
    yield Bars("gpu-rates", "Bandwidth", f"{told}.", tuple(bars), None, legend)


def _counter_table(counters: Sequence[MetalCounter]) -> DataTable:
    rows = [
        (
            f"{one.name}: {one.description}" if one.description else one.name,
            reading_span(_counter_reading(one)),
            quantity(one.mean, one.unit),
            quantity(one.least, one.unit),
            quantity(one.most, one.unit),
            str(one.samples),
        )
        for one in counters[:_ROWS]
    ]
    worked = any(one.active is not None for one in counters)
    columns = ("counter", "while it worked" if worked else "value", "mean", "least", "most", "samples")
    return table(columns, rows, title="Counters of the GPU", left=len(counters) - len(rows))


# ---------------------------------------------------------------- states, and what is absent


def states_section(document: RunDocument) -> Section | None:
    """In which state the GPU and its machine were: what slows a device explains slow runs."""
    trace = document.metal
    if trace is None:
        return None
    charts = [
        *_states("Performance state of the GPU", trace.performance, _PERFORMANCE),
        *_states("Thermal state", trace.thermal, _THERMAL),
    ]
    notes = []
    worked = ", ".join(f"{one.name} {quantity(one.busy, 's')}" for one in trace.performance if one.busy)
    notes += [f"While the process worked on the GPU: {worked}."] if worked else []
    if trace.induced:
        notes.append(f"The recording asked for the performance state {trace.induced}.")
    notes += ["Low power mode was on."] if trace.low_power else []
    if charts:
        return Section("States", (charted(charts, " ".join(notes)),), anchor="gpu-states", repeats=True)
    return Section("States", (), " ".join(notes), anchor="gpu-states") if notes else None


def _states(title: str, states: Sequence[MetalState], origin: str) -> Iterator[StackedBar]:
    total = sum(one.seconds for one in states)
    if total <= 0:
        return
    pieces = []
    for one in states:
        share = 100 * one.seconds / total
        told = f"{one.name}: {quantity(one.seconds, 's')}, {percent(share)} %"
        if one.busy is not None:
            told += f"; {quantity(one.busy, 's')} of it the process worked on the GPU"
        reading = share_reading("Share of the time", share, origin, "time in this state / time that is told")
        pieces.append(Piece(one.name, one.seconds / total, told, source=footnote_of(reading)))
    described = ". ".join(piece.hover for piece in pieces)
    yield StackedBar("gpu-states", f"{title} ({quantity(total, 's')})", f"{described}.", tuple(pieces))


def absent_section(document: RunDocument) -> Section | None:
    """What the trace does not hold, each with its reason, and the way to get it."""
    absent = document.metal.absent if document.metal is not None else ()
    if not absent:
        return None
    rows = [(one.what, one.reason, one.fix or "-") for one in absent]
    body = table(("table", "why", "to have it"), rows, words=3, title="Not in this trace")
    tables = plural(len(absent), "table of Instruments is", "tables of Instruments are")
    headline = f"{tables} missing or empty here: what would follow from them is not known."
    return Section("Not in the trace", (body,), headline, Fold.REFERENCE, "not-in-trace")
