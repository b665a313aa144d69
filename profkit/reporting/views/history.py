"""Views of the stored runs: the history's entries, one entry with its values, and trends of values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.core.formatting import format_quantity, format_utc_time, plural
from profkit.core.types import AcceptedChange, ChangePoint, Entry, Series, Trend, Value
from profkit.reporting.charts.marks import ChartGroup
from profkit.reporting.charts.trend import change_text, course_of, day_of, segment_reason, trend_chart
from profkit.reporting.columns import Column, data_table
from profkit.reporting.facts import fact_text
from profkit.reporting.view import Block, ItemList, Paragraph, Section, Span, Status, Text, View, soft, table

_MAX_PLOTS = 12  # trends that are drawn; the table below has all of them
_LOOKED_AT = 10  # values from which changes are looked for


def trends_view(trends: Sequence[Trend]) -> View:
    """Return the trends as charts with their changes, those that changed first, then all of them as a table.

    At most `_MAX_PLOTS` are drawn; the table has every one. A single trend has no table.
    """
    ordered = sorted(trends, key=lambda trend: (not trend.change_points, -len(trend.series.points)))
    blocks: list[Block] = [
        Section(title_of(trend.series), tuple(trend_blocks(trend))) for trend in ordered[:_MAX_PLOTS]
    ]
    if len(ordered) > 1:
        blocks.append(series_table(ordered))
    if len(ordered) == 1:
        return View(title_of(ordered[0].series), tuple(trend_blocks(ordered[0])))
    changed = sum(bool(trend.change_points) for trend in trends)
    return View(f"{plural(len(trends), 'series', 'series')} over time, {changed} changed", tuple(blocks))


def series_table(trends: Sequence[Trend]) -> Section:
    """Return a table with a row for each trend."""
    columns = ("series", "values", "first", "last", "changes", "noise")
    return Section("All series", (table(columns, [_row(trend) for trend in trends]),))


def title_of(series: Series) -> str:
    """Return `gated_mlp time.median (region gated_mlp) on cpu`; the scope is left out where it has no name."""
    key = series.key
    scope = key.scope
    name = f" ({scope.kind} {scope.name})" if scope.name else ""
    backend = f" on {key.backend}" if key.backend else ""
    return f"{key.workload} {key.metric}{name}{backend}"


def trend_blocks(trend: Trend) -> Iterator[Block]:
    """Yield a trend's chart, its segments, its changes, and notes on values that do not count."""
    series = trend.series
    yield ChartGroup((trend_chart(trend),))
    first, last = series.points[0].started, series.points[-1].started
    yield Paragraph(soft(f"{plural(len(series.points), 'value')}, {day_of(first)} to {day_of(last)}"))
    for segment in trend.epochs[1:]:
        started = day_of(series.points[segment.first].started)
        yield Paragraph(f"┊ {started}: a new segment begins: {segment_reason(series, segment)}")
    for change in trend.change_points:
        yield Paragraph(change_line(series, change))
    if not trend.change_points and len(series.points) >= _LOOKED_AT:
        yield Paragraph("No change found.")
    for note in _notes(trend):
        yield Paragraph(soft(note))


def _notes(trend: Trend) -> Iterator[str]:
    """Yield how many values are not valid, and whether too few are left to look for a change."""
    points = trend.series.points
    left_out = sum(not point.valid for point in points)
    if left_out:
        yield f"{left_out} of {len(points)} values are not valid and are ignored"
    if len(points) - left_out < _LOOKED_AT:
        yield f"{plural(len(points) - left_out, 'value')}: too few to detect a change; at least {_LOOKED_AT} are needed"


def change_line(series: Series, change: ChangePoint) -> Text:
    """Return when a value changed, from what to what, coloured by whether that is worse or better."""
    worse = course_of(series, change)
    status = None if worse is None else Status.FAIL if worse else Status.BETTER
    return Span(f"▲ {change_text(series, change)}", status=status)


def _row(trend: Trend) -> tuple[Text, ...]:
    """Return a trend's row: first and last valid value, number of changes, and noise in %."""
    points = [point for point in trend.series.points if point.valid]
    unit = trend.series.unit
    return (
        title_of(trend.series),
        str(len(trend.series.points)),
        format_quantity(points[0].value, unit) if points else "-",
        format_quantity(points[-1].value, unit) if points else "-",
        str(len(trend.change_points)),
        f"{trend.noise * 100:.2g} %" if trend.noise is not None else "-",
    )


