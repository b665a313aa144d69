"""Why something changed: rules by theme, each of which looks at both runs and says what their counters show.

A rule explains nothing that was not found different, and every sentence carries the values that it rests on. Rules are
tried in the order of this list: what is outside of the program first, then what it does otherwise, then how well.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from profkit.core.types import Cause
from profkit.regression.compare.causes import launches, machine_state, memory
from profkit.regression.compare.causes.evidence import Evidence

RULES: tuple[Callable[[Evidence], Iterator[Cause]], ...] = (
    machine_state.find_contention,
    machine_state.find_processor_speed,
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
MOST_OF_A_KIND = 5  # the largest: of a hundred kernels with one cause five are enough


def causes_of(evidence: Evidence) -> tuple[Cause, ...]:
    """What every rule finds, in their order."""
    causes: list[Cause] = []
    for rule in RULES:
        counts: Counter[str] = Counter()
        for cause in rule(evidence):
            counts[cause.kind] += 1
            if counts[cause.kind] <= MOST_OF_A_KIND:
                causes.append(cause)
    return tuple(causes)
