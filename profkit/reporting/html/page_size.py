"""Keeps a page below a number of bytes: fewer rows, marks and boxes, shorter texts, and how much is left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

from profkit.analysis.timeline.marks import MAX_MARKS, LaneMarks, Marks, bounded_lanes
from profkit.core.types import Lane, MarkLabel, Timeline
from profkit.reporting.charts.marks import FlameGraph
from profkit.reporting.charts.timeline import TimelineGraph
from profkit.reporting.columns import SortableTable
from profkit.reporting.view import (
    Block,
    DataTable,
    Detail,
    FieldList,
    ItemList,
    Paragraph,
    Statuses,
    View,
    joined,
)

ALL = "profkit report RUN --format json"  # shows what a page leaves out
_KEPT = frozenset({"link", "anchor"})  # fields that lead somewhere: cut they would lead nowhere
_LED_TO = 41  # rows of a table whose rows something leads to: as many as the bar of a step has parts
_OTHERS = "many others"  # what a mark is whose label is one too many


@dataclass(frozen=True)
class PageLimits:
    """How much of a view a page takes: rows of a table, items of a list, characters of a text, marks and boxes."""

    rows: int = 4000
    items: int = 1000
    letters: int = 1000
    marks: int = MAX_MARKS
    labels: int = 1500  # different texts of marks
    boxes: int = 3000

    def smaller(self) -> PageLimits:
        """Return about half of all, but never nothing."""
        return PageLimits(
            min(300, max(4, self.rows * 2 // 3)),
            min(300, max(4, self.items * 2 // 3)),
            max(40, self.letters * 3 // 5),
            max(200, self.marks * 2 // 3),
            max(20, self.labels * 3 // 5),
            max(100, self.boxes * 2 // 3),
        )


def view_within(view: View, limits: PageLimits) -> View:
    """Return as much of the view as the limits allow."""
    part: View = _fields(view, limits)
    return part


def next_limits(limits: PageLimits | None, size: int, most: int) -> PageLimits | None:
    """Return the limits to try next for a page of `size` bytes that may have `most`; None where none are smaller.

    A page that is far too long takes several steps at once: each try renders all of it.
    """
    if limits is None:
        return PageLimits() if size < 2 * most else next_limits(PageLimits(), size, most)
    smaller = limits.smaller()
    for factor in (2, 5):
        smaller = smaller.smaller() if size > factor * most else smaller
    return smaller if smaller != limits else None


def _cut(value: Any, limits: PageLimits, field: str = "") -> Any:
    """Return a block, or any part of one, within the limits."""
    match value:
        case str() if field not in _KEPT:
            return value if len(value) <= limits.letters else f"{value[: limits.letters]}…"
        case SortableTable():
            return _sortable(value, limits)
        case TimelineGraph():
            return _timeline(value, limits)
        case FlameGraph():
            return _flame(value, limits)
        case DataTable():
            most = max(limits.rows, _LED_TO) if value.anchor else limits.rows
            left = value.left + max(0, len(value.rows) - most)
            return _fields(replace(value, rows=value.rows[:most], left=left), limits)
        case ItemList():
            return _listed(value, "items", limits)
        case Statuses() | FieldList():
            return _listed(value, "rows", limits)
        case tuple():
            kept = value
            if field == "blocks" and len(value) > limits.items:
                more = len(value) - limits.items
                kept = (*value[: limits.items], Paragraph(_more(more)))
            return tuple(_cut(part, limits, field) for part in kept)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _fields(value, limits)
    return value


def _fields(value: Any, limits: PageLimits) -> Any:
    """Return a dataclass with each of its fields within the limits."""
    changed = {}
    for name in _names(value.__class__):
        before = getattr(value, name)
        after = _cut(before, limits, name)
        if after is not before and after != before:
            changed[name] = after
    return replace(value, **changed) if changed else value


@lru_cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.init)


def _more(count: int) -> str:
    return f"{count:,} more are in the JSON document: {ALL}"


def _listed(block: Any, name: str, limits: PageLimits) -> Block:
    """Return a block of rows or items with the first of them, and how many more there are below it."""
    rows = getattr(block, name)
    kept: Block = _fields(replace(block, **{name: rows[: limits.items]}), limits)
    left = len(rows) - limits.items
    return Detail((kept, Paragraph(_more(left)))) if left > 0 else kept


def _sortable(block: SortableTable, limits: PageLimits) -> SortableTable:
    most = limits.rows
    values = tuple(tuple(_cut(cell, limits) for cell in column[:most]) for column in block.values)
    names = tuple(_cut(name, limits) for name in block.names[:most])
    return replace(block, table=_cut(block.table, limits), values=values, names=names, reference=())


def _flame(graph: FlameGraph, limits: PageLimits) -> FlameGraph:
    """Return the widest boxes: none of them is wider than the one it stands on, so that the tree stays whole."""
    flame = graph.flame
    boxes = flame.boxes
    if len(boxes) > limits.boxes:
        least = sorted((box.value for box in boxes), reverse=True)[limits.boxes]
        boxes = tuple(box for box in boxes if box.value > least)
    drawn = sum(box.own for box in boxes)
    left_out = max(flame.left_out, 1 - drawn / flame.total)
    cut = tuple(replace(box, name=_cut(box.name, limits)) for box in boxes)
    return FlameGraph(replace(flame, title=_cut(flame.title, limits), boxes=cut, left_out=left_out))


# ------------------------------------------------------------ timelines


def _timeline(graph: TimelineGraph, limits: PageLimits) -> TimelineGraph:
    """Return the graph with fewer marks, those that are short merged, and with the labels that most time has."""
    before = graph.timeline
    lanes, names, merged = _fewer_marks(before, graph.lanes, limits.marks)
    seconds = Counter[int]()
    for lane in lanes:
        for label, length in zip(lane.labels, lane.busy or lane.lengths, strict=True):
            seconds[label] += length
    kept = [label for label, _ in seconds.most_common(limits.labels)]
    numbers = {label: number for number, label in enumerate(kept)}
    labels, texts = [before.labels[number] for number in kept], [graph.texts[number] for number in kept]
    for label in seconds:
        if label not in numbers:  # one text for all others of its kind
            kind = before.labels[label].kind
            other = MarkLabel(kind, _OTHERS)
            if other not in labels:
                labels.append(other)
                texts.append((_OTHERS, ""))
            numbers[label] = labels.index(other)
    lanes = [replace(lane, labels=tuple(numbers[label] for label in lane.labels)) for lane in lanes]
    short = tuple(tuple(_cut(text, limits) for text in pair) for pair in texts)
    activity = tuple(zip(before.activity, graph.activity, strict=True))[: max(2, limits.items // 8)]
    timeline = replace(
        before,
        labels=tuple(labels),
        lanes=tuple(lanes),
        activity=tuple(row for row, _ in activity),
    )
    note = graph.note
    if merged or len(kept) < len(seconds):
        note = joined(note, f" To keep this page small, short marks were merged, or have no name. All: {ALL}")
    return replace(
        graph,
        timeline=timeline,
        texts=short,
        lanes=tuple(_cut(name, limits) for name in names),
        activity=tuple(_cut(name, limits) for _, name in activity),
        table=_cut(graph.table, limits),
        summary=_cut(graph.summary, limits),
        note=note,
    )


def _fewer_marks(timeline: Timeline, names: tuple[str, ...], most: int) -> tuple[list[Lane], list[str], bool]:
    """Return the lanes with at most so many marks, and their names; and whether any was merged or left out."""
    import numpy as np

    if sum(len(lane.starts) for lane in timeline.lanes) <= most:
        return list(timeline.lanes), list(names), False
    made = []
    for number, lane in enumerate(timeline.lanes):
        marks = Marks.of(lane.starts, np.add(lane.starts, lane.lengths), lane.labels)
        if lane.counts:
            marks.count = np.asarray(lane.counts, dtype=np.int64)
            marks.busy = np.asarray(lane.busy, dtype=np.int64)
        made.append(LaneMarks(lane, (number,), marks))
    kept, *_ = bounded_lanes(made, 1e9 * timeline.seconds, most)
    lanes = [
        replace(
            lane.lane,
            starts=tuple(lane.marks.start.tolist()),
            lengths=tuple((lane.marks.end - lane.marks.start).tolist()),
            labels=tuple(lane.marks.what.tolist()),
            counts=tuple(lane.marks.count.tolist()),
            busy=tuple(lane.marks.busy.tolist()),
        )
        for lane in kept
    ]
    return lanes, [names[lane.rank[0]] for lane in kept], True