SHOWN = 8  # characters of an id: a thousand runs share that much with a chance of 1 in 8,000
_MAX_VALUES = 400  # of one run that are shown


def history_view(entries: Sequence[Entry], accepted: Sequence[AcceptedChange], path: str, total: int) -> View:
    """Return the runs, newest first, and the accepted changes.

    `entries` are those that were selected of the `total` runs in the history file at `path`.
    """
    if not entries:
        empty = "It is empty: profkit history add RUN"
        if total:
            empty = f"None of its {plural(total, 'run')}."
        return View(f"{path}: no runs. {empty}", ())
    rows = [
        (
            entry.workload,
            entry.id[:SHOWN],
            entry.started[:16].replace("T", " "),
            entry.backend,
            _state(entry),
            (entry.commit or "-")[:8] + ("+" if entry.dirty else ""),
        )
        for entry in reversed(entries)
    ]
    shown = f"{len(entries)} of {plural(total, 'run')}" if len(entries) < total else plural(total, "run")
    blocks: list[Block] = [
        table(("workload", "run", "started (UTC)", "on", "state", "commit"), rows, words=6)
    ]
    if accepted:
        blocks.append(Section("Accepted changes", (ItemList(tuple(map(_accepted, accepted))),)))
    return View(f"{shown} in {path}", tuple(blocks))


def entry_view(entry: Entry) -> View:
    """Return one stored run: its facts, and every value."""
    facts = {
        "run": entry.id,
        "state": _state(entry),
        "why": fact_text(entry.reason),
        "source": entry.source,
        "commit": (entry.commit or "") + (" with changes" if entry.dirty else ""),
        "night": entry.night,
        "folder": entry.path,
        "machine": entry.machine,
        **{feature.name: feature.value for feature in entry.features},
        **entry.facts,
    }
    return View(
        f"{entry.workload} on {entry.backend}, {format_utc_time(entry.started)}",
        tuple(_entry_blocks(entry)),
        facts=tuple((name, text) for name, text in facts.items() if text),
    )


def _entry_blocks(entry: Entry) -> Iterator[Block]:
    """Yield an entry's values and the reasons why some are contradicted.

    Values of `time.median` come last: a sweep has thousands of them, one per case.
    """
    values = sorted(entry.values, key=lambda value: value.key.metric == "time.median")
    if values:
        yield data_table(_VALUES, values[:_MAX_VALUES], left=max(0, len(values) - _MAX_VALUES))
    reasons = dict.fromkeys(fact_text(value.doubt) for value in entry.values if value.doubt)
    if reasons:
        yield ItemList(tuple(f"contradicted: {reason}" for reason in reasons))


def _place(value: Value) -> str:
    """Return a value's scope, `region mlp`; empty for the whole run."""
    scope = value.key.scope
    return f"{scope.kind} {scope.name}" if scope.kind != "run" else ""


def _quality(value: Value) -> str:
    """Return `contradicted` or a value's quality; empty where it was simply measured."""
    return "contradicted" if value.doubt else value.quality if value.quality != "measured" else ""


def _state(entry: Entry) -> str:
    """Return the outcome of a valid run, else the state in which it ended; `not valid` where it completed."""
    if not entry.valid:
        return "not valid" if entry.state == "complete" else entry.state
    return entry.outcome or entry.state


def _interval(value: Value) -> str:
    """Return the value's 95 % interval, `1.2 ms to 1.3 ms`; `-` where it is not known."""
    if value.low is None or value.high is None:
        return "-"
    return f"{format_quantity(value.low, value.unit)} to {format_quantity(value.high, value.unit)}"


_VALUES: tuple[Column[Value], ...] = (
    Column("metric", lambda value: value.key.metric),
    Column("in", _place),
    Column("value", lambda v: v.value, "count", text=lambda v: format_quantity(v.value, v.unit)),
    Column("95 % interval", lambda v: v.low, "count", text=_interval),
    Column("quality", _quality),
)


def _accepted(change: AcceptedChange) -> Text:
    """Return the line for an accepted change: who accepted it, of what, since when, and why."""
    what = f"{change.workload} {change.metric}" if change.metric else change.workload
    by = f" by {change.by}" if change.by else ""
    return soft(f"accepted{by}: {what} since {change.since[:16].replace('T', ' ')}: {change.word}")
