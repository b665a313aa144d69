"""Which counter of an Apple GPU tells which metric, as data: the names differ between generations of chips."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.analysis.metrics.yaml_file import load_yaml


@dataclass(frozen=True)
class MetalCounterNames:
    """Of each metric the names of its counters, best first; and how the name of a limiter is told."""

    counters: Mapping[str, tuple[str, ...]]
    ending: str
    excepted: frozenset[str]

    def limiters(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of `names` that count how busy or stalled one unit of the GPU was."""
        known = {other for others in self.counters.values() for other in others}
        return tuple(
            name for name in names if name.endswith(self.ending) and name not in (self.excepted | known)
        )


@lru_cache(maxsize=1)
def metal_counter_names() -> MetalCounterNames:
    """The table in formulas/metal.yaml."""
    content = load_yaml(Path(__file__).parent / "formulas" / "metal.yaml")
    counters = {metric: tuple(names) for metric, names in content["counters"].items()}
    limiters = content["limiters"]
    return MetalCounterNames(counters, limiters["ending"], frozenset(limiters["except"]))
