"""A run on an Apple GPU: how busy it was, encoders and shaders, counters, states, and what the trace does not hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from profkit.analysis.kernel_names import short_name
from profkit.analysis.metrics.catalogue import metal_counter_names
from profkit.analysis.summaries.metal_readings import COUNTERS, INTERVALS, SAMPLES, SHADERS, TOOL
from profkit.analysis.summaries.readings import best_reading, main_scopes
from profkit.backends import backend_named
from profkit.core.formatting import format_percent, format_quantity, plural
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
from profkit.reporting.chart_blocks import Bar, Bars, Mark, Piece, StackedBar
from profkit.reporting.charts.marks import Chart
from profkit.reporting.charts.of_run import over_time_chart
from profkit.reporting.footnotes import footnote_of
from profkit.reporting.view import Block, Fold, Section, table
from profkit.reporting.views.run_charts import chart_group, threshold_mark, without_chart
from profkit.reporting.views.summaries.parts import Texts
from profkit.reporting.views.summaries.time_bars import share_reading

_BARS = 12  # of encoders and shaders
_COUNTER_BARS = 16
_PROCESSES = 6  # that are named
_ROWS = 200  # of a table
_LABEL = 60  # characters of a name in a chart
_PERFORMANCE, _THERMAL = "gpu-performance-state-intervals", "device-thermal-state-intervals"


def _capitalized(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:].rstrip('.')}."


# ---------------------------------------------------------------- how busy it was


def use_section(document: RunDocument, texts: Texts) -> Section | None:
    """Shares of the process, the GPU and its other users, and both over time."""
    trace = document.metal
    summary = texts.get("gpu")
    headline = summary.headline if summary is not None else ""
    if trace is None:
        if summary is None or backend_named(document.backend).work != "encoder":
            return None
        fix = next((reading.fix for reading in summary.readings if reading.fix), None)
        return without_chart("gpu-use", "GPU utilization", headline, fix)
    charts = [*_shares_of_time(document, trace), *_over_time(trace)]
    return (
        Section("GPU utilization", (chart_group(charts),), headline, anchor="gpu-use", repeats=True)
        if charts
        else None
    )


def _shares_of_time(document: RunDocument, trace: MetalTrace) -> Iterator[Bars]:
    if not trace.span:
        return
    bars: list[Bar] = []
    scopes = main_scopes(document)
    if trace.process_busy is not None:
        targets = (process.name for process in trace.processes if process.target)
        name = next(targets, "the process that was profiled")
        reading = best_reading(document.readings, "gpu.utilization", scopes)
        marks = threshold_mark(document, "gpu.utilization")
        bars.append(_busy(name, trace.process_busy, trace.window or trace.span, trace, reading, marks))
    if trace.device_busy is not None:
        reading = best_reading(document.readings, "gpu.utilization.device", scopes)
        bars.append(_busy("The GPU, whoever used it", trace.device_busy, trace.span, trace, reading))
    further = [process for process in trace.processes if not process.target]
    for process in further[:_PROCESSES]:
        share, formula = 100 * process.busy / trace.span, "union of its intervals / span"
        derived = share_reading("GPU time of another process", share, INTERVALS, formula)
        pid = f" ({process.pid})" if process.pid is not None else ""
        bars.append(_busy(f"{process.name}{pid}", process.busy, trace.span, trace, derived))
    if bars:
        more = len(further) - _PROCESSES
        legend = f"{plural(more, 'further process', 'further processes')} not drawn. " if more > 0 else ""
        legend += "Dotted line: target." if any(bar.marks for bar in bars) else ""
        description = ". ".join(bar.hover for bar in bars)
        yield Bars("gpu-use", "Busy, of the time", f"{description}.", tuple(bars), 100.0, legend.strip())


def _busy(
    label: str,
    seconds: float,
    whole: float,
    trace: MetalTrace,
    reading: Reading | None,
    marks: tuple[Mark, ...] = (),
) -> Bar:
    share = 100 * seconds / whole
    part = f"{format_quantity(seconds, 's')} of {format_quantity(whole, 's')}"
    description = f"{label}: {part}, {format_percent(share)} %"
    if trace.marked:
        part += " in the region"
    elif whole != trace.span:
        part += " from its first work to its last"
    source = None if reading is None else footnote_of(reading)
    return Bar(
        label,
        min(100.0, share),
        f"{format_percent(share)} %",
        description,
        marks=marks,
        note=part,
        source=source,
    )


def _over_time(trace: MetalTrace) -> Iterator[Chart]:
    slices = trace.over_time
    if slices is None or not (slices.device or slices.process):
        return
    number = max(len(slices.device), len(slices.process))
    description = f"{plural(number, 'slice')} of {format_quantity(slices.seconds, 's')}"
    busiest = max(slices.process, default=None)
    peak = (
        f"; the process was busy for {format_percent(100 * busiest)} % of its busiest slice"
        if busiest
        else ""
    )
    legend = "Light: the GPU, whoever used it. Solid: the process that was profiled."
    legend += " Below: the performance state of the GPU." if any(slices.performance) else ""
    yield over_time_chart(
        "Busy, over time",
        f"{description}{peak}.",
        slices.seconds,
        tuple(slices.device),
        tuple(slices.process),
        tuple(slices.performance),
        legend,
    )


# ---------------------------------------------------------------- encoders and shaders


def work_chart(what: str, works: Sequence[MetalWork], origin: str) -> tuple[Block, ...]:
    """What took most of the GPU's time, by encoder or shader; nothing of one alone."""
    total = sum(work.seconds for work in works)
    if total <= 0 or len(works) < 2:
        return ()
    source = footnote_of(share_reading("GPU time, share", 0.0, origin, "its time / the time of all of them"))
    bars = []
    for work in works[:_BARS]:
        words = f"{format_quantity(work.seconds, 's')}, {format_percent(100 * work.seconds / total)} %"
        description = f"{work.name}: {words}, {plural(work.count, 'time')}"
        name = short_name(work.name, _LABEL)
        bars.append(Bar(name, work.seconds, words, description, source=source))
    more = len(works) - len(bars)
    legend = f"{more} more in the table." if more > 0 else ""
    description = ". ".join(bar.hover for bar in bars[:6])
    chart = Bars("metal-work", f"GPU time, by {what}", f"{description}.", tuple(bars), None, legend)
    return (chart_group([chart]),)


