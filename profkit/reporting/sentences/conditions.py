"""Sentences about why a target does not apply."""

from __future__ import annotations

from profkit.core.formatting import format_figures
from profkit.reporting.sentences.table import Parts, Quantity, SentenceTable

SENTENCES = SentenceTable(
    {
        "memory-does-not-limit-at": (
            "memory does not limit it: at this arithmetic intensity arithmetic would limit it first"
        ),
        "memory-limits-so-memory-bandwidth": (
            "memory limits it, so memory-bandwidth is the target that applies"
        ),
        "raw-counter-holds-arbitration-well": (
            "the raw counter includes arbitration, and so few may be nothing else; source counters show "
            "it (--depth full)"
        ),
        "no-sector-moved-not-asked": "no sector was moved needlessly",
        "dram-busiest-unit-memory-bandwidth": (
            "DRAM is its busiest unit, so memory-bandwidth is the target that applies"
        ),
        "whether-arithmetic-limits-not-counted": "whether arithmetic limits it was not counted",
        "low-occupancy-alone-no-fault": "low occupancy alone is not a problem, and its limit was not counted",
        "how-near-what-gpu-do": "it was not counted how near that is to the GPU's limit",
    }
)


@SENTENCES.add("arithmetic-runs-at-peak-what")
def arithmetic_runs_at_peak_what(value: Quantity) -> str:
    return f"arithmetic runs at {value} of its peak: it hides the cache misses"


@SENTENCES.add("arithmetic-outlasts-refills")
def arithmetic_outlasts_refills(value: float) -> str:
    return (
        "its arithmetic takes longer than moving the data that its caches miss, which takes "
        f"{format_figures(value)} times as long: it hides the cache misses"
    )


@SENTENCES.add("stream-memory-moves-at-peak")
def stream_memory_moves_at_peak(value: Quantity) -> str:
    return (
        f"a stream: memory moves at {value} of its peak, and a cache cannot help with data that are "
        "used once. Less traffic would help: fuse passes, use smaller types"
    )


@SENTENCES.add("so-few-accesses-reach-l2")
def so_few_accesses_reach_l2(value: Quantity) -> str:
    return f"so few accesses reach the L2 cache (L1 misses {value}) that its rate costs nothing"


@SENTENCES.add("so-few-accesses-reach-l3")
def so_few_accesses_reach_l3(value: Quantity) -> str:
    return f"so few accesses reach the L3 cache ({value} of all) that its rate costs nothing"


@SENTENCES.add("compulsory-misses-memory-moves-times")
def compulsory_misses_memory_moves_times(value: Quantity) -> str:
    return (
        f"compulsory misses: memory moves {value} times the bytes that the workload declares, and no "
        "cache can avoid these"
    )


@SENTENCES.add("so-few-branches-per-instruction")
def so_few_branches_per_instruction(value: Quantity) -> str:
    return f"so few branches ({value} per instruction) that mispredictions cost almost nothing"


@SENTENCES.add("memory-what-limits-peak-bandwidth")
def memory_what_limits_peak_bandwidth(value: Quantity) -> str:
    return f"memory limits it ({value} of the peak bandwidth): the core has to wait"


@SENTENCES.add("hardly-any-arithmetic-vectorize-flop")
def hardly_any_arithmetic_vectorize_flop(value: Quantity) -> str:
    return f"hardly any arithmetic to vectorize ({value} FLOP per instruction)"


@SENTENCES.add("hardly-moves-data-peak-bandwidth")
def hardly_moves_data_peak_bandwidth(value: Quantity) -> str:
    return f"it hardly moves data ({value} of the peak): bandwidth does not limit it"


@SENTENCES.add("too-small-device-so-blocks")
def too_small_device_so_blocks(parts: Parts) -> str:
    return f"too small for the device: it has too few blocks, not too few warps in them: {parts.first}"


@SENTENCES.add("more-warps-would-not-help")
def more_warps_would_not_help(parts: Parts) -> str:
    return f"more warps would not help: {parts.first}"


@SENTENCES.add("tensor-cores-fed-few-warps")
def tensor_cores_fed_few_warps(parts: Parts) -> str:
    return f"tensor cores are fed by few warps with large tiles: {parts.first}"


@SENTENCES.add("too-small-device")
def too_small_device(parts: Parts) -> str:
    return f"too small for the device: {parts.first}"


@SENTENCES.add("arithmetic-limits-not-memory")
def arithmetic_limits_not_memory(parts: Parts) -> str:
    return f"arithmetic limits it, and not memory: {parts.first}"


