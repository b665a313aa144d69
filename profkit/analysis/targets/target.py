"""A target as plain data: a threshold, where it speaks, when it applies, and what to try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profkit.core.types import Bound, Operator, Quality, ScopeKind, Threshold

RooflineSide = Literal["memory", "compute"]
Limiter = Literal["registers", "shared", "warps", "blocks", "barriers"]
OPERATORS: dict[str, Operator] = {"below": "<", "above": ">", "at_most": "<=", "at_least": ">="}


@dataclass(frozen=True)
class Condition:
    """Holds where `metric` (times `times` as share, or over `over`) is in bounds, or the lower ceiling is `roof`.

    `otherwise` says what is so where it does not hold; `{value}` in it is the value that was looked at.

    With `where` it is asked of kernels of these classes only, and holds for all others; then without a metric the
    bounds are on how busy the kernel's busiest unit is, and with neither it does not hold in these classes. `{class}`
    in `otherwise` is the evidence of the class. With `without` it is only asked where that metric is not known.
    """

    metric: str | None = None
    times: str | None = None
    over: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    roof: RooflineSide | None = None
    of_run: bool = False  # looked at for the whole run, also where a function is judged
    where: tuple[Bound, ...] = ()
    # With `where`: holds where the kernel's busiest unit is one of these; with bounds, only these are asked for them.
    busiest: tuple[Bound, ...] = ()
    without: str | None = None
    known: bool = False  # with `where`: where the class is not known it holds, instead of leaving it open
    limiter: Limiter | None = None  # holds where this is among what limits the kernel's theoretical occupancy
    stall: str | None = None  # holds where this is what warps wait for most
    otherwise: str = ""
    fix: str = ""  # of what is doubted or guarded: what to try where it does not hold


@dataclass(frozen=True)
class Advice:
    """One line of what to try, everywhere or only where `when` holds or the reading is of that quality."""

    text: str
    when: Condition | None = None
    quality: Quality | None = None


@dataclass(frozen=True)
class Target:
    """A threshold of one metric in the metric's unit; None is the one that the run asked for.

    In `says`, `{value}` is the value and `{what}` the remark of its reading: which shader, which cause.

    Where a condition of `applies` does not hold the target is not applicable; one of `excused` is only
    looked at after a miss. `missed`: is a miss a fault of the workload, or a doubt about the measurement.
    """

    name: str
    metric: str
    operator: Operator
    threshold: float | None
    unit: str
    scopes: tuple[ScopeKind, ...] = ("run", "region")
    says: str = ""
    applies: tuple[Condition, ...] = ()
    excused: tuple[Condition, ...] = ()
    advice: tuple[Advice, ...] = ()
    missed: Literal["fail", "unknown"] = "fail"
    unknown: str = ""  # what to try where there is no value and the reading itself has no fix
    timed: bool = False  # the value is something over the median time, and as well known as that
    tolerated: tuple[Condition, ...] = ()  # only looked at after a miss: where one holds it is none
    # Only looked at after a miss: where one does not hold, or cannot be told, the verdict is unknown.
    doubted: tuple[Condition, ...] = ()
    # Only looked at where there is no value: where one holds there is nothing to judge.
    moot: tuple[Condition, ...] = ()
    # Looked at before the threshold: where one does not hold, the value says nothing of the workload, and is unknown.
    guard: tuple[Condition, ...] = ()
    # of kernels: asked of the user's own alone; how a library writes its own is its affair
    own_code: bool = False
    always: bool = False  # of kernels: spoken of, as unknown, also where no report has the metric at all
    # A value above it says something about the measurement, not about the workload
    credible: float | None = None


def threshold_of(target: Target) -> Threshold:
    """The target's own threshold, where it does not leave that to the run."""
    return Threshold(target.operator, target.threshold or 0.0, target.unit)


def is_met(value: float, operator: Operator, threshold: float) -> bool:
    """Whether the unrounded value meets the threshold."""
    if operator == "<":
        return value < threshold
    if operator == "<=":
        return value <= threshold
    return value > threshold if operator == ">" else value >= threshold
