"""Rules on kernels that leave the device idle: what their warps wait for where no unit is busy; too few blocks, a last
wave, too short to launch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import ceil, prod

from profkit.analysis.evidence import KernelEvidence, RunEvidence, runs_side_by_side
from profkit.analysis.judge.rule import MEMORY_UNITS, PIPES, bounded_gain, insight_on
from profkit.analysis.judge.rules.gpu.memory import (
    BEHIND_L1,
    GLOBAL_ACCESSES,
    GLOBAL_SECTORS,
    LOOKED_UP_SECTORS,
    fills_l1,
    local_share,
    scatters_stores,
)
from profkit.analysis.judge.words import words
from profkit.analysis.kernel_names.owner import OWN_CODE, is_matrix_product
from profkit.analysis.summaries.bottlenecks import LAUNCH_SECONDS, SATURATED, filled_share
from profkit.analysis.summaries.kernels import stalls
from profkit.core.formatting import format_quantity, percent_text, plural
from profkit.core.types import GpuLine, Insight, KernelInstruction

BUSY_SLICE = 60.0  # %: a slice of L2 that works for less does not limit the kernel
ALWAYS, LITTLE = 90.0, 10.0  # % of the time that a slice works, and of the peak of L2 and DRAM meanwhile
UNEVEN = 70.0  # % of the busiest slice's work that the average one has
ALONE, LEFT_ALONE = 25.0, 0.35  # % of a warp's threads, and of the warps that were launched
IDLE_MULTIPROCESSORS = 15.0  # % of the time of the busiest: what the end of every kernel costs is less
HEAP = 0.5  # of L1's sectors: with less the heap is not what a kernel does
MIN_FULL_WAVES = 3.0  # of blocks: with fewer the last one is what leaves multiprocessors idle
MIN_STALL_SHARE = 0.3  # of the time of a warp: what it waits for less is not what makes the kernel slow
UNUSED = 5.0  # % of its peak: a unit that is used less fills no queue
MIN_ATOMIC_SHARE = 0.1  # of the sectors of global accesses
OF_SECTORS = 0.5  # of local memory: with more it is what a kernel waits for
LONG = 2e-6  # s of an access to memory: on a device that is nearly idle it takes less than half of that
QUEUE = "mio_throttle"  # before shared memory, shuffles, special functions and constants with an index
_CONSTANTS = (f"{QUEUE}.LDC", f"{QUEUE}.constants")
_TO_FULL = "the kernel's time until its busiest unit is full"


def waiting_warps(run: RunEvidence, rule: str = "waiting-warps") -> Iterator[Insight]:
    """Yield the kernel waits: for what, and what that reason asks for. For constants it waits under a `rule` of
    its own.
    """
    for kernel in run.kernels:
        unsaturated = kernel.bound in ("dram", "l2") and (kernel.busiest or 100.0) < SATURATED
        own = kernel.own_functions and kernel.owner != "cutlass"
        if not (kernel.bound == "latency" or unsaturated) or not own:
            continue
        waits = {name: kernel.stall_share(name) for name, stall in stalls().items() if stall.title}
        reason = max(waits, key=lambda name: waits[name])
        busiest = kernel.busiest or 0.0
        if waits[reason] < MIN_STALL_SHARE or _serial_atomics(kernel) or _crowded_slices(kernel):
            continue
        if unsaturated and reason != "long_scoreboard":
            continue
        for_memory = (
            reason in ("long_scoreboard", "lg_throttle")
            or (reason == "drain" and scatters_stores(kernel))
            or (reason in BEHIND_L1 and fills_l1(kernel))
        )
        if for_memory and (
            kernel.below("memory.coalescing", 80.0) or (local_share(kernel) or 0.0) > OF_SECTORS
        ):
            continue  # the rules on wasted sectors and on local memory say what to do
        known = _in_queue(kernel) if reason == QUEUE and kernel.owner == "user" else reason
        if (rule == "indexed-constants") is not (known in _CONSTANTS):
            continue
        stall = stalls()[known]
        change = stall.change
        evidence = (
            f"the busiest unit is at {percent_text(busiest)} of its peak; warps wait for {stall.means} for "
            f"{percent_text(100 * waits[reason])} of the time"
        )
        occupancy = (
            occupancy_change(kernel) if reason in ("long_scoreboard", "wait", "short_scoreboard") else None
        )
        if occupancy is not None:
            evidence += f"; {occupancy[0]}"
            change = f"{change} {occupancy[1]}"
        yield insight_on(
            rule,
            kernel,
            stall.title,
            evidence,
            bounded_gain(
                run,
                kernel,
                min(1 - busiest / 100, waits[reason]),
                f"the time that warps wait for this, at most {_TO_FULL}",
            ),
            (f"stall.{reason}", "occupancy.achieved", "throughput.busiest"),
            kernel.place_of(
                [
                    instruction
                    for instruction in kernel.instructions
                    if instruction.stall == reason and instruction.samples > 0.1
                ]
            ),
            change=change,
        )


def _in_queue(kernel: KernelEvidence) -> str:
    """Return what fills the queue: by the instructions that wait for room in it, else by its users that are in use."""
    samples: dict[str, float] = {}
    for instruction in kernel.instructions:
        if instruction.stall == QUEUE and instruction.text is not None:
            name = f"{QUEUE}.{instruction.text.partition('.')[0]}"
            samples[name] = samples.get(name, 0.0) + instruction.samples
    pipes = ("bandwidth.shared.share", *(f"pipe.{unit}.utilization" for unit in ("lsu", "xu", "fp64")))
    if not samples and all(kernel.below(name, UNUSED) for name in pipes):
        return f"{QUEUE}.constants"
    most = max(samples, key=lambda name: samples[name], default=QUEUE)
    return most if most in stalls() else QUEUE


def occupancy_change(kernel: KernelEvidence) -> tuple[str, str] | None:
    """Return what keeps more warps from running, and what lets more run; None where enough can run."""
    possible, achieved = kernel.values.get("occupancy.theoretical"), kernel.values.get("occupancy.achieved")
    if possible is None or possible > 60:
        return None
    # Of equal ones the first: each block takes some shared memory for itself.
    limits = {
        name: kernel.values[f"occupancy.limit.{name}"]
        for name in ("blocks", "registers", "shared", "warps")
        if kernel.values.get(f"occupancy.limit.{name}")
    }
    if not limits:
        return None
    limiter = min(limits, key=lambda name: limits[name])
    registers, stall = kernel.values.get("launch.registers"), stalls()[f"occupancy.{limiter}"]
    why = f"registers ({registers:.0f} per thread)" if registers and limiter == "registers" else stall.means
    kept = f"{percent_text(achieved)} of the warps run" if achieved is not None else "few warps run"
    return f"{kept}, {percent_text(possible)} are possible, limited by {why}", stall.change


def serial_atomics(run: RunEvidence) -> Iterator[Insight]:
    """Find atomics on few addresses, one after another: one slice of L2 works and the others wait, or warps wait for
    their last writes though they store nothing.
    """
    for kernel in run.kernels:
        if kernel.owner != "user" or not _serial_atomics(kernel):
            continue
        drain, seconds = kernel.stall_share("drain"), _atomic_seconds(kernel)
        signs = [_slices_text(kernel)] if _crowded_slices(kernel) else []
        if not signs and _queues_at_slice(kernel):
            busiest, moved = kernel.values["l2.busiest_slice"], kernel.values["bandwidth.l2.share"]
            signs = [
                f"a slice of L2 works for {percent_text(busiest)} of the time, and L2 moves {percent_text(moved)} "
                "of what it can"
            ]
        if seconds > LONG:
            signs.append(f"an access takes {format_quantity(seconds, 's')} on average")
        if drain >= MIN_STALL_SHARE:
            signs.append(f"warps wait for their last writes for {percent_text(100 * drain)} of the time")
        yield insight_on(
            "serial-atomics",
            kernel,
            f"Add up within the {'program' if kernel.language == 'triton' else 'warp and the block'} before the "
            "atomic operation",
            f"{'; '.join(signs)}: many atomic operations meet on few addresses and run one after another",
            bounded_gain(run, kernel, 1 - (kernel.busiest or 0.0) / 100, _TO_FULL, ("L2",)),
            ("stall.drain", "balance.l2", "l2.busiest_slice", "memory.atomics"),
            kernel.place_of(
                _atomics(kernel)
                or [instruction for instruction in kernel.instructions if instruction.stall == "membar"]
            ),
        )


def _atomics(kernel: KernelEvidence) -> list[KernelInstruction]:
    return [
        instruction
        for instruction in kernel.instructions
        if (instruction.text or "").startswith(("RED", "ATOM"))
    ]


def _serial_atomics(kernel: KernelEvidence) -> bool:
    if kernel.values.get("memory.atomics", 0.0) > 0 and _crowded_slices(kernel):
        return True
    stores = kernel.counters.get("smsp__sass_inst_executed_op_global_st.sum")
    if stores is None:
        stores = kernel.counters.get("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum")
    waits = kernel.stall_share("drain") >= MIN_STALL_SHARE
    queues = _queues_at_slice(kernel)
    few = (stores == 0 and (waits or queues)) or (queues and _atomic_seconds(kernel) > LONG)
    return kernel.bound == "latency" and few


def _atomic_seconds(kernel: KernelEvidence) -> float:
    """Return how long an access to global memory takes in a kernel with many atomic operations; 0: not known, or few.

    Sectors that neither loads nor stores moved are those of atomic operations, 8 each; with shared memory in use they
    may be those of asynchronous copies.
    """
    count, values = kernel.counters.get, kernel.values.get
    moved = rest = count("memory_l2_theoretical_sectors_global", 0.0)
    rest -= sum(count(name, 0.0) for name in GLOBAL_SECTORS)
    accesses = sum(count(name, 0.0) for name in GLOBAL_ACCESSES)
    copies = count("memory_l1_wavefronts_shared") != 0 and not _atomics(kernel)
    if copies or not accesses or rest < MIN_ATOMIC_SHARE * moved:
        return 0.0
    reasons = ("long_scoreboard", "lg_throttle", "membar", "drain")
    waits = kernel.stall_share(*reasons) * values("time.kernel", 0.0)
    warps = count("device__attribute_max_warps_per_multiprocessor", 0.0) * values("occupancy.achieved", 0.0)
    return waits * warps / 100 * values("launch.multiprocessors", 0.0) / (accesses + rest / 8)


def _queues_at_slice(kernel: KernelEvidence) -> bool:
    """Return whether a slice of L2 works nearly all the time for next to nothing that is moved."""
    moved = (kernel.values.get("bandwidth.l2.share"), kernel.values.get("bandwidth.dram.share"))
    idle = all(share is not None and share < LITTLE for share in moved)
    return idle and kernel.above("l2.busiest_slice", ALWAYS)


def _crowded_slices(kernel: KernelEvidence) -> bool:
    """Return whether one slice of L2 works for most of the time, and the average one much less."""
    return kernel.above("l2.busiest_slice", BUSY_SLICE) and kernel.below("balance.l2", UNEVEN)


def _slices_text(kernel: KernelEvidence) -> str:
    busiest, balance = kernel.values["l2.busiest_slice"], kernel.values["balance.l2"]
    return (
        f"the busiest slice of L2 works for {percent_text(busiest)} of the time, the average one for "
        f"{percent_text(busiest * balance / 100)}"
    )


def uneven_slices(run: RunEvidence) -> Iterator[Insight]:
    """Find accesses without atomics that meet in one slice of L2."""
    for kernel in run.kernels:
        if kernel.owner != "user" or not _crowded_slices(kernel) or _serial_atomics(kernel):
            continue
        fraction = 1 - kernel.values["balance.l2"] / 100
        yield insight_on(
            "uneven-l2-slices",
            kernel,
            "Spread the accesses over the slices of L2",
            _slices_text(kernel),
            bounded_gain(run, kernel, fraction, "until all slices of L2 are as busy", ("L2",)),
            ("balance.l2", "l2.busiest_slice"),
        )


def uneven_multiprocessors(run: RunEvidence) -> Iterator[Insight]:
    """Yield a grid that fills the device, of which some blocks run much longer than others."""
    for kernel in run.kernels:
        balance = kernel.values.get("balance.multiprocessors")
        if balance is None or balance > 100 - IDLE_MULTIPROCESSORS or kernel.owner not in OWN_CODE:
            continue
        waves = kernel.values.get("launch.waves", 0.0)
        if filled_share(kernel.values) < 1 or waves < MIN_FULL_WAVES:
            continue  # too few blocks: the rules on the grid say so
        yield insight_on(
            "uneven-multiprocessors",
            kernel,
            "Give the blocks the same amount of work",
            f"the average multiprocessor has work for {percent_text(balance)} of the time of the busiest one, "
            f"in {waves:.1f} waves of blocks",
            bounded_gain(run, kernel, 1 - balance / 100, "as if all multiprocessors ended at once"),
            ("balance.multiprocessors", "launch.waves"),
        )


def device_heap(run: RunEvidence) -> Iterator[Insight]:
    """Find kernels that call malloc or new, whose own loads and stores are little of what goes through L1."""
    for kernel in run.kernels:
        line, others = _heap_line(run, kernel), _share_of_others(kernel)
        if line is not None:
            yield insight_on(
                "device-heap",
                kernel,
                f"Take {line.call} out of the kernel: all threads share one heap",
                f"{percent_text(100 * others)} of the sectors that L1 looks up belong to no load or store of the "
                "kernel's own code: each thread goes through the lists of the heap, to take memory and to free it",
                bounded_gain(run, kernel, others, "as if the kernel did its own work alone", MEMORY_UNITS),
                where=replace(kernel.place, file=line.file, line=line.line),
            )


def _heap_line(run: RunEvidence, kernel: KernelEvidence) -> GpuLine | None:
    """Return where its source takes memory from the heap of the device, if that is what it mostly does."""
    lines, time = run.trace.lines if run.trace is not None else (), kernel.row.time
    heap = {line.function: line for line in lines if line.call in ("malloc", "new")}
    return heap.get(time.function) if time is not None and _share_of_others(kernel) >= HEAP else None


def _share_of_others(kernel: KernelEvidence) -> float:
    """Return the share of the sectors looked up in L1 that the driver's functions request, not its own code."""
    every = sum(kernel.counters.get(name, 0.0) for name in LOOKED_UP_SECTORS)
    own = sum(kernel.counters.get(name, every) for name in GLOBAL_SECTORS)
    return 1 - own / every if every else 0.0


