"""Thresholds as data (one YAML per backend), when each applies, and the judge."""

from __future__ import annotations

from profkit.targets.conditions import Context
from profkit.targets.judge import context_of, judge
from profkit.targets.load import load_targets
from profkit.targets.run import judge_run
from profkit.targets.target import Advice, Condition, Target

__all__ = [
    "Advice",
    "Condition",
    "Context",
    "Target",
    "context_of",
    "judge",
    "judge_run",
    "load_targets",
]
