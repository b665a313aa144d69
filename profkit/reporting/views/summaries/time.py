"""Time in words: how long one iteration takes, how well that is known, and what disturbed its samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.summaries.host import scope_of
from profkit.core import statistics
from profkit.core.formatting import format_percent, format_quantity, plural
from profkit.core.types import Reading, RunDocument, SampleSet, Timing
from profkit.reporting.facts import fact_text
from profkit.reporting.view import Section
from profkit.reporting.views.run_text import time_line
from profkit.reporting.views.summaries.parts import (
    absence_notes,
    concern_section,
    readings_of,
    readings_table,
)

_CLOCKS_APART = 0.02  # largest over smallest SM clock - 1; cards step in 15 MHz, about 1 %
_APART = 2.0  # %; processes further apart are mentioned: twice the default precision of the median
# Fastest to slowest, then what is said in per cent of the median.
_ORDER = (
    *("time.minimum", "time.median", "time.mean", "time.p95", "time.p99", "time.maximum", "time.first"),
    *("time.spread", "time.processes"),
)


def time_section(document: RunDocument) -> Section:
    """Return median and interval of every timing, the first in the headline; else what a report says of time."""
    readings = readings_of(document, "time")
    if not document.timings:
        table = readings_table("Times in the report", readings)
        headline = f"No iteration was timed.{' The report has other times.' if table else ''}"
        return concern_section("time", headline, [table], absence_notes(readings))
    pairs = [(timing, [r for r in readings if r.scope == scope_of(timing)]) for timing in document.timings]
    tables = [
        readings_table(f"Time of {timing.name}", [r for name in _ORDER for r in own if r.metric == name])
        for timing, own in pairs
    ]
    notes = [note for pair in pairs for note in _notes(*pair)]
    return concern_section("time", _headline(document), tables, notes)


def _value_of(readings: Sequence[Reading], name: str) -> float | None:
    return next((r.value for r in readings if r.metric == name), None)


def _headline(document: RunDocument) -> str:
    timing, line = document.timings[0], time_line(document)
    if line is None:
        return f"{timing.name} was not timed: the timing pass took no sample."
    count = sum(len(process.seconds) for process in timing.processes)
    processes = plural(len(timing.processes), "process", "processes")
    device = " (GPU waited for)" if any(samples.clock != "wall" for samples in timing.processes) else ""
    unsure = "" if "±" in line else " (precision not known)"
    return f"{timing.name} takes {line}{unsure}{device}: {plural(count, 'sample')} in {processes}."


def _notes(timing: Timing, readings: Sequence[Reading]) -> Iterator[str]:
    name, precision, half = timing.name, 100 * timing.precision, _value_of(readings, "time.interval")
    if any(not process.precise for process in timing.processes):
        yield f"{name}: the time budget ended before ±{precision:g} % was reached in every process."
    elif half is not None and half > precision:
        yield f"{name}: each process alone knows its median to ±{precision:g} %, but they differ from each other."
    if any(not process.warm for process in timing.processes):
        yield f"{name}: still drifting when sampling began; the median may be that of a warm-up."
    apart = _value_of(readings, "time.processes")
    if apart is not None and apart > max(_APART, precision):
        yield f"{name}: processes differ by {format_percent(apart)} %: memory layout, or a busy machine."
    yield from (f"{name}: {note}" for note in device_notes(timing))
    yield from absence_notes(readings)


def device_notes(timing: Timing) -> Iterator[str]:
    """Yield what must be known of a device's times to believe and compare them, one sentence each."""
    sets = [samples for samples in timing.processes if samples.clock != "wall"]
    if not sets:
        return
    yield "the GPU's caches held what the iteration before left (warm)."
    yield from _clock_notes(sets)
    yield from dict.fromkeys(fact_text(remark) for samples in sets for remark in samples.remarks)


def _clock_notes(sets: Sequence[SampleSet]) -> Iterator[str]:
    clocks = [clock for samples in sets for clock in samples.clocks]
    if clocks:
        low, high = min(clocks), max(clocks)
        steady = high <= low * (1 + _CLOCKS_APART)
        apart = "" if steady else f", between {format_quantity(low, 'Hz')} and {format_quantity(high, 'Hz')}"
        yield f"SM clock {format_quantity(statistics.median(clocks), 'Hz')}{apart}."
    reasons = ", ".join(dict.fromkeys(reason for samples in sets for reason in samples.throttle_reasons))
    thrown, used = sum(samples.throttled for samples in sets), sum(len(samples.seconds) for samples in sets)
    if thrown:
        share = format_percent(100 * thrown / (thrown + used))
        why = f" ({reasons})" if reasons else ""
        samples = f"{plural(thrown, 'sample')} of {thrown + used} ({share} %)"
        yield f"{samples} thrown away: the device slowed itself down{why}."
    elif reasons:
        yield f"the device slowed itself down all the time ({reasons})."
