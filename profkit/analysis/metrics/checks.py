"""What must agree within one report, as data: bytes per second against the peak and its share, parts and totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from profkit.analysis.metrics.formula import Sum, parse_sum
from profkit.analysis.metrics.yaml_file import load_yaml


@dataclass(frozen=True)
class ConsistencyCheck:
    """Two sides that must agree (`==`) or keep their order (`<=`), and the metrics that are in doubt if they do not.

    `slack` is relative to the greater side (0..1), `least` absolute, in the unit of the sides.
    """

    says: str
    left: Sum
    right: Sum
    relation: Literal["==", "<="]
    slack: float
    least: float
    doubts: tuple[str, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The counters and metrics that it needs."""
        return tuple(dict.fromkeys((*self.left.names, *self.right.names)))

    def sides(self, values: Mapping[str, float]) -> tuple[float, float] | None:
        """The two sides where they contradict each other; None where they agree, or cannot be told."""
        if any(name not in values for name in self.names):
            return None
        left, right = self.left.value(values), self.right.value(values)
        allowed = max(self.least, self.slack * max(abs(left), abs(right)))
        over = left - right
        apart = over > allowed or (self.relation == "==" and -over > allowed)
        return (left, right) if apart else None


@lru_cache(maxsize=4)
def consistency_checks(tool: str) -> tuple[ConsistencyCheck, ...]:
    """The checks of `tool`'s reports; none for a tool that has none."""
    rows: list[dict[str, Any]] = load_yaml(Path(__file__).with_name("checks.yaml")).get(tool, [])
    return tuple(
        ConsistencyCheck(
            row["says"],
            parse_sum(row["left"]),
            parse_sum(row["right"]),
            row["relation"],
            row["slack"],
            row["least"],
            tuple(row["doubts"]),
        )
        for row in rows
    )


def checked_counters(tool: str) -> frozenset[str]:
    """The counters (not metrics) that the checks of `tool` need, so that its reader keeps them."""
    return frozenset(name for check in consistency_checks(tool) for name in check.names if "__" in name)
