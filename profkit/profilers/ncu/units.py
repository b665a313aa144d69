"""The unit of a metric, which an .ncu-rep does not hold: told by the rules that metric names are made by.

A name is `unit__quantity[.rollup][.submetric]` ("Metrics Structure", Nsight Compute's Profiling Guide). What a quantity
is counted in follows from its words, what is done with it from the submetric: `.per_second`, `.per_cycle_active`,
`.pct_of_peak_sustained_elapsed`, `.ratio`. Spelled as NVIDIA's own report package spells them ("ns", "byte/s", "hz").
"""

from __future__ import annotations

from functools import lru_cache

# Names that no rule fits: launch attributes and what the profiler says of itself.
_NAMED = {
    "launch__registers_per_thread": "register/thread",
    "launch__registers_per_thread_allocated": "register/thread",
    "launch__thread_count": "thread",
    "launch__sm_count": "SM",
    "launch__cluster_max_active": "cluster",
    "launch__cluster_max_potential_size": "block",
    "launch__shared_mem_config_size": "byte",
    "launch__persisting_l2_cache_size": "byte",
    "profiler__replayer_passes": "pass",
    "profiler__replayer_passes_type_warmup": "pass",
    "smsp__pcsamp_aggregated_passes": "pass",
    "profiler__pmsampler_interval_time": "ns",
    "profiler__pmsampler_buffer_size_bytes": "byte",
    "sm__maximum_warps_avg_per_active_cycle": "warp",
    "smsp__maximum_warps_avg_per_active_cycle": "warp",
}
_PREFIXED = (
    ("launch__shared_mem_per_block", "byte/block"),
    ("launch__occupancy_limit_", "block"),
    ("launch__block_dim_", "block"),
    ("profiler__replayer_bytes_", "byte"),
)
# The first word that the quantity's name holds decides. What is counted stands before where and how it was.
_COUNTED = (
    ("time", "ns"),
    ("branch", "branch"),
    ("bytes", "byte"),
    ("sectors", "sector"),
    ("requests", "request"),
    ("wavefronts", ""),
    ("conflicts", ""),
    ("writeback", "cycle"),
    ("cycles", "cycle"),
    ("warps", "warp"),
    ("inst", "inst"),
    ("threads", "thread"),
)


@lru_cache(maxsize=8192)
def unit_of(name: str) -> str:
    """The base unit of the metric `name`; "" for a plain number and for what no rule tells.

    Percentages are 0..100, times nanoseconds, rates per second.
    """
    if name in _NAMED:
        return _NAMED[name]
    for prefix, unit in _PREFIXED:
        if name.startswith(prefix):
            return unit
    stem, _, submetric = name.partition(".")
    last = submetric.rpartition(".")[2]
    if last.startswith("pct") or stem.endswith("_pct") or stem.startswith("breakdown:"):
        return "%"
    if last in ("ratio", "max_rate"):
        return ""
    if stem.startswith(("launch__", "device__", "nvlink__count", "numa__", "derived_temp")):
        return ""
    unit = _quantity(stem)
    if last.endswith("per_second"):
        return "hz" if unit == "cycle" else f"{unit}/s" if unit else ""
    if last.startswith(("per_cycle", "peak_sustained")):
        return f"{unit}/cycle" if unit and unit not in ("warp", "cycle") else unit if unit == "warp" else ""
    return unit


def _quantity(stem: str) -> str:
    words = stem.rpartition("__")[2].split("_")  # SASS counters have no unit before it: inst_executed
    for word in words:
        for counted, unit in _COUNTED:
            if word == counted:
                return unit
    return ""
