"""How long a trace of 500,000 launches takes to read, to judge and to render, in seconds of the thread that does it.

    python tests/performance/long_trace.py [LAUNCHES] [--profile]

The trace is made here, in the form of nsys' SQLite export: a training loop of 250 kernels a step, each launch with its
call, and of the first 36,000 launches the line and the operation, as many ranges as a GPT-2 has. Exit code 1 where it
is 5 s or more. Where other programs share the core, the processor's own time grows as well: a loop that takes 0.3 s
on an idle one says by how much, and the limit is held against what would be left. `--profile` prints where time goes.
"""

from __future__ import annotations

import cProfile
import pstats
import sqlite3
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from profkit.core.types import RunDocument, Workload
from profkit.profilers.registry import recognise_format
from profkit.profiling.summarize import judge_document, targets_for
from profkit.reporting import markdown, terminal
from profkit.reporting.html import page
from profkit.reporting.views import run

MAX_SECONDS = 5.0  # seconds
LOOP, IDLE = 5_000_000, 0.3  # steps of a loop, and its seconds on an idle core (Python 3.11, 3 GHz)
STEP = 250  # kernels
RECORDED = (
    36_000  # launches with line and operation: profkit ends to write them once a program repeats itself
)
EVERY, LASTS = 9_000, 7_500  # ns
PROCESS = 0x0100_0000_0000_0000 | (4242 << 24)
KERNEL_COLUMNS = (
    "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName", "shortName",
    "mangledName", "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
    "dynamicSharedMemory", "graphNodeId",
)  # fmt: skip
NAMES = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, char*>(int, T2, T3)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_kernel__5x_cublas",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float> > >(T3)",
    "void softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>(T2 *, const T1 *, int)",
)
OPERATIONS = (
    "aten::add, op_id = {n}, sizes = [[8, 512, 512], [8, 512, 512], []]",
    "aten::mm, op_id = {n}, sizes = [[4096, 512], [512, {width}]]",
    "aten::mean, op_id = {n}, sizes = [[8, 512, 512]]",
    "aten::_softmax, op_id = {n}, sizes = [[8, 8, 512, 512], [], []]",
)


def write_trace(path: Path, launches: int) -> None:
    """Write the export."""
    with sqlite3.connect(path) as data:
        data.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
        data.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2025.3.2.0')")
        data.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        names = enumerate((*NAMES, "cudaLaunchKernel_v7000"), 1)
        data.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
        data.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({', '.join(KERNEL_COLUMNS)})")
        data.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId, returnValue)"
        )
        data.execute("CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, textId, domainId)")
        marks = ", ".join("?" * len(KERNEL_COLUMNS))
        data.executemany(
            f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({marks})", map(kernel, range(launches))
        )
        data.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, 0)",
            ((n * EVERY, n * EVERY + 3_000, PROCESS + 1, n, len(NAMES) + 1) for n in range(launches)),
        )
        rows = (row for n in range(min(launches, RECORDED)) for row in ranges(n))
        data.executemany(f"INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, {PROCESS + 1}, NULL, 0)", rows)


def kernel(n: int) -> tuple[int, ...]:
    """Return the launch of that number: one of 64 configurations."""
    place = n % STEP
    start, name, grid = n * EVERY + 5_000, place % len(NAMES) + 1, 128 * (1 + place % 16)
    return (
        start,
        start + LASTS + n % 97,
        0,
        1,
        7,
        n,
        PROCESS,
        name,
        name,
        name,
        32,
        grid,
        1,
        1,
        128,
        1,
        1,
        0,
        0,
        0,
    )


def ranges(n: int) -> Iterator[tuple[int, int, str]]:
    """Yield the line that launches, and the operation that it calls."""
    place, begin = n % STEP, n * EVERY - 1_000
    text = OPERATIONS[place % len(OPERATIONS)].format(n=n, width=512 * (1 + place % 16))
    yield begin, begin + 6_000, f"profkit-at /home/me/train.py:{10 + place % 40}:Net.forward"
    yield begin + 200, begin + 5_800, text


def read_and_render(path: Path) -> dict[str, float]:
    """Return the seconds of the thread that each part takes: threads of BLAS that NumPy starts wait busily."""
    marks = [time.thread_time()]
    report = recognise_format(path).read(path)
    marks.append(time.thread_time())
    workload = Workload(("python", "train.py"), "train", "/home/me")
    document = RunDocument(
        "train", "cuda", "complete", workload, "2026-01-01T00:00:00+00:00", trace=report.trace
    )
    document = judge_document(document, targets_for("cuda"))
    marks.append(time.thread_time())
    view = run.view(document)
    shown = terminal.render(view, details=False, color=False)
    for made in (terminal.render(view, color=False), markdown.render(view), page.render(view)):
        assert made
    marks.append(time.thread_time())
    print(shown)
    return dict(zip(("read", "judge", "render"), (b - a for a, b in pairwise(marks)), strict=True))


def main() -> None:
    """Make the trace, and time what is done with it."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.sqlite"
        write_trace(path, numbers[0] if numbers else 500_000)
        profiler = cProfile.Profile()
        if "--profile" in sys.argv:
            profiler.enable()
        begin = time.perf_counter()
        parts = read_and_render(path)
        wall = time.perf_counter() - begin
        if "--profile" in sys.argv:
            profiler.disable()
            pstats.Stats(profiler).sort_stats("tottime").print_stats(30)
    whole, slower = sum(parts.values()), max(1.0, loop_seconds() / IDLE)
    named = ", ".join(f"{name} {spent:.2f} s" for name, spent in parts.items())
    print(f"{named}: {whole:.2f} s, {wall:.2f} s by the clock")
    print(f"on a core that is {slower:.1f} times slower than idle: {whole / slower:.2f} s of an idle one")
    sys.exit(whole / slower >= MAX_SECONDS)


def loop_seconds() -> float:
    """Return what the loop takes now."""
    begin, total = time.process_time(), 0
    for number in range(LOOP):
        total += number * number
    return time.process_time() - begin


if __name__ == "__main__":
    main()
