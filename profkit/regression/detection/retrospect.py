"""The second verdict: what the detectors see afterwards, and the nights did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profkit.core.types import ChangePoint, Series
from profkit.regression.detection.band import CLING_GUESS, autocorrelation, middle
from profkit.regression.detection.nights import Looked, direction
from profkit.regression.detection.rules import Rule

NEAR = 5  # nights that two verdicts on one change may lie apart
LEAST = 12  # nights with which the detectors begin to say something
CLINGS = (
    0.5  # from here on they see changes where there are none, and their word is shown and decides nothing
)
FIRST_SEEN = 3  # nights after a change before which no detector can see it
LAST_SEEN = 40  # nights after it in which the first sight is looked for


@dataclass(frozen=True)
class Late:
    """A change in the bad direction that stands, that nobody accepted, and that no night convicted.

    `seen`: the index of the night in which the detectors saw it first.
    """

    change: ChangePoint
    seen: int


def changes_of(series: Series, looked: Looked) -> tuple[ChangePoint, ...]:
    """The change points of the epoch of the last point, on its machine, by their indices in the series."""
    if len(looked.past) < LEAST:
        return ()
    from profkit.regression.change_points import find_changes  # here: it loads numpy

    found = find_changes([series.points[i].value for i in looked.past])
    return tuple(_placed(change, series, looked.past) for change in found)


def late(series: Series, rule: Rule, looked: Looked, changes: Sequence[ChangePoint]) -> Late | None:
    """The first of `changes` that the nights missed and that still stands."""
    walk = looked.walk
    better = direction(series, rule)
    if walk is None or better == "none" or walk.standing is not None or len(walk.level) < rule.recent:
        return None
    bad = -1 if better == "higher" else 1
    now = middle(sorted(walk.level[-rule.recent :]))
    for change in changes:
        floor = rule.floor(change.before)
        if min(bad * (change.after - change.before), bad * (now - change.before)) <= floor:
            continue  # too small, the good direction, or gone again
        if _known(change, looked):
            continue
        values = [series.points[i].value for i in looked.past if i < change.index]
        if autocorrelation(values[-120:], CLING_GUESS) > CLINGS:
            continue
        return Late(change, _seen(series, looked, change))
    return None


def _known(change: ChangePoint, looked: Looked) -> bool:
    """Whether some night had a word on it: convicted, improved, or found by a re-run to be the machine's doing."""
    told = ("same-night", "nights", "drift", "improved", "gone", "same")
    return any(
        one.code in told and one.first is not None and abs(one.first - change.index) <= NEAR
        for one in looked.looks
    )


def _seen(series: Series, looked: Looked, change: ChangePoint) -> int:
    """The night in which the vote first had it: found by asking again as if each night were the last."""
    from profkit.regression.change_points import find_changes

    past = looked.past
    place = past.index(change.index)
    values = [series.points[i].value for i in past]
    for end in range(max(place + FIRST_SEEN, LEAST), min(len(past), place + LAST_SEEN)):
        if any(abs(c.index - place) <= NEAR for c in find_changes(values[:end])):
            return past[end - 1]
    return past[min(len(past), place + LAST_SEEN) - 1]


def _placed(change: ChangePoint, series: Series, past: Sequence[int]) -> ChangePoint:
    point = series.points[past[change.index]]
    return replace(change, index=past[change.index], started=point.started, commit=point.commit)
