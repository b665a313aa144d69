"""What sectors per request say of coalescing: enough where more moved than any access needs, and reason to doubt."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.formatting import figures
from profkit.core.types import Reading, RunDocument, Scope, Source

# 32 lanes of 16 bytes, the widest access there is, are 512 bytes: 16 sectors of 32. More are certainly not needed.
MOST_NEEDED = 16.0
# 32 lanes of 4 bytes are 4 sectors. Requests of no more than that may well be of lanes that share addresses, and bytes
# over sectors counts those as waste: 12.5 % where a whole warp reads one float, which one sector serves.
PLAIN = 4.0
LOW = 80.0  # %, the target's threshold

_Kernel = tuple[Scope, "str | None"]


def weighed_coalescing(document: RunDocument) -> tuple[Reading, ...]:
    """The document's readings, those of coalescing held against the sectors per request of the same artifact.

    Where none was told, an upper bound takes its place if more sectors moved than any load can need: sectors per
    request alone tell no more, since 8 are right for 8-byte types and twice too many for 4-byte ones. A low one that
    was not counted against the fewest sectors that each access needs is doubted where few sectors moved per request.
    """
    kernels: dict[_Kernel, dict[str, float]] = {}
    for reading in document.readings:
        if reading.scope.kind == "kernel" and reading.value is not None and reading.doubt is None:
            key = (reading.scope, reading.source.artifact)
            kernels.setdefault(key, {})[reading.metric] = reading.value
    return tuple(
        _weighed(reading, kernels.get((reading.scope, reading.source.artifact), {}))
        if reading.metric == "memory.coalescing" and reading.scope.kind == "kernel"
        else reading
        for reading in document.readings
    )


def _weighed(reading: Reading, told: dict[str, float]) -> Reading:
    loads, stores = (told.get(f"memory.sectors_per_request.{way}") for way in ("load", "store"))
    if reading.value is None and loads is not None and loads > MOST_NEEDED:
        return Reading(
            reading.metric,
            100 * MOST_NEEDED / loads,
            reading.unit,
            "estimated",
            reading.scope,
            Source(
                reading.source.tool,
                reading.source.counter,
                reading.source.artifact,
                "100 * 16 / sectors per request",
            ),
            reason=f"at most: {figures(loads)} sectors per request of loads, and no request can need more than 16",
        )
    if reading.value is None or reading.value >= LOW or "memory.sectors.excess" in told:
        return reading
    each = max(loads or 0.0, stores or 0.0)
    if not 0 < each <= PLAIN:
        return reading
    few = f"{figures(each)} sectors per request are few, and lanes that share addresses look like waste"
    return replace(reading, doubt=f"{few}; source counters tell (--depth full)")
