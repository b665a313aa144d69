"""How long an iteration takes, sample by sample: a histogram for each process, and the samples in their order."""

from __future__ import annotations

from profkit.analysis.summaries.time import ProcessDistribution, SampleDistribution
from profkit.core.formatting import format_percent, format_quantity, plural
from profkit.reporting.charts.axes import Box, Scale, box_for, linear, ticks, x_axis, y_axis
from profkit.reporting.charts.svg import (
    FONT,
    LINE,
    WIDTH,
    curve,
    fitted,
    focusable,
    frame,
    line,
    rect,
    text,
    wrapped,
)

ROW = 46.0  # the height of one process
MOST_ROWS = 12  # processes that are drawn; more are counted in a line
PANELS = 150.0
_LEGEND = "Line: median. Bar below it: its 95 % interval. Shaded: that of all processes together."


def distribution_chart(spread: SampleDistribution) -> str:
    """A row for each process: how many samples lie where, its median with the 95 % interval, and what lies outside."""
    shown = spread.processes[:MOST_ROWS]
    title = f"Time of {spread.name}"
    top = LINE + 6
    bottom = top + ROW * len(shown)
    scale = Scale(spread.begin, spread.end, 8, WIDTH - 8, log=spread.log)
    found, unit = ticks(scale, "s", 5)
    heading = f"{title} ({unit.name})" if unit.name else title
    drawn = [text((2, FONT), fitted(heading, WIDTH - 4), "t")]
    box = Box(8, top, WIDTH - 8, bottom)
    if spread.low is not None and spread.high is not None:
        left, right = scale(spread.low), scale(spread.high)
        label = f"95 % interval of the median over processes: {_between(spread.low, spread.high)}"
        drawn.append(rect(left, top, max(1.0, right - left), bottom - top, "band", label))
    for index, process in enumerate(shown):
        drawn += _row(process, scale, top + ROW * index)
    drawn += x_axis(box, scale, found)
    more = len(spread.processes) - len(shown)
    rest = f" {plural(more, 'further process', 'further processes')} not drawn." if more else ""
    words, height = notes(_LEGEND + rest, bottom + LINE + 6)
    return frame("distribution", height, title, _told(spread), [*drawn, *words])


def notes(words: str, y: float) -> tuple[list[str], float]:
    """Small print below a chart from `y` on, in as many lines as it needs, and where it ends."""
    lines = wrapped(words, WIDTH - 4)
    drawn = [text((2, y + FONT + LINE * index), one, "note") for index, one in enumerate(lines)]
    return drawn, y + LINE * len(lines) + 4


def _row(process: ProcessDistribution, scale: Scale, y: float) -> list[str]:
    """Bars of the histogram upon a base line, words above them at the left, and the median through both."""
    base, tall = y + ROW - 6, ROW - 6 - LINE
    peak = max(process.bins, default=0) or 1
    wide = (scale.end - scale.start) / len(process.bins)
    outline = [(scale.start, base)]
    for index, count in enumerate(process.bins):
        level = base - tall * count / peak
        outline += [(scale.start + wide * index, level), (scale.start + wide * (index + 1), level)]
    outline.append((scale.end, base))
    middle = scale(process.median)
    words = f"{process.number}: {format_quantity(process.median, 's')}, {plural(process.count, 'sample')}"
    mark = curve(outline, "bins", closed=True)
    if process.low is not None and process.high is not None:
        left, right = scale(process.low), scale(process.high)
        mark += rect(left, base + 1, max(1.0, right - left), 3, "s2")
    mark += line(middle, y + LINE - 2, middle, base + 4, "median")
    beyond = [
        f"‹ {process.below} below" if process.below else "",
        f"{process.above} beyond ›" if process.above else "",
    ]
    outside = "  ".join(part for part in beyond if part)
    return [
        text((scale.start, y + FONT), words),
        *([text((scale.end, y + FONT), outside, "e note")] if outside else []),
        focusable(mark, _process(process)),
    ]


