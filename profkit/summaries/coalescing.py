"""What sectors per request say of coalescing where nobody counted it instruction by instruction: at times enough."""

from __future__ import annotations

from profkit.model import Reading, RunDocument, Source
from profkit.words import figures

# 32 lanes of 16 bytes, the widest access there is, are 512 bytes: 16 sectors of 32. More are certainly not needed.
MOST_NEEDED = 16.0


def bounded_coalescing(document: RunDocument) -> tuple[Reading, ...]:
    """The document's readings, with an upper bound of coalescing where more sectors moved than any load can need.

    Sectors per request alone tell no more: 8 are right for 8-byte types, and twice too many for 4-byte ones.
    """
    kernels: dict[object, dict[str, Reading]] = {}
    for reading in document.readings:
        if reading.scope.kind == "kernel":
            kernels.setdefault(reading.scope, {})[reading.metric] = reading
    return tuple(_bounded(reading, kernels) for reading in document.readings)


def _bounded(reading: Reading, kernels: dict[object, dict[str, Reading]]) -> Reading:
    if reading.metric != "memory.coalescing" or reading.value is not None or reading.scope not in kernels:
        return reading
    each = kernels[reading.scope].get("memory.sectors_per_request.load")
    if each is None or each.value is None or each.doubt is not None or each.value <= MOST_NEEDED:
        return reading
    return Reading(
        reading.metric,
        100 * MOST_NEEDED / each.value,
        reading.unit,
        "estimated",
        reading.scope,
        Source(each.source.tool, each.source.counter, each.source.artifact, "100 * 16 / sectors per request"),
        reason=f"at most: {figures(each.value)} sectors per request of loads, and no request can need more than 16",
    )
