"""A target as plain data: a threshold, the scopes that it applies to, its checks, and advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profkit.analysis.judge.target_checks import CheckStep, Condition
from profkit.core.types import Operator, Quality, ScopeKind, Threshold

OPERATORS: dict[str, Operator] = {"below": "<", "above": ">", "at_most": "<=", "at_least": ">="}


@dataclass(frozen=True)
class Advice:
    """One line of advice, given always or only if `when` holds or the reading has that quality."""

    text: str
    when: Condition | None = None
    quality: Quality | None = None


@dataclass(frozen=True)
class Target:
    """A threshold of one metric in the metric's unit; None stands for the precision that the run requested.

    `says` is the code of the sentence about the value; if it is empty, the sentence is the metric's title and value.
    `missed` tells whether a miss is a fault of the workload or a doubt about the measurement.
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
    unknown: str = ""  # what to try if there is no value and the reading has no fix of its own
    timed: bool = False  # the value is a quotient with the median time, and as precise as that
    # a miss in code of a library is not judged, since a user cannot change that code
    own_code: bool = False
    always: bool = False  # of kernels: has a verdict (unknown) even if no report contains the metric


def threshold_of(target: Target) -> Threshold:
    """Return the target's own threshold; its value is 0 if the run sets it."""
    return Threshold(target.operator, target.threshold or 0.0, target.unit)
