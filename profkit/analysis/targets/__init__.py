"""Thresholds as data (one YAML per backend), when each applies, and the judge."""

from __future__ import annotations

from profkit.analysis.targets.judge import context_of, evaluate_targets
from profkit.analysis.targets.kernels import evaluate_run
from profkit.analysis.targets.load import load_targets
from profkit.analysis.targets.target import Advice, Condition, Target, TargetContext

__all__ = [
    "Advice",
    "Condition",
    "Target",
    "TargetContext",
    "context_of",
    "evaluate_run",
    "evaluate_targets",
    "load_targets",
]
