"""What a bisection would cost, before anything is run: by simulated searches over as many commits."""

from __future__ import annotations

import random
from math import log, log2

from profkit.core.types import BisectPlan
from profkit.regression.bisect.posterior import Observation, Rules
from profkit.regression.bisect.run import BisectRequest, requested_row
from profkit.regression.bisect.search import Move, next_move

_SIMULATED = 20  # searches
_MOST = 256  # commits of a simulated row; a step for each doubling beyond
_SIZE = log(1.2)
_QUIET, _NOISY = 0.01, 0.07  # errors of a test


def plan_bisect(request: BisectRequest) -> BisectPlan:
    """The commits between the ends, and the tests that a search of them takes. Raises UsageError."""
    _, row = requested_row(request)
    rules = Rules(request.options.certainty, log(1 + request.options.floor))
    usual, most = expected_tests(len(row.commits), rules)
    budget = request.options.budget
    return BisectPlan(
        request.good,
        request.bad,
        len(row.commits),
        len(row.merges),
        usual,
        most,
        budget,
        budget * usual,
        budget * most,
    )


def expected_tests(n: int, rules: Rules) -> tuple[float, int]:
    """Tests of a search over `n` commits, with that of the ends and the last one of the answer alone.

    In the mean on a quiet machine, and those that nine of ten searches need where the error of a test is a third of the
    change.
    """
    small = min(n, _MOST)
    more = log2(n / small)
    right = [_tests(small, rules, _QUIET, seed) for seed in range(_SIMULATED)]
    noisy = sorted(_tests(small, rules, _NOISY, seed) for seed in range(_SIMULATED))
    return sum(right) / len(right) + more, round(noisy[(9 * len(noisy)) // 10 - 1] + 2 * more)


def _tests(n: int, rules: Rules, error: float, seed: int) -> int:
    draw = random.Random(seed)
    change = draw.randint(1, n)
    seen = [Observation(0, n, _SIZE, error / 2)]
    while isinstance(move := next_move(n, frozenset(), seen, rules), Move):
        size = _SIZE if move.earlier < change <= move.later else 0.0
        own = error / 2 if move.direct else error
        seen.append(Observation(move.earlier, move.later, size + draw.gauss(0, own), own))
    return len(seen)
