"""The machine's own limits, measured with numpy: memory bandwidth and float32 arithmetic.

Both are measured on one thread and on all. A best of many rounds is the most that a plain kernel reached here
and now. It is a lower bound of what the hardware can do (theory: channels * 8 bytes * MT/s, and cores * lanes
* 2 per FMA unit * clock), and it falls when somebody else uses the machine. A share of it can exceed 100 %,
and then reads as 'at the peak'.

Bytes are counted as STREAM counts them (McCalpin): what the kernel reads and writes, copy 2N, add 3N. A plain
store to a line that is not in the cache first reads that line, so copy and add really move up to 3N and 4N.
`update` (b += a) reads what it then writes: its 3N is all it moves, which makes it the kernel to compare
counted DRAM traffic with.

numpy's matrix library fixes its number of threads when it is loaded. So each number of threads is measured in
a process of its own, and the results of 1 and of all threads are joined.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path

from profkit.core import process
from profkit.core.codec import from_plain_data, to_plain_data
from profkit.core.errors import MachineError, ProfkitError
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import user_cache, write_whole
from profkit.core.types import Fact, Machine, Peaks
from profkit.hardware.machine import available_memory, data_caches, read_machine

# Of the matrices. At 512 a product takes some ms, which drowns the call; beyond 2048 nothing is gained.
MATRIX_SIZES = (512, 1024, 2048)
MIB = 1024 * 1024
MIN_ARRAY = 64 * MIB
MAX_ARRAY = 2048 * MIB  # only a server with hundreds of MiB of cache gets here, and touches it in parallel
CACHE_FACTOR = 4  # STREAM's rule: each array at least four times the last-level caches together
MEMORY_SHARE = 0.25  # of what is available, for the three arrays together
SMALLEST_ARRAY = 4 * MIB
SECONDS = 1.0  # for each number of threads; the best of many passes over the arrays
# For both together, where 3 s are planned: on a busy machine they took 72, and what is measured then is no peak.
DEADLINE = 10.0
QUEUED = 0.05  # share of a measurement in which its threads waited for a processor: such peaks are kept for minutes


def array_bytes(cache: int, available: int | None) -> int:
    """Return the bytes of each of the three arrays for `cache` bytes of last-level cache.

    Raises MachineError where the memory available does not allow arrays twice as large as the cache.
    """
    wanted = min(max(MIN_ARRAY, CACHE_FACTOR * cache), MAX_ARRAY)
    size = wanted if available is None else min(wanted, int(available * MEMORY_SHARE / 3))
    if size < max(SMALLEST_ARRAY, 2 * cache):
        raise MachineError(
            f"{(available or 0) // MIB} MiB of free memory are too few to measure the memory bandwidth "
            f"behind {cache // MIB} MiB of cache",
            "free memory, or raise the container's memory limit",
        )
    return size


def measure_bandwidth(seconds: float, threads: int, size: int) -> float:
    """Return the best bytes/s of as many rounds as fit in `seconds` (at least 3), on `threads` threads at once.

    `size` is that of each of three arrays, in bytes. A round lasts until its slowest thread is done.
    """
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier, local

    import numpy

    count = size // 4 // threads
    own, barrier = local(), Barrier(threads)

    def allocate() -> None:  # each thread touches its own pages first, so that they lie on its memory node
        own.a, own.b, own.c = (numpy.full(count, 1.0, numpy.float32) for _ in range(3))

    def timed(kernel: Callable[[], object]) -> tuple[float, float]:
        # so each of the threads has one; numpy lets go of the interpreter lock in its loops
        barrier.wait(timeout=60)
        start = time.perf_counter()
        kernel()
        return start, time.perf_counter()

    kernels: tuple[tuple[int, Callable[[], object]], ...] = (
        (2, lambda: numpy.copyto(own.b, own.a)),
        (3, lambda: numpy.add(own.a, own.b, out=own.c)),
        (3, lambda: numpy.add(own.b, own.a, out=own.b)),
    )
    best, rounds = 0.0, 0
    with ThreadPoolExecutor(threads, initializer=allocate) as pool:
        list(pool.map(timed, [kernels[0][1]] * threads))  # the arrays are made
        deadline = time.perf_counter() + seconds
        while rounds < 3 or time.perf_counter() < deadline:
            for arrays, kernel in kernels:
                spans = list(pool.map(timed, [kernel] * threads))
                took = max(end for _, end in spans) - min(start for start, _ in spans)
                best = max(best, arrays * 4 * count * threads / took)
            rounds += 1
    return best


# One variable per library that numpy or torch may be built on, or that makes threads beside them; setting them all
# costs nothing.
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
)


def thread_environment(threads: int) -> dict[str, str]:
    """Return the environment in which a fresh process computes with `threads` threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