def lone_threads(run: RunEvidence) -> Iterator[Insight]:
    """Find blocks of which most threads are done long before a few that go on alone."""
    for kernel in run.kernels:
        values = kernel.values
        active, running = values.get("warp.execution_efficiency"), values.get("occupancy.achieved")
        launched = values.get("occupancy.theoretical", 100.0) * min(1.0, values.get("launch.waves", 0.0))
        if active is None or running is None or kernel.owner not in OWN_CODE or filled_share(values) < 1:
            continue
        if active <= ALONE and running <= LEFT_ALONE * launched:
            yield insight_on(
                "lone-threads",
                kernel,
                "Let all threads of a block share this work: only a few of them do it",
                f"{percent_text(active)} of a warp's threads are active on average, and {percent_text(running)} of the "
                f"warps run, although {percent_text(launched)} were launched",
                bounded_gain(
                    run, kernel, 1 - active / 100, "as if every instruction served all 32 threads", PIPES
                ),
                ("warp.execution_efficiency", "occupancy.achieved"),
            )


def divergent_warps(run: RunEvidence) -> Iterator[Insight]:
    """Find warps of which many threads are idle, in a kernel that instructions limit or that waits for itself."""
    for kernel in run.kernels:
        active = kernel.values.get("warp.execution_efficiency")
        if active is None or active > 75 or kernel.owner != "user":  # NVIDIA's own rule: 24 of 32
            continue
        if kernel.bound in ("dram", "l2", "tensor", "launch") or _heap_line(run, kernel) is not None:
            continue
        if _serial_atomics(kernel) or _crowded_slices(kernel):
            continue  # one slice of L2 takes the time, however many threads ask it at once
        yield insight_on(
            "divergent-warps",
            kernel,
            "Let the 32 threads of a warp take the same path",
            f"{percent_text(active)} of a warp's threads are active on average",
            bounded_gain(
                run, kernel, 1 - active / 100, "as if every instruction served all 32 threads", PIPES
            ),
            ("warp.execution_efficiency", "branch.efficiency"),
        )


