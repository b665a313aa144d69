"""The charts of a run, a section each. Their numbers stand in the run's tables too, so text formats leave them out.

A section says why there is no chart where somebody would look for one; None where nobody would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from profkit.analysis.metrics import metric
from profkit.analysis.stacks.files import flame_of
from profkit.analysis.summaries.cpu import is_sampled
from profkit.analysis.summaries.kernels import KernelRow, occupancy_limiters
from profkit.analysis.summaries.readings import best_reading, main_scopes
from profkit.analysis.summaries.roofline_points import kernels_left_out, roofline_of
from profkit.analysis.summaries.time import distribution_of
from profkit.backends import backend_named
from profkit.core.formatting import format_percent, format_quantity, plural
from profkit.core.types import Hotspot, Profile, ProfileKind, Reading, RunDocument, Scope
from profkit.reporting.chart_blocks import Bar, Bars, Charts, FlameGraph, Mark, NoChart
from profkit.reporting.charts.of_run import distribution_chart, growth_chart, roofline_chart, sequence_chart
from profkit.reporting.extras import Extras
from profkit.reporting.footnotes import footnote_of, threshold_text
from profkit.reporting.view import Block, Section
from profkit.reporting.views.run_text import place_option
from profkit.reporting.views.summaries.counted import limiters_clause
from profkit.reporting.views.summaries.parts import SummaryText, Texts, function_place
from profkit.reporting.views.summaries.time_bars import time_bars

if TYPE_CHECKING:
    from profkit.core.types import AllocationLine

_MUCH = 0.05  # of the time: kernels with less need no line
_BARS = 12  # of a chart, those with most time first
_LEVEL_KERNELS = 3  # that have their own charts of memory levels
_TIMINGS, _FLAMES = 4, 3  # timings and sampled events that are drawn
_LINES = 10  # lines of source
# Share of the peak -> the rate behind it, and how the level is called, from far to near.
_LEVELS = {
    "bandwidth.dram.share": ("bandwidth.dram", "DRAM"),
    "bandwidth.l2.share": ("bandwidth.l2", "L2"),
    "bandwidth.l1.share": (None, "L1"),  # its rate counts look-ups alone, and a kernel may pass these by
    "bandwidth.shared.share": (None, "shared memory"),
}
_MISSES = {
    "cache.l1.miss_rate": "L1 data",
    "cache.l2.miss_rate": "L2",
    "cache.l3.miss_rate": "L3",
    "cache.last.miss_rate": "last level",
    "tlb.data.miss_rate": "data TLB",
}
_PEAKS = ("memory.device_peak", "memory.rss_peak", "memory.python_peak")


def chart_group(charts: Sequence[Block], note: str = "") -> Charts:
    """Charts whose numbers other blocks of the run tell."""
    return Charts(tuple(charts), note, repeats=True)


def without_chart(anchor: str, title: str, headline: str, fix: str | None) -> Section:
    """The section of a chart that there is none of: its headline says why, the fix what would change that."""
    return Section(title, (NoChart("", fix),), headline, anchor=anchor, repeats=True)


def threshold_mark(document: RunDocument, metric: str, scope: Scope | None = None) -> tuple[Mark, ...]:
    """The target on a metric as a mark across a bar: that of the scope, else that of any."""
    known = [verdict for verdict in document.verdicts if verdict.metric == metric]
    for verdict in sorted(known, key=lambda verdict: verdict.scope != scope):
        if verdict.threshold is not None:
            return (Mark(verdict.threshold.value, "target", f"target {threshold_text(verdict)}"),)
    return ()


def is_metal(document: RunDocument) -> bool:
    """Whether it is a run on an Apple GPU, whose counters and encoders have sections of their own."""
    return document.metal is not None or backend_named(document.backend).work == "encoder"


def _headline(summary: SummaryText | None) -> str:
    return summary.headline if summary is not None else ""


def _fix_of(summary: SummaryText) -> str | None:
    return next((reading.fix for reading in summary.readings if reading.fix), None)


# ---------------------------------------------------------------- time


def time_section(document: RunDocument, texts: Texts, kernels: Sequence[KernelRow]) -> Section | None:
    """Where the time goes: a bar for each whole that is known; why there is none where a trace was to tell it."""
    charts: list[Block] = [*time_bars(document, kernels)]
    if document.trace is not None and document.trace.device_busy:
        charts.append(_devices(document.trace.device_busy))
    summary = texts.get(backend_named(document.backend).time_concern)
    if charts:
        headline = _headline(summary) if document.metal is None else ""  # told above it
        return Section("Where time goes", (chart_group(charts),), headline, anchor="where-time", repeats=True)
    if summary is None or backend_named(document.backend).work == "encoder":
        return None
    return without_chart("where-time", "Where time goes", summary.headline, _fix_of(summary))


def _devices(busy: Sequence[float]) -> Bars:
    bars = tuple(
        Bar(
            f"GPU {number}",
            min(1.0, share),
            f"{format_percent(100 * share)} %",
            f"GPU {number}: {format_percent(100 * share)} %",
        )
        for number, share in enumerate(busy)
    )
    text = ", ".join(bar.hover for bar in bars)
    return Bars("devices", "Busy, by device", f"Share of the time each was busy: {text}.", bars, 1.0)


def timing_section(document: RunDocument, texts: Texts) -> Section | None:
    """How the timed samples lie: a histogram and their order for each timing."""
    summary = texts.get("time")
    spreads = [spread for timing in document.timings if (spread := distribution_of(timing)) is not None]
    if spreads:
        charts = [make(one) for one in spreads[:_TIMINGS] for make in (distribution_chart, sequence_chart)]
        more = len(spreads) - _TIMINGS
        note = f"{plural(more, 'further timing')} not drawn." if more > 0 else ""
        return Section(
            "Timing", (chart_group(charts, note),), _headline(summary), anchor="distribution", repeats=True
        )
    if document.plan is None or summary is None:
        return None
    reading = next((r for r in summary.readings if r.value is None), None)
    words = f"{reading.reason}." if reading is not None and reading.reason else ""
    body = NoChart(words, reading.fix if reading is not None else None)
    return Section("Timing", (body,), summary.headline, anchor="distribution", repeats=True)


# ---------------------------------------------------------------- roofline, occupancy, levels of memory


def roofline_section(document: RunDocument, texts: Texts, kernels: Sequence[KernelRow]) -> Section | None:
    """The roofline, or why there is none."""
    summary = texts.get("roofline")
    headline = _headline(summary)
    # The next deeper set of counters; none of a report of others, and where there is no deeper one.
    deeper = {"gate": "--depth standard", "standard": "--depth full"}
    fix = deeper.get(document.plan.depth) if document.plan is not None else None
    found = roofline_of(document, kernels)
    if found is not None:
        note = (
            "Hollow points are estimated or simulated. Thick lines limit something here, thin ones nothing."
        )
        blocks: list[Block] = [chart_group([roofline_chart(found)], note)]
        if fix and sum(one.share for one in found.left_out) > _MUCH:
            blocks.append(NoChart("Kernels that are not placed are more than 5 % of the time.", fix))
        return Section("Roofline", tuple(blocks), headline, anchor="roofline", repeats=True)
    if summary is not None:
        return without_chart("roofline", "Roofline", headline, _fix_of(summary))
    if kernels:
        why = kernels_left_out(kernels)[0]
        words = f"No kernel can be placed under the roofline. {why.first}: {why.reason}."
        return Section("Roofline", (NoChart(words, fix),), anchor="roofline", repeats=True)
    return None


def occupancy_section(document: RunDocument, texts: Texts, kernels: Sequence[KernelRow]) -> Section | None:
    """Occupancy of each kernel: achieved of what is possible, and what allows no more."""
    summary = texts.get("occupancy")
    names = ("occupancy.theoretical", "occupancy.achieved")
    rows = [row for row in kernels if any(row.value(name) is not None for name in names)]
    if not rows:
        if summary is None or is_metal(document):
            return None
        return without_chart("occupancy", "Occupancy", summary.headline, _fix_of(summary))
    bars = tuple(_occupancy(document, row) for row in rows[:_BARS])
    more = len(rows) - len(bars)
    legend = "Solid: achieved. Light: what launch and resources allow. Dotted line: target."
    legend += f" {plural(more, 'further kernel')} in the table." if more else ""
    title = "Occupancy: warps that were there, of those that fit"
    chart = Bars("occupancy", title, _sentences(bars[:6]), bars, 100.0, legend)
    return Section("Occupancy", (chart_group([chart]),), _headline(summary), anchor="occupancy", repeats=True)


def _occupancy(document: RunDocument, row: KernelRow) -> Bar:
    achieved, most = row.value("occupancy.achieved"), row.value("occupancy.theoretical")
    parts = [f"{format_percent(achieved)} %" if achieved is not None else "not counted"]
    parts += [f"of {format_percent(most)} %"] if most is not None else []
    words = " ".join(parts)
    share = f" ({format_percent(100 * row.share)} % of the GPU time)" if row.share is not None else ""
    why = limiters_clause(occupancy_limiters(row))
    reading = row.readings.get("occupancy.achieved")
    return Bar(
        row.label,
        achieved,
        words,
        f"{row.label}{share}: {words}{'; ' if why else ''}{why}",
        most,
        threshold_mark(document, "occupancy.achieved", row.scope),
        doubtful=reading is not None and (reading.doubt is not None or reading.quality == "estimated"),
        note=why,
        source=footnote_of(reading) if reading is not None else None,
    )


def levels_section(document: RunDocument, texts: Texts, kernels: Sequence[KernelRow]) -> Section | None:
    """Each level of memory: its bandwidth against the peak, and what misses it against the target."""
    charts = [
        chart
        for name, readings in _level_readings(document, kernels)
        for chart in _levels(document, name, readings)
    ]
    summaries = [one for concern in ("bandwidth", "cache") if (one := texts.get(concern))]
    if not charts and (not summaries or is_metal(document)):
        return None
    headline = " ".join(one.headline for one in summaries)
    if charts:
        return Section(
            "Memory, level by level", (chart_group(charts),), headline, anchor="levels", repeats=True
        )
    fix = next((fix for one in summaries if (fix := _fix_of(one))), None)
    return without_chart("levels", "Memory, level by level", headline, fix)


def _level_readings(
    document: RunDocument, kernels: Sequence[KernelRow]
) -> list[tuple[str, dict[str, Reading]]]:
    """The run's own readings, or those of its largest kernels that were counted, by name."""
    rows = [row for row in kernels if any(row.value(name) is not None for name in (*_LEVELS, *_MISSES))]
    if rows:
        return [
            (
                f"{row.label}, {format_percent(100 * row.share)} %" if row.share is not None else row.label,
                dict(row.readings),
            )
            for row in rows[:_LEVEL_KERNELS]
        ]
    scopes = main_scopes(document)
    names = (*_LEVELS, *_MISSES, *(rate for rate, _ in _LEVELS.values() if rate))
    known = {name: best_reading(document.readings, name, scopes) for name in names}
    return [("", {name: reading for name, reading in known.items() if reading is not None})]


