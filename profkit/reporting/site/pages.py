"""The pages of a history, each a view: what changed lately with all workloads, and one for each workload."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from profkit.backends import kernel_word
from profkit.core.errors import UsageError
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten
from profkit.core.types import ChangePoint, Entry, HistorySummary, SeriesKey, SeriesSummary
from profkit.core.types.history import SUMMARY_DAYS
from profkit.reporting.html.page import render
from profkit.reporting.site.lately import Event, SeriesChange, events_of
from profkit.reporting.view import (
    Block,
    Fold,
    Item,
    Items,
    Paragraph,
    Section,
    Span,
    Status,
    Style,
    Text,
    View,
    code,
    command,
    joined,
    soft,
    strong,
    table,
)
from profkit.reporting.views.history import trend_blocks

PAGES = "workload"  # folder of the site
MOST_EVENTS = 60
MOST_NAMED = 8  # further metrics of an event
MOST_ROWS = 4  # metrics of one workload on the first page: of a sweep each of a thousand cases gates
MOST_DRAWN = 12  # series of one workload: a chart of a year is 50 kB
MOST_RUNS = 100
UNIT_LENGTH = 24
_OUTCOMES = {
    "regressed": Status.FAIL,
    "missing": Status.FAIL,
    "invalid": Status.INVALID,
    "ambiguous": Status.UNKNOWN,
}

RunLink = Callable[[Entry], "str | None"]  # from a run to its page, relative to the pages of workloads


@dataclass(frozen=True)
class SiteOptions:
    """`commit_url` holds `{commit}`; `run_link` says where the page of a run is, relative to `workload/`."""

    title: str = "Performance over time"
    commit_url: str | None = None
    run_link: RunLink = field(default=lambda _: None)


@dataclass(frozen=True)
class _Workload:
    """A workload with its page (relative to the overview), its series in their order there, and its runs."""

    name: str
    page: str
    series: tuple[SeriesSummary, ...]
    entries: tuple[Entry, ...]


def check_commit_url(url: str | None) -> None:
    """Raise UsageError for what is no address of a web page with `{commit}` in it."""
    if url is not None and not (re.match(r"https?://[^/\s]", url) and "{commit}" in url):
        raise UsageError(
            f"--commit-url {url} is no address with {{commit}} in it",
            "--commit-url 'https://example.org/code/commit/{commit}'",
        )


def site_files(summary: HistorySummary, options: SiteOptions) -> Iterator[tuple[str, str]]:
    """Path (relative to the site) and content of every file; `index.html`, which links to the others, is the last."""
    workloads = _workloads(summary)
    for one in workloads:
        yield one.page, render(_workload_view(one, options))
    yield "index.html", render(_overview(summary, workloads, options))


def page_ids(names: Sequence[str]) -> dict[str, str]:
    """Of each workload the name of its page: letters, digits and dashes, the same at every writing.

    >>> page_ids(["gated mlp", "GATED mlp", "<b>"])
    {'gated mlp': 'gated-mlp-3d78b4bc', 'GATED mlp': 'gated-mlp-6fe3fae4', '<b>': 'b-f83bb6f9'}
    """
    made = {}
    for name in names:
        plain = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:60].strip("-")
        # Where the page is not called as the workload is, another workload's may be called the same.
        mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
        made[name] = plain if plain == name and plain else f"{plain}-{mark}".lstrip("-")
    return made


def _workloads(summary: HistorySummary) -> list[_Workload]:
    """All of them by name, each with its own runs and those that hold values of it."""
    by_id = {entry.id: entry for entry in summary.entries}
    runs: dict[str, dict[str, Entry]] = {}
    for entry in summary.entries:
        runs.setdefault(entry.workload, {})[entry.id] = entry
    series: dict[str, list[SeriesSummary]] = {}
    for one in summary.series:
        name = one.trend.series.key.workload
        series.setdefault(name, []).append(one)
        known = runs.setdefault(name, {})
        known |= {
            point.entry: by_id[point.entry] for point in one.trend.series.points if point.entry not in known
        }
    ids = page_ids(list(runs))
    return [
        _Workload(
            name,
            f"{PAGES}/{ids[name]}.html",
            tuple(sorted(series.get(name, ()), key=_place)),
            tuple(sorted(runs[name].values(), key=lambda entry: entry.started)),
        )
        for name in sorted(runs, key=lambda name: (name.lower(), name))
    ]


def _place(one: SeriesSummary) -> tuple[bool, bool, bool, str, str, str]:
    """What gates first, kernels and functions last; within each the times first."""
    key = one.trend.series.key
    part = key.scope.kind in ("kernel", "function")
    not_time = not key.metric.startswith("time.")
    return not one.gates, part, not_time, key.metric, key.scope.name or "", key.backend


# ---------------------------------------------------------------- texts


def _series_name(key: SeriesKey) -> str:
    """What tells a series from the others of its workload: `time.median of region gated_mlp on cpu`."""
    scope = key.scope
    kind = kernel_word(key.backend) if scope.kind == "kernel" else scope.kind
    of = "" if scope.name in (None, key.workload) else f" of {kind} {scope.name}"
    where = f" on {key.backend}" if key.backend else ""
    return f"{key.metric}{of}{f' ({scope.id})' if scope.id else ''}{where}"


def _quantity(value: float | None, unit: str) -> str:
    """A value with its unit, however long that is called."""
    return format_quantity(value, shorten(unit, UNIT_LENGTH))


def _share(ratio: float) -> str:
    by = 100 * abs(ratio - 1)
    return f"{format_percent(by)} %" if by < 1000 else f"× {format_figures(ratio)}"


def _step(change: ChangePoint) -> str:
    """`▲ 5.2 %`, `▼ 31.0 %`, `▲ × 12.4`; without a number where the ratio has no meaning."""
    sign = "▲" if change.after > change.before else "▼"
    return (
        sign
        if change.ratio is None or change.before < 0 or change.ratio < 0
        else f"{sign} {_share(change.ratio)}"
    )


def _course(worse: bool | None) -> Span:
    word, status = {True: ("worse", Status.FAIL), False: ("better", Status.BETTER), None: ("changed", None)}[
        worse
    ]
    return strong(word, status)


def _commit(entry: Entry | None, options: SiteOptions) -> Text:
    """The begin of a commit's name, as a link where there is one to it; empty where none is known."""
    if entry is None or not entry.commit:
        return ""
    name = entry.commit[:10] + ("+" if entry.dirty else "")
    if options.commit_url is None:
        return code(name)
    named = quote(entry.commit, safe="", errors="replace")
    return Span(name, Style.CODE, address=options.commit_url.replace("{commit}", named))