THREADS = 2048  # of a multiprocessor, at most (NVIDIA's compute capabilities 8.0, 9.0 and 10.0)
_SHAPES = re.compile(r"\[(\d[\d,]*)\]")
_PRODUCTS = re.compile(r"conv|attention|mm\b|linear|matmul|einsum")  # a larger batch gives them more tiles
MIN_LOST = 0.1  # of the time: the end of every kernel costs some
MAX_WAVES = 8.0  # with more of them the last one is below 12 % of the time
SHORT = 1.5e-6  # s that a block works: what it costs by itself is a good part of that
WAVES_OF_TINY = 20.0  # with fewer the first and the last one are much of the time
LATE = 0.85  # of the warps that could run: with fewer, multiprocessors wait for their next block
BUSY = 60.0  # % of its peak: a unit that is busier limits the kernel
WORD = 4  # bytes: where a thread moves less, several work on the same number
_INSIDE = (*MEMORY_UNITS[2:], *PIPES)  # of a multiprocessor: what several threads do alike
_OF_BLOCKS = (
    "launch.waves", "launch.blocks", "launch.threads", "occupancy.achieved", "occupancy.theoretical", "time.kernel",
    "bandwidth.l2", "bandwidth.l2.share", "bandwidth.dram.share",
)  # fmt: skip


