"""The machine's own limits, measured: memory bandwidth and float32 arithmetic, on one thread and on all.

What a best-of is: the most that a plain kernel reached here and now. It is a lower bound of what the
hardware can do (theory: channels * 8 bytes * MT/s, and cores * lanes * 2 per FMA unit * clock), and it falls
when somebody else uses the machine. A share of it can be above 100 %, and then reads as "at the peak".

numpy's matrix library fixes its number of threads when it is loaded. So each number of threads is measured in
a process of its own: run `peaks_argv(n)` with `peaks_environment(n)`, hand its output to `read_peaks`, and
join the answers of 1 and of all threads with `combine_peaks`.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from profkit.core.errors import MachineError, UnreadableReport
from profkit.core.types import Machine, Peaks
from profkit.hardware.bandwidth import measure_bandwidth
from profkit.hardware.blas import library_name, thread_environment
from profkit.hardware.caches import data_caches
from profkit.hardware.container import available_memory
from profkit.hardware.machine import read_machine

SCHEMA = "profkit.peaks/1"
SIZES = (
    512,
    1024,
    2048,
)  # at 512 a product takes some ms, which drowns the call; beyond 2048 nothing is gained


def measure_peaks(seconds: float = 2.0, threads: int = 1) -> Peaks:
    """Measure in this process for about `seconds`, half each for bandwidth and arithmetic.

    Fills the `_one` fields with one thread and the `_all` fields with more, bandwidth in bytes/s, arithmetic
    in FLOP/s (2n^3 per product of n x n float32 matrices). A field that cannot be measured is None and
    `method` says why. The matrix library must already be limited to `threads` (`peaks_environment`).
    Raises MachineError without numpy.
    """
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise MachineError(
            f"peaks are measured with numpy, which cannot be imported: {error}", "pip install numpy"
        ) from error
    machine = read_machine()
    cache = reachable_cache(machine, threads)
    method: list[str] = []
    bandwidth: float | None = None
    try:
        found = measure_bandwidth(seconds / 2, threads, cache, available_memory())
        bandwidth = found.best
        each = ", ".join(f"{name} {rate / 1e9:.1f}" for name, rate in found.rates)
        method.append(
            f"bandwidth on {threads} thread(s): best of {each} GB/s (numpy, 3 arrays of "
            f"{found.array_bytes // 2**20} MiB, STREAM's bytes){'; ' + found.note if found.note else ''}"
        )
    except (MachineError, MemoryError) as error:
        method.append(f"no bandwidth on {threads} thread(s): {error or 'out of memory'}")
    flops: float | None = None
    try:
        flops, size = _measure_flops(seconds / 2)
        method.append(
            f"arithmetic on {threads} thread(s): best float32 product of {size} x {size} ({library_name()})"
        )
    except MemoryError:
        method.append(f"no arithmetic on {threads} thread(s): out of memory")
    told = "; ".join(method)
    if threads == 1:
        return Peaks(bandwidth, None, flops, None, 1, told)
    return Peaks(None, bandwidth, None, flops, threads, told)


def combine_peaks(one: Peaks, every: Peaks) -> Peaks:
    """Join what one thread and what all threads reached. On a machine of one core pass the same twice."""
    if every.threads == 1:
        return Peaks(
            one.bandwidth_one, one.bandwidth_one, one.flops_f32_one, one.flops_f32_one, 1, one.method
        )
    return Peaks(
        bandwidth_one=one.bandwidth_one,
        bandwidth_all=every.bandwidth_all,
        flops_f32_one=one.flops_f32_one,
        flops_f32_all=every.flops_f32_all,
        threads=every.threads,
        method=f"{one.method}; {every.method}",
    )


def peaks_argv(threads: int, seconds: float = 2.0) -> tuple[str, ...]:
    """The command that measures with `threads` threads and prints JSON; run it with `peaks_environment`."""
    return (
        *(sys.executable, "-m", "profkit.hardware.peaks"),
        *("--json", "--threads", str(threads), "--seconds", f"{seconds:g}"),
    )


def peaks_environment(threads: int) -> dict[str, str]:
    """The environment for `peaks_argv`: threads, and a module path on which this very profkit comes first."""
    here = str(Path(__file__).resolve().parents[2])
    inherited = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {
        **thread_environment(threads),
        "PYTHONPATH": os.pathsep.join([here, *inherited]),
        "PYTHONSAFEPATH": "1",  # a random.py in the caller's folder is not ours to import (Python >= 3.11)
    }


def read_peaks(text: str) -> Peaks:
    """Peaks from what the child process printed, warnings of its libraries around it or not.

    Raises MachineError where the child says that it cannot measure, UnreadableReport for anything else.
    """
    line = next((line for line in text.splitlines() if line.startswith('{"schema"')), text)
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"the measured peaks are not JSON: {text.strip()[-200:]!r}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise UnreadableReport(f"the measured peaks are not of schema {SCHEMA}")
    if isinstance(data.get("error"), str):
        raise MachineError(data["error"], data.get("fix") if isinstance(data.get("fix"), str) else None)
    threads, method = data.get("threads"), data.get("method")
    if type(threads) is not int or threads < 1 or not isinstance(method, str):
        raise UnreadableReport("the measured peaks lack their number of threads or their method")
    names = ("bandwidth_one", "bandwidth_all", "flops_f32_one", "flops_f32_all")
    rates = [_rate(name, data.get(name)) for name in names]
    return Peaks(rates[0], rates[1], rates[2], rates[3], threads, method)


def reachable_cache(machine: Machine, threads: int) -> int:
    """Bytes of last-level cache that `threads` threads reach together: one per group of cores sharing it."""
    levels = data_caches(machine)
    if not levels:
        return 0
    last = levels[-1]
    return last.size * math.ceil(min(threads, machine.cores) / max(1, last.shared))


def _measure_flops(seconds: float) -> tuple[float, int]:
    """Best FLOP/s of a product of n x n matrices, and its n.

    Several sizes take turns: a large one wins on a quiet machine, and on a busy one a small one, which fits between
    two time slices of a neighbour.
    """
    import numpy

    best, best_size, calls = 0.0, SIZES[0], 0
    deadline = time.perf_counter() + seconds
    for size in SIZES:
        left = numpy.full((size, size), 0.5, numpy.float32)
        right, out = left.copy(), numpy.empty_like(left)
        numpy.matmul(left, right, out=out)  # the library starts its threads and picks its kernel
        share = time.perf_counter() + max(0.0, deadline - time.perf_counter()) / 2
        while calls < 3 or time.perf_counter() < share:
            spent = _seconds_of(lambda a=left, b=right, c=out: numpy.matmul(a, b, out=c))
            if 2.0 * size**3 / spent > best:
                best, best_size = 2.0 * size**3 / spent, size
            calls += 1
        if spent * 16 > deadline - time.perf_counter():
            break  # twice the size takes eight times as long
    return best, best_size


def _seconds_of(call: object) -> float:
    assert callable(call)
    start = time.perf_counter()
    call()
    return max(time.perf_counter() - start, 1e-9)


def _rate(name: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e21:
        raise UnreadableReport(f"the measured peak {name} is no rate: {value!r}")
    return float(value)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print, for a process of its own. Exit 3 where this machine cannot."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m profkit.hardware.peaks", description=main.__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    asked = parser.parse_args(arguments)
    try:
        peaks = measure_peaks(asked.seconds, max(1, asked.threads))
    except MachineError as error:
        print(json.dumps({"schema": SCHEMA, "error": error.message, "fix": error.fix}))
        return MachineError.exit_code
    print(json.dumps({"schema": SCHEMA, **asdict(peaks)}) if asked.json else peaks.method)
    return 0


if __name__ == "__main__":
    sys.exit(main())
