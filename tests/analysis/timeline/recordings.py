"""Recordings for tests, written the short way: kernels as tuples, times in ns."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.timeline.records import Collected, Range, Recording, TransferKind
from profkit.core.types import Kernel


def configuration(name: str, grid: int = 1) -> Kernel:
    return Kernel(name, (grid, 1, 1), (32, 1, 1), None, 16, 0)


def recording(
    kernels: Sequence[tuple[str, int, int, int | None]],
    *,
    ranges: Sequence[Range] = (),
    profiler: Sequence[tuple[int, int | None]] = (),
    captured: bool = False,
    calls: Sequence[tuple[str, int, int]] = (),
    copies: Sequence[tuple[str, int, int, int]] = (),
    copying: Sequence[tuple[str, int, int]] = (),
    devices: Sequence[int] = (),
    threads: Sequence[int] = (),
    call_ns: int = 2,
) -> Recording:
    """`kernels` are (name, start, end, begin of its launch or None); `devices` and `threads` go with them.

    `copying` are the calls, (name, begin, end), that asked for the `copies`.
    """
    collected = Collected()
    for number, (name, start, end, launch) in enumerate(kernels):
        device = devices[number] if devices else 0
        collected.kernel(configuration(name), start, end, key=number, device=device)
        if launch is not None:
            thread = threads[number] if threads else 0
            collected.call("cudaLaunchKernel", launch, launch + call_ns, key=number, thread=thread)
    for name, begin, end in calls:
        collected.call(name, begin, end)
    for number, (kind, begin, end, size) in enumerate(copies):
        key = 1_000_000 + number if number < len(copying) else -1
        collected.transfer(TransferKind(kind), begin, end, size, key=key)
        if key >= 0:
            call, called, back = copying[number]
            collected.call(call, called, back, key=key)
    return Recording(
        "test",
        collected.activities(),
        collected.calls(),
        collected.tables,
        tuple(ranges),
        tuple(profiler),
        captured,
    )


def in_turn(
    names: Sequence[str], *, kernel: int = 100, gap: int = 10, begin: int = 1000
) -> list[tuple[str, int, int, int | None]]:
    """Kernels one after the other, each launched 5 ns before it starts."""
    found, at = [], begin
    for name in names:
        found.append((name, at, at + kernel, at - 5))
        at += kernel + gap
    return found
