"""Over all panels of a sweep: who is fastest, in what, and how near the roofline all of it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from profkit.analysis.ranking.guide import efficiency
from profkit.analysis.ranking.ranking import (
    BASELINE,
    Panel,
    geometric_mean,
    panels,
    standings,
    winners,
)
from profkit.core.types import SweepDocument

NEAR = 0.9  # of the roofline: what is nearer has little left to win
ALIKE = 1.005  # means of medians that are known to 1 % each and are nearer than this tell nobody apart

T = TypeVar("T")


@dataclass(frozen=True)
class Score:
    """One implementation over all panels: its geometric mean speed-up over `compared` shapes, and where it is alone."""

    implementation: str
    speedup: float | None  # None of the baseline, and where nothing was compared
    compared: int
    measured: int
    wins: int


@dataclass(frozen=True)
class Best:
    """Who is fastest in a panel by the geometric mean; `speedup` over the baseline, 1.0 where that is it.

    `implementations` are several where they are alike, the fastest first.
    """

    panel: Panel
    implementations: tuple[str, ...]
    speedup: float | None  # None where the baseline was not measured


@dataclass(frozen=True)
class Overall:
    """All of a sweep: `shapes` with two times or more, `scores` in the order of the sweep, the `best` of each panel."""

    scores: tuple[Score, ...]
    best: tuple[Best, ...]
    shapes: int
    near: int  # cases at NEAR of their roofline or more
    placed: int  # cases with a place under the roofline


def overall(document: SweepDocument, baseline: str = BASELINE) -> Overall:
    """The whole sweep by geometric means of all its shapes, each counting once."""
    found = panels(document)
    base = {r.point: r.median for r in document.results if r.implementation == baseline and r.median}
    won = [names for panel in found for names in winners(panel).values()]
    scores = []
    for name in dict.fromkeys(result.implementation for result in document.results):
        timed = [r for r in document.results if r.implementation == name and r.median]
        ratios = [before / r.median for r in timed if r.median and (before := base.get(r.point))]
        mean = geometric_mean(ratios) if name != baseline else None
        scores.append(Score(name, mean, len(ratios), len(timed), won.count((name,))))
    shares = [s for r in document.results if (s := efficiency(r, document.roofs)) is not None]
    best = [one for panel in found if (one := _best(panel, document, baseline)) is not None]
    return Overall(tuple(scores), tuple(best), len(won), sum(share >= NEAR for share in shares), len(shares))


def leaders(scores: Sequence[Score], baseline: str = BASELINE) -> tuple[Score, ...]:
    """Those with the largest geometric mean, the baseline's being 1: several where they are alike, the fastest first.

    Nobody where nothing was compared.
    """
    speeds = {
        score: score.speedup if score.speedup is not None else 1.0
        for score in scores
        if score.speedup is not None or score.implementation == baseline
    }
    if not any(score.speedup is not None for score in scores):
        return ()
    return _first(speeds)


def _best(panel: Panel, document: SweepDocument, baseline: str) -> Best | None:
    found = [one for one in standings(panel, document.roofs, baseline) if one.measured]
    if len(found) < 2:
        return None
    if any(one.implementation == baseline for one in found):
        speeds = {
            one.implementation: 1.0 if one.implementation == baseline else one.speedup or 0.0 for one in found
        }
        first = _first(speeds)
        return Best(panel, first, speeds[first[0]])
    if any(one.time is None for one in found) or not found[0].shared:
        return None
    return Best(panel, _first({one.implementation: 1 / (one.time or 1.0) for one in found}), None)


def _first(speeds: Mapping[T, float]) -> tuple[T, ...]:
    """Those with the largest speed, and those that are alike."""
    order = sorted(speeds, key=lambda one: -speeds[one])
    return tuple(one for one in order if speeds[one] * ALIKE >= speeds[order[0]])
