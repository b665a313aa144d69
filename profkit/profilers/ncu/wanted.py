"""Which metrics of a report are read: those that a formula or a check of consistency needs, and launch attributes."""

from __future__ import annotations

from functools import lru_cache

from profkit.analysis.metrics import formula_table
from profkit.analysis.metrics.checks import checked_counters
from profkit.profilers.ncu.launches import IDENTITY, PASSES

# Launch attributes are told whole: they cost no replay pass, and say what was launched.
PREFIXES = ("launch__",)


@lru_cache(maxsize=1)
def wanted_names() -> frozenset[str]:
    """Names of the metrics to read, as reports spell them, in lower case."""
    table = formula_table("ncu")
    names = {*IDENTITY, PASSES, *checked_counters("ncu"), *table.aliases}
    names |= {name for ways in table.formulas.values() for way in ways for name in way.names}
    return frozenset(name.lower() for name in names)


def is_wanted(name: str) -> bool:
    """Whether the metric `name` is one of them."""
    return name.startswith(PREFIXES) or name.lower() in wanted_names()
