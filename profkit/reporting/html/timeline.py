"""A timeline on a page: a place for the drawing with its tools, its numbers for the script, and the same as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from profkit.core.types import Json, Lane, MarkKind
from profkit.reporting.charts.timeline import TimelineGraph
from profkit.reporting.html.elements import Html, filled
from profkit.reporting.plain_text import text_for_others

# What waits is drawn at half the height: a colour alone does not tell it from what runs.
_LOW: tuple[MarkKind, ...] = (
    "wait", "queued", "processor-wait", "lock", "network", "input", "file", "pipe", "sync", "sleep", "child", "await",
    "waiting",
)  # fmt: skip


def timeline_html(graph: TimelineGraph, note: Html, table: Html) -> Html:
    """Return a place for the drawing, its tools and its legend; below it the table."""
    key = [(kind, word, kind in _LOW) for kind, word in graph.kinds]
    strip = f"How busy it was over the whole run: {', '.join(graph.activity)}"
    return filled("timeline.html.j2", label=graph.summary, strip=strip, key=key, note=note, table=table)


def timeline_data(graph: TimelineGraph) -> Json:
    """Return what `timeline.js` draws: texts once each, lanes as steps from start to start and lengths, in ns."""
    timeline = graph.timeline
    texts: dict[str, int] = {}
    kinds = [kind for kind, _ in graph.kinds]

    def number(words: str) -> int:
        return texts.setdefault(text_for_others(words), len(texts))

    labels = [
        [kinds.index(label.kind), *map(number, lines)]
        for label, lines in zip(timeline.labels, graph.texts, strict=True)
    ]
    lanes = [
        _lane(lane, text_for_others(name)) for lane, name in zip(timeline.lanes, graph.lanes, strict=True)
    ]
    strip = [
        {"name": text_for_others(name), "v": list(row.shares)}
        for row, name in zip(timeline.activity, graph.activity, strict=True)
    ]
    data = {
        "threads": timeline.kind == "threads",
        "begin": round(1e9 * timeline.begin),
        "span": max(1, round(1e9 * timeline.seconds)),
        "whole": max(1, round(1e9 * timeline.whole)),
        "kinds": [{"id": kind, "low": kind in _LOW} for kind in kinds],
        "texts": list(texts),
        "labels": labels,
        "lanes": lanes,
        "strip": strip,
    }
    return cast(Json, data)


def _lane(lane: Lane, name: str) -> dict[str, object]:
    merged = {"c": list(lane.counts), "b": list(lane.busy)} if lane.counts else {}
    return {
        "name": name,
        "s": _steps(lane.starts),
        "d": list(lane.lengths),
        "l": list(lane.labels),
        **merged,
    }


def _steps(values: Sequence[int]) -> list[int]:
    """Return each less the one before it: small numbers are short ones."""
    return [value - before for value, before in zip(values, (0, *values), strict=False)]
