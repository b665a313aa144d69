"""Thresholds as data (one YAML per backend), when each applies, and the judge."""

from __future__ import annotations

from profkit.analysis.targets.conditions import Context
from profkit.analysis.targets.judge import context_of, judge
from profkit.analysis.targets.load import load_targets
from profkit.analysis.targets.run import judge_run
from profkit.analysis.targets.target import Advice, Condition, Target

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