def sequence_chart(spread: SampleDistribution) -> str:
    """Samples in the order in which they were taken, process by process: drift, and the warm-up that is not counted."""
    shown = spread.processes[:MOST_ROWS]
    title = f"Samples of {spread.name} in their order"
    values = [edge for one in shown for _, low, _, high in one.sequence for edge in (low, high)]
    # As far as the histogram reaches, so that a single hiccup does not flatten everything else.
    kept = [min(spread.end, max(spread.begin, value)) for value in values]
    first, unit = ticks(linear(kept, 1.0, 0.0), "s", 4)
    box = box_for(first, PANELS, below=8)
    scale = linear(kept, box.bottom, box.top)
    drawn = y_axis(box, scale, first, f"{title} ({unit.name})" if unit.name else title)
    drawn.append(line(box.left, box.bottom, box.right, box.bottom, "axis"))
    wide = (box.right - box.left) / len(shown)
    for index, process in enumerate(shown):
        drawn += _panel(process, scale, box, box.left + wide * index, wide)
    warm = any(process.warmup for process in shown)
    note = "One stretch for each process; band: from the fastest to the slowest of neighbours."
    if warm:
        note += " Dashed: warm-up, not counted."
    words, height = notes(note, PANELS - 4)
    return frame("sequence", height, title, _in_order(spread), [*drawn, *words])


def _panel(process: ProcessDistribution, scale: Scale, box: Box, left: float, wide: float) -> list[str]:
    early = min(0.2, len(process.warmup) / max(1, len(process.warmup) + len(process.sequence)))
    start, room = left + wide * early + 2, wide * (1 - early) - 4
    mark = ""
    if len(process.sequence) == 1:
        place, _, middle, _ = process.sequence[0]
        mark += rect(start + room * place - 1.5, scale(middle) - 1.5, 3, 3, "s1")
    else:
        upper = [(start + room * place, scale(high)) for place, _, _, high in process.sequence]
        lower = [(start + room * place, scale(low)) for place, low, _, _ in reversed(process.sequence)]
        mark += curve([*upper, *lower], "area", closed=True)
        mark += curve(
            [(start + room * place, scale(middle)) for place, _, middle, _ in process.sequence], "line"
        )
    drawn = [focusable(mark, _process(process))]
    if process.warmup and early * wide > 1:
        points = [
            (left + 1 + (early * wide - 1) * place, scale(middle)) for place, _, middle, _ in process.warmup
        ]
        points.append((start + room * process.sequence[0][0], scale(process.sequence[0][2])))
        drawn.append(curve(points, "warm"))
    if left > box.left + 1:
        drawn.append(line(left, box.top, left, box.bottom, "grid"))
    return drawn


def _process(process: ProcessDistribution) -> str:
    parts = [
        f"process {process.number}: median {format_quantity(process.median, 's')} of {plural(process.count, 'sample')}"
    ]
    if process.low is not None and process.high is not None:
        parts.append(f"95 % interval {_between(process.low, process.high)}")
    if process.outliers:
        parts.append(plural(process.outliers, "outlier"))
    if process.drift:
        parts.append(f"drifts by {format_percent(100 * process.drift)} %")
    return "; ".join(parts)


def _between(low: float, high: float) -> str:
    return f"{format_quantity(low, 's')} to {format_quantity(high, 's')}"


def _told(spread: SampleDistribution) -> str:
    whole = f"Median over processes {format_quantity(spread.median, 's')}"
    if spread.low is not None and spread.high is not None:
        whole += f", 95 % interval {_between(spread.low, spread.high)}"
    return ". ".join([whole, *(_process(process) for process in spread.processes[:MOST_ROWS])]) + "."


def _in_order(spread: SampleDistribution) -> str:
    drifting = [one for one in spread.processes if one.drift]
    if not drifting:
        return "No drift stands out of the noise in any process."
    drifts = ", ".join(f"process {one.number} by {format_percent(100 * one.drift)} %" for one in drifting)
    return f"It drifts: {drifts}."
