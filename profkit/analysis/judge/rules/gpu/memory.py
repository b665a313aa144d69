"""Rules on what a kernel moves: sectors that were not requested, data that is not reused, bank
conflicts, spills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from profkit.analysis.evidence import KernelEvidence, RunEvidence, unit_utilization
from profkit.analysis.judge.rule import MEMORY_UNITS, bounded_gain, insight_on
from profkit.analysis.judge.words import words
from profkit.analysis.summaries.bottlenecks import SATURATED
from profkit.core.formatting import format_quantity, percent_text, plural
from profkit.core.types import Insight

IDEAL_SECTORS = 4  # of 32 bytes, for a warp that loads 4 bytes in each of its 32 threads
# % of the sectors that were not requested: an offset by one element wastes as many (4 of 5 are used)
WASTED = 20
MAJORITY = 0.5
REUSED = 2.0  # loads of each byte: with fewer there is little to be used again
_ATOMIC = ("RED", "ATOM")  # how instructions that add to memory begin: RED, ATOM, ATOMG
_ISSUE = ("instruction issue",)
_SHARED = ("L1", "shared memory", "the load/store pipe", *_ISSUE)
MIN_SPILLING_REGISTERS = 32.0  # of a thread: the least that launch bounds leave it
# Of the accesses to local memory: at fixed places all, at computed ones a good part.
FIXED, INDEXED = 0.99, 0.1
# Sectors, and the accesses (one a warp), that the kernel's own loads and stores of global memory ask of L1.
GLOBAL_SECTORS = (
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st.sum",
)
GLOBAL_ACCESSES = (
    "smsp__sass_inst_executed_op_global_ld.sum",
    "smsp__sass_inst_executed_op_global_st.sum",
)
# Sectors that L1 looks up, for this code or another.
LOOKED_UP_SECTORS = ("l1tex__t_sectors_lookup_hit.sum", "l1tex__t_sectors_lookup_miss.sum")


def wasted_sectors(run: RunEvidence) -> Iterator[Insight]:
    """Find global accesses of which much more is moved than used, in a kernel that memory limits or whose warps wait
    for it.
    """
    for kernel in run.kernels:
        used = kernel.values.get("memory.coalescing")
        if used is None or used > 100 - WASTED or not kernel.own_functions:
            continue
        level = _limiting_level(kernel)
        if level is None:
            continue
        per_request = max(
            kernel.values.get("memory.sectors_per_request.load", 0.0),
            kernel.values.get("memory.sectors_per_request.store", 0.0),
        )
        excess = kernel.values.get("memory.sectors.excess", 0.0)
        wasted = _wasted_share(kernel, used, excess)
        if wasted <= 0:
            continue
        evidence = f"{percent_text(used)} of the sectors that global accesses move are used"
        evidence += f"; {per_request:.1f} sectors for each request" if per_request else ""
        wasteful = [instruction for instruction in kernel.instructions if instruction.excess_sectors >= 0.05]
        atomic = sum(
            instruction.excess_sectors
            for instruction in wasteful
            if (instruction.text or "").startswith(_ATOMIC)
        )
        if atomic >= MAJORITY:  # their addresses follow the data: what is missed there is fewer of them
            continue
        part = sum(instruction.excess_sectors for instruction in wasteful)
        if part >= MAJORITY:
            kinds = ", ".join(dict.fromkeys(instruction.text or "access" for instruction in wasteful))
            count = plural(len(wasteful), "instruction")
            evidence += f"; {percent_text(100 * part)} of the waste is in {count} ({kinds})"
        yield insight_on(
            "wasted-sectors",
            kernel,
            "Let neighbouring threads access neighbouring addresses"
            if kernel.language != "triton"
            else "Let neighbouring elements of a block be neighbouring addresses",
            f"{evidence}; {level[0]}",
            bounded_gain(run, kernel, level[1] * wasted, level[2], MEMORY_UNITS),
            ("memory.coalescing", "memory.sectors_per_request.load", "memory.sectors_per_request.store"),
            kernel.place_of(wasteful),
            change=_access_change(per_request),
        )


def scatters_stores(kernel: KernelEvidence) -> bool:
    """Return whether its stores go to many sectors: then what a warp waits for at its end are these."""
    return (kernel.values.get("memory.sectors_per_request.store") or 0.0) > 2 * IDEAL_SECTORS


# What instructions of shared memory and shuffles wait for: the pipe that they share with global accesses.
BEHIND_L1 = ("short_scoreboard", "mio_throttle")


def fills_l1(kernel: KernelEvidence) -> bool:
    """Return whether L1 is the busiest unit, by global accesses: shared memory asks for less than half of its time."""
    busy = unit_utilization(kernel)
    own, top = busy.get("L1", 0.0), max(busy.values(), default=0.0)
    return 0 < own == top and kernel.below("bandwidth.shared.share", MAJORITY * own)


def _limiting_level(kernel: KernelEvidence) -> tuple[str, float, str] | None:
    """Return how memory limits the kernel: in words, the share of its time that follows the traffic, and
    how that is known."""
    busy = unit_utilization(kernel)
    title = _LEVELS.get(kernel.bound)
    if title is not None:
        value = busy.get(title, kernel.busiest or 0.0)
        return (
            f"{title} limits it, at {percent_text(value)} of its peak",
            1.0,
            "the time shrinks with the sectors at most as much as these do",
        )
    reasons = ("long_scoreboard", "lg_throttle", *(("drain",) if scatters_stores(kernel) else ()))
    reasons += BEHIND_L1 if fills_l1(kernel) else ()
    # the rest waits for local memory
    waiting = kernel.stall_share(*reasons) * (1.0 - (local_share(kernel) or 0.0))
    if kernel.bound in ("latency", "launch") and waiting >= 0.3:
        return (
            f"its warps wait for memory for {percent_text(100 * waiting)} of the time",
            waiting,
            "no more than the time that warps wait for memory, times the share of sectors that are not used",
        )
    return None


_LEVELS = {"dram": "DRAM", "l2": "L2", "l1": "L1", "shared": "shared memory"}


def _wasted_share(kernel: KernelEvidence, used: float, excess: float) -> float:
    """Return the share of the limiting traffic that is waste; of DRAM no more than the excess sectors that reach it.

    Where all that is needed is more than DRAM moved, the caches serve the excess, and none of it is in DRAM's time:
    loads of 16 bytes a thread that lie 32 bytes apart use each sector by halves, and the next load has the other half.
    """
    wasted = 1 - used / 100
    moved = kernel.values.get("dram.bytes")
    if kernel.bound != "dram" or not moved or not excess:
        return wasted
    needed = 32 * excess * used / (100 - used)
    return max(0.0, min(wasted, 1 - needed / moved))


def _access_change(per_request: float) -> str:
    if per_request >= 24:
        return words("wasted-sectors.columns")
    apart = per_request / IDEAL_SECTORS
    return words("wasted-sectors.apart").format(apart=apart) if apart > 2 else words("wasted-sectors.offset")


def no_reuse(run: RunEvidence) -> Iterator[Insight]:
    """Yield a kernel that L1, shared memory or L2 limits, far from the limits of DRAM and arithmetic: it loads
    data again.
    """
    for kernel in run.kernels:
        if kernel.owner not in ("user", "inductor") or kernel.bound not in ("l1", "shared", "l2"):
            continue
        conflicts = kernel.values.get("shared.bank_conflicts.share", 0.0)
        if conflicts >= 10 or kernel.below("memory.coalescing", 100 - WASTED):
            continue
        units = unit_utilization(kernel)
        near = ("L1", "shared memory", "the load/store pipe") if kernel.bound != "l2" else ("L2",)
        top = max((units[title] for title in near if title in units), default=kernel.busiest or 0.0)
        # Feeding instructions is what the loads themselves need: it is no other limit.
        others = {t: v for t, v in units.items() if t not in (*near, "instruction issue")}
        rest = max((value for value in others.values()), default=None)
        if rest is None or top < 60 or rest > 0.75 * top:
            continue
        loads = _loads_per_byte(kernel) if kernel.bound != "shared" else None
        if loads is not None and loads < REUSED:
            continue  # each value is loaded once: what keeps L1 busy is something else, such as shared memory
        nearest = max(others, key=lambda title: others[title])
        where = {"l2": "the L2 cache", "shared": "shared memory"}.get(kernel.bound, "the L1 cache")
        yield insight_on(
            "no-reuse",
            kernel,
            f"Use each value that comes from {where} more than once",
            f"{where} is at {percent_text(top)} of its peak, and DRAM and all arithmetic are below "
            f"{percent_text(max(rest, 1.0))} ({nearest}): {_again_text(loads)}",
            bounded_gain(
                run,
                kernel,
                1 - rest / top,
                f"the kernel's time until {nearest} is the unit that limits it",
                near + _ISSUE,
            ),
            ("bandwidth.l1.share", "bandwidth.l2.share", "pipe.lsu.utilization", "pipe.fp32.utilization"),
            change=words(f"no-reuse.{kernel.bound}"),
        )


def _loads_per_byte(kernel: KernelEvidence) -> float | None:
    """Return how often a byte that came from DRAM is loaded, sector by sector; None where that was not counted."""
    sectors = kernel.counters.get("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")
    read = kernel.values.get("dram.read")
    return 32 * sectors / read if sectors and read else None


def _again_text(loads: float | None) -> str:
    """Say that data is loaded again, and how often."""
    if loads is None:
        return "the same data is loaded again and again"
    return f"each byte from DRAM is loaded {loads:.0f} times"


def bank_conflicts(run: RunEvidence) -> Iterator[Insight]:
    """Find shared memory accesses that collide, in a kernel that shared memory limits or that waits for it."""
    for kernel in run.kernels:
        share = kernel.values.get("shared.bank_conflicts.share", 0.0)
        if share < 10 or kernel.owner not in ("user", "inductor"):
            continue
        waiting = kernel.stall_share("short_scoreboard", "mio_throttle")
        limiting = kernel.bound in ("shared", "l1")
        # Of a grid that leaves most of the device empty the blocks are what is missed, not how each one goes.
        if not limiting and (waiting < 0.2 or kernel.bound == "launch"):
            continue
        part = 1.0 if limiting else waiting
        evidence = f"{percent_text(share)} of the passes through shared memory are there for conflicts"
        evidence += (
            "" if limiting else f", and warps wait for it for {percent_text(100 * waiting)} of the time"
        )
        yield insight_on(
            "bank-conflicts",
            kernel,
            "Remove the bank conflicts in shared memory",
            evidence,
            bounded_gain(run, kernel, part * share / 100, "the passes that only conflicts need", _SHARED),
            ("shared.bank_conflicts.share", "shared.bank_conflicts.excess"),
        )


def register_spills(run: RunEvidence) -> Iterator[Insight]:
    """Find local memory in the inner loop of a kernel that is not saturated by something else."""
    for kernel in run.kernels:
        loads = kernel.values.get("memory.spill.loads", 0.0)
        stores = kernel.values.get("memory.spill.stores", 0.0)
        instructions = kernel.values.get("instructions")
        if not instructions or kernel.owner != "user":
            continue
        share = (loads + stores) / instructions
        if share < 0.02 or (
            kernel.bound in ("tensor", "fp32", "fp64") and (kernel.busiest or 0.0) > SATURATED
        ):
            continue
        waiting = kernel.stall_share("long_scoreboard", "lg_throttle", "short_scoreboard")
        local = local_share(kernel)
        if local is not None and kernel.bound in ("l1", "l2", "dram"):
            part, why = local, "the time shrinks with the sectors at most as much as these do"
        else:
            part = max(share, min(waiting * (1.0 if local is None else local), 0.9)) if waiting else 0.0
            why = "the time that warps wait for memory, as much of it as is local memory"
        kind = _local_kind(kernel)
        evidence = (
            f"{percent_text(100 * share)} of its instructions load or store local memory "
            f"({format_quantity(loads, 'count')} loads)"
        )
        if kind == "spilled":
            evidence += _SPILLED.format(registers=kernel.values["launch.registers"])
        accesses = [one for one in kernel.instructions if (one.text or "").startswith(("LDL", "STL"))]
        yield insight_on(
            "register-spills",
            kernel,
            _LOCAL_TITLES[kind] if kernel.language == "cuda" else _LOCAL_TITLES[""],
            evidence,
            bounded_gain(run, kernel, part, why, ("L2", *_SHARED)) if part else None,
            ("memory.spill.loads", "memory.spill.stores"),
            kernel.place_of(accesses) if kind == "spilled" else None,
            change=words(f"register-spills.{kind}" if kind else "register-spills"),
        )


_LOCAL_TITLES = {
    "": "Keep values in registers instead of local memory",
    "indexed": "An array of this kernel lives in local memory",
    "spilled": "Give the threads of this kernel more registers, or less to hold: they are spilled",
}
_SPILLED = (
    "; all at fixed places of the stack, where the compiler keeps what does not fit {registers:.0f} registers"
)


def _local_kind(kernel: KernelEvidence) -> Literal["", "indexed", "spilled"]:
    """Return what a kernel has in local memory, by the addresses in its code; empty where it is not known.

    Without the code an array is known by registers to spare: limits are multiples of 8, and from 32 on a block of any
    size may have been the reason for one.
    """
    fixed = next((one.fixed_local for one in kernel.instructions if one.fixed_local is not None), None)
    registers = kernel.values.get("launch.registers")
    if fixed is not None and registers is not None:
        return "spilled" if fixed >= FIXED else "indexed" if fixed <= 1 - INDEXED else ""
    spare = registers is not None and registers < MIN_SPILLING_REGISTERS and registers % 8 != 0
    return "indexed" if spare else ""


def local_share(kernel: KernelEvidence) -> float | None:
    """Return the share (0..1) of the sectors of global and local accesses that are of local memory; None: not counted.

    Where those of local memory were not counted, a warp's access has at least 4: each thread has words of its own.
    """
    count = kernel.counters.get
    every = [
        count("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
        count("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    ]
    local = [
        count("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"),
        count("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"),
    ]
    if None in (*every, *local):
        every = [count(name) for name in GLOBAL_SECTORS]
        accesses = [
            count("smsp__sass_inst_executed_op_local_ld.sum"),
            count("smsp__sass_inst_executed_op_local_st.sum"),
        ]
        local = [IDEAL_SECTORS * executed if executed is not None else None for executed in accesses]
    if None in (*every, *local):
        return None
    own, total = sum(sectors or 0.0 for sectors in local), sum(sectors or 0.0 for sectors in (*every, *local))
    return own / total if total else None
