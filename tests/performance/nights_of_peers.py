"""Rules that other tools ship, as documented, for the same years: own implementations, more is worse.

They are given the valid nights alone, which most of them would not know; of machines and accepted changes they know
nothing. Alarms in a row count once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

from profkit.core.inference import student_quantile
from profkit.core.statistics import mad_sigma, median
from tests.regression.detection.scoring import runs_of
from tests.regression.detection.years import Year

Flag = Callable[[Sequence[float], float], bool]  # the values before, and tonight's


def _previous(times: float) -> Flag:
    return lambda past, value: bool(past) and value > times * past[-1]


def _t_test(past: Sequence[float], value: float, window: int = 64) -> bool:
    """Bencher's t_test: the upper prediction limit of the last 64 at 0.99."""
    last = past[-window:]
    n = len(last)
    if n < 3:
        return False
    mean = sum(last) / n
    spread = sqrt(sum((v - mean) ** 2 for v in last) / (n - 1))
    return value > mean + _quantile(n - 1) * spread * sqrt(1 + 1 / n)


_QUANTILES: dict[int, float] = {}


def _quantile(freedom: int) -> float:
    return _QUANTILES.setdefault(freedom, student_quantile(0.99, freedom))


def _band(past: Sequence[float], value: float, window: int = 24) -> bool:
    last = past[-window:]
    return len(last) >= window and value > median(last) + 4 * mad_sigma(last)


def _nightly(flag: Flag) -> Callable[[Year], list[int]]:
    def alarms(year: Year) -> list[int]:
        places = [i for i, p in enumerate(year.series.points) if p.valid]
        values = [year.series.points[i].value for i in places]
        return [places[i] for i in runs_of([flag(values[:i], v) for i, v in enumerate(values)])]

    return alarms


def _three(year: Year) -> list[int]:
    """Median + 4 MAD with the reference frozen at the first night outside: an alarm at the third in a row."""
    places = [i for i, p in enumerate(year.series.points) if p.valid]
    values = [year.series.points[i].value for i in places]
    flags, start = [False] * len(values), None
    for i, value in enumerate(values):
        past = values[: i if start is None else start]
        if not _band(past, value):
            start = None
            continue
        start = i if start is None else start
        flags[i] = i - start >= 2
        if i - start >= 24:
            start = None  # by now it is the normal
    return [places[i] for i in runs_of(flags)]


PEERS: dict[str, Callable[[Year], list[int]]] = {
    "github-action-benchmark: > 200 % of the previous": _nightly(_previous(2.0)),
    "pytest-benchmark: > 5 % above the previous": _nightly(_previous(1.05)),
    "Bencher: t-test 0.99 of the last 64": _nightly(_t_test),
    "median + 4 MAD of 24, one night": _nightly(_band),
    "the same, three nights": _three,
}
