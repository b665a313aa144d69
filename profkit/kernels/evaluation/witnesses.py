"""What else bears witness of a time: what a processor can do at all, and the processor time that a process took."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from profkit.core.formatting import format_quantity
from profkit.core.types import MeasuredCeilings

# No core of today stores more than two registers of 64 bytes in a cycle, and none runs at 6 GHz.
STORED_PER_SECOND = 2 * 64 * 6e9  # bytes
BEYOND_BOUND = 1.5  # times faster than ceilings that were measured, which a busy machine makes too low
MORE_THREADS = 1.5  # times as many, and at least
WHOLE_THREAD = 0.7  # more


def impossible_rate(bytes_written: float, seconds: float, cores: int) -> str:
    """Why no processor can have written so many bytes in these wall seconds; empty where one could."""
    if bytes_written <= seconds * STORED_PER_SECOND * cores:
        return ""
    rate = format_quantity(bytes_written / seconds, "B/s")
    limit = format_quantity(STORED_PER_SECOND * cores, "B/s")
    return (
        f"its timed calls ended before their results can have been written: {rate}, and {cores} cores store less than "
        f"{limit} (128 bytes a cycle at 6 GHz each)"
    )


def describe_witnesses(
    seconds: float, bound: float | None, threads: float, reference_threads: float
) -> tuple[str, ...]:
    """Remarks on a time: it is below the measured bound, or the kernel took more threads than PyTorch's own."""
    remarks = []
    if bound is not None and seconds * BEYOND_BOUND < bound:
        remarks.append(
            f"{bound / seconds:.1f} times as fast as the measured peaks of this machine allow: it does less arithmetic or "
            "moves less than the operation's formula counts, or the machine was busy when they were measured"
        )
    if threads > max(MORE_THREADS * reference_threads, reference_threads + WHOLE_THREAD):
        remarks.append(
            f"it keeps {threads:.1f} threads busy, and PyTorch's own {reference_threads:.1f}: of processor time it is "
            "dearer than its speed-up says"
        )
    return tuple(remarks)


def count_written(tensors: Iterable[Any], old: Collection[int]) -> int:
    """Bytes of new memory in the tensors. `old`: addresses of storages that were there before: views write nothing."""
    new: dict[int, int] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in old:
            new[storage.data_ptr()] = min(storage.nbytes(), tensor.numel() * tensor.itemsize)
    return sum(new.values())


def least_seconds(bytes_: int, flops: float | None, roofs: MeasuredCeilings) -> float | None:
    """What the hardware allows at least: by arithmetic, and by memory where no cache holds so much."""
    by_flops = flops / roofs.flops if flops and roofs.flops else 0.0
    by_bytes = bytes_ / roofs.bandwidth if roofs.bandwidth and bytes_ > _cached_bytes() else 0.0
    return max(by_flops, by_bytes) or None


def _cached_bytes() -> int:
    from profkit.hardware.machine import read_machine

    return 4 * max((cache.size for cache in read_machine().caches), default=1 << 30)
