"""A history as static pages: what changed, each workload with its level, and a page for each workload.

The folder is the site's own, known again by a marker. Its pages are replaced one by one, the first page last, and no
link in it is followed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import MachineError, UsageError
from profkit.core.files.safe_folder import (
    chown_to_sudo_user,
    make_folder,
    make_parents,
    opened,
    remember,
    write_whole,
)
from profkit.core.formatting import format_percent, format_quantity, plural
from profkit.core.types import Entry, HistorySummary, SeriesSummary
from profkit.core.types.history import SUMMARY_DAYS
from profkit.reporting.html.page import render
from profkit.reporting.view import (
    Block,
    Paragraph,
    Section,
    Span,
    Status,
    Text,
    View,
    code,
    command,
    strong,
    table,
)
from profkit.reporting.views.history import title_of, trend_blocks

MARKER = "profkit-site.txt"
MARK = "Pages of profkit history site: they are replaced as a whole when they are written again.\n"
MOST_CHANGES = 60
MOST_ROWS = 4  # metrics of one workload on the first page: of a sweep each of a thousand cases gates
MOST_DRAWN = 12  # series of one workload: a chart of a year is 50 kB
# What a folder that is published may hold beforehand: a checkout, and what its host reads.
_HOSTS = frozenset({".git", ".nojekyll", ".gitignore", "CNAME"})
_PAGE = re.compile(r"workload-[a-z0-9_-]+\.html|\..+\.tmp")
_COLUMNS = ("series", "level now", f"over {SUMMARY_DAYS} days", "last night")
_ELSEWHERE = "--to a new folder, or an empty one"


# ---------------------------------------------------------------- the folder


def prepare_folder(target: Path) -> Path:
    """The folder for a site: made, or empty, or with a site in it. No link below it is followed from now on.

    Raises UsageError where it holds anything else, MachineError where it cannot be made.
    """
    try:
        missing = [path for path in (target, *target.parents) if not os.path.lexists(path)]
        make_parents(target.parent)
        with opened(target.parent):  # it may be reached: then a link to it is one that the user means
            folder = target.parent.resolve() / target.name
        if missing:
            make_folder(folder)
            chown_to_sudo_user(*missing)
        else:
            with opened(target):
                folder = target.resolve()
            remember(folder)
            _check_content(target, folder)
        write_whole(folder / MARKER, (MARK,))
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{target} is not a folder", _ELSEWHERE) from error
    except OSError as error:
        raise _cannot_write(target, error) from error
    return folder


def _check_content(target: Path, folder: Path) -> None:
    with opened(folder) as inside:
        there = set(os.listdir(inside)) - _HOSTS
        marker = inside / MARKER
        if there and (MARKER not in there or marker.is_symlink()):
            some = ", ".join(sorted(there)[:3])
            raise UsageError(f"{target} holds other files, and no site: {some}", _ELSEWHERE)


def _cannot_write(target: Path, error: OSError) -> MachineError:
    reason = f"cannot write pages to {target}: {error.strerror or error}; pages that are there stay usable"
    return MachineError(reason, "--to DIR elsewhere")


def write_site(folder: Path, files: Iterable[tuple[str, str]]) -> tuple[int, int]:
    """Write all files into a folder that was prepared, and remove former pages at the end: how many, and their bytes.

    Raises MachineError where it cannot be written.
    """
    written: dict[str, int] = {}
    try:
        for name, content in files:
            write_whole(folder / name, (content,))
            written[name] = len(content.encode())
        with opened(folder) as place:
            for name in os.listdir(place):
                if name not in written and _PAGE.fullmatch(name):
                    (place / name).unlink()
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        chown_to_sudo_user(folder)
    return len(written), sum(written.values())


# ---------------------------------------------------------------- the pages


@dataclass(frozen=True)
class _Workload:
    """A workload with its page, its series in their order there, and its runs."""

    name: str
    page: str
    series: tuple[SeriesSummary, ...]
    entries: tuple[Entry, ...]


def site_files(summary: HistorySummary, title: str = "Performance over time") -> Iterator[tuple[str, str]]:
    """Name and content of every file; `index.html`, which links to the others, is the last."""
    workloads = _workloads(summary)
    for one in workloads:
        yield one.page, render(_workload_view(one))
    yield "index.html", render(_overview(summary, workloads, title))


def page_name(name: str) -> str:
    """The page of a workload: letters, digits and dashes, the same at every writing.

    >>> page_name("gated mlp"), page_name("GATED mlp")
    ('workload-gated-mlp-3d78b4bc.html', 'workload-gated-mlp-6fe3fae4.html')
    """
    plain = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:60].strip("-")
    # Where the page is not called as the workload is, another workload's may be called the same.
    mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"workload-{plain if plain == name and plain else f'{plain}-{mark}'.lstrip('-')}.html"


def _workloads(summary: HistorySummary) -> list[_Workload]:
    runs: dict[str, list[Entry]] = {}
    series: dict[str, list[SeriesSummary]] = {}
    for entry in summary.entries:
        runs.setdefault(entry.workload, []).append(entry)
    for one in summary.series:
        series.setdefault(one.trend.series.key.workload, []).append(one)
    return [
        _Workload(
            name, page_name(name), tuple(sorted(series.get(name, ()), key=_rank)), tuple(runs.get(name, ()))
        )
        for name in sorted({*runs, *series}, key=lambda name: (name.lower(), name))
    ]


def _rank(one: SeriesSummary) -> tuple[bool, bool, str]:
    """What can fail a night first, then times."""
    metric = one.trend.series.key.metric
    return not one.gates, not metric.startswith("time."), metric


def _overview(summary: HistorySummary, workloads: Sequence[_Workload], title: str) -> View:
    if not summary.entries:
        line = command("profkit history add reports/*/")
        return View(title, (Paragraph(("No run is stored yet: ", line, " adds runs.")),))
    told = f"{plural(len(summary.entries), 'run')} of {plural(len(workloads), 'workload')}"
    rows = [row for one in workloads for row in _rows(one, _foremost(one.series))]
    listed = Section("Workloads", (table(_COLUMNS, rows, words=len(_COLUMNS)),))
    return View(title, (_changes(workloads), listed), headline=(told + _dates(summary.entries),))


def _changes(workloads: Sequence[_Workload]) -> Section:
    """The changes of all series that can fail a night, the newest first; where none can, of all."""
    gating = any(series.gates for one in workloads for series in one.series)
    found = [
        (change.started or series.trend.series.points[change.index].started, one, series, change)
        for one in workloads
        for series in one.series
        if series.gates or not gating
        for change in series.trend.change_points
    ]
    found.sort(key=lambda row: row[0], reverse=True)
    if not found:
        return Section("What changed lately", (Paragraph("No change was found in any series."),))
    rows = []
    for started, one, series, change in found[:MOST_CHANGES]:
        unit, linked = series.trend.series.unit, Span(title_of(series.trend.series), link=one.page)
        values = f"{format_quantity(change.before, unit)} → {format_quantity(change.after, unit)}"
        commit = code(change.commit[:10]) if change.commit else ""
        by = _by(series, change.before, change.after)
        rows.append((started[:10], linked, values, by, commit))
    columns = ("since", "series", "from, to", "change", "commit")
    left = max(0, len(found) - MOST_CHANGES)
    return Section("What changed lately", (table(columns, rows, words=len(columns), left=left),))


def _foremost(series: Sequence[SeriesSummary]) -> Sequence[SeriesSummary]:
    """Those that can fail a night, of many those that changed last; without any the first."""
    gates = [one for one in series if one.gates]
    gates.sort(key=lambda one: -max((c.index for c in one.trend.change_points), default=-1))
    return gates[:MOST_ROWS] or series[:1]


def _rows(one: _Workload, shown: Sequence[SeriesSummary]) -> Iterator[tuple[Text, ...]]:
    night = _outcome(one.entries[-1]) if one.entries else ""
    for series in shown:
        name = Span(title_of(series.trend.series), link=one.page)
        by = _by(series, series.before, series.level, series.counts)
        yield name, format_quantity(series.level, series.trend.series.unit), by, night
    if not shown:
        yield Span(one.name, link=one.page), "no value", "", night


def _workload_view(one: _Workload) -> View:
    blocks: list[Block] = [Paragraph(Span("All workloads", link="index.html"))]
    blocks += [
        Section(title_of(series.trend.series), tuple(trend_blocks(series.trend)))
        for series in one.series[:MOST_DRAWN]
    ]
    rows = list(_rows(one, one.series))
    blocks.append(Section("All series", (table(_COLUMNS, rows, words=len(_COLUMNS)),)))
    told = f"{plural(len(one.entries), 'run')}{_dates(one.entries)}, {plural(len(one.series), 'series', 'series')}"
    return View(one.name, tuple(blocks), headline=(told,))


# ---------------------------------------------------------------- texts


def _by(series: SeriesSummary, before: float | None, after: float | None, least: float | None = 0.0) -> Text:
    """`▲ 5.2 % worse`: how a value changed, with its direction in a word where that is known and enough to count."""
    if before is None or after is None or before <= 0 or after < 0:
        return "-"
    ratio, better = after / before, series.trend.series.better
    by = f"{'▲' if ratio > 1 else '▼' if ratio < 1 else '='} {format_percent(100 * abs(ratio - 1))} %"
    if least is None or abs(ratio - 1) < least or better == "none":
        return by
    worse = (ratio > 1) == (better == "lower")
    return by, " ", strong("worse", Status.FAIL) if worse else strong("better", Status.BETTER)


def _outcome(entry: Entry) -> Text:
    if not entry.valid:
        return Span(f"not valid: {entry.reason or entry.state}", status=Status.INVALID)
    return Span(
        entry.outcome or "-", status=Status.FAIL if entry.outcome in ("regressed", "missing") else None
    )


def _dates(entries: Sequence[Entry]) -> str:
    return f", {entries[0].started[:10]} to {entries[-1].started[:10]}" if entries else ""
