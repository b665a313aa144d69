"""One Metal trace of a run out of those of its passes: the times of the trace, the counters of the counters pass."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import MetalAbsent, MetalTrace

# What a recording that was not made for times may still add where that one lacks it.
_ADDED = (
    "shaders",
    "performance",
    "thermal",
    "memory_recommended",
    "low_power",
    "device",
    "devices",
    "counter_set",
)
_COUNTER, _SHADER = "counter", "shader"  # in the names of the tables that tell them


def merge_metal_traces(known: MetalTrace | None, told: MetalTrace | None) -> MetalTrace | None:
    """What both say: `known` of an earlier pass with what only `told` has.

    Times and work stay those of the earlier pass, since the later is another execution. What is absent is what neither
    has; of the counters the pass that was made for them says why.
    """
    if known is None or told is None:
        return known if told is None else told
    counters = known.counters or told.counters
    added = {name: getattr(told, name) for name in _ADDED if not getattr(known, name)}
    shaders = bool(known.shaders or told.shaders)
    return replace(known, **added, counters=counters, absent=_absent(known, told, bool(counters), shaders))


def _absent(known: MetalTrace, told: MetalTrace, counters: bool, shaders: bool) -> tuple[MetalAbsent, ...]:
    here = {"performance": told.performance, "thermal": told.thermal}
    found = [word for word, value in here.items() if value]
    kept = [
        one
        for one in known.absent
        if not (
            _COUNTER in one.what
            or (shaders and _SHADER in one.what)
            or any(word in one.what for word in found)
        )
    ]
    if not counters:
        of_counters = [one for one in told.absent if _COUNTER in one.what]
        kept += of_counters or [one for one in known.absent if _COUNTER in one.what]
    return tuple(kept)
