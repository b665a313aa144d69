"""Every metric by its name: title, unit, which direction is better, possible range, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.core.errors import UsageError
from profkit.core.tables import load_yaml
from profkit.core.types import Direction, Fact


@dataclass(frozen=True)
class MetricInfo:
    """What a metric is. `least` and `most` bound what is possible at all, in `unit`; None is unbounded.

    A derived value outside of its bounds is a fault of the measurement and never a fact. With `inputs` its counters are
    doubted, too: no core has such a clock. Without it they are not: where neither of two events contains the other,
    a share above 100 % is possible.
    """

    name: str
    title: str
    unit: str
    better: Direction
    meaning: str
    least: float | None = None
    most: float | None = None
    inputs: bool = False


# What no value of a unit can exceed, where the metric has no bound of its own. Counters have 64 bits, and -1 is the
# largest number of them; a machine that ran for three years without a pause has a hundred million seconds behind it.
_ROOFS = {"count": 2.0**63, "B": 2.0**63, "s": 1e8}


@lru_cache(maxsize=1)
def _catalogue() -> Mapping[str, MetricInfo]:
    rows = load_yaml(Path(__file__).with_name("catalogue.yaml"))
    return {name: MetricInfo(name, **{"most": _ROOFS.get(row["unit"]), **row}) for name, row in rows.items()}


def impossible(info: MetricInfo, value: float) -> Fact | None:
    """Return why the metric cannot have this value; None where it can."""
    if value != value or value in (float("inf"), float("-inf")):
        return Fact("not-a-number")
    # A ratio of two counters that stop a moment apart may pass its bound by a hair.
    slack = 0.001 * abs(info.most) if info.most else 0.0
    if info.most is not None and value > info.most + slack:
        return Fact.of("more-than", value=value, limit=info.most, unit=info.unit)
    if info.least is not None and value < info.least - slack:
        return Fact.of("less-than", value=value, limit=info.least, unit=info.unit)
    return None


def all_metrics() -> tuple[MetricInfo, ...]:
    """Return all metrics in the order of the catalogue."""
    return tuple(_catalogue().values())


def metric(name: str) -> MetricInfo:
    """Return the metric called `name`. Raises UsageError with the nearest known name when there is none."""
    try:
        return _catalogue()[name]
    except KeyError:
        guess = nearest_metric(name)
        hint = f"; did you mean {guess}?" if guess else ""
        raise UsageError(f"there is no metric called {name!r}{hint}") from None


def find_metric(name: str) -> MetricInfo | None:
    """Return the metric called `name`; None where the catalogue has none."""
    return _catalogue().get(name)


def direction_of(name: str) -> Direction:
    """Return which way is good; `none` for a metric that the catalogue does not know."""
    known = _catalogue().get(name)
    return known.better if known is not None else "none"


def title_of(name: str) -> str:
    """Return the title; the name itself for a metric that the catalogue does not know."""
    known = _catalogue().get(name)
    return known.title if known is not None else name


def nearest_metric(name: str) -> str | None:
    """Return the known name most like `name` (itself when it is known), or None when nothing is like it."""
    import difflib  # here: only a wrong name needs it

    known = _catalogue()
    lowered = name.strip().lower()
    if lowered in known:
        return lowered
    # 0.6 is difflib's own cutoff: it finds a slip of a few letters and refuses an unrelated word.
    close = difflib.get_close_matches(lowered, known, n=1, cutoff=0.6)
    if close:
        return close[0]
    # people leave the family out ("miss_rate") or write the counter's separator ("l1-miss-rate")
    plain = lowered.replace("-", "_").replace(".", "_")
    inside = [known_name for known_name in known if plain and plain in known_name.replace(".", "_")]
    return min(inside, key=len) if inside else None


@lru_cache(maxsize=1)
def metal_counter_names() -> Mapping[str, Any]:
    """Return the names of each metric's counters, best first, and the form of a limiter's name."""
    names: Mapping[str, Any] = load_yaml(Path(__file__).parent / "formulas" / "metal.yaml")
    return names