def _levels(document: RunDocument, name: str, readings: dict[str, Reading]) -> list[Bars]:
    shares = []
    for key, (rate, title) in _LEVELS.items():
        if key in readings:
            behind = readings.get(rate) if rate else None
            known = behind is not None and behind.value is not None
            before = f"{format_quantity(behind.value, 'B/s')}, " if behind is not None and known else ""
            shares.append(_level(document, readings[key], title, before))
    misses = [_level(document, readings[key], title, "") for key, title in _MISSES.items() if key in readings]
    of = f": {name}" if name else ""
    drawn = (
        ("levels", "Bandwidth, of peak", "the peak", shares),
        ("misses", "Misses", "every access that reaches the level", misses),
    )
    return [
        Bars(
            kind,
            f"{title}{of}",
            _sentences(bars),
            tuple(bars),
            100.0,
            f"Full width: {full}. Dotted line: target. Outlined: simulated, estimated or doubted.",
        )
        for kind, title, full, bars in drawn
        if any(bar.value is not None for bar in bars)
    ]


def _level(document: RunDocument, reading: Reading, title: str, before: str) -> Bar:
    name, source = metric(reading.metric).title, footnote_of(reading)
    if reading.value is None:
        return Bar(title, None, "not known", f"{name}: {reading.reason}", source=source)
    marks = threshold_mark(document, reading.metric, reading.scope)
    quality = f" ({reading.quality})" if reading.quality != "measured" else ""
    words = f"{before}{format_percent(reading.value)} %{' ?' if reading.doubt else ''}"
    against = f"; {marks[0].hover}" if marks else ""
    doubt = f"; doubted: {reading.doubt}" if reading.doubt else ""
    doubtful = reading.quality in ("simulated", "estimated") or reading.doubt is not None
    text = f"{name}: {words}{quality}{against}{doubt}"
    return Bar(title, reading.value, words, text, marks=marks, doubtful=doubtful, source=source)


