"""The counters of a report as a table: what a test of a reader compares."""

from __future__ import annotations

from profkit.core.types import Report


def told(report: Report) -> dict[str, float | str]:
    """By name the value, or the state where there is none."""
    return {c.name: c.value if c.value is not None else c.state for c in report.counters}
