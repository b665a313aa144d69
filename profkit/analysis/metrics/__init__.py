"""The catalogue (what a metric is) and the formulas (which counters it comes from, per tool and chip)."""
