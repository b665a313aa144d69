"""A history as static pages: what changed, each workload with its last run, and a page for each workload.

The folder is the site's own, known again by a marker. Its pages are replaced one by one, the first page last, and no
link in it is followed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
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
from profkit.core.formatting import plural
from profkit.core.types import Entry, Trend
from profkit.reporting.html.page import render
from profkit.reporting.view import (
    Block,
    Item,
    Items,
    Paragraph,
    Section,
    Span,
    Status,
    Text,
    View,
    command,
    table,
)
from profkit.reporting.views.history import change_line, series_table, title_of, trend_blocks

MARKER = "profkit-site.txt"
MARK = "Pages of profkit history site: they are replaced as a whole when they are written again.\n"
MOST_CHANGES = 60
MOST_DRAWN = 12  # series of one workload: a chart of a year is 50 kB
# What a folder that is published may hold beforehand: a checkout, and what its host reads.
_HOSTS = frozenset({".git", ".nojekyll", ".gitignore", "CNAME"})
_PAGE = re.compile(r"workload-[a-z0-9_-]+\.html|\..+\.tmp")
TITLE = "Performance over time"
_COLUMNS = ("workload", "runs", "last run", "came out")
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
    trends: tuple[Trend, ...]
    entries: tuple[Entry, ...]


def site_files(
    trends: Sequence[Trend], entries: Sequence[Entry], foremost: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Name and content of every file; `index.html`, which links to the others, is the last.

    `foremost` are the metrics that the first page shows: those that can fail a night.
    """
    workloads = _workloads(trends, entries, foremost)
    for one in workloads:
        yield one.page, render(_workload_view(one))
    yield "index.html", render(_overview(workloads, entries, foremost))


def page_name(name: str) -> str:
    """The page of a workload: letters, digits and dashes, the same at every writing.

    >>> page_name("gated mlp"), page_name("GATED mlp")
    ('workload-gated-mlp-3d78b4bc.html', 'workload-gated-mlp-6fe3fae4.html')
    """
    plain = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:60].strip("-")
    # Where the page is not called as the workload is, another workload's may be called the same.
    mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"workload-{plain if plain == name and plain else f'{plain}-{mark}'.lstrip('-')}.html"


def _workloads(
    trends: Sequence[Trend], entries: Sequence[Entry], foremost: Collection[str]
) -> list[_Workload]:
    runs: dict[str, list[Entry]] = {}
    series: dict[str, list[Trend]] = {}
    for entry in entries:
        runs.setdefault(entry.workload, []).append(entry)
    for trend in trends:
        series.setdefault(trend.series.key.workload, []).append(trend)

    def rank(trend: Trend) -> tuple[bool, bool, str]:
        metric = trend.series.key.metric
        return metric not in foremost, not metric.startswith("time."), metric

    return [
        _Workload(
            name, page_name(name), tuple(sorted(series.get(name, ()), key=rank)), tuple(runs.get(name, ()))
        )
        for name in sorted({*runs, *series}, key=lambda name: (name.lower(), name))
    ]


def _overview(workloads: Sequence[_Workload], entries: Sequence[Entry], foremost: Collection[str]) -> View:
    if not entries:
        line = command("profkit history add reports/*/")
        return View(TITLE, (Paragraph(("No run is stored yet: ", line, " adds runs.")),))
    told = f"{plural(len(entries), 'run')} of {plural(len(workloads), 'workload')}"
    rows = [
        (
            Span(one.name, link=one.page),
            str(len(one.entries)),
            one.entries[-1].started[:10] if one.entries else "",
            _outcome(one.entries[-1]) if one.entries else "",
        )
        for one in workloads
    ]
    listed = Section("Workloads", (table(_COLUMNS, rows, words=len(_COLUMNS)),))
    return View(TITLE, (_changes(workloads, foremost), listed), headline=(told + _dates(entries),))


def _changes(workloads: Sequence[_Workload], foremost: Collection[str]) -> Section:
    """The changes of the foremost metrics, the newest first."""
    found = [
        (change.started or "", one.page, trend.series, change)
        for one in workloads
        for trend in one.trends
        if trend.series.key.metric in foremost
        for change in trend.change_points
    ]
    found.sort(key=lambda row: row[0], reverse=True)
    lines = [
        Item(Span(title_of(series), link=page), (change_line(series, change),))
        for _, page, series, change in found[:MOST_CHANGES]
    ]
    none = Paragraph("No change was found in any series that can fail a night.")
    return Section("What changed lately", (Items(tuple(lines)) if lines else none,))


def _workload_view(one: _Workload) -> View:
    blocks: list[Block] = [Paragraph(Span("All workloads", link="index.html"))]
    blocks += [
        Section(title_of(trend.series), tuple(trend_blocks(trend))) for trend in one.trends[:MOST_DRAWN]
    ]
    blocks.append(series_table(one.trends))
    told = f"{plural(len(one.entries), 'run')}{_dates(one.entries)}, {plural(len(one.trends), 'series', 'series')}"
    return View(one.name, tuple(blocks), headline=(told,))


def _outcome(entry: Entry) -> Text:
    if not entry.valid:
        return Span(f"not valid: {entry.reason or entry.state}", status=Status.INVALID)
    return Span(
        entry.outcome or "-", status=Status.FAIL if entry.outcome in ("regressed", "missing") else None
    )


def _dates(entries: Sequence[Entry]) -> str:
    return f", {entries[0].started[:10]} to {entries[-1].started[:10]}" if entries else ""