@SENTENCES.add("caches-serve-dram-waits-peak")
def caches_serve_dram_waits_peak(value: Quantity, parts: Parts) -> str:
    return f"the caches serve it, and DRAM is idle ({value} of its peak): {parts.first}"


@SENTENCES.add("not-what-nearest")
def not_what_nearest(parts: Parts) -> str:
    return f"not the limit that it is nearest to: {parts.first}"


@SENTENCES.add("hardly-moves-data-peak")
def hardly_moves_data_peak(value: Quantity, parts: Parts) -> str:
    return f"it hardly moves data ({value} of the peak): {parts.first}"


@SENTENCES.add("passes-over-shared-memory-cost")
def passes_over_shared_memory_cost(value: Quantity) -> str:
    return f"these are only {value} of the passes over shared memory, and cost nothing"


@SENTENCES.add("hidden")
def hidden(parts: Parts) -> str:
    return f"they are hidden: {parts.first}"


@SENTENCES.add("passes-many-arbitration-alone-makes")
def passes_many_arbitration_alone_makes(value: Quantity) -> str:
    return f"these are {value} of the passes, as many as arbitration alone causes"


@SENTENCES.add("idle-lanes-cost-nothing")
def idle_lanes_cost_nothing(parts: Parts) -> str:
    return f"idle lanes cost nothing here: {parts.first}"


@SENTENCES.add("instructions-not-inner-loop")
def instructions_not_inner_loop(value: Quantity) -> str:
    return f"these are {value} of its instructions: not in the inner loop"


@SENTENCES.add("grid-not-what-limits")
def grid_not_what_limits(parts: Parts) -> str:
    return f"its grid does not limit it: {parts.first}"


@SENTENCES.add("fills-device-with-others")
def fills_device_with_others(parts: Parts) -> str:
    return f"kernels of several streams run at the same time, and fill the device together: {parts.first}"


@SENTENCES.add("no-region-marked-few")
def no_region_marked_few(value: Quantity) -> str:
    return f"no region is marked, and {value} command buffers may be only start-up and first-use compilation"


@SENTENCES.add("too-short-tell")
def too_short_tell(value: Quantity) -> str:
    return f"{value} are too short to judge"


@SENTENCES.add("other-processes-gpu-without-have")
def other_processes_gpu_without_have(value: Quantity) -> str:
    return f"other processes used the GPU: without them it could have been {value}"


@SENTENCES.add("gpu-waits-most-time-busy")
def gpu_waits_most_time_busy(value: Quantity) -> str:
    return f"the GPU waits for most of the time (busy for {value}), but not for memory"


@SENTENCES.add("arithmetic-limits-not-memory-alus")
def arithmetic_limits_not_memory_alus(value: Quantity) -> str:
    return f"arithmetic limits it, and not memory (ALUs at {value})"


@SENTENCES.add("hardly-moves-data-chip-bandwidth")
def hardly_moves_data_chip_bandwidth(value: Quantity) -> str:
    return f"it hardly moves data ({value} of the chip's bandwidth)"


@SENTENCES.add("gpu-waits-most-time-busy-not-threads")
def gpu_waits_most_time_busy_not_threads(value: Quantity) -> str:
    return f"the GPU waits for most of the time (busy for {value}), but not for threads"


@SENTENCES.add("more-threads-would-not-help")
def more_threads_would_not_help(value: Quantity) -> str:
    return f"more threads would not help: its top limiter is at {value}"


@SENTENCES.add("memory-kept-busy-chip-bandwidth")
def memory_kept_busy_chip_bandwidth(value: Quantity) -> str:
    return f"memory is kept busy ({value} of the chip's bandwidth), and more threads would not help"


@SENTENCES.add("gpu-full-other-work-well")
def gpu_full_other_work_well(value: Quantity) -> str:
    return f"the GPU was full with other work as well ({value} in all)"


@SENTENCES.add("gpu-own-occupancy-manager-holds")
def gpu_own_occupancy_manager_holds(value: Quantity) -> str:
    return f"the GPU's own occupancy manager limits it ({value} of what it allows)"


@SENTENCES.add("gpu-waits-most-time-busy-no-shader")
def gpu_waits_most_time_busy_no_shader(value: Quantity) -> str:
    return f"the GPU waits for most of the time (busy for {value}), so no single shader matters"


@SENTENCES.add("gpu-kept-busy-top-limiter")
def gpu_kept_busy_top_limiter(value: Quantity) -> str:
    return f"the GPU is kept busy: its top limiter is at {value}"


@SENTENCES.add("keeps-memory-busy-chip-bandwidth")
def keeps_memory_busy_chip_bandwidth(value: Quantity) -> str:
    return f"it keeps memory busy ({value} of the chip's bandwidth)"