def shaders_section(document: RunDocument) -> Section | None:
    """Shaders by GPU time; why they are not known where a trace was to tell them."""
    trace = document.metal
    if trace is None:
        return None
    if trace.shaders:
        headline = f"{plural(len(trace.shaders), 'shader')} were timed."
        return Section("Shaders", work_chart("shader", trace.shaders, SHADERS), headline, repeats=True)
    missing = next((absent for absent in trace.absent if absent.what == SHADERS), None)
    if missing is None:
        return None
    return without_chart("shaders", "Shaders", _capitalized(missing.reason), missing.fix)


# ---------------------------------------------------------------- counters


def counters_section(document: RunDocument) -> Section | None:
    """The counters as bars and as a table; why there are none of a trace that has none."""
    trace = document.metal
    if trace is None:
        return None
    if not trace.counters:
        missing = next((absent for absent in trace.absent if absent.what in (COUNTERS, SAMPLES)), None)
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
        blocks.append(chart_group(charts, "Counters speak of the whole GPU, whoever used it."))
    shown = f" of the set {trace.counter_set}" if trace.counter_set else ""
    headline = f"{plural(len(trace.counters), 'counter')}{shown}{_covered(trace.counters)}."
    return Section("GPU counters", tuple(blocks), headline, repeats=True)


def _covered(counters: Sequence[MetalCounter]) -> str:
    covered = [counter.covered for counter in counters if counter.covered is not None]
    if not covered:
        return ""
    low, high = format_percent(100 * min(covered)), format_percent(100 * max(covered))
    return f"; their samples cover {low if low == high else f'{low} to {high}'} % of the time"


def _value(counter: MetalCounter) -> tuple[float, str]:
    """The mean while the process had work on the GPU, where that is known; else over the time."""
    if counter.active is not None:
        return counter.active, "mean by sample duration, while the process worked on the GPU"
    return counter.mean, "mean by sample duration"


def _counter_reading(counter: MetalCounter) -> Reading:
    value, formula = _value(counter)
    return Reading(
        counter.name, value, counter.unit, "measured", RUN, Source(TOOL, counter.name, formula=formula)
    )


def _percentages(document: RunDocument, trace: MetalTrace) -> Iterator[Bars]:
    counters = sorted(
        (counter for counter in trace.counters if counter.unit == "%"),
        key=lambda counter: -_value(counter)[0],
    )
    marks: dict[str, tuple[Mark, ...]] = {}  # by the names of the counters that tell what a target is on
    for metric, names in metal_counter_names().counters.items():
        target = threshold_mark(document, metric)
        marks |= dict.fromkeys(names, target) if target else {}
    bars = tuple(_counter(counter, marks.get(counter.name, ())) for counter in counters[:_COUNTER_BARS])
    if bars:
        more = len(counters) - len(bars)
        legend = "Light: the highest sample." + (f" {more} more in the table." if more > 0 else "")
        legend += " Dotted line: target." if any(bar.marks for bar in bars) else ""
        description = ". ".join(bar.hover for bar in bars[:8])
        yield Bars("gpu-counters", "Counters, in % of what there is", f"{description}.", bars, 100.0, legend)


