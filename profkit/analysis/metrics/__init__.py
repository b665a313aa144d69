"""The catalogue (what a metric is) and the formulas (which counters it comes from, per tool and chip)."""

from __future__ import annotations

from profkit.analysis.metrics.catalogue import (
    MetalCounterNames,
    MetricInfo,
    all_metrics,
    direction_of,
    metal_counter_names,
    metric,
    nearest_metric,
    title_of,
)
from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import FormulaTable, formula_table, has_formulas

__all__ = [
    "FormulaTable",
    "MetalCounterNames",
    "MetricInfo",
    "all_metrics",
    "derive",
    "direction_of",
    "formula_table",
    "has_formulas",
    "metal_counter_names",
    "metric",
    "nearest_metric",
    "title_of",
]