def _sentences(bars: Sequence[Bar]) -> str:
    return ". ".join(bar.hover for bar in bars) + "."


# ---------------------------------------------------------------- functions


def flame_section(document: RunDocument, texts: Texts, extras: Extras) -> Section | None:
    """A flame graph for each event that was sampled."""
    title, anchor = "Flame graph", "flame-graph"
    flames = [flame for stacks in extras.stacks if (flame := flame_of(stacks)) is not None]
    if flames:
        headline = "Widths are shares of the samples; callers stand above what they call."
        graphs = tuple(Charts((FlameGraph(flame),), repeats=True) for flame in flames[:_FLAMES])
        return Section(title, graphs, headline, anchor=anchor, repeats=True)
    timed = document.trace is not None and document.trace.span is not None
    if is_metal(document) and any(is_sampled(profile) for profile in document.profiles):
        return None  # it was sampled, and the page of a run folder without its stacks has its hot spots alone
    if backend_named(document.backend).has_device and (document.plan is not None or timed):
        headline = "Where its host spends the time is not known."
        fix = f"profkit profile {place_option(document)}--backend {document.backend} --passes timing,stacks -- COMMAND"
        body = NoChart("No stacks were sampled.", fix)
        return Section(title, (body,), headline, anchor=anchor, repeats=True)
    trace = texts.get("trace")
    if document.plan is None or trace is None or trace.tables:
        return None
    body = NoChart("There are no sampled stacks.", _fix_of(trace))
    return Section(title, (body,), trace.headline, anchor=anchor, repeats=True)


