"""How long a Chrome trace of ten million marks takes to read and to render: seconds, peak memory, bytes of the page.

    python tests/performance/ten_million_marks.py [MARKS] [--profile]

The trace is made here, as torch.profiler exports it: a training loop of 250 launches a step, each an operation with
the shapes of its tensors, a call of the runtime and a kernel. A process of its own reads it, so that the peak is its.
Exit code 1 where the page is larger than 500 kB or the peak higher than 4 GiB. Where other programs share the core,
the processor's own time grows as well: a loop that takes 0.3 s on an idle one says by how much. `--profile` prints
where the time goes.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from profkit.core.types import RunDocument, Workload
from profkit.profilers.registry import recognise_format
from profkit.profiling.summarize import judge_document, targets_for
from profkit.reporting.html import page
from profkit.reporting.views import run

MARKS = 10_000_000
MOST_PAGE, MOST_PEAK = 500_000, 4 * 2**30  # bytes
LOOP, IDLE = 5_000_000, 0.3  # steps of a loop, and its seconds on an idle core (Python 3.11, 3 GHz)
STEP = 250  # launches
EACH = 3  # marks of one launch
NAMES = ("aten::mm", "aten::add", "aten::gelu", "aten::mean")
KERNELS = (
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_kernel__5x_cublas",
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, char*>(int, T2, T3)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernel, char*>(int, T2, T3)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float> > >(T3)",
)
HEAD = """{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9,
"computeMinor": 0, "numSms": 132, "totalGlobalMem": 85045608448}], "record_shapes": 1, "traceEvents": [
"""
# Microseconds, as torch writes them; a step takes 2.5 ms.
EVENTS = """{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 7, "tid": 7, "ts": {op:.3f}, "dur": 6.500, "args": \
{{"External id": {n}, "Input Dims": [[{rows}, 512], [512, {columns}]], "Input type": ["float", "float"]}}}},
{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": {call:.3f}, "dur": 3.000, \
"args": {{"External id": {n}, "correlation": {n}}}}},
{{"ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": 7, "ts": {start:.3f}, "dur": {lasts:.3f}, "args": \
{{"External id": {n}, "correlation": {n}, "device": 0, "stream": 7, "registers per thread": 32, "shared memory": 0, \
"grid": [{columns}, 1, 1], "block": [128, 1, 1]}}}},
"""
STEPS = """{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{step}", "pid": 7, "tid": 7, \
"ts": {begin:.3f}, "dur": 2499.000, "args": {{}}}},
"""


def write_trace(path: Path, marks: int) -> None:
    """Write the export: `marks` operations, calls and kernels, and beside them the steps."""
    with path.open("w", encoding="ascii") as file:
        file.write(HEAD)
        for n in range(marks // EACH):
            begin, place = 1_000_000 + 10.0 * n, n % STEP
            if place == 0:
                file.write(STEPS.format(step=n // STEP, begin=begin))
            which = place % len(NAMES)
            file.write(
                EVENTS.format(
                    n=n,
                    name=NAMES[which],
                    kernel=KERNELS[which],
                    op=begin,
                    call=begin + 1.0,
                    start=begin + 5.0,
                    lasts=7.5 + n % 97 / 1000,
                    rows=4096,
                    columns=128 * (1 + place % 16),
                )
            )
        file.write('{"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "python"}}]}\n')


def read_and_render(path: Path) -> dict[str, float]:
    """Return the seconds of the processor that reading and rendering take, the page's bytes and the peak memory."""
    began = time.process_time()
    report = recognise_format(path).read(path)
    read = time.process_time()
    document = RunDocument(
        "train", "cuda", "complete", Workload(("python", "train.py"), "train", "/home/me"),
        "2026-01-01T00:00:00+00:00", trace=report.trace, gpus=report.gpus,
    )  # fmt: skip
    text = page.render(run.view(judge_document(document, targets_for("cuda"))))
    return {
        "read": read - began,
        "render": time.process_time() - read,
        "page": len(text.encode()),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "launches": sum(one.launches for one in report.trace.kernels) if report.trace is not None else 0,
        "said": len(report.warnings),
    }


def main() -> None:
    """Make the trace, and have it read."""
    if "--read" in sys.argv:
        profiler = cProfile.Profile()
        if "--profile" in sys.argv:
            profiler.enable()
        print(json.dumps(read_and_render(Path(sys.argv[-1]))))
        if "--profile" in sys.argv:
            profiler.disable()
            pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(30)
        return
    marks = next((int(word) for word in sys.argv[1:] if word.isdecimal()), MARKS)
    more = ["--profile"] if "--profile" in sys.argv else []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        write_trace(path, marks)
        size = path.stat().st_size
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--read", *more, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        wall = time.perf_counter() - begin
    found = json.loads(done.stdout)
    slower = max(1.0, loop_seconds() / IDLE)
    print(
        f"{marks:,} marks, {size / 1e9:.2f} GB; {found['launches']:,.0f} launches and {found['said']:.0f} notes of it"
    )
    print(
        f"read {found['read']:.1f} s, judged and rendered {found['render']:.1f} s, {wall:.1f} s by the clock"
    )
    print(
        f"on a core that is {slower:.1f} times slower than idle: {found['read'] / slower:.1f} s of an idle one to read"
    )
    print(f"peak {found['peak'] / 2**30:.2f} GiB; page {found['page'] / 1000:.0f} kB")
    sys.exit(found["page"] > MOST_PAGE or found["peak"] > MOST_PEAK)


def loop_seconds() -> float:
    """Return what the loop takes now, while nothing else of this runs."""
    begin, total = time.process_time(), 0
    for number in range(LOOP):
        total += number * number
    return time.process_time() - begin


if __name__ == "__main__":
    main()
