"""What a history holds: its runs, or one run with every value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.backends import kernel_word
from profkit.core.formatting import moment, plural, quantity
from profkit.core.types import Accepted, Entry, Scope, Value
from profkit.reporting.view import Block, Items, Paragraph, Section, TableColumn, Text, View, soft, table

SHOWN = 8  # characters of an id: a thousand runs share that much with a chance of 1 in 8,000
_SCOPES = 60  # of one run that are shown; a run with 20 kernels and some regions has fewer


def view(entries: Sequence[Entry], accepted: Sequence[Accepted], path: str, total: int) -> View:
    """The runs, the newest first, and the changes that were accepted."""
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
        blocks.append(Section("Accepted changes", (Items(tuple(map(_accepted, accepted))),)))
    return View(f"{shown} in {path}", tuple(blocks))


def entry_view(entry: Entry) -> View:
    """One run: what is known of it, and every value."""
    facts = {
        "run": entry.id,
        "state": _state(entry),
        "why": entry.reason,
        "source": entry.source,
        "commit": (entry.commit or "") + (" with changes" if entry.dirty else ""),
        "night": entry.night,
        "folder": entry.path,
        "machine": entry.machine,
        **{feature.name: feature.value for feature in entry.features if feature.tier != "observed"},
        **entry.facts,
    }
    return View(
        f"{entry.workload} on {entry.backend}, {moment(entry.started)}",
        tuple(_entry_blocks(entry)),
        facts=tuple((name, text) for name, text in facts.items() if text),
    )


def _entry_blocks(entry: Entry) -> Iterator[Block]:
    scopes: dict[Scope, list[Value]] = {}
    for value in entry.values:
        scopes.setdefault(value.key.scope, []).append(value)
    # Of a sweep the means over all shapes first: its cases are thousands.
    order = sorted(
        scopes, key=lambda scope: all(value.key.metric == "time.median" for value in scopes[scope])
    )
    for scope in order[:_SCOPES]:
        yield _scope(scope, scopes[scope])
    if len(order) > _SCOPES:
        yield Paragraph(f"and {plural(len(order) - _SCOPES, 'more scope')}: --format json has all of them")
    reasons = dict.fromkeys(value.doubt for value in entry.values if value.doubt)
    if reasons:
        yield Items(tuple(f"contradicted: {reason}" for reason in reasons))


def _scope(scope: Scope, values: Sequence[Value]) -> Section:
    """What was measured of the run, or of one region or kernel, without columns that say nothing."""
    backend = values[0].key.backend if values else ""
    what = kernel_word(backend) if scope.kind == "kernel" else scope.kind
    columns = ["value", "95 % interval", "samples", "quality"]
    rows = [
        [
            quantity(value.value, value.unit),
            _interval(value),
            _samples(value),
            "contradicted" if value.doubt else value.quality,
        ]
        for value in values
    ]
    empty = {1: "-", 2: "-", 3: "measured"}
    shown = [n for n in range(4) if n not in empty or any(row[n] != empty[n] for row in rows)]
    titles = [TableColumn(columns[n]) if columns[n] == "quality" else columns[n] for n in shown]
    body = [(value.key.metric, *(row[n] for n in shown)) for value, row in zip(values, rows, strict=True)]
    return Section(
        f"{what} {scope.name or ''}".rstrip(),
        (table(("metric", *titles), body),),
        headline=soft(scope.id) if scope.id else "",
    )


def _state(entry: Entry) -> str:
    if not entry.valid:
        return "not valid" if entry.state == "complete" else entry.state
    return entry.outcome or entry.state


def _interval(value: Value) -> str:
    if value.low is None or value.high is None:
        return "-"
    return f"{quantity(value.low, value.unit)} to {quantity(value.high, value.unit)}"


def _samples(value: Value) -> str:
    count = sum(map(len, value.groups))
    return f"{count} of {value.taken}" if value.taken else str(count) if count else "-"


def _accepted(change: Accepted) -> Text:
    what = f"{change.workload} {change.metric}" if change.metric else change.workload
    by = f" by {change.by}" if change.by else ""
    return soft(f"accepted{by}: {what} since {change.since[:16].replace('T', ' ')}: {change.word}")
