"""The clock that a device had while it ran, and what a unit's peak at that clock is of the data sheet's."""

from __future__ import annotations

from dataclasses import replace

from profkit.analysis.timeline.products import tensor_peak
from profkit.core.statistics import median
from profkit.core.types import Account, AccountClock, AccountRow, Gpu, RunDocument

# FLOP of one SM in a cycle, with 16-bit operands and without sparsity, by compute capability (NVIDIA's white papers on
# each architecture). With the data sheet's FLOP/s they give the clock for which these were calculated.
_TENSOR_FLOP: dict[str, int] = {
    "7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096, "10.0": 8192,
}  # fmt: skip
_SLOWEST = 0.75  # of the highest clock: a data sheet below that counts units that are switched off
_APART = 0.05  # from which on two peaks are distinguished


def with_clock(account: Account, document: RunDocument) -> Account:
    """Return the account with the clock that was sampled while the workload was timed; unchanged if none was."""
    clock = sampled_clock(document)
    if clock is None:
        return account
    gpu = document.gpus[0]
    rows = tuple(replace(row, of_sheet=_share_of_sheet(row, clock, gpu)) for row in account.rows)
    return replace(account, rows=rows, clock=clock)


def sampled_clock(document: RunDocument) -> AccountClock | None:
    """Return the clock over all samples of all processes; None without any, and where devices differ,
    since the samples do not name the device.
    """
    if len({(gpu.name, gpu.highest_clock) for gpu in document.gpus}) != 1:
        return None
    processes = [process for timing in document.timings for process in timing.processes]
    clocks = [clock for process in processes for clock in process.clocks]
    if not clocks:
        return None
    highest = document.gpus[0].highest_clock
    seen = median(clocks)
    # Samples in which the device was held back are left out of the clocks unless they are most of them.
    held = [
        word
        for process in processes
        if process.clocks and not process.throttled
        for word in process.throttle_reasons
    ]
    return AccountClock(seen, highest, tuple(dict.fromkeys(held)))


def _share_of_sheet(row: AccountRow, clock: AccountClock, gpu: Gpu) -> float | None:
    """Return the share of the data sheet's peak; None where it is that at the clock, or is not known."""
    if row.busy is None or row.limit not in ("tensor", "fp32"):
        return None
    assumed = sheet_clock(gpu) if row.limit == "tensor" else gpu.highest_clock
    if assumed is None or abs(clock.seen / assumed - 1) <= _APART:
        return None
    return row.busy * clock.seen / assumed


def sheet_clock(gpu: Gpu) -> float | None:
    """Return the SM clock in Hz for which the data sheet states the FLOP/s of the tensor cores; None where not
    known.
    """
    peak, flop = tensor_peak(gpu), _TENSOR_FLOP.get(gpu.capability or "")
    if peak is None or flop is None or not gpu.multiprocessors or not gpu.highest_clock:
        return None
    clock = peak / (gpu.multiprocessors * flop)
    return clock if _SLOWEST * gpu.highest_clock <= clock <= (1 + _APART) * gpu.highest_clock else None
