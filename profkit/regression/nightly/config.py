"""What a nightly is asked to do, as types: the workloads, what may be spent, and what decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from profkit.core.types import Accepted, Depth, Scope
from profkit.regression.detection.rules import NightRule, rule_for

Annotate = Literal["auto", "always", "never"]

# What every workload must measure where the file names no gates of its own; what else decides then, is measured or
# not, by the rules of the metrics (`regression/rules.yaml`).
DECLARED = ("time.median",)
# Of a sweep the cases, thousands of single looks, gate nothing; what they are over all shapes does.
CASES, OVER_SHAPES = "time.median", "time.geometric_mean"
# Watched beside it: the passes measure these anyway, and a watched metric fails no night.
WATCHES = ("memory.rss_peak", "memory.python_peak", "memory.device_peak", "instructions", "launch.count")


@dataclass(frozen=True)
class WorkloadSpec:
    """One workload of the night. `timeout` is for one process, `budget` for all of its profile, in seconds."""

    name: str
    command: tuple[str, ...] = ()  # empty only where runs are given and nothing is profiled
    backend: str = "auto"
    depth: Depth = "gate"
    passes: tuple[str, ...] | None = None
    targets: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path = Path()
    timeout: float | None = None
    budget: float = 600.0
    timing: float | None = None  # seconds of sampling in one process, as `profile --budget` takes it
    precision: float = 0.01
    cold: bool = False
    gates: tuple[str, ...] | None = None  # None: as the rules say, and `DECLARED` must be there
    watches: tuple[str, ...] = WATCHES
    # By metric what is set on top of its rule (`regression.rule_for`): relative, absolute, nights, ...
    floors: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)

    @property
    def declared(self) -> tuple[str, ...]:
        """The metrics that must be there."""
        return DECLARED if self.gates is None else self.gates

    def rule(self, metric: str, scope: Scope) -> NightRule:
        """What decides `metric`."""
        own: dict[str, float | str | bool] = dict(self.floors.get(metric, {}))
        if self.gates is not None:
            # Of a sweep the time is that over all shapes.
            own["gates"] = metric in self.gates or (metric == OVER_SHAPES and CASES in self.gates)
        return rule_for(metric, {metric: own}, scope)


@dataclass(frozen=True)
class ConfirmSpec:
    """The re-run of candidate and last good in the same night. `rounds` at most; seconds for setup and for all."""

    enabled: bool = True
    checkout: tuple[str, ...] = ()  # empty: a git worktree; else a command with {commit} and {folder}
    setup: tuple[str, ...] = ()  # run in the checkout before its first round
    setup_timeout: float = 600.0
    rounds: int = 20
    budget: float = 900.0


@dataclass(frozen=True)
class CalibrateSpec:
    """How many workloads are run against themselves each night (in turn), and what that may take."""

    workloads: int = 1
    rounds: int = 6
    budget: float = 300.0


@dataclass(frozen=True)
class Anchor:
    """The old state that small steps are added up against; both None: the beginning of the epoch."""

    commit: str | None = None
    date: str | None = None  # ISO 8601


@dataclass(frozen=True)
class NotifySpec:
    """Files for others beside the night's own. The step summary is appended to, as GitHub's runner wants it."""

    junit: Path | None = None
    summary: Path | None = None  # default: $GITHUB_STEP_SUMMARY, where that is set
    annotations: Annotate = "auto"  # auto: where GITHUB_ACTIONS is set


@dataclass(frozen=True)
class NightConfig:
    """The whole file. Paths are absolute: relative ones were taken from the file's folder."""

    path: Path
    name: str
    history: Path
    output: Path
    workloads: tuple[WorkloadSpec, ...]
    budget: float | None = None  # seconds for the night, confirmations included
    confirm: ConfirmSpec = ConfirmSpec()
    calibrate: CalibrateSpec = CalibrateSpec()
    anchor: Anchor = Anchor()
    accepted: tuple[Accepted, ...] = ()
    notify: NotifySpec = NotifySpec()
