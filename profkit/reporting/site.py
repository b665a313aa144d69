"""A history as a page: what changed, and each workload with its last run, its trends and all of its series.

The folder is the site's own, known again by a marker. Its page is replaced as a whole, and no link in it is followed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
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
from profkit.reporting.facts import fact_text
from profkit.reporting.html.page import render
from profkit.reporting.view import (
    Item,
    ItemList,
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
MARK = "A page of profkit history site: it is replaced as a whole when it is written again.\n"
PAGE = "index.html"
MAX_CHANGES = 60
MAX_DRAWN = 4  # series of one workload: a chart of a year is 50 kB
# What a folder that is published may hold beforehand: a checkout, and what its host reads.
_HOSTS = frozenset({".git", ".nojekyll", ".gitignore", "CNAME"})
TITLE = "Performance over time"
_COLUMNS = ("workload", "runs", "last run", "came out")
_ELSEWHERE = "--to a new folder, or an empty one"


# ---------------------------------------------------------------- the folder


def prepare_folder(target: Path) -> Path:
    """Return the folder for a site: made, or empty, or with a site in it. No link below it is followed from now on.

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
            raise UsageError(f"{target} contains other files, but no site: {some}", _ELSEWHERE)


def _cannot_write(target: Path, error: OSError) -> MachineError:
    reason = f"cannot write a page to {target}: {error.strerror or error}; an existing page stays usable"
    return MachineError(reason, "--to DIR elsewhere")


def write_site(folder: Path, text: str) -> int:
    """Write the page into a folder that was prepared: how many bytes. Raises MachineError where that cannot be."""
    try:
        write_whole(folder / PAGE, (text,))
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        chown_to_sudo_user(folder)
    return len(text.encode())


# ---------------------------------------------------------------- the page


def site_page(trends: Sequence[Trend], entries: Sequence[Entry], foremost: Collection[str]) -> str:
    """Return the page as HTML. `foremost` are the metrics that are drawn: those that can fail a night."""
    if not entries:
        line = command("profkit history add reports/*/")
        return render(View(TITLE, (Paragraph(("No run is stored yet: ", line, " adds runs.")),)))
    names = sorted({entry.workload for entry in entries}, key=lambda name: (name.lower(), name))
    runs = {name: [entry for entry in entries if entry.workload == name] for name in names}
    rows = [(name, str(len(own)), own[-1].started[:10], _outcome(own[-1])) for name, own in runs.items()]
    sections = [
        _changes(trends, foremost),
        Section("Workloads", (table(_COLUMNS, rows, words=len(_COLUMNS)),)),
    ]
    sections += [_workload(name, trends, foremost) for name in names]
    first, last = entries[0].started[:10], entries[-1].started[:10]
    headline = f"{plural(len(entries), 'run')} of {plural(len(names), 'workload')}, {first} to {last}"
    return render(View(TITLE, tuple(sections), headline=(headline,)))


def _workload(name: str, trends: Sequence[Trend], foremost: Collection[str]) -> Section:
    """Return the trends that can fail a night, or else the first one, and a row for each series."""
    own = [trend for trend in trends if trend.series.key.workload == name]
    own.sort(key=lambda trend: (not trend.series.key.metric.startswith("time."), trend.series.key.metric))
    drawn = [trend for trend in own if trend.series.key.metric in foremost][:MAX_DRAWN] or own[:1]
    blocks = [Section(title_of(trend.series), tuple(trend_blocks(trend))) for trend in drawn]
    return Section(name, (*blocks, series_table(own)) if own else (Paragraph("It has no values."),))


def _changes(trends: Sequence[Trend], foremost: Collection[str]) -> Section:
    """Return the changes of the foremost metrics, the newest first."""
    found = [
        (change.started or "", trend.series, change)
        for trend in trends
        if trend.series.key.metric in foremost
        for change in trend.change_points
    ]
    found.sort(key=lambda row: row[0], reverse=True)
    lines = [
        Item(title_of(series), (change_line(series, change),)) for _, series, change in found[:MAX_CHANGES]
    ]
    none = Paragraph("No change was found in any series that can fail a night.")
    return Section("What changed lately", (ItemList(tuple(lines)) if lines else none,))


def _outcome(entry: Entry) -> Text:
    if not entry.valid:
        return Span(f"not valid: {fact_text(entry.reason) or entry.state}", status=Status.INVALID)
    return Span(
        entry.outcome or "-", status=Status.FAIL if entry.outcome in ("regressed", "missing") else None
    )
