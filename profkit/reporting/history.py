"""What a history holds, for the terminal: its runs, one run, and what became of a change to it."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.kernel_names import narrower
from profkit.core.formatting import moment, plural, quantity, shortened, work_word
from profkit.core.types import Accepted, Entry, Scope, Value
from profkit.reporting.screen import Screen

SHOWN = 8  # characters of an id: a thousand runs share that much with a chance of 1 in 8,000

SCOPES = 60  # of one run that are shown; a run with 20 kernels and some regions has fewer
_NAME = 20  # characters of a workload's name at least, and
_BESIDE = 56  # what the other columns of the list take


def render_list(
    entries: Sequence[Entry],
    accepted: Sequence[Accepted],
    path: str,
    total: int,
    *,
    color: bool | None = None,
    width: int | None = None,
) -> str:
    """The runs, the newest first, and the changes that were accepted."""
    screen = Screen(color, width)
    if not entries:
        empty = (
            "It is empty: profkit history add RUN"
            if not total
            else f"None of its {plural(total, 'run')} is meant."
        )
        screen.line(f"{path}: no runs. {empty}")
        return screen.text()
    rows = tuple(
        (
            entry.id[:SHOWN],
            entry.started[:16].replace("T", " "),
            shortened(entry.workload, max(_NAME, screen.console.width - _BESIDE)),
            entry.backend,
            _standing(entry),
            (entry.commit or "-")[:8] + ("+" if entry.dirty else ""),
        )
        for entry in reversed(entries)
    )
    screen.table(("run", "started (UTC)", "workload", "on", "state", "commit"), rows, indent=0)
    screen.blank()
    shown = f"{len(entries)} of {plural(total, 'run')}" if len(entries) < total else plural(total, "run")
    screen.line((f"{shown} in {path}", "dim"))
    for change in accepted:
        screen.line((_accepted(change), "dim"), hang=2)
    return screen.text()


def render_show(entry: Entry, *, color: bool | None = None, width: int | None = None) -> str:
    """One run: what is known of it, and every value."""
    screen = Screen(color, width)
    screen.line((entry.workload, "bold"), f" on {entry.backend}, {moment(entry.started)}  {entry.id}")
    known = {
        "state": _standing(entry),
        "why": entry.reason,
        "source": entry.source,
        "commit": (entry.commit or "") + (" with changes" if entry.dirty else ""),
        "night": entry.night,
        "folder": entry.path,
        "machine": entry.machine,
        **{feature.name: feature.value for feature in entry.features if feature.tier != "observed"},
        **entry.facts,
    }
    for name, text in known.items():
        if text:
            screen.labelled((name, "dim"), text, width=24)
    scopes: dict[Scope, list[Value]] = {}
    for value in entry.values:
        scopes.setdefault(value.key.scope, []).append(value)
    # Of a sweep the means over all shapes first: its cases are thousands.
    order = sorted(
        scopes, key=lambda scope: all(value.key.metric == "time.median" for value in scopes[scope])
    )
    for scope in order[:SCOPES]:
        _values(screen, scope, scopes[scope])
    if len(order) > SCOPES:
        screen.blank()
        screen.line(f"and {plural(len(order) - SCOPES, 'more scope')}: --format json has all of them")
    for doubt in dict.fromkeys(value.doubt for value in entry.values if value.doubt):
        screen.line(f"doubted: {doubt}", hang=2)
    return screen.text()


def _standing(entry: Entry) -> str:
    if not entry.valid:
        return "not valid" if entry.state == "complete" else entry.state
    return entry.outcome or entry.state


def _values(screen: Screen, scope: Scope, values: Sequence[Value]) -> None:
    """What was measured of the run, or of one region or kernel."""
    name = narrower(scope.name, screen.console.width - 8) if scope.name else ""
    backend = values[0].key.backend if values else ""
    screen.heading(f"{work_word(backend) if scope.kind == 'kernel' else scope.kind} {name}".rstrip())
    if scope.id:
        screen.line((scope.id, "dim"), indent=2)
    columns: tuple[str, ...] = ("metric", "value", "95 % interval", "samples", "quality")
    rows: list[tuple[str, ...]] = [
        (
            value.key.metric,
            quantity(value.value, value.unit),
            _interval(value),
            _samples(value),
            "doubted" if value.doubt else value.quality,
        )
        for value in values
    ]
    if all(row[-1] == "measured" for row in rows):  # then it need not be told
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    if all(row[2] == row[3] == "-" for row in rows):
        columns, rows = columns[:2] + columns[4:], [row[:2] + row[4:] for row in rows]
    screen.table(columns, tuple(rows))


def _interval(value: Value) -> str:
    if value.low is None or value.high is None:
        return "-"
    return f"{quantity(value.low, value.unit)} to {quantity(value.high, value.unit)}"


def _samples(value: Value) -> str:
    count = sum(map(len, value.groups))
    return f"{count} of {value.taken}" if value.taken else str(count) if count else "-"


def _accepted(change: Accepted) -> str:
    what = f"{change.workload} {change.metric}" if change.metric else change.workload
    by = f" by {change.by}" if change.by else ""
    return f"accepted{by}: {what} since {change.since[:16].replace('T', ' ')}: {change.word}"
