"""Load what decides a metric: its floors, whether it gates, and how much evidence a verdict needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.core.codec import is_finite_number, short_repr
from profkit.core.errors import UsageError
from profkit.core.tables import load_yaml
from profkit.core.types import Direction

_SHARE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*")
_DIRECTIONS = ("lower", "higher", "none")


@dataclass(frozen=True)
class NightRule:
    """How one metric is decided.

    `exact`: it gates if it was counted beside the base commit and repeats. `relative` and `absolute`: the floor;
    a change below the larger of both is ignored. `nights`: how many in a row outside confirm where nothing was
    re-run.
    """

    metric: str
    gates: bool = False
    exact: bool = False
    relative: float = 0.05
    absolute: float = 0.0
    better: Direction | None = None  # None: as the series says
    nights: int = 3

    def floor(self, centre: float) -> float:
        """Return the smallest change that counts at all, in the unit of `centre`."""
        return max(self.relative * abs(centre), self.absolute)


_KEYS = tuple(field.name for field in fields(NightRule) if field.name != "metric")


def rule_for(metric: str, overrides: Mapping[str, Any] | None = None) -> NightRule:
    """Return the rule of `metric`: the default, then what rules.yaml says, then `overrides`.

    Raises UsageError for a key or value that does not fit.
    """
    own = _default_rules()
    merged = {**own["default"], **own["metrics"].get(metric, {}), **(overrides or {})}
    return replace(
        NightRule(metric), **{key: _check_value(metric, key, value) for key, value in merged.items()}
    )


@lru_cache(maxsize=1)
def _default_rules() -> Mapping[str, Any]:
    rows: Mapping[str, Any] = load_yaml(Path(__file__).with_name("rules.yaml"))
    return rows


def _check_value(metric: str, key: str, value: object) -> Any:
    """Return the value as the rule has it; a share may be a text in per cent. Raises UsageError."""
    wanted = {"gates": "yes or no", "exact": "yes or no", "better": " or ".join(_DIRECTIONS)}.get(key)
    number = value
    if isinstance(value, str) and (match := _SHARE.fullmatch(value)):
        number = float(match[1]) / 100
    if key not in _KEYS:
        raise UsageError(f"the rule of {metric} has no {key!r}", f"one of {', '.join(_KEYS)}")
    if key in ("gates", "exact"):
        fits = isinstance(value, bool)
    elif key == "better":
        fits = value in _DIRECTIONS
    elif key == "nights":
        wanted, fits = "a whole number", type(number) is int and number >= 1
    else:
        wanted, fits = '0 or more, such as 0.02 or "2 %"', is_finite_number(number) and number >= 0
    if not fits:
        raise UsageError(f"the rule of {metric}: {key} is {short_repr(value)}", f"write {wanted}")
    return number