@dataclass(frozen=True)
class Rates:
    """The rates that a number of threads reached, in bytes/s and FLOP/s.

    `bandwidth` is None where it cannot be measured, and `method` says why.
    """

    bandwidth: float | None
    flops: float
    method: str


def measure_peaks(
    machine: Machine, log: Path, tick: Callable[[float], None] | None = None
) -> tuple[Peaks | None, Fact | None]:
    """Measure the machine's peaks on one core and on all, or return those kept; else None and the reason."""
    if (kept := kept_peaks(machine)) is not None:
        return kept, None
    measured: list[Rates] = []
    quiet, begin = True, time.monotonic()
    for threads in sorted({1, machine.cores}):
        argv = peaks_argv(threads, SECONDS)
        try:
            left = max(0.1, DEADLINE - (time.monotonic() - begin))
            outcome = process.run(argv, env=peaks_environment(threads), log=log, timeout=left, tick=tick)
            if outcome.timed_out:
                return None, Fact.of("peaks-took-long", seconds=DEADLINE)
            measured.append(read_rates(outcome.output_tail))
        except ProfkitError as error:
            return None, Fact.of("peaks-not-measured", said=error.message)
        queued = outcome.usage[-1][2] if outcome.usage else DEADLINE
        quiet = quiet and queued < QUEUED * threads * outcome.seconds
    single, all_cores = measured[0], measured[-1]
    method = "; ".join(rates.method for rates in measured)
    peaks = Peaks(single.bandwidth, all_cores.bandwidth, single.flops, all_cores.flops, machine.cores, method)
    keep_peaks(machine, peaks, KEPT_SECONDS if quiet else BUSY_SECONDS)
    return peaks, None


def measure_here(seconds: float, threads: int) -> Rates:
    """Measure in this process for about `seconds`, half each for bandwidth and arithmetic (float32 matrices).

    The matrix library must already be limited to `threads` (`peaks_environment`). Raises ImportError without
    numpy.
    """
    import numpy  # noqa: F401

    bandwidth: float | None = None
    try:
        size = array_bytes(reachable_cache(read_machine(), threads), available_memory())
        bandwidth = measure_bandwidth(seconds / 2, threads, size)
        bandwidth_method = (
            f"bandwidth by copy, add and update of arrays of {size // MIB} MiB (STREAM's bytes)"
        )
    except (MachineError, MemoryError) as error:
        bandwidth_method = f"no bandwidth: {error or 'out of memory'}"
    method = f"numpy on {threads} thread(s): {bandwidth_method}, arithmetic by products of float32 matrices"
    return Rates(bandwidth, _measure_flops(seconds / 2), method)


def peaks_argv(threads: int, seconds: float) -> tuple[str, ...]:
    """Return the command that measures with `threads` threads and prints JSON; run it with `peaks_environment`."""
    return (sys.executable, "-m", "profkit.hardware.peaks", str(threads), f"{seconds:g}")


def peaks_environment(threads: int) -> dict[str, str]:
    """Return the environment for `peaks_argv`: the threads, and a module path with this very profkit first."""
    here = str(Path(__file__).resolve().parents[2])
    inherited = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {
        **thread_environment(threads),
        "PYTHONPATH": os.pathsep.join([here, *inherited]),
        "PYTHONSAFEPATH": "1",  # a random.py in the caller's folder is not ours to import (Python >= 3.11)
    }


