"""Series as they come from practice: few builds or many, each the median of a few rows, and five of them regressed.

What looks like a regression and is none is in the others: single slow builds, and builds that differ from one
another by much more than the rows of one do. Made up; real ones are in `tests/performance/detectors_practice.py`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import median

ROWS = 5  # of each build


@dataclass(frozen=True)
class Practice:
    """One series. `noise` and all other sizes are relative to its level."""

    builds: int
    noise: float
    first_bad: int | None = None  # build
    step: float = 0.0
    spikes: float = 0.0  # of each thirtieth build
    between: float = 0.0  # standard deviation between builds

    def values(self) -> list[float]:
        """The median of each build."""
        rng = random.Random(repr(self))
        level, values = rng.uniform(1, 4000), []
        for build in range(self.builds):
            worse = self.step if self.first_bad is not None and build >= self.first_bad else 0.0
            spike = self.spikes if build % 30 == 17 else 0.0
            build_is = rng.gauss(0, self.between)
            rows = [1 + rng.gauss(0, self.noise) for _ in range(ROWS)]
            values.append(level * (1 + worse) * (1 + spike) * (1 + build_is) * median(rows))
        return values


REGRESSED = (
    Practice(27, 0.015, first_bad=14, step=0.07),
    Practice(180, 0.04, first_bad=93, step=0.7),
    Practice(114, 0.01, first_bad=87, step=0.25),
    Practice(171, 0.025, first_bad=113, step=0.22),
    Practice(39, 0.014, first_bad=29, step=0.09),
)
QUIET = (
    *(
        Practice(builds, noise)
        for builds, noise in [(29, 0.01), (41, 0.01), (50, 0.007), (53, 0.008), (62, 0.005)]
    ),
    *(
        Practice(builds, noise, spikes=0.1)
        for builds, noise in [(113, 0.02), (198, 0.012), (420, 0.017), (161, 0.03)]
    ),
    *(Practice(115, 0.02, spikes=spikes) for spikes in (0.05, 0.35, 0.7)),
    *(Practice(builds, 0.02, between=0.08) for builds in (115, 122, 129, 140)),
    *(Practice(130, 0.01, between=between) for between in (0.04, 0.06, 0.1, 0.12)),
)
