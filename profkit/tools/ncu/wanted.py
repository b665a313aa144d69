"""Which metrics of a report are read: those that a formula or the kernel classes need, and launch attributes."""

from __future__ import annotations

from functools import lru_cache

from profkit.metrics import formula_table, has_formulas
from profkit.metrics.checks import checked_counters
from profkit.tools.ncu.facts import PASSES
from profkit.tools.ncu.launches import IDENTITY

# Launch attributes are told whole: they cost no replay pass, and say what was launched.
PREFIXES = ("launch__",)
# Stands in for nothing: metrics that every reader of a kernel asks for, whatever the formulas name.
_ALWAYS = (
    "profiler__replayer_bytes_mem_backed_up.sum",
    "device__attribute_max_warps_per_multiprocessor",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__maximum_warps_per_active_cycle_pct",
)


@lru_cache(maxsize=1)
def wanted_names() -> frozenset[str]:
    """Names of the metrics to read, as reports spell them, in lower case."""
    names = {*IDENTITY, *_ALWAYS, PASSES, *checked_counters("ncu")}
    if has_formulas("ncu"):
        table = formula_table("ncu")
        names |= table.aliases.keys()
        names |= {name for ways in table.formulas.values() for way in ways for name in way.names}
    return frozenset(name.lower() for name in names)


def is_wanted(name: str) -> bool:
    """Whether the metric `name` is one of them."""
    return name.startswith(PREFIXES) or name.lower() in wanted_names()