def read_rates(text: str) -> Rates:
    """Read what the child process printed, with or without warnings of its libraries around it.

    Raises MachineError with its last line where it measured nothing: numpy cannot be imported, or it was ended.
    """
    lines = text.strip().splitlines() or ["it printed nothing"]
    line = next((line for line in lines if line.startswith('{"bandwidth"')), "")
    try:
        return from_plain_data(Rates, json.loads(line), "the measured peaks")
    except (ValueError, ProfkitError) as error:
        raise MachineError(lines[-1][-200:]) from error


def reachable_cache(machine: Machine, threads: int) -> int:
    """Return the bytes of last-level cache that `threads` threads reach together: one cache per group of cores."""
    if not machine.caches:
        return 0
    last = data_caches(machine)[-1]
    return last.size * math.ceil(min(threads, machine.cores) / max(1, last.shared))


def _measure_flops(seconds: float) -> float:
    """Return the best FLOP/s of a product of n x n matrices.

    Several sizes take turns: a large one wins on a quiet machine, and on a busy machine a small one, which fits
    between two time slices of another process.
    """
    import numpy

    best, calls = 0.0, 0
    deadline = time.perf_counter() + seconds
    for size in MATRIX_SIZES:
        left = numpy.full((size, size), 0.5, numpy.float32)
        right, out = left.copy(), numpy.empty_like(left)
        numpy.matmul(left, right, out=out)  # the library starts its threads and picks its kernel
        share = time.perf_counter() + max(0.0, deadline - time.perf_counter()) / 2
        while calls < 3 or time.perf_counter() < share:
            start = time.perf_counter()
            numpy.matmul(left, right, out=out)
            spent = max(time.perf_counter() - start, 1e-9)
            best = max(best, 2.0 * size**3 / spent)
            calls += 1
        if spent * 16 > deadline - time.perf_counter():
            break  # twice the size takes eight times as long
    return best


# ------------------------------------------------------------ kept for a day

# In the user's cache folder, for one start of one machine (Linux' boot id) and one numpy: measuring takes seconds.

KEPT_SECONDS = 86_400.0
BUSY_SECONDS = 600.0  # where others used the machine: runs close together are held against one limit
FILE_NAME = "peaks.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def kept_peaks(machine: Machine) -> Peaks | None:
    """Return the peaks measured here in the last 24 hours (10 minutes on a busy machine); None without any."""
    identity, folder = _identity(machine), user_cache("peaks")
    if identity is None or folder is None:
        return None
    try:
        kept = json.loads(read_bounded(folder / FILE_NAME).decode())
        age = time.time() - kept["measured"]
        if kept["machine"] != identity or not 0 <= age < kept["seconds"]:
            return None
        peaks = from_plain_data(Peaks, kept["peaks"], "the kept peaks")
    except (OSError, ValueError, KeyError, TypeError, ProfkitError):
        return None
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(kept["measured"]))
    return replace(peaks, method=f"{peaks.method}; measured {when}")


def keep_peaks(machine: Machine, peaks: Peaks, seconds: float) -> None:
    """Keep the peaks for the runs of the next `seconds`, in the user's cache folder where that is possible."""
    identity, folder = _identity(machine), user_cache("peaks")
    if identity is None or folder is None or None in (peaks.bandwidth_all, peaks.flops_f32_all):
        return
    document = {
        "machine": identity,
        "measured": time.time(),
        "seconds": seconds,
        "peaks": asdict(peaks),
    }
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / FILE_NAME, [json.dumps(document)])


def _identity(machine: Machine) -> str | None:
    """Return what must be the same for kept peaks to hold; None where the boot or numpy is not known."""
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
        numpy = metadata.version("numpy")
    except (OSError, ValueError, metadata.PackageNotFoundError):
        return None
    plain = json.dumps([machine.cpu, machine.cores, machine.governor, to_plain_data(machine.caches)])
    return f"{boot} {numpy} {sys.executable} {plain}"


if __name__ == "__main__":
    _, count, length = sys.argv
    print(json.dumps(asdict(measure_here(float(length), int(count)))))
