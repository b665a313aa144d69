"""Each level of memory on the page of a run: its bandwidth against the peak, and what misses it against the target."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.kernels import KernelRow
from profkit.analysis.summaries.readings import best_reading, main_scopes
from profkit.core.formatting import percent, quantity
from profkit.core.types import Reading, RunDocument
from profkit.reporting.charts.bars import Bar, Mark, bar_chart
from profkit.reporting.html.chart_figures import figures, sentence, summary_of, threshold
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.sources import Sources

KERNELS = 3  # that have their own charts, those with most time first
# Share of the peak -> the rate behind it, and how the level is called, from far to near.
LEVELS = {
    "bandwidth.dram.share": ("bandwidth.dram", "DRAM"),
    "bandwidth.l2.share": ("bandwidth.l2", "L2"),
    "bandwidth.l1.share": (None, "L1"),  # its rate counts look-ups alone, and a kernel may pass these by
    "bandwidth.shared.share": (None, "shared memory"),
}
MISSES = {
    "cache.l1.miss_rate": "L1 data",
    "cache.l2.miss_rate": "L2",
    "cache.l3.miss_rate": "L3",
    "cache.last.miss_rate": "last level",
    "tlb.data.miss_rate": "data TLB",
}
LEGEND = "Dotted line: target. Outlined: simulated, estimated or doubted."
Readings = dict[str, Reading]


def part(document: RunDocument, extras: Extras) -> Part | None:
    """Charts of the run, or of its largest kernels; None where no level was counted and none was asked for."""
    named = _named(document, extras.kernels(document))
    charts = [
        chart for name, readings in named for chart in _charts(document, name, readings, extras.sources)
    ]
    told = [one for concern in ("bandwidth", "cache") if (one := summary_of(document, concern)) is not None]
    headlines = [one.headline for one in told]
    if not charts and (not headlines or extras.of_metal(document)):
        return None
    fix = next((reading.fix for one in told for reading in one.readings if reading.fix), None)
    body = figures(charts) if charts else sentence("", fix) if fix else ""
    return Part("levels", "Memory, level by level", body, " ".join(headlines) or None)


def _named(document: RunDocument, kernels: Sequence[KernelRow]) -> list[tuple[str, Readings]]:
    """The run's own readings, or those of its largest kernels that were counted, by name."""
    rows = [row for row in kernels if any(row.value(name) is not None for name in (*LEVELS, *MISSES))]
    if rows:
        return [(_kernel(row), dict(row.readings)) for row in rows[:KERNELS]]
    scopes = main_scopes(document)
    names = (*LEVELS, *MISSES, *(rate for rate, _ in LEVELS.values() if rate))
    found = {
        name: reading
        for name in names
        if (reading := best_reading(document.readings, name, scopes)) is not None
    }
    return [("", found)]


def _kernel(row: KernelRow) -> str:
    return f"{row.label}, {percent(100 * row.share)} %" if row.share is not None else row.label


def _charts(document: RunDocument, name: str, readings: Readings, sources: Sources) -> list[str]:
    shares = [_share(document, key, readings, sources) for key in LEVELS if key in readings]
    misses = [
        _bar(document, readings[key], title, "", sources) for key, title in MISSES.items() if key in readings
    ]
    of = f": {name}" if name else ""
    found = []
    drawn = (
        ("levels", "Bandwidth, of peak", "the peak", shares),
        ("misses", "Misses", "every access that reaches the level", misses),
    )
    for kind, title, full, bars in drawn:
        if any(bar.value is not None for bar in bars):
            found.append(
                bar_chart(kind, f"{title}{of}", _told(bars), bars, 100.0, f"Full width: {full}. {LEGEND}")
            )
    return found


def _share(document: RunDocument, key: str, readings: Readings, sources: Sources) -> Bar:
    rate, title = LEVELS[key]
    behind = readings.get(rate) if rate else None
    told = f"{quantity(behind.value, 'B/s')}, " if behind is not None and behind.value is not None else ""
    return _bar(document, readings[key], title, told, sources)


def _bar(document: RunDocument, reading: Reading, title: str, before: str, sources: Sources) -> Bar:
    target = threshold(document, reading.metric, reading.scope)
    doubtful = reading.quality in ("simulated", "estimated") or reading.doubt is not None
    if reading.value is None:
        told = f"{metric(reading.metric).title}: {reading.reason}"
        return Bar(title, None, "not known", told, source=sources.number(reading))
    quality = f" ({reading.quality})" if reading.quality != "measured" else ""
    words = f"{before}{percent(reading.value)} %{' ?' if reading.doubt else ''}"
    doubt = f"; doubted: {reading.doubt}" if reading.doubt else ""
    against = f"; {target[1]}" if target else ""
    return Bar(
        title,
        reading.value,
        words,
        f"{metric(reading.metric).title}: {words}{quality}{against}{doubt}",
        marks=(Mark(target[0], "target", target[1]),) if target else (),
        doubtful=doubtful,
        source=sources.number(reading),
    )


def _told(bars: Sequence[Bar]) -> str:
    return ". ".join(bar.told for bar in bars) + "."
