"""profkit's times on a device against triton.testing.do_bench, in one run.

    python -m tests.performance.gpu_timing [ROUNDS]

Needs a CUDA device, torch and triton. Five kernels from 2 µs to 10 ms,
which memory limits, and a product of matrices, which the power limit does: its clock is lower the longer a tool keeps
the device busy, so that no two tools agree on it. Like is compared with like:

- cold, one call at a time behind a flush of the L2: a sweep's time, do_bench;
- warm: `profkit.benchmark`, which has launches from Python in it where the device waits for them, do_bench_cudagraph.

The tools take turns, `ROUNDS` times; what is compared are medians over the rounds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

Work = Callable[[], object]
ROUNDS = 3


def kernels() -> dict[str, Work]:
    """Name and call; each call is one kernel."""
    import torch

    def elementwise(count: int) -> Work:
        x = torch.randn(count, device="cuda")
        y = torch.empty_like(x)
        return lambda: torch.add(x, 1.0, out=y)

    def gemm(size: int) -> Work:
        a = torch.randn(size, size, device="cuda", dtype=torch.half)
        c = torch.empty_like(a)
        return lambda: torch.mm(a, a, out=c)

    def softmax(rows: int) -> Work:
        x = torch.randn(rows, 4096, device="cuda")
        y = torch.empty_like(x)
        return lambda: torch.softmax(x, 1, out=y)

    return {
        "add 64 Ki floats": elementwise(1 << 16),
        "softmax 1024 x 4096": softmax(1024),
        "add 64 Mi floats": elementwise(1 << 26),
        "softmax 128 Ki x 4096": softmax(1 << 17),
        "add 4 Gi floats": elementwise(1 << 32),
        "gemm 8192 half, power-limited": gemm(8192),
    }


def profkit_cold(work: Work) -> float:
    from profkit.kernels.sweep.device import time_cold
    from profkit.runtime.passes.device_samples import DeviceWatch, open_clock
    from profkit.runtime.region.cuda import driver_in_use

    work()
    driver = driver_in_use()
    assert driver is not None
    with open_clock(driver) as clock:
        found = time_cold(work, clock, DeviceWatch(clock.address()), precision=0.005, max_seconds=5)
    assert not found.remarks, found.remarks
    return median(found.seconds)


def profkit_loop(work: Work) -> float:
    """Seconds of a call, back to back."""
    from profkit.runtime.passes.benchmark import time_function
    from profkit.runtime.passes.timing import TimedCalls

    return median(time_function(TimedCalls(work), precision=0.005, max_seconds=3).seconds)


def do_bench(work: Work) -> float:
    from triton.testing import do_bench as bench

    return float(bench(work, warmup=100, rep=500, return_mode="median")) / 1e3


def do_bench_graph(work: Work) -> float:
    import torch
    from triton.testing import do_bench_cudagraph as bench

    with torch.cuda.stream(torch.cuda.Stream()):
        return float(bench(work, rep=200, return_mode="median")) / 1e3


def main(rounds: int) -> None:
    rows: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for name, work in kernels().items():
            row = rows.setdefault(name, {})
            begin = perf_counter()
            row.setdefault("cold", []).append(profkit_cold(work))
            row.setdefault("spent", []).append(perf_counter() - begin)
            row.setdefault("do_bench", []).append(do_bench(work))
            row.setdefault("loop", []).append(profkit_loop(work))
            row.setdefault("graph", []).append(do_bench_graph(work))
    print(
        f"{'µs':30} cold: profkit do_bench  ratio | loop: profkit do_bench_cudagraph  ratio | s spent on cold"
    )
    for name, row in rows.items():
        at = {key: median(values) * 1e6 for key, values in row.items()}
        print(
            f"{name:30} {at['cold']:13.2f} {at['do_bench']:8.2f} {at['cold'] / at['do_bench']:6.3f}"
            f" | {at['loop']:14.2f} {at['graph']:8.2f}"
            f" {at['loop'] / at['graph']:6.3f} | {median(row['spent']):.2f}"
        )
        for key in ("cold", "do_bench"):
            if len(row.get(key, ())) > 1:
                print(f"    {key} by rounds:", *(f"{value * 1e6:.2f}" for value in row[key]))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS)
