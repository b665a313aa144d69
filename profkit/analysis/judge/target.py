"""A target as plain data: a threshold, where it speaks, its checks, and what to try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profkit.analysis.judge.checks import CheckStep, Condition
from profkit.core.types import Operator, Quality, ScopeKind, Threshold

OPERATORS: dict[str, Operator] = {"below": "<", "above": ">", "at_most": "<=", "at_least": ">="}


@dataclass(frozen=True)
class Advice:
    """One line of what to try, everywhere or only where `when` holds or the reading is of that quality."""

    text: str
    when: Condition | None = None
    quality: Quality | None = None


@dataclass(frozen=True)
class Target:
    """A threshold of one metric in the metric's unit; None is the one that the run asked for.

    `says` is the code of the fact that tells the value, `value` left out; empty: the metric's title and the value.
    `missed`: is a miss a fault of the workload, or a doubt about the measurement.
    """

    name: str
    metric: str
    operator: Operator
    threshold: float | None
    unit: str
    scopes: tuple[ScopeKind, ...] = ("run", "region")
    says: str = ""
    checks: tuple[CheckStep, ...] = ("known", "threshold")
    advice: tuple[Advice, ...] = ()
    missed: Literal["fail", "unknown"] = "fail"
    unknown: str = ""  # what to try where there is no value and the reading itself has no fix
    timed: bool = False  # the value is something over the median time, and as well known as that
    # of kernels: asked of the user's own alone; how a library writes its own is its affair
    own_code: bool = False
    always: bool = False  # of kernels: spoken of, as unknown, also where no report has the metric at all


def threshold_of(target: Target) -> Threshold:
    """Return the target's own threshold, where it does not leave that to the run."""
    return Threshold(target.operator, target.threshold or 0.0, target.unit)
