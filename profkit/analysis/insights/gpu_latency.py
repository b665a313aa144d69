"""Rules on kernels in which no unit is busy: what their warps wait for decides what helps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from profkit.analysis.insights.evidence import KernelEvidence, RunEvidence
from profkit.analysis.insights.rule import bounded_gain, insight_on, percent_text
from profkit.core.types import Insight

SATURATED = 80.0  # %: NVIDIA's own limit for "this unit is what limits the kernel" (SpeedOfLight.py)
LEAST = 0.3  # of the time of a warp: what it waits for less is not what makes the kernel slow
_TO_FULL = "the kernel's time until its busiest unit is full"


@dataclass(frozen=True)
class _Wait:
    """What warps wait for, and what is done about it."""

    title: str
    what: str
    change: str


# The meaning of each reason: Nsight Compute's documentation, "Warp Stall Reasons".
_WAITS: dict[str, _Wait] = {
    "long_scoreboard": _Wait(
        "Have more loads under way at a time",
        "for loads from L2 and DRAM",
        "Let every thread begin several independent loads before it uses the first (unrolled loop, "
        "float4, cp.async), and keep "
        "data that is used again in shared memory.",
    ),
    "barrier": _Wait(
        "Let warps wait less at __syncthreads()",
        "at barriers (__syncthreads)",
        "Use smaller blocks, so that fewer warps wait for the slowest and other blocks run "
        "meanwhile; reduce within a warp "
        "(__shfl_down_sync) and meet once; give all warps the same amount of work before a barrier.",
    ),
    "short_scoreboard": _Wait(
        "Access shared memory and special functions less often",
        "for shared memory or special functions",
        "Keep values in registers, read shared memory 16 bytes at a time, use __expf, rsqrtf and "
        "the like where their precision "
        "is enough.",
    ),
    "lg_throttle": _Wait(
        "Use fewer and wider loads and stores",
        "because the queue for loads and stores is full",
        "Load and store 16 bytes per instruction (float4), and let neighbouring threads access "
        "neighbouring addresses.",
    ),
    "mio_throttle": _Wait(
        "Use fewer and wider accesses to shared memory",
        "because the queue for shared memory and special functions is full",
        "Read and write shared memory 16 bytes at a time, and keep values in registers.",
    ),
    "wait": _Wait(
        "Give each thread independent work",
        "a fixed number of cycles for the result of its own last instruction",
        "Each instruction uses the result of the one before. Let a thread compute several results "
        "side by side, unroll loops, "
        "and run more warps on a multiprocessor.",
    ),
    "math_pipe_throttle": _Wait(
        "Use fewer instructions for the same arithmetic",
        "for a free arithmetic pipe",
        "Mix instructions of several pipes, replace divisions and special functions by cheaper ones.",
    ),
    "no_instruction": _Wait(
        "Make the loop fit the instruction cache",
        "for their next instruction to be fetched",
        "Unroll less, and move rare cases into functions that are not inlined.",
    ),
    "imc_miss": _Wait(
        "Read constants less at random",
        "for constants that are not in the cache",
        "Read constant memory with the same index in the whole warp, or use global memory with __ldg.",
    ),
    "branch_resolving": _Wait(
        "Use fewer branches in the inner loop",
        "for branch targets",
        "Replace short branches by arithmetic or predication, unroll the loop.",
    ),
    "membar": _Wait(
        "Use fewer memory fences",
        "at memory fences",
        "Use __threadfence_block() where the block is enough, and fence once for several writes.",
    ),
    "sleeping": _Wait(
        "Spin less",
        "in __nanosleep",
        "Let the host, or a kernel of its own, wait instead of a loop in this kernel.",
    ),
    "tex_throttle": _Wait(
        "Use fewer texture accesses at a time",
        "because the queue for textures is full",
        "Use plain loads for what needs no filtering, and spread texture accesses over the loop.",
    ),
    "drain": _Wait(
        "Write less at the end of each thread",
        "for their last writes when they end",
        "Write 16 bytes per thread to neighbouring addresses, and let each thread do more work.",
    ),
}


def waiting_warps(run: RunEvidence) -> Iterator[Insight]:
    """The kernel waits: for what, and what that reason asks for."""
    for kernel in run.kernels:
        unsaturated = kernel.bound in ("dram", "l2") and (kernel.busiest or 100.0) < SATURATED
        if not (kernel.bound == "latency" or unsaturated) or kernel.owner not in ("user", "inductor", "cub"):
            continue
        waits = {name: kernel.stall_share(name) or 0.0 for name in _WAITS}
        reason = max(waits, key=lambda name: waits[name])
        busiest = kernel.busiest or 0.0
        if waits[reason] < LEAST or _serial_atomics(kernel):
            continue
        if unsaturated and reason != "long_scoreboard":
            continue
        if reason in ("long_scoreboard", "lg_throttle") and kernel.below("memory.coalescing", 80.0):
            continue  # the rule on wasted sectors says what to do
        wait = _WAITS[reason]
        evidence = (
            f"the busiest unit is at {percent_text(busiest)} of its peak; warps wait {wait.what} for "
            f"{percent_text(100 * waits[reason])} of the time"
        )
        change = wait.change
        occupancy = (
            occupancy_change(kernel) if reason in ("long_scoreboard", "wait", "short_scoreboard") else None
        )
        if occupancy is not None:
            evidence += f"; {occupancy[0]}"
            change = f"{change} {occupancy[1]}"
        yield insight_on(
            "waiting-warps",
            kernel,
            wait.title,
            evidence,
            change,
            bounded_gain(
                run,
                kernel,
                min(1 - busiest / 100, waits[reason]),
                f"the time that warps wait for this, at most {_TO_FULL}",
            ),
            (f"stall.{reason}", "occupancy.achieved", "throughput.busiest"),
            kernel.place_of(
                [one for one in kernel.instructions if one.stall == reason and one.samples > 0.1]
            ),
        )


def occupancy_change(kernel: KernelEvidence) -> tuple[str, str] | None:
    """What keeps more warps from running, and what lets more run; None where enough can run."""
    possible, achieved = kernel.values.get("occupancy.theoretical"), kernel.values.get("occupancy.achieved")
    if possible is None or possible > 60:
        return None
    limits = {
        name: kernel.values[f"occupancy.limit.{name}"]
        for name in ("registers", "shared", "warps", "blocks")
        if kernel.values.get(f"occupancy.limit.{name}")
    }
    if not limits:
        return None
    limiter = min(limits, key=lambda name: limits[name])
    registers = kernel.values.get("launch.registers")
    why = {
        "registers": f"registers ({registers:.0f} per thread)" if registers else "registers",
        "shared": "shared memory",
        "warps": "the size of the blocks",
        "blocks": "the number of blocks",
    }[limiter]
    change = {
        "registers": "Fewer registers let more warps run: __launch_bounds__, smaller tiles.",
        "shared": "Less shared memory per block lets more warps run.",
        "warps": "Blocks of 128 or 256 threads let more warps run.",
        "blocks": "More threads per block (128 or 256) let more warps run.",
    }[limiter]
    kept = f"{percent_text(achieved)} of the warps run" if achieved is not None else "few warps run"
    return f"{kept}, {percent_text(possible)} are possible: {why} limit them", change


def serial_atomics(run: RunEvidence) -> Iterator[Insight]:
    """Warps that wait for their last writes though they store nothing: atomics on a few "
    "addresses, one after another."""
    for kernel in run.kernels:
        if kernel.owner == "user" and kernel.bound == "latency" and _serial_atomics(kernel):
            drain = kernel.stall_share("drain") or 0.0
            yield insight_on(
                "serial-atomics",
                kernel,
                "Add up within the warp and the block before the atomic operation",
                f"warps wait for their last writes for {percent_text(100 * drain)} of the time and "
                "store nothing: many atomic "
                "operations meet on few addresses and run one after another",
                "Reduce within a warp (__shfl_down_sync, __reduce_add_sync), then within the block "
                "through shared memory; one thread "
                "of each block does the atomic operation.",
                bounded_gain(run, kernel, 1 - (kernel.busiest or 0.0) / 100, _TO_FULL),
                ("stall.drain",),
            )


