"""What limits a test, and what to change, by its own run.

How much of a kernel's time on a GPU is its own? By the names of what it launched: a label, never a verdict.

A kernel that calls cuBLAS, cuDNN or PyTorch's own kernels is wrapped, which may be what is wanted; one that launches
a kernel of its own beside them, which takes hardly any time, has a decoy.

What else bears witness of a time: what a processor can do at all, and the processor time that a process took.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from profkit.analysis.kernel_names.owner import OWN_CODE, KernelOwner, kernel_owner, owner_title
from profkit.core.types import Fact, RunDocument

# As the targets of a run have it: from these shares of a measured peak, in %, the one or the other is what limits.
MEMORY_LIMITS, ARITHMETIC_LIMITS = 60.0, 50.0


def bottleneck_of(document: RunDocument) -> Fact | None:
    """Return what limits a test, such as memory at 82 % of its peak; None if the run does not show it.

    Of a GPU what limits the kernel with the largest share of its time.
    """
    if document.kernels:
        kernel = document.kernels[0]
        if kernel.nearest is None:
            return Fact.of("limited-by", name=kernel.bound)
        return Fact.of("near-peak", name=kernel.bound, near=kernel.nearest)
    memory, arithmetic = (_largest(document, name) for name in ("bandwidth.dram.share", "flops.share"))
    by_memory = memory / MEMORY_LIMITS if memory is not None else 0.0
    by_arithmetic = arithmetic / ARITHMETIC_LIMITS if arithmetic is not None else 0.0
    if max(by_memory, by_arithmetic) < 1:
        return None
    if by_memory >= by_arithmetic:
        return Fact.of("near-peak", name="memory", near=memory or 0.0)
    return Fact.of("near-peak", name="arithmetic", near=arithmetic or 0.0)


def insight_of(document: RunDocument) -> Fact | None:
    """Return the first thing to change with the most that it can win; None where nothing was found."""
    if not document.insights:
        return None
    insight = document.insights[0]
    if (gain := insight.gain) is None:
        return Fact.of("change-first", name=insight.title)
    return Fact.of("change-first-of", name=insight.title, share=gain.at_most, of=gain.of)


def _largest(document: RunDocument, metric: str) -> float | None:
    of_call = (r.value for r in document.readings if r.metric == metric and r.scope.kind in ("region", "run"))
    return max((value for value in of_call if value is not None), default=None)


DECOY_SHARE = 0.05  # of the device's time, and less: the kernels of others do the work
MIXED_SHARE = 0.5
NAMED_SHARE = 0.05  # of the time: an owner with less is not named
COPIES = ("Memcpy", "Memset")  # as CUPTI calls what the driver copies and fills


@dataclass(frozen=True)
class OwnKernels:
    """The share of the time on the device that was spent in kernels of their author; most need no `remark`."""

    share: float
    remark: Fact | None = None


def assess_own_kernels(launched: Sequence[tuple[str, float]]) -> OwnKernels | None:
    """Return what `launched` says, names with their seconds on the device; None where nothing ran there.

    A library that is compiled from the author's own source (CUTLASS, Inductor) counts as own. Copies belong to
    no kernel, and count as time.
    """
    total = sum(seconds for _, seconds in launched)
    if total <= 0:
        return None
    by_owner: dict[str, float] = {}
    own_launches = 0
    own_seconds = 0.0
    for name, seconds in launched:
        owner: KernelOwner | None = None if name.startswith(COPIES) else kernel_owner(name)
        title = owner_title(owner) if owner is not None else "copies"
        by_owner[title] = by_owner.get(title, 0.0) + seconds
        if owner in OWN_CODE:
            own_launches += 1
            own_seconds += seconds
    share = own_seconds / total
    own_titles = {owner_title(owner) for owner in OWN_CODE}
    others = tuple(
        Fact.of("share-of", name=title, share=seconds / total)
        for title, seconds in sorted(by_owner.items(), key=lambda each: -each[1])
        if title not in own_titles and seconds >= NAMED_SHARE * total
    )
    if not own_launches:
        return OwnKernels(share, Fact.of("no-own-kernel", *others))
    if share < DECOY_SHARE:
        return OwnKernels(share, Fact.of("decoy", *others, share=share))
    return OwnKernels(share, Fact.of("mixed-kernels", *others, share=share) if share < MIXED_SHARE else None)


# No core of today stores more than two registers of 64 bytes in a cycle, and none runs at 8 GHz.
STORED_PER_SECOND = 2 * 64 * 8e9  # bytes
# No multiprocessor stores more than 128 bytes in a cycle, and none runs at 4 GHz.
DEVICE_STORED_PER_SECOND = 128 * 4e9  # bytes
NEAR_BOUND = 1.05  # of a time and of a ceiling, by which a time may be below its bound by chance
BEYOND_BOUND = 1.5  # times faster than ceilings that were measured, which a busy machine makes too low
MORE_THREADS = 1.5  # times as many, and at least
WHOLE_THREAD = 0.7  # more


def impossible_rate(
    bytes_written: float, seconds: float, cores: int = os.cpu_count() or 1, *, on_gpu: bool = False
) -> Fact | None:
    """Return why no processor can have written so many bytes in these wall seconds, or no GPU of so many
    multiprocessors.

    None where one could.
    """
    limit = cores * (DEVICE_STORED_PER_SECOND if on_gpu else STORED_PER_SECOND)
    if bytes_written <= seconds * limit:
        return None
    code = "too-fast-on-gpu" if on_gpu else "too-fast"
    return Fact.of(code, rate=bytes_written / seconds, cores=cores, limit=limit)


def describe_host_time(seconds: float, launch_seconds: float) -> Fact | None:
    """Return a remark where the host needs longer to launch a call than the device to run it (seconds)."""
    if launch_seconds <= seconds:
        return None
    return Fact.of("slow-launches", launch=launch_seconds, seconds=seconds)


def kept_bound(bound: float | None, *seconds: float) -> float | None:
    """Return the bound in seconds; None where one of these measured times is clearly below it: then it is none."""
    if bound is None or any(each * NEAR_BOUND < bound for each in seconds):
        return None
    return bound


def describe_witnesses(
    seconds: float, bound: float | None, threads: float, reference_threads: float, allowed: int = 0
) -> tuple[Fact, ...]:
    """Return remarks on the seconds of a call: below the measured bound, or with more threads than PyTorch or
    `allowed`.

    `allowed` 0: as many as torch takes.
    """
    remarks = []
    if bound is not None and seconds * BEYOND_BOUND < bound:
        remarks.append(Fact.of("beyond-peaks", times=bound / seconds))
    if allowed and threads > allowed + WHOLE_THREAD:
        remarks.append(Fact.of("threads-beyond-option", threads=threads, allowed=allowed))
    elif threads > max(MORE_THREADS * reference_threads, reference_threads + WHOLE_THREAD):
        remarks.append(Fact.of("more-threads", threads=threads, reference=reference_threads))
    return tuple(remarks)
