"""The rules that detectors are held against: each takes the values so far, and gives the places of changes.

Otava and asv are used where they can be imported (`pip install apache-otava asv`, in an environment of their own);
their own code decides then, not a copy of it. What is not there is left out of the tables, and said so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np

from profkit.regression.change_points import examine_series, find_candidates

Rule = Callable[[Sequence[float]], list[int]]


def profkit(values: Sequence[float]) -> list[int]:
    return [change.index for change in examine_series(values).change_points]


def bare_fit(values: Sequence[float]) -> list[int]:
    """The fit without the test against the noise."""
    return find_candidates(np.asarray(values, dtype=float))


def previous(values: Sequence[float]) -> list[int]:
    """5 % off the night before, tonight or on any night: pytest-benchmark's `mean:5%`."""
    return _runs([k for k in range(1, len(values)) if _off(values[k], values[k - 1])])


def _off(value: float, expected: float) -> bool:
    return abs(value - expected) > 0.05 * abs(expected)


def _runs(alarms: list[int]) -> list[int]:
    """Alarms on nights in a row are one."""
    known = set(alarms)
    return [k for k in alarms if k - 1 not in known]


def rules() -> dict[str, Rule]:
    """All that can be had here, by the name that tables show."""
    found: dict[str, Rule] = {
        "profkit: fit and test": profkit,
        "  the fit alone": bare_fit,
    }
    try:
        from otava.analysis import compute_change_points
    except ImportError:
        print("Otava is not here (pip install apache-otava): left out", file=sys.stderr)
    else:
        for label, p in (("Otava, default (p .001)", 1e-3), ("Otava, p 1e-5", 1e-5)):
            found[label] = lambda values, p=p: [
                int(each.index) for each in compute_change_points(list(values), max_pvalue=p)[0]
            ]
    try:
        from asv.step_detect import detect_steps
    except ImportError:
        print("asv is not here (pip install asv): left out", file=sys.stderr)
    else:
        found["asv, detect_steps"] = lambda values: [step[0] for step in detect_steps(list(values))[1:]]
    found["5 % off the night before"] = previous
    return found
