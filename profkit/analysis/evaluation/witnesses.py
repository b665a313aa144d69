"""What else bears witness of a time: what a processor can do at all, and the processor time that a process took."""

from __future__ import annotations

import os

from profkit.core.formatting import format_quantity

# No core of today stores more than two registers of 64 bytes in a cycle, and none runs at 8 GHz.
STORED_PER_SECOND = 2 * 64 * 8e9  # bytes
NEAR_BOUND = 1.05  # of a time and of a ceiling, by which a time may be below its bound by chance
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
        f"{limit} (128 bytes a cycle at 8 GHz each)"
    )


def kept_bound(bound: float | None, *seconds: float) -> float | None:
    """The bound in seconds; None where one of these measured times is clearly below it: then it is none."""
    if bound is None or any(each * NEAR_BOUND < bound for each in seconds):
        return None
    return bound


def describe_witnesses(
    seconds: float, bound: float | None, threads: float, reference_threads: float, allowed: int = 0
) -> tuple[str, ...]:
    """Remarks on the seconds of a call: below the measured bound, or by more threads than PyTorch's own or `allowed`.

    `allowed` 0: as many as torch takes.
    """
    remarks = []
    if bound is not None and seconds * BEYOND_BOUND < bound:
        remarks.append(
            f"{bound / seconds:.1f} times as fast as the measured peaks of this machine allow: it does less arithmetic "
            "or moves less than the operation's formula counts, or the machine was busy when they were measured"
        )
    if allowed and threads > allowed + WHOLE_THREAD:
        remarks.append(
            f"it keeps {threads:.1f} processors busy, and --threads allows {allowed}: some of its speed-up is bought"
        )
    elif threads > max(MORE_THREADS * reference_threads, reference_threads + WHOLE_THREAD):
        remarks.append(
            f"it keeps {threads:.1f} threads busy, and PyTorch's own {reference_threads:.1f}: of processor time it is "
            "dearer than its speed-up says"
        )
    return tuple(remarks)
