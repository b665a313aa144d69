"""Values in order in, change points out, with the noise of the series and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, log
from typing import TYPE_CHECKING

from profkit.core.formatting import plural
from profkit.core.types.history import ChangePoint
from profkit.regression.change_points.audit import (
    Candidate,
    audit,
    autocorrelation,
    gather_votes,
    relative_noise,
    smallest_detectable,
    step_scale,
    without_spikes,
)
from profkit.regression.change_points.detectors import (
    BACK,
    FORE,
    PENALTY,
    SHORTEST,
    e_divisive,
    l1_partition,
    welch_scan,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEWEST = 2 * SHORTEST  # values; with fewer there are no two stretches
ROUNDING = 1e-12  # of the level: sums of doubles in another order differ by so much, and nothing changed
STRONG_CORRELATION = 0.5  # from here a note says what the correlation of neighbours costs


@dataclass(frozen=True)
class SeriesFindings:
    """What a series says of itself. Relative figures are fractions of the level, None where there is none."""

    change_points: tuple[ChangePoint, ...] = ()
    noise: float | None = None  # standard deviation about the stretches between changes
    autocorrelation: float | None = None  # of neighbours, about these stretches
    detectable: float | None = None  # the smallest relative change that one night could show
    notes: tuple[str, ...] = ()


def find_changes(values: Sequence[float | None]) -> tuple[ChangePoint, ...]:
    """Where the series becomes another one, by the vote of three detectors and its audit; nothing below 10 values.

    `values` are one per night or build, oldest first, in any unit; None, NaN and infinities are nights without a value.
    A change point's `index` counts all of them and names the first value after the change; `before` and `after` are
    the medians of the stretches that it parts; `votes` name the detectors, `strength` is in standard
    errors, None where nothing else varies.
    """
    series, indices = _finite_values(values)
    return _audited_changes(series, indices)


def examine_series(values: Sequence[float | None]) -> SeriesFindings:
    """`find_changes` with the remaining noise, its autocorrelation, what one night could show, and notes."""
    series, indices = _finite_values(values)
    changes = _audited_changes(series, indices)
    series = _rescale(series)  # what follows is relative
    positions = {index: place for place, index in enumerate(indices)}
    places = [positions[change.index] for change in changes]
    correlation = autocorrelation(series, places)
    return SeriesFindings(
        change_points=changes,
        noise=relative_noise(series, places),
        autocorrelation=correlation,
        detectable=smallest_detectable(series, places),
        notes=_notes(len(values), len(series), correlation),
    )


def find_candidates(values: NDArray[np.float64]) -> list[Candidate]:
    """What the detectors point to, before the audit.

    E-divisive never decides alone (on tailed noise it would alarm one series in ten): it is asked where another spoke.
    """
    spread = step_scale(values)
    places: dict[str, Sequence[int]] = {"scan": welch_scan(values)}
    places["pelt"] = l1_partition(values, PENALTY * log(len(values)) * spread) if spread > 0 else []
    if places["scan"] or places["pelt"]:
        places["e-divisive"] = e_divisive(values)
    return [c for c in gather_votes(places) if c.votes != ("e-divisive",)]


def _audited_changes(series: NDArray[np.float64], indices: list[int]) -> tuple[ChangePoint, ...]:
    import numpy as np

    if len(series) < FEWEST or np.ptp(scaled := _rescale(series)) <= ROUNDING:
        return ()
    kept = audit(without_spikes(scaled), found) if (found := find_candidates(scaled)) else []
    edges = [0, *(c.place for c in kept), len(series)]
    levels = [float(np.median(series[a:b])) for a, b in pairwise(edges)]
    return tuple(
        ChangePoint(
            indices[c.place],
            before,
            after,
            votes=c.votes,
            strength=c.strength if isfinite(c.strength) else None,
        )
        for c, before, after in zip(kept, levels, levels[1:], strict=False)
    )


def _finite_values(values: Sequence[float | None]) -> tuple[NDArray[np.float64], list[int]]:
    """The values that are there, and the index of each."""
    import numpy as np

    whole = np.array([np.nan if value is None else value for value in values], dtype=float)
    positions = np.flatnonzero(np.isfinite(whole))
    return whole[positions], positions.tolist()


def _rescale(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """The series in a unit in which no square overflows or vanishes: a power of two, so that no digit is lost."""
    import numpy as np

    _, exponent = np.frexp(np.abs(series).max(initial=0.0))
    return np.ldexp(series, -int(exponent))


def _notes(nights: int, present: int, correlation: float | None) -> tuple[str, ...]:
    notes = []
    if present < nights:
        notes.append(
            f"{nights - present} of {nights} values are missing or no finite number, and were left out"
        )
    if present < FEWEST:
        notes.append(f"{plural(present, 'value')}: too few to look for a change, which takes {FEWEST}")
    elif present < BACK + FORE:
        notes.append(
            f"with fewer than {BACK + FORE} values ({present}) one of the three detectors cannot be used"
        )
    if correlation is not None and correlation >= STRONG_CORRELATION:
        worth = round(100 * (1 - correlation) / (1 + correlation))
        notes.append(
            f"neighbouring values follow each other (correlation {correlation:.2f}): a hundred of them say as much as "
            f"{worth} independent ones, and a change must be larger to stand out"
        )
    return tuple(notes)