def _dates(entries: Sequence[Entry]) -> str:
    return f", {entries[0].started[:10]} to {entries[-1].started[:10]}" if entries else ""


# ---------------------------------------------------------------- the first page


def _overview(summary: HistorySummary, workloads: Sequence[_Workload], options: SiteOptions) -> View:
    if not summary.entries:
        line = command("profkit history add reports/*/")
        return View(options.title, (Paragraph(("No run is stored yet: ", line, " adds runs.")),))
    events = events_of(
        {one.name: one.series for one in workloads}, {one.name: one.entries for one in workloads}
    )
    machines = len({entry.machine for entry in summary.entries})
    told = (
        f"{plural(len(summary.entries), 'run')} of {plural(len(workloads), 'workload')} with"
        f" {plural(len(summary.series), 'series', 'series')}{_dates(summary.entries)}, on {plural(machines, 'machine')}"
    )
    pages = {one.name: one.page for one in workloads}
    lately: list[Block] = [
        Items(tuple(_event(one, pages[one.workload], options) for one in events[:MOST_EVENTS]))
    ]
    if not events:
        lately = [Paragraph("No change was found in any series.")]
    elif len(events) > MOST_EVENTS:
        lately.append(
            Paragraph(soft(f"{len(events) - MOST_EVENTS} older ones stand on the pages of their workloads."))
        )
    titles = ("workload", "metric", "level now", f"over {SUMMARY_DAYS} days", "last night")
    rows = [row for one in workloads for row in _rows(one)]
    listed = Section("Workloads", (table(titles, rows, words=len(titles)),))
    return View(options.title, (Section("What changed lately", tuple(lately)), listed), headline=(told,))


def _event(event: Event, page: str, options: SiteOptions) -> Item:
    lead = event.changes[0] if event.changes else None
    day = event.entry.started[:10]
    name = Span(event.workload, Style.STRONG, link=page)
    if lead is None:
        word = strong("✗ regressed", Status.FAIL)
        return Item((word, " ", name, f" {day}"), ("Decided that night; its series shows no step.",))
    below: list[Text] = [_from_to(lead)]
    if event.night is not None:
        below.append(("The night's outcome: ", strong("regressed", Status.FAIL)))
    if commit := _commit(event.entry, options):
        before = (
            _commit(event.before, options)
            if event.before and event.before.commit != event.entry.commit
            else ""
        )
        below.append(joined("Commit ", commit, *((", after ", before) if before else ())))
    others = event.changes[1:]
    if others:
        named = ", ".join(
            f"{_series_name(c.series.trend.series.key)} {_step(c.point)}" for c in others[:MOST_NAMED]
        )
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        below.append(f"{plural(len(others), 'more metric')} changed with it: {named}{more}")
    metric = _series_name(lead.series.trend.series.key)
    return Item(
        (strong(_step(lead.point)), " ", _course(lead.worse), " ", name, f" {metric} {day}"), tuple(below)
    )


