"""Which changed line is the likeliest cause: where the commits between two versions touch what became slower."""

from __future__ import annotations

from profkit.core.types import BlamedLine, Comparison
from profkit.regression.paired.version import Version


def blamed_lines(comparison: Comparison, first: Version, second: Version) -> tuple[BlamedLine, ...]:  # noqa: ARG001
    """The lines, the likeliest first."""
    return ()
