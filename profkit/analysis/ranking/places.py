"""The grid of a panel, shape by shape: who is fastest there, and by how much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from profkit.analysis.ranking.ranking import Panel, winners
from profkit.core.types import CaseResult, GridPoint


@dataclass(frozen=True)
class Place:
    """One shape where two or more were timed.

    `winners` are alone, or several whose intervals overlap. `lead` is the time of the first behind them over the
    fastest one, at least 1; None where nobody is behind them. `timed` are all with a time, the fastest first.
    """

    point: GridPoint
    winners: tuple[str, ...]
    lead: float | None
    timed: tuple[CaseResult, ...]

    @property
    def alone(self) -> str | None:
        """The one that is faster than all others; None where several are alike."""
        return self.winners[0] if len(self.winners) == 1 else None


def places(panel: Panel) -> dict[GridPoint, Place]:
    """Every shape of the panel where two or more were timed."""
    timed: dict[GridPoint, list[CaseResult]] = defaultdict(list)
    for result in panel.results:
        if result.median:
            timed[result.point].append(result)
    found = {}
    for point, names in winners(panel).items():
        order = sorted(timed[point], key=lambda result: result.median or 0.0)
        behind = [result for result in order if result.implementation not in names]
        lead = (behind[0].median or 0.0) / order[0].median if behind and order[0].median else None
        found[point] = Place(point, names, lead, tuple(order))
    return found


@dataclass(frozen=True)
class Row:
    """Shapes with the same number of batch x sequence: as many vectors, whatever they are cut from."""

    batch_x_sequence: int
    cells: tuple[tuple[str, ...] | None, ...]  # who wins at most of them, one cell for each dimension


def by_size(panel: Panel, dimensions: Sequence[int]) -> tuple[Row, ...]:
    """The winners in one row for each number of vectors: whoever is alone in more than half of the shapes of a cell.

    Nobody there is the names of two or more: they are alike, or take turns. None where nothing was compared.
    """
    cells: dict[tuple[int, int], list[Place]] = defaultdict(list)
    for point, place in places(panel).items():
        cells[point.batch * point.sequence, point.dimension].append(place)
    sizes = sorted({point.batch * point.sequence for point in panel.points})
    return tuple(Row(size, tuple(_most(cells.get((size, d), ())) for d in dimensions)) for size in sizes)


def _most(found: Sequence[Place]) -> tuple[str, ...] | None:
    if not found:
        return None
    alone = [place.alone for place in found]
    first = next((name for name in alone if name is not None and 2 * alone.count(name) > len(alone)), None)
    return (
        (first,) if first is not None else tuple(dict.fromkeys(n for place in found for n in place.winners))
    )