def _from_to(change: SeriesChange) -> str:
    unit = change.series.trend.series.unit
    return f"{_quantity(change.point.before, unit)} → {_quantity(change.point.after, unit)}"


def _rows(one: _Workload) -> Iterator[tuple[Text, ...]]:
    """A row for each series that stands for it: those that gate, of many those that changed last; else the first."""
    name, night = Span(one.name, link=one.page), _outcome(one.entries[-1]) if one.entries else ""
    gates = [series for series in one.series if series.gates]
    if len(gates) > MOST_ROWS:
        gates = sorted(gates, key=lambda s: -max((c.index for c in s.trend.change_points), default=-1))[
            :MOST_ROWS
        ]
    shown = gates or one.series[:1]
    for series in shown:
        key, unit = series.trend.series.key, series.trend.series.unit
        yield name, _series_name(key), _quantity(series.level, unit), _change(series), night
    if not shown:
        yield name, "no value", "", "", night


def _change(one: SeriesSummary) -> Text:
    """How the level changed: with its direction in a word where it is large enough to count."""
    if one.level is None or not one.before or one.before < 0 or one.level < 0:
        return soft("-")
    ratio, better = one.level / one.before, one.trend.series.better
    by = f"{'+' if ratio >= 1 else '−'}{_share(ratio)}"
    if one.counts is None or abs(ratio - 1) < one.counts or better == "none":
        return soft(by)
    return by, " ", _course((ratio > 1) == (better == "lower"))


def _outcome(entry: Entry) -> Text:
    if not entry.valid:
        return Span(f"not valid: {entry.reason or entry.state}", status=Status.INVALID)
    return Span(entry.outcome or "-", status=_OUTCOMES.get(entry.outcome or ""))


# ---------------------------------------------------------------- a workload


def _workload_view(one: _Workload, options: SiteOptions) -> View:
    blocks: list[Block] = [
        Section(_series_name(s.trend.series.key), tuple(trend_blocks(s.trend)), headline=_level(s))
        for s in one.series[:MOST_DRAWN]
    ]
    if len(one.series) > 1:
        titles = ("series", "level now", f"over {SUMMARY_DAYS} days", "changes", "values")
        rows = [
            (
                _series_name(s.trend.series.key),
                _quantity(s.level, s.trend.series.unit),
                _change(s),
                str(len(s.trend.change_points)),
                str(len(s.trend.series.points)),
            )
            for s in one.series
        ]
        note = "" if len(one.series) <= MOST_DRAWN else f"The first {MOST_DRAWN} are drawn above."
        blocks.append(Section("All series", (table(titles, rows, words=len(titles), note=note),)))
    if not one.series:
        blocks.append(Paragraph("No value is stored of this workload."))
    blocks.append(_runs(one.entries, options))
    told = f"{plural(len(one.entries), 'run')}{_dates(one.entries)}, {plural(len(one.series), 'series', 'series')}"
    back = Span("All workloads", link="../index.html")
    return View(one.name, (Paragraph(back), *blocks), headline=(told,))


def _level(one: SeriesSummary) -> Text:
    if one.level is None:
        return ""
    level = f"{_quantity(one.level, one.trend.series.unit)} now; over {SUMMARY_DAYS} days "
    counts = (
        f"; a change counts from {format_percent(100 * one.counts)} % on" if one.counts is not None else ""
    )
    return joined(level, _change(one), counts)


def _runs(entries: Sequence[Entry], options: SiteOptions) -> Section:
    """The newest first, each with its commit and its report where that lies where it was."""
    rows = []
    for entry in reversed(entries[-MOST_RUNS:]):
        path = options.run_link(entry)
        report = Span("report", link=path) if path is not None else ""
        time = entry.started[:16].replace("T", " ")
        rows.append((time, _outcome(entry), _commit(entry, options), entry.machine[:12], report))
    left = len(entries) - len(rows)
    note = f"{plural(left, 'older run')}: profkit history list" if left > 0 else ""
    titles = ("run (UTC)", "outcome", "commit", "machine", "its report")
    return Section("Runs", (table(titles, rows, words=len(titles), note=note),), fold=Fold.FOLDED)
