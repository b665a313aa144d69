"""The catalogue (what a metric is) and the formulas (which counters it comes from, per tool and chip)."""

from __future__ import annotations

from profkit.analysis.metrics.catalogue import MetricInfo, all_metrics, metric, nearest
from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import FormulaTable, formula_table, has_formulas
from profkit.analysis.metrics.metal_counters import MetalCounterNames, metal_counter_names

__all__ = [
    "FormulaTable",
    "MetalCounterNames",
    "MetricInfo",
    "all_metrics",
    "derive",
    "formula_table",
    "has_formulas",
    "metal_counter_names",
    "metric",
    "nearest",
]