def small_grid(run: RunEvidence) -> Iterator[Insight]:
    """Find fewer blocks than multiprocessors in a kernel that runs for longer than its launch takes.

    Kernels of several streams that run side by side fill the device together.
    """
    if runs_side_by_side(run.trace):
        return
    for kernel in run.kernels:
        filled = filled_share(kernel.values)
        seconds = kernel.seconds
        if filled >= 0.6 or seconds is None or seconds < LAUNCH_SECONDS or kernel.owner == "nccl":
            continue
        blocks = kernel.values["launch.blocks"]
        library, word = kernel.owner != "user", "program" if kernel.language == "triton" else "block"
        same = (other for other in run.kernels if other.operation and other.operation == kernel.operation)
        if library and filled_share(next(same, kernel).values) == 1:
            continue  # a small part of an operation whose largest kernel fills the device
        if library and _is_large(kernel):
            continue  # a batch that is larger still would not change how the library divides it
        yield insight_on(
            "small-grid",
            kernel,
            f"Split the work into more {word}s" if not library else "Give this operation more work at a time",
            f"{plural(int(blocks), word)} for {kernel.values['launch.multiprocessors']:.0f} "
            f"multiprocessors, in {format_quantity(seconds, 's')}",
            bounded_gain(run, kernel, 1 - filled, "as if the same work ran on all multiprocessors"),
            ("launch.blocks", "launch.waves"),
            change=words("small-grid.library") if library else words("small-grid"),
        )