def python_section(document: RunDocument, texts: Texts) -> Section | None:
    """Python's functions by own time, and by that of all they call."""
    summary = texts.get("python")
    profiles = {profile.kind: profile for profile in document.profiles}
    sampled = "sampled-functions" in profiles
    chosen: tuple[tuple[ProfileKind, str, Callable[[Hotspot], float]], ...] = (
        ("sampled-functions" if sampled else "own-time", "by own time", lambda spot: spot.own),
        (
            "sampled-functions" if sampled else "cumulative-time",
            "with what they call",
            lambda spot: spot.total if spot.total is not None else spot.own,
        ),
    )
    charts = [
        _functions(profiles[kind], f"Python functions {words}", by)
        for kind, words, by in chosen
        if kind in profiles and profiles[kind].hotspots
    ]
    if charts:
        note = "; ".join(summary.notes) if summary else ""
        return Section(
            "Python", (chart_group(charts, note),), _headline(summary), anchor="python", repeats=True
        )
    if summary is None or document.plan is None:
        return None
    return without_chart("python", "Python", summary.headline, _fix_of(summary))


def _functions(profile: Profile, title: str, by: Callable[[Hotspot], float]) -> Bars:
    whole = profile.total
    # Less than a thousandth of the whole is no hot spot.
    spots = [spot for spot in sorted(profile.hotspots, key=by, reverse=True) if by(spot) > whole / 1000]
    bars = tuple(_function(spot, profile, by(spot)) for spot in spots[:_BARS])
    more = len(spots) - len(bars)
    rest = f" {plural(more, 'further function')} not drawn." if more > 0 else ""
    heading = f"{title} ({format_quantity(whole, profile.unit)} in all)"
    legend = "Solid: its own time. Light: with all that it calls." + rest
    return Bars("python", heading, _sentences(bars[:6]), bars, whole if whole > 0 else None, legend)


