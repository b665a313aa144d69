"""Sentences about why a target does not apply."""

from __future__ import annotations

from profkit.core.formatting import format_figures
from profkit.reporting.sentences.table import Parts, Quantity, SentenceTable, at_value, before_part

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
SENTENCES.add_each(
    at_value,
    {
        "arithmetic-runs-at-peak-what": "arithmetic runs at {} of its peak: it hides the cache misses",
        "stream-memory-moves-at-peak": (
            "a stream: memory moves at {} of its peak, and a cache cannot help with data that are used "
            "once. Less traffic would help: fuse passes, use smaller types"
        ),
        "so-few-accesses-reach-l2": (
            "so few accesses reach the L2 cache (L1 misses {}) that its rate costs nothing"
        ),
        "so-few-accesses-reach-l3": (
            "so few accesses reach the L3 cache ({} of all) that its rate costs nothing"
        ),
        "compulsory-misses-memory-moves-times": (
            "compulsory misses: memory moves {} times the bytes that the workload declares, and no cache "
            "can avoid these"
        ),
        "so-few-branches-per-instruction": (
            "so few branches ({} per instruction) that mispredictions cost almost nothing"
        ),
        "memory-what-limits-peak-bandwidth": (
            "memory limits it ({} of the peak bandwidth): the core has to wait"
        ),
        "hardly-any-arithmetic-vectorize-flop": (
            "hardly any arithmetic to vectorize ({} FLOP per instruction)"
        ),
        "hardly-moves-data-peak-bandwidth": (
            "it hardly moves data ({} of the peak): bandwidth does not limit it"
        ),
        "passes-over-shared-memory-cost": (
            "these are only {} of the passes over shared memory, and cost nothing"
        ),
        "passes-many-arbitration-alone-makes": (
            "these are {} of the passes, as many as arbitration alone causes"
        ),
        "instructions-not-inner-loop": "these are {} of its instructions: not in the inner loop",
        "no-region-marked-few": (
            "no region is marked, and {} command buffers may be only start-up and first-use compilation"
        ),
        "too-short-tell": "{} are too short to judge",
        "other-processes-gpu-without-have": (
            "other processes used the GPU: without them it could have been {}"
        ),
        "gpu-waits-most-time-busy": "the GPU waits for most of the time (busy for {}), but not for memory",
        "arithmetic-limits-not-memory-alus": "arithmetic limits it, and not memory (ALUs at {})",
        "hardly-moves-data-chip-bandwidth": "it hardly moves data ({} of the chip's bandwidth)",
        "gpu-waits-most-time-busy-not-threads": (
            "the GPU waits for most of the time (busy for {}), but not for threads"
        ),
        "more-threads-would-not-help": "more threads would not help: its top limiter is at {}",
        "memory-kept-busy-chip-bandwidth": (
            "memory is kept busy ({} of the chip's bandwidth), and more threads would not help"
        ),
        "gpu-full-other-work-well": "the GPU was full with other work as well ({} in all)",
        "gpu-own-occupancy-manager-holds": "the GPU's own occupancy manager limits it ({} of what it allows)",
        "gpu-waits-most-time-busy-no-shader": (
            "the GPU waits for most of the time (busy for {}), so no single shader matters"
        ),
        "gpu-kept-busy-top-limiter": "the GPU is kept busy: its top limiter is at {}",
        "keeps-memory-busy-chip-bandwidth": "it keeps memory busy ({} of the chip's bandwidth)",
    },
)

SENTENCES.add_each(
    before_part,
    {
        "too-small-device-so-blocks": (
            "too small for the device: it has too few blocks, not too few warps in them"
        ),
        "more-warps-would-not-help": "more warps would not help",
        "tensor-cores-fed-few-warps": "tensor cores are fed by few warps with large tiles",
        "too-small-device": "too small for the device",
        "arithmetic-limits-not-memory": "arithmetic limits it, and not memory",
        "not-what-nearest": "not the limit that it is nearest to",
        "hidden": "they are hidden",
        "idle-lanes-cost-nothing": "idle lanes cost nothing here",
        "grid-not-what-limits": "its grid does not limit it",
        "fills-device-with-others": (
            "kernels of several streams run at the same time, and fill the device together"
        ),
    },
)


@SENTENCES.add("arithmetic-outlasts-refills")
def arithmetic_outlasts_refills(value: float) -> str:
    return (
        "its arithmetic takes longer than moving the data that its caches miss, which takes "
        f"{format_figures(value)} times as long: it hides the cache misses"
    )


@SENTENCES.add("caches-serve-dram-waits-peak")
def caches_serve_dram_waits_peak(value: Quantity, parts: Parts) -> str:
    return f"the caches serve it, and DRAM is idle ({value} of its peak): {parts.first}"


@SENTENCES.add("hardly-moves-data-peak")
def hardly_moves_data_peak(value: Quantity, parts: Parts) -> str:
    return f"it hardly moves data ({value} of the peak): {parts.first}"
