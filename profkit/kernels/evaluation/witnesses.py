"""What else bears witness of a time: what a processor can do at all, and the processor time that a process took."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from profkit.core.formatting import format_quantity
from profkit.core.types import MeasuredCeilings

if TYPE_CHECKING:
    from profkit.kernels.evaluation.timing import PairedTimes

BUSY = "the machine was busy: threads waited for a processor while it was timed"
# No core of today stores more than two registers of 64 bytes in a cycle, and none runs at 6 GHz.
STORED_PER_SECOND = 2 * 64 * 6e9  # bytes
BEYOND_BOUND = 1.5  # times faster than ceilings that were measured, which a busy machine makes too low
MORE_THREADS = 1.5  # times as many, and at least
WHOLE_THREAD = 0.7  # more


def impossible_rate(bytes_written: float, seconds: float, cores: int = os.cpu_count() or 1) -> str:
    """Why no processor can have written so many bytes in these wall seconds; empty where one could."""
    if bytes_written <= seconds * STORED_PER_SECOND * cores:
        return ""
    rate = format_quantity(bytes_written / seconds, "B/s")
    limit = format_quantity(STORED_PER_SECOND * cores, "B/s")
    return (
        f"its timed calls ended before their results can have been written: {rate}, and {cores} cores store less than "
        f"{limit} (128 bytes a cycle at 6 GHz each)"
    )


def describe_witnesses(times: PairedTimes, bound: float | None) -> tuple[str, ...]:
    """Remarks on times: the machine was busy, they are below the measured bound (seconds of a call), or the kernel took
    more threads than PyTorch's own."""
    remarks = [BUSY] if times.disturbed else []
    seconds, threads, reference_threads = times.seconds, times.threads, times.reference_threads
    if bound is not None and seconds * BEYOND_BOUND < bound:
        remarks.append(
            f"{bound / seconds:.1f} times as fast as the measured peaks of this machine allow: it does less arithmetic "
            "or moves less than the operation's formula counts, or the machine was busy when they were measured"
        )
    if threads > max(MORE_THREADS * reference_threads, reference_threads + WHOLE_THREAD):
        remarks.append(
            f"it keeps {threads:.1f} threads busy, and PyTorch's own {reference_threads:.1f}: of processor time it is "
            "dearer than its speed-up says"
        )
    return tuple(remarks)


def count_written(tensors: Iterable[Any], old: Collection[int]) -> int:
    """Bytes of new memory in the tensors that must be written. `old`: addresses of storages that were there before.

    A view writes nothing, and zeros are there without writing: the system gives memory that holds nothing else.
    """
    new: dict[int, int] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), min(storage.nbytes(), tensor.numel() * tensor.itemsize)
        if address not in old and _is_not_zero(tensor):
            new[address] = max(size, new.get(address, 0))
    return sum(new.values())


def _is_not_zero(tensor: Any) -> bool:
    with suppress(RuntimeError):  # torch cannot tell it of every dtype
        return bool(tensor.any())
    return False


def least_seconds(bytes_: int, flops: float | None, roofs: MeasuredCeilings) -> float | None:
    """What the hardware allows at least: by arithmetic, and by memory where no cache holds so much."""
    by_flops = flops / roofs.flops if flops and roofs.flops else 0.0
    by_bytes = bytes_ / roofs.bandwidth if roofs.bandwidth and bytes_ > _cached_bytes() else 0.0
    return max(by_flops, by_bytes) or None


def _cached_bytes() -> int:
    from profkit.hardware.machine import read_machine

    return 4 * max((cache.size for cache in read_machine().caches), default=1 << 30)