def _counter(counter: MetalCounter, marks: tuple[Mark, ...] = ()) -> Bar:
    value, formula = _value(counter)
    words = format_quantity(value, counter.unit)
    reach = f"{format_quantity(counter.least, counter.unit)} to {format_quantity(counter.most, counter.unit)}"
    description = f"{counter.name}: {words} ({formula}), {reach}"
    return Bar(
        counter.name,
        value,
        words,
        description,
        counter.most,
        marks,
        source=footnote_of(_counter_reading(counter)),
    )


def _rates(document: RunDocument, trace: MetalTrace) -> Iterator[Bars]:
    counters = [counter for counter in trace.counters if counter.unit == "B/s"]
    if not counters:
        return
    peak = next((gpu.bandwidth for gpu in document.gpus if gpu.bandwidth), None)
    marks: tuple[Mark, ...] = ()
    line = "What the chip is specified with is not known."
    if peak is not None:
        marks = (Mark(peak, "peak", f"specified: {format_quantity(peak, 'B/s')}"),)
        line = f"Dashed line: what the chip is specified with, {format_quantity(peak, 'B/s')}."
    bars = [_counter(counter, marks) for counter in counters[:_COUNTER_BARS]]
    both = best_reading(document.readings, "bandwidth.gpu", main_scopes(document))
    if both is not None and both.value is not None:
        words = format_quantity(both.value, both.unit)
        description = f"Read and written: {words}"
        bars.insert(
            0, Bar("Read and written", both.value, words, description, marks=marks, source=footnote_of(both))
        )
    description = ". ".join(bar.hover for bar in bars[:6])
    legend = f"Light: the highest sample. {line}"
    yield Bars("gpu-rates", "Bandwidth", f"{description}.", tuple(bars), None, legend)


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
    worked = ", ".join(
        f"{state.name} {format_quantity(state.busy, 's')}" for state in trace.performance if state.busy
    )
    notes += [f"While the process worked on the GPU: {worked}."] if worked else []
    if trace.induced:
        notes.append(f"The recording asked for the performance state {trace.induced}.")
    notes += ["Low power mode was on."] if trace.low_power else []
    if charts:
        return Section("States", (chart_group(charts, " ".join(notes)),), anchor="gpu-states", repeats=True)
    return Section("States", (), " ".join(notes), anchor="gpu-states") if notes else None


def _states(title: str, states: Sequence[MetalState], origin: str) -> Iterator[StackedBar]:
    total = sum(state.seconds for state in states)
    if total <= 0:
        return
    pieces = []
    for state in states:
        share = 100 * state.seconds / total
        description = f"{state.name}: {format_quantity(state.seconds, 's')}, {format_percent(share)} %"
        if state.busy is not None:
            description += f"; {format_quantity(state.busy, 's')} of it the process worked on the GPU"
        reading = share_reading("Share of the time", share, origin, "time in this state / time that is told")
        pieces.append(Piece(state.name, state.seconds / total, description, source=footnote_of(reading)))
    described = ". ".join(piece.hover for piece in pieces)
    yield StackedBar("gpu-states", f"{title} ({format_quantity(total, 's')})", f"{described}.", tuple(pieces))


def absent_section(document: RunDocument) -> Section | None:
    """What the trace does not hold, each with its reason, and the way to get it."""
    absent = document.metal.absent if document.metal is not None else ()
    if not absent:
        return None
    rows = [(missing.what, missing.reason, missing.fix or "-") for missing in absent]
    body = table(("table", "why", "to have it"), rows, words=3, title="Not in this trace")
    tables = plural(len(absent), "table of Instruments is", "tables of Instruments are")
    headline = f"{tables} missing or empty here: what would follow from them is not known."
    return Section("Not in the trace", (body,), headline, Fold.REFERENCE, "not-in-trace")


# ---------------------------------------------------------------- one table of a recording, without the others

NEEDED = (
    "for what it does not tell, export the other tables of the recording into one folder with it (docs/mps.md has the"
    " lines), and read that: profkit summarize FOLDER"
)


def what_it_tells(document: RunDocument) -> RunDocument:
    """Of one exported table alone what is known, and what else is needed in one note; any other document as it is."""
    if document.metal is None or not document.metal.alone:
        return document
    known = [one for one in document.summaries if any(reading.value is not None for reading in one.readings)]
    gpu = [one for one in document.summaries if one.concern == "gpu" and one not in known]
    return replace(
        document,
        verdicts=tuple(verdict for verdict in document.verdicts if verdict.verdict != "unknown"),
        summaries=(*gpu, *known),
        notes=(*document.notes, NEEDED),
    )
