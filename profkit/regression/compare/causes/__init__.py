"""Why something changed: one rule in each file, which looks at both runs and says what their counters show.

A rule explains nothing that was not found different, and every sentence carries the values that it rests on. Rules are
tried in the order of this list: what lies outside of the program first, then what it does otherwise, then how well.
"""

from collections.abc import Callable, Iterator

from profkit.core.types import Cause
from profkit.regression.compare.causes import launches, machine_state, memory
from profkit.regression.compare.causes.evidence import Evidence

RULES: tuple[Callable[[Evidence], Iterator[Cause]], ...] = (
    machine_state.find_contention,
    machine_state.find_clock_change,
    machine_state.find_throttling,
    machine_state.find_performance_state,
    launches.find_software,
    launches.find_other_kernels,
    launches.find_autotuning,
    launches.find_launch_shapes,
    launches.find_occupancy,
    launches.find_moved_work,
    launches.find_slower_encoders,
    launches.find_call_counts,
    launches.find_launch_counts,
    launches.find_command_buffers,
    launches.find_idle_device,
    memory.find_transfers,
    memory.find_instructions,
    memory.find_memory_traffic,
    memory.find_kernel_efficiency,
    memory.find_cache_misses,
    memory.find_memory_growth,
    memory.find_slower_imports,
)
MOST_OF_A_KIND = 5  # the largest: a hundred kernels whose registers rose are one story


def causes_of(view: Evidence) -> tuple[Cause, ...]:
    """What every rule finds, in their order."""
    found: list[Cause] = []
    for rule in RULES:
        told: dict[str, int] = {}
        for cause in rule(view):
            told[cause.kind] = told.get(cause.kind, 0) + 1
            if told[cause.kind] <= MOST_OF_A_KIND:
                found.append(cause)
    return tuple(found)
