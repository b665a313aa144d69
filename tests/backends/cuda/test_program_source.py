"""Lines of a program's own source that call the CUDA API, where a call can be only that line's."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.backends.cuda.program_source import with_definitions
from profkit.core.types import GpuTrace, HostCalls, Kernel, KernelTime, Transfer, Workload

HEAD = "__global__ void work(float* x) { x[threadIdx.x] += 1; }\n"
TO, BACK = "host to device", "device to host"


def lines_of(body: str, folder: Path, **calls: int) -> list[tuple[int, int, tuple[str, ...]]]:
    """Line, waits and kinds of transfers, of a program whose trace has so many calls of each function."""
    source = folder / "a.cu"
    source.write_text(f"{HEAD}int main() {{\n{body}\n}}\n")
    kernel = KernelTime(Kernel("work(float *)", (1, 1, 1), (32, 1, 1)), 5, 1.0)
    trace = GpuTrace(
        "nsys",
        (kernel,),
        api=tuple(HostCalls(name, count, 0.1) for name, count in calls.items()),
        transfers=(Transfer(TO, 5, 100, 0.1), Transfer(BACK, 5, 100, 0.1)),
    )
    read = with_definitions(trace, Workload("a", ("./a",), str(folder)))
    assert read is not None
    assert read.kernels[0].line == 1
    return [(one.line, one.waits, tuple(moved.kind for moved in one.transfers)) for one in read.lines]


@pytest.mark.parametrize(
    "loop", ["for (int i = 0; i < 9; i++) {", "while (going(1)) {", "do {", "for (;;) if (x) {"]
)
def test_the_copy_within_a_loop_is_the_one_that_was_made_often(loop: str, tmp_path: Path) -> None:
    body = (
        "cudaMemcpy(a, b, 4, cudaMemcpyHostToDevice); // cudaMemcpy(c, d, 4, cudaMemcpyHostToDevice);\n"
        f"{loop}\n  cudaMemcpy(a, b, 4,\n    cudaMemcpyHostToDevice);\n"
        "  cudaMemcpy(b, a, 4, cudaMemcpyDeviceToHost);\n}"
    )
    found = lines_of(body, tmp_path, cudaMemcpy_v3020=10)
    assert found == [(5, 0, (TO,)), (7, 0, (BACK,))]


def test_of_two_copies_in_loops_none_is_named(tmp_path: Path) -> None:
    one = "cudaMemcpy(a, b, 4, cudaMemcpyHostToDevice);"
    assert lines_of(f"for (;;) {{\n{one}\n{one}\n}}", tmp_path, cudaMemcpy=10) == []


def test_a_synchronisation_that_is_the_only_one_waits_as_often_as_it_was_called(tmp_path: Path) -> None:
    body = "work<<<1, 32>>>(x);\ncudaDeviceSynchronize();"
    assert lines_of(body, tmp_path, cudaDeviceSynchronize=70) == [(4, 70, ())]


def test_what_was_never_called_is_no_line(tmp_path: Path) -> None:
    assert lines_of("cudaFree(x);", tmp_path, cudaMalloc=3) == []