def _is_large(kernel: KernelEvidence) -> bool:
    """Return whether an operation, but a product, works on as many elements as threads fill the device."""
    operation = kernel.operation or ""
    most = max((prod(map(int, shape.split(","))) for shape in _SHAPES.findall(operation)), default=0)
    fills = kernel.values["launch.multiprocessors"] * THREADS
    return (
        most >= fills
        and not is_matrix_product(kernel.row.scope.name or "")
        and not _PRODUCTS.search(operation)
    )


def small_blocks(run: RunEvidence) -> Iterator[Insight]:
    """Find very many blocks that each do next to nothing: their multiprocessors wait for the next one."""
    for kernel in run.kernels:
        if kernel.owner != "user" or not kernel.values.keys() >= {*_OF_BLOCKS}:
            continue
        waves, blocks, threads, running, possible, seconds, rate, *moving = (
            kernel.values[name] for name in _OF_BLOCKS
        )
        few = rate * seconds < WORD * threads
        each = seconds / waves * running / possible if waves >= WAVES_OF_TINY else SHORT
        if each >= SHORT or running > LATE * possible or max(moving) > BUSY:
            continue
        if not few and (kernel.busiest or 100.0) > BUSY:
            continue
        word = "program" if kernel.language == "triton" else "block"
        yield insight_on(
            "small-blocks",
            kernel,
            f"Do the work of many {word}s in one",
            f"{blocks:,.0f} {word}s of {threads / blocks:.0f} threads, each works for {format_quantity(each, 's')} and "
            f"moves {rate * seconds / blocks:.0f} bytes; {percent_text(running)} of the warps run, "
            f"{percent_text(possible)} could: multiprocessors wait for their next {word}",
            bounded_gain(run, kernel, 1.0, f"as if starting a {word} cost nothing", _INSIDE if few else ()),
            _OF_BLOCKS,
        )