def _function(spot: Hotspot, profile: Profile, value: float) -> Bar:
    share = f", {format_percent(100 * value / profile.total)} %" if profile.total > 0 else ""
    total = f", with callees {format_quantity(spot.total, profile.unit)}" if spot.total is not None else ""
    calls = f", {plural(spot.calls, 'call')}" if spot.calls is not None else ""
    text = f"{function_place(spot)}: own {format_quantity(spot.own, profile.unit)}{total}{calls}"
    return Bar(
        function_place(spot), spot.own, f"{format_quantity(value, profile.unit)}{share}", text, spot.total
    )


# ---------------------------------------------------------------- memory


def memory_section(document: RunDocument, texts: Texts, extras: Extras) -> Section | None:
    """Peaks side by side, what is held after each iteration, and who allocated most."""
    summary = texts.get("memory")
    charts = [*_peaks(document), *_allocated(extras)]
    if charts:
        remarks = (
            note[:1].upper() + note[1:].rstrip(".") + "." for note in (summary.notes if summary else ())
        )
        body = chart_group(charts, " ".join(remarks))
        return Section("Memory", (body,), _headline(summary), anchor="memory", repeats=True)
    if summary is None or document.plan is None:
        return None
    return without_chart("memory", "Memory", summary.headline, _fix_of(summary))


def _peaks(document: RunDocument) -> list[Block]:
    scopes = main_scopes(document)
    bars = []
    for name in _PEAKS:
        reading = best_reading(document.readings, name, scopes)
        if reading is not None and reading.value is not None:
            title, words = metric(name).title, format_quantity(reading.value, reading.unit)
            bars.append(Bar(title, reading.value, words, f"{title}: {words}", source=footnote_of(reading)))
    return [Bars("memory", "Peaks of memory", _sentences(bars), tuple(bars))] if bars else []


def _allocated(extras: Extras) -> list[Block]:
    found = extras.allocations
    if found is None:
        return []
    growth = found.growth
    text = growth.reason[:1].upper() + growth.reason[1:]
    if growth.per_iteration is not None:
        text += f": {format_quantity(growth.per_iteration, 'B')} each iteration."
    points = tuple((float(x), float(y)) for x, y in found.points)
    growing = [line for line in found.growing if line.size > 0] if growth.leak else []
    return [
        growth_chart(points, "Held by Python after each iteration", text),
        *_source_lines("Lines that hold most", found.top),
        *_source_lines("Lines that grow", growing),
    ]


def _source_lines(title: str, lines: Sequence[AllocationLine]) -> list[Block]:
    bars = tuple(
        Bar(
            f"{'/'.join(line.file.replace(chr(92), '/').split('/')[-2:])}:{line.line}",
            float(line.size),
            format_quantity(float(line.size), "B"),
            f"{line.file}:{line.line}: {format_quantity(float(line.size), 'B')} in {plural(line.count, 'block')}",
        )
        for line in lines[:_LINES]
    )
    return [Bars("allocations", title, _sentences(bars[:4]), bars)] if bars else []
