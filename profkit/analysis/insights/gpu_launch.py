"""Rules on kernels that do not fill the device: too few blocks, a last wave, too short to launch."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from profkit.analysis.insights.evidence import (
    MEMORY_UNITS,
    PIPES,
    RunEvidence,
    bounded_gain,
    insight_on,
    percent_text,
    words,
)
from profkit.analysis.summaries.bottlenecks import LAUNCH_SECONDS, filled_share
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Insight

LEAST_LOST = 0.1  # of the time: the end of every kernel costs some
MOST_WAVES = 8.0  # with more of them the last one is below 12 % of the time
SHORT = 1.5e-6  # s that a block works: what it costs by itself is a good part of that
MANY_WAVES = 20.0  # with fewer the first and the last one are much of the time
LATE = 0.85  # of the warps that could run: with fewer, multiprocessors wait for their next block
BUSY = 60.0  # % of its peak: a unit that is busier limits the kernel
WORD = 4  # bytes: where a thread moves less, several work on the same number
_INSIDE = (*MEMORY_UNITS[2:], *PIPES)  # of a multiprocessor: what several threads do alike
_OF_BLOCKS = (
    "launch.waves", "launch.blocks", "launch.threads", "occupancy.achieved", "occupancy.theoretical", "time.kernel",
    "bandwidth.l2", "bandwidth.l2.share", "bandwidth.dram.share",
)  # fmt: skip


def small_grid(run: RunEvidence) -> Iterator[Insight]:
    """Fewer blocks than multiprocessors in a kernel that runs for longer than its launch takes."""
    for kernel in run.kernels:
        filled = filled_share(kernel.values)
        seconds = kernel.seconds
        if filled >= 0.6 or seconds is None or seconds < LAUNCH_SECONDS or kernel.owner == "nccl":
            continue
        blocks = kernel.values["launch.blocks"]
        library, word = kernel.owner != "user", "program" if kernel.language == "triton" else "block"
        same = (one for one in run.kernels if one.operation and one.operation == kernel.operation)
        if library and filled_share(next(same, kernel).values) == 1:
            continue  # a small part of an operation whose largest kernel fills the device
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


def small_blocks(run: RunEvidence) -> Iterator[Insight]:
    """Very many blocks that each do next to nothing: their multiprocessors wait for the next one."""
    for kernel in run.kernels:
        if kernel.owner != "user" or not kernel.values.keys() >= {*_OF_BLOCKS}:
            continue
        waves, blocks, threads, running, possible, seconds, rate, *moving = (
            kernel.values[name] for name in _OF_BLOCKS
        )
        few = rate * seconds < WORD * threads
        each = seconds / waves * running / possible if waves >= MANY_WAVES else SHORT
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
            bounded_gain(run, kernel, 1.0, f"as if a {word} by itself cost nothing", _INSIDE if few else ()),
            _OF_BLOCKS,
        )


def last_wave(run: RunEvidence) -> Iterator[Insight]:
    """A few waves of blocks of which the last one fills little of the device."""
    for kernel in run.kernels:
        waves = kernel.values.get("launch.waves")
        seconds = kernel.seconds
        if waves is None or not 1 < waves < MOST_WAVES or kernel.owner != "user":
            continue
        if seconds is not None and seconds < LAUNCH_SECONDS:
            continue
        # Blocks that end early make room: what is really lost is how much longer the busiest multiprocessor worked.
        idle = 1 - kernel.values.get("balance.multiprocessors", 0.0) / 100
        lost = min(1 - waves / ceil(waves), idle)
        if lost < LEAST_LOST or (kernel.bound in ("dram", "l2") and (kernel.busiest or 0.0) > 80):
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
    """Kernels shorter than a launch: together they are bounded by launches, not by anything inside them."""
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
