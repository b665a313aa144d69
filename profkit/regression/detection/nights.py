"""Every night of a series, looked at with the past that it had: epochs, machines and invalid nights sorted out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from profkit.core.types import Accepted, Direction, Point, Series
from profkit.regression.detection.confirmation import ConfirmWord
from profkit.regression.detection.drift import ANCHOR
from profkit.regression.detection.epochs import accepted_cuts, moment
from profkit.regression.detection.rules import Rule
from profkit.regression.detection.walk import Look, Walk

LARGEST = 1e150  # nothing that is measured is as large in any unit


@dataclass(frozen=True)
class Looked:
    """The looks in the order of the points; of the last point's machine the indices of its valid nights in this
    epoch (without those that collapsed), and the walk that they made (None where it has none)."""

    looks: tuple[Look, ...]
    past: tuple[int, ...]
    walk: Walk | None


def believable(point: Point) -> bool:
    """Whether a point decides anything: valid, finite, and not so large that its square is no number any more."""
    return point.valid and isfinite(point.value) and abs(point.value) < LARGEST


def direction(series: Series, rule: Rule) -> Direction:
    """Which way is good: as the rule says, else as the series does."""
    return rule.better or series.better


def look(
    series: Series,
    rule: Rule,
    accepted: Sequence[Accepted] = (),
    confirmed: Mapping[str, ConfirmWord] | None = None,
    anchor: str | None = None,
    whole: bool = False,
) -> Looked:
    """What each night was. `anchor`: the commit or the date (ISO 8601) of an old state that drift is told against.

    `whole`: with the band of every night, not of the last alone. Where no direction is good, more counts as worse, and
    the caller says "moved" instead.
    """
    words = confirmed or {}
    bad = -1 if direction(series, rule) == "higher" else 1
    cuts = accepted_cuts(series, accepted)
    anchors = _anchors(series.points, anchor)
    walks: dict[str, Walk] = {}
    pasts: dict[str, list[int]] = {}
    looks = []
    last = len(series.points) - 1
    for index, point in enumerate(series.points):
        if index in cuts:
            walks = {
                machine: Walk(rule, bad, inherited=walk.relative_sigma()) for machine, walk in walks.items()
            }
            pasts, anchors = {}, {}
        if not believable(point):
            looks.append(Look("invalid", "not-valid", "none"))
            continue
        walk, strange = walks.get(point.machine), False
        if walk is None:
            strange = any(len(other.level) >= rule.least for other in walks.values())
            walk = walks[point.machine] = Walk(rule, bad)
        found = walk.next(index, point.value, words.get(point.entry), whole or index == last)
        # said once and not in green: a runner that is another one each night would never be judged
        looks.append(
            replace(found, outcome="invalid", code="other-machine", step="none")
            if strange
            else _once(found, walk, walks.values())
        )
        if found.code != "collapse":
            pasts.setdefault(point.machine, []).append(index)
        if index in anchors:
            walk.set_anchor(list(anchors[index]))
    machine = series.points[-1].machine if series.points else ""
    return Looked(tuple(looks), tuple(pasts.get(machine, ())), walks.get(machine))


def _once(found: Look, walk: Walk, walks: Iterable[Walk]) -> Look:
    """A regression that stands on another machine already, and that this one had no good night since, is no news."""
    if found.outcome != "regressed" or found.code == "standing":
        return found
    for other in walks:
        stands = other.standing
        if other is not walk and stands is not None and (found.last_good or 0) < stands.convicted:
            return replace(found, code="standing")
    return found


def _anchors(points: Sequence[Point], anchor: str | None) -> dict[int, tuple[float, ...]]:
    """Of each machine the first 24 valid nights from the anchor on, by the index of the last."""
    if anchor is None:
        return {}
    start = next((i for i, p in enumerate(points) if p.commit and p.commit.startswith(anchor)), None)
    if start is None:
        try:
            since = moment(anchor)
            start = next((i for i, p in enumerate(points) if moment(p.started) >= since), None)
        except ValueError:
            return {}
    found: dict[str, list[float]] = {}
    ends: dict[int, tuple[float, ...]] = {}
    for i in range(start, len(points)) if start is not None else ():
        point = points[i]
        if not believable(point):
            continue
        values = found.setdefault(point.machine, [])
        values.append(point.value)
        if len(values) == ANCHOR:
            ends[i] = tuple(values)
    return ends
