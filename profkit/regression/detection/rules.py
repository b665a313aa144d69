"""What decides a metric: its floors, whether it gates, and how much evidence a verdict takes. Data, and its loader."""

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
from profkit.core.types import RUN, Direction, Scope

_SHARE = re.compile(r"\s*([-+.\deE]+)\s*%\s*")
_DIRECTIONS = ("lower", "higher", "none")


@dataclass(frozen=True)
class NightRule:
    """How one metric is decided.

    `exact`: it gates where it was counted beside the base commit and repeats. `relative` and `absolute`: the floor; a
    change below the larger of both counts for nothing. `nights`: in a row outside that confirm where nothing was
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
        """The smallest change that counts at all, in the unit of `centre`."""
        return max(self.relative * abs(centre), self.absolute)

    def drift_floor(self, centre: float) -> float:
        """Likewise for what added up in small steps: twice as large a share."""
        return max(2 * self.relative * abs(centre), self.absolute)


_KEYS = tuple(field.name for field in fields(NightRule) if field.name != "metric")


def rule_for(
    metric: str, overrides: Mapping[str, Mapping[str, Any]] | None = None, scope: Scope = RUN
) -> NightRule:
    """The rule of `metric`: the default, what rules.yaml says of it, then `overrides` of "default" and of its name.

    Of a kernel or a function nothing gates unless `overrides` names the metric with `gates`: there are hundreds of
    them, and they explain a change of the whole. Raises UsageError for a key or value that does not fit.
    """
    own, given = _default_rules(), dict(overrides or {})
    merged = {**own["default"], **given.get("default", {}), **own["metrics"].get(metric, {})}
    if scope.kind in ("kernel", "function"):
        merged["gates"] = merged["exact"] = False
    merged |= given.get(metric, {})
    return replace(
        NightRule(metric), **{key: _check_value(metric, key, value) for key, value in merged.items()}
    )


@lru_cache(maxsize=1)
def _default_rules() -> Mapping[str, Any]:
    rows: Mapping[str, Any] = load_yaml(Path(__file__).with_name("rules.yaml"))
    return rows


def _check_value(metric: str, key: str, value: object) -> Any:
    where = f"the rule of {metric}: {key}"
    if key not in _KEYS:
        raise UsageError(f"the rule of {metric} has no {key!r}", f"one of {', '.join(_KEYS)}")
    if key in ("gates", "exact"):
        return value if isinstance(value, bool) else _refuse(where, value, "yes or no")
    if key == "better":
        return value if value in _DIRECTIONS else _refuse(where, value, " or ".join(_DIRECTIONS))
    number = _parse_number(value)
    if key == "nights":
        whole = number is not None and number >= 1 and number == int(number)
        return int(number or 0) if whole else _refuse(where, value, "a whole number")
    if number is None or number < 0:
        return _refuse(where, value, '0 or more, such as 0.02 or "2 %"' if key == "relative" else "0 or more")
    return number


def _parse_number(value: object) -> float | None:
    """A number, or a share in per cent as text; None for anything else."""
    if isinstance(value, str) and (match := _SHARE.fullmatch(value)):
        try:
            return float(match[1]) / 100
        except ValueError:
            return None
    return float(value) if is_finite_number(value) else None


def _refuse(where: str, value: object, wanted: str) -> Any:
    raise UsageError(f"{where} is {short_repr(value)}", f"write {wanted}")
