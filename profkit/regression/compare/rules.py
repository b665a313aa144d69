"""What counts as a change of which metric, as `rules.yaml` lists it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from profkit.analysis.metrics.catalogue import load_yaml
from profkit.core.types import Direction

# Of a metric that no rule speaks of and the user asked for: its own noise is not known.
FLOOR = 0.02


@dataclass(frozen=True)
class Rule:
    """What counts as a change of one metric; the fields are explained at the head of rules.yaml."""

    metric: str
    role: Literal["decides", "stands-in", "supports"] = "supports"
    floor: float = FLOOR
    least: float = 0.0
    repeat: float | None = None  # None: how far a single value may lie from the next is not known
    spread: float | None = None
    tools: tuple[str, ...] = ()
    kernels: bool = False
    per: Literal["iteration"] | None = None
    better: Direction | None = None

    @property
    def exact(self) -> bool:
        """Whether one value is as good as many: the same program gives the same again."""
        return self.repeat == 0


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """Every rule in the order of the file."""
    rows = load_yaml(Path(__file__).with_name("rules.yaml"))
    return tuple(Rule(**{**row, "tools": tuple(row.get("tools", ()))}) for row in rows)


def rule_of(metric: str, tool: str) -> Rule | None:
    """The first rule that speaks of `metric` as `tool` measures it; None where none does."""
    return next((r for r in _of(metric) if not r.tools or tool in r.tools), None)


@lru_cache(maxsize=512)
def _of(metric: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in all_rules() if rule.metric == metric)