def last_wave(run: RunEvidence) -> Iterator[Insight]:
    """Yield a few waves of blocks of which the last one fills little of the device."""
    for kernel in run.kernels:
        waves = kernel.values.get("launch.waves")
        seconds = kernel.seconds
        if waves is None or not 1 < waves < MAX_WAVES or kernel.owner != "user":
            continue
        if seconds is not None and seconds < LAUNCH_SECONDS:
            continue
        # Blocks that end early make room: what is really lost is how much longer the busiest multiprocessor worked.
        idle = 1 - kernel.values.get("balance.multiprocessors", 0.0) / 100
        lost = min(1 - waves / ceil(waves), idle)
        if lost < MIN_LOST or (kernel.bound in ("dram", "l2") and (kernel.busiest or 0.0) > 80):
            continue
        yield insight_on(
            "last-wave",
            kernel,
            "Choose the grid so that the last wave is full",
            f"the blocks run in {waves:.2f} waves: the last one fills "
            f"{percent_text(100 * (1 - (ceil(waves) - waves)))} of the device",
            bounded_gain(run, kernel, lost, "as if the waves were full"),
            ("launch.waves", "balance.multiprocessors"),
        )


def small_kernels(run: RunEvidence) -> Iterator[Insight]:
    """Find kernels shorter than a launch: together they are bounded by launches, not by anything inside them."""
    small = [
        kernel
        for kernel in run.kernels
        if kernel.seconds is not None and kernel.seconds < LAUNCH_SECONDS and kernel.owner != "nccl"
    ]
    share = sum(kernel.share for kernel in small)
    if not small or share < 0.1:
        return
    first = max(small, key=lambda kernel: kernel.share)
    seconds = first.seconds or 0.0
    yield insight_on(
        "small-kernels",
        first,
        "Fuse or batch the small kernels, or launch them as a CUDA graph",
        f"it takes {format_quantity(seconds, 's')}, less than it takes to launch it; "
        f"{plural(len(small), 'such kernel')}, {percent_text(100 * share)} of the GPU time",
        run.gain(share * run.gpu_share, "all such kernels together") if run.busy is not None else None,
        ("time.kernel",),
    )
