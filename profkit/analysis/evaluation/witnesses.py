"""What else bears witness of a time: what a processor can do at all, and the processor time that a process took."""

from __future__ import annotations

import os

from profkit.core.formatting import format_quantity

# No core of today stores more than two registers of 64 bytes in a cycle, and none runs at 8 GHz.
STORED_PER_SECOND = 2 * 64 * 8e9  # bytes
# No multiprocessor stores more than 128 bytes in a cycle, and none runs at 4 GHz.
DEVICE_STORED_PER_SECOND = 128 * 4e9  # bytes
LAUNCHING = 0.5  # of the time at most that the device works: launches take the rest
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


def impossible_device_rate(bytes_written: float, seconds: float, multiprocessors: int) -> str:
    """Why no GPU of so many multiprocessors can have written so many bytes in these seconds; empty where one could."""
    if bytes_written <= seconds * DEVICE_STORED_PER_SECOND * multiprocessors:
        return ""
    rate = format_quantity(bytes_written / seconds, "B/s")
    limit = format_quantity(DEVICE_STORED_PER_SECOND * multiprocessors, "B/s")
    return (
        f"its timed calls ended before their results can have been written: {rate}, and {multiprocessors} "
        f"multiprocessors store less than {limit} (128 bytes a cycle at 4 GHz each)"
    )


def describe_launches(seconds: float, device_seconds: float, *, gated: bool = False) -> str:
    """A remark where kernels run for the lesser part of a call of so many seconds; else empty.

    `gated`: everything was launched before the clock ran, so that the rest is the device's own.
    """
    if not 0 < device_seconds < LAUNCHING * seconds:
        return ""
    runs, share = format_quantity(device_seconds, "s"), f"{device_seconds / seconds:.0%}"
    if gated:
        return f"kernels run for {runs} of a call, {share} of its time: the rest is how long the GPU takes between them"
    return f"the GPU works {share} of its time, {runs} a call: the rest is what the host needs to launch it"


def describe_host_time(seconds: float, launch_seconds: float) -> str:
    """A remark where the host needs longer to launch a call than the device to run it (seconds); else empty."""
    if launch_seconds <= seconds:
        return ""
    return (
        f"the host needs {format_quantity(launch_seconds, 's')} to launch a call, and the GPU "
        f"{format_quantity(seconds, 's')} to run it: the speed-up is that of the GPU alone"
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