def _serial_atomics(kernel: KernelEvidence) -> bool:
    stores = kernel.counters.get("smsp__sass_inst_executed_op_global_st.sum")
    if stores is None:
        stores = kernel.counters.get("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum")
    return stores == 0 and (kernel.stall_share("drain") or 0.0) >= LEAST


def divergent_warps(run: RunEvidence) -> Iterator[Insight]:
    """Warps of which many threads are idle, in a kernel that instructions limit or that waits for itself."""
    for kernel in run.kernels:
        active = kernel.values.get("warp.execution_efficiency")
        if active is None or active > 75 or kernel.owner != "user":  # NVIDIA's own rule: 24 of 32
            continue
        if kernel.bound in ("dram", "l2", "tensor", "launch"):
            continue
        yield insight_on(
            "divergent-warps",
            kernel,
            "Let the 32 threads of a warp take the same path",
            f"{percent_text(active)} of a warp's threads are active on average",
            "Sort or group the work so that neighbouring threads do the same; give each thread the "
            "same number of iterations; move "
            "rare, long cases into a second kernel.",
            bounded_gain(run, kernel, 1 - active / 100, "as if every instruction served all 32 threads"),
            ("warp.execution_efficiency", "branch.efficiency"),
        )


_RANDOM_SETUP = re.compile(
    r"(init|setup|seed|create)\w*(rng|rand|states?)|(rng|rand|states?)\w*(init|setup)|curand\w*init",
    re.IGNORECASE,
)


def random_setup(run: RunEvidence) -> Iterator[Insight]:
    """A kernel that only initialises random generators takes much of the time: XORWOW's start is "
    "expensive."""
    for kernel in run.kernels:
        name = kernel.row.scope.name or ""
        if (
            kernel.share >= 0.1
            and _RANDOM_SETUP.search(name)
            and re.search(r"XORWOW|MRG32|curandState\b", name)
        ):
            yield insight_on(
                "random-setup",
                kernel,
                "Start the random generators cheaply (Philox)",
                "it initialises cuRAND states of a kind that skips ahead through its sequence for "
                "each thread",
                "Use curandStatePhilox4_32_10_t, whose start costs almost nothing; or give each "
                "thread its own seed with sequence 0; or "
                "keep the states for the next run.",
                bounded_gain(run, kernel, 1.0, "the whole kernel"),
            )
