"""Lines of a program's own source that call the CUDA API, where a call can be only that line's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest

from profkit.backends.cuda.program_source import line_table_definitions, with_definitions
from profkit.core.types import (
    ApiCall,
    GpuLine,
    GpuTrace,
    Kernel,
    KernelInstruction,
    KernelTime,
    Scope,
    Transfer,
    Workload,
)

HEAD = "__global__ void work(float* x) { x[threadIdx.x] += 1; }\n"
TO, BACK = "host to device", "device to host"


MOVED = (Transfer(TO, 5, 100, 0.1), Transfer(BACK, 5, 100, 0.1))


def lines_of(body: str, folder: Path, **calls: int) -> list[tuple[int, int, tuple[str, ...]]]:
    """Line, waits and kinds of transfers, of a program whose trace has so many calls of each function."""
    found = calling_lines(body, folder, MOVED, **calls)
    return [(one.line, one.waits, tuple(moved.kind for moved in one.transfers)) for one in found]


def calling_lines(body: str, folder: Path, moved: tuple[Transfer, ...], **calls: int) -> list[GpuLine]:
    """The lines that call the API."""
    source = folder / "a.cu"
    source.write_text(f"{HEAD}int main() {{\n{body}\n}}\n")
    kernel = KernelTime(Kernel("work(float *)", (1, 1, 1), (32, 1, 1)), 5, 1.0)
    trace = GpuTrace(
        "nsys",
        (kernel,),
        api=tuple(ApiCall(name, count, 0.1) for name, count in calls.items()),
        transfers=moved,
    )
    read = with_definitions(trace, Workload(("./a",), "a", str(folder)))
    assert read is not None
    assert read.kernels[0].line == 1
    return [one for one in read.lines if not one.launches]


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
    assert found == [(5, 0, (TO,)), (7, 5, (BACK,))]  # of 20 bytes each: the host waits for them


@pytest.mark.thorough
@pytest.mark.parametrize(
    "part", ["work<", "/* ", '"\\\\', "cudaFree();", "__device__ a ", "__global__ work b\n", "do "]
)
def test_a_source_of_a_mebibyte_is_read_in_seconds_of_a_processor(part: str, tmp_path: Path) -> None:
    begin = process_time()
    lines_of(f'printf("\\n"); /* \n*/\n{part * (1_000_000 // len(part))}', tmp_path, cudaFree=10)
    assert process_time() - begin < 5.0


ONE = "cudaMemcpy(a, b, 4, cudaMemcpyHostToDevice);\n"


@pytest.mark.parametrize("between", ["}\nfor (;;) {\n", "if (x)\n", "return;\n", "for (;;)\n"])
def test_of_two_copies_that_may_be_made_differently_often_none_is_named(between: str, tmp_path: Path) -> None:
    assert lines_of(f"for (;;) {{\n{ONE}{between}{ONE}}}", tmp_path, cudaMemcpy=10) == []


def test_copies_that_stand_in_one_block_are_made_as_often_each(tmp_path: Path) -> None:
    """Three fields, one after the other."""
    moved = (Transfer(TO, 810, 810 << 24, 0.9, (Transfer("pageable", 810, 810 << 24, 0.9),)),)
    found = calling_lines(f"for (;;) {{\n{3 * ONE}}}", tmp_path, moved, cudaMemcpy=810)
    assert [(one.line, one.calls) for one in found] == [(4, 270), (5, 270), (6, 270)]
    third = Transfer(TO, 270, 270 << 24, pytest.approx(0.3))
    assert found[0].transfers == (replace(third, memory=(replace(third, kind="pageable"),)),)


@pytest.mark.parametrize(("size", "waits"), [(4, 12), (1 << 24, 0)])
def test_a_copy_of_a_number_to_the_host_waits_and_one_of_a_field_is_a_copy(
    size: int, waits: int, tmp_path: Path
) -> None:
    body = "for (;;) cudaMemcpy(&top, best, n, cudaMemcpyDeviceToHost);"
    found = calling_lines(body, tmp_path, (Transfer(BACK, 12, 12 * size, 1e-4),), cudaMemcpy=12)
    assert [one.waits for one in found] == [waits]


def test_of_several_that_pin_in_loops_the_first_stands_for_all(tmp_path: Path) -> None:
    body = "cudaHostAlloc(a, 9, 0);\nfor (;;) {\ncudaHostAlloc(a, 9, 0);\ncudaHostAlloc(b, 9, 0);\n}"
    assert lines_of(body, tmp_path, cudaHostAlloc=90) == [(5, 0, ())]


@pytest.mark.parametrize(("more", "lines"), [("", [5]), ("  cudaMemsetAsync(b, 0, 4, s);\n", [])])
def test_the_only_memset_in_a_loop_is_named(more: str, lines: list[int], tmp_path: Path) -> None:
    body = f"cudaMemset(c, 0, 4);\nfor (;;) {{\n  cudaMemsetAsync(a, 0, 4);\n{more}}}"
    assert [line for line, *_ in lines_of(body, tmp_path, cudaMemsetAsync=240)] == lines


def test_a_synchronisation_that_is_the_only_one_waits_as_often_as_it_was_called(tmp_path: Path) -> None:
    body = "work<<<1, 32>>>(x);\ncudaDeviceSynchronize();"
    assert lines_of(body, tmp_path, cudaDeviceSynchronize=70) == [(4, 70, ())]


@pytest.mark.parametrize(("again", "lines"), [("", [(3, 5)]), ("work<<<2, 32>>>(y);", [])])
def test_a_kernel_that_one_line_launches_is_launched_there(
    again: str, lines: list[tuple[int, int]], tmp_path: Path
) -> None:
    (tmp_path / "a.cu").write_text(f"{HEAD}int main() {{\nwork<<<1, 32>>>(x); {again}\n}}\n")
    kernel = KernelTime(Kernel("work(float *)", (1, 1, 1), (32, 1, 1)), 5, 1.0)
    read = with_definitions(GpuTrace("nsys", (kernel,)), Workload(("./a",), "a", str(tmp_path)))
    assert read is not None
    assert [(one.line, one.launches) for one in read.lines] == lines


def test_what_was_never_called_is_no_line(tmp_path: Path) -> None:
    assert lines_of("cudaFree(x);", tmp_path, cudaMalloc=3) == []


def read_as(
    program: str, folder: Path, kernel: str = "work(float *)"
) -> tuple[int | None, tuple[GpuLine, ...]]:
    """Line of the kernel, and lines of the program, that is `./a` or a program of Python."""
    time = KernelTime(Kernel(kernel, (1, 1, 1), (32, 1, 1)), 5, 1.0)
    trace = GpuTrace("nsys", (time,), api=(ApiCall("cudaDeviceSynchronize", 9, 0.1),))
    read = with_definitions(trace, Workload(tuple(program.split()), "a", str(folder)))
    assert read is not None
    return read.kernels[0].line, read.lines


@pytest.mark.parametrize(
    ("program", "script", "line", "lines"),
    [
        ("./a", "", 1, [2]),
        ("./b", "", None, []),  # whose sources define no kernel that ran
        ("python a.py", "import jax", None, []),
        ("python a.py", "load('a', ['a.cu'])", 1, []),
    ],
)
def test_only_sources_of_the_program_itself_are_read(
    program: str, script: str, line: int | None, lines: list[int], tmp_path: Path
) -> None:
    (tmp_path / "a.cu").write_text(f"{HEAD}int main() {{ cudaDeviceSynchronize(); }}\n")
    (tmp_path / "a.py").write_text(script)
    found = read_as(program, tmp_path, "work(float *)" if program != "./b" else "other(float *)")
    assert (found[0], [one.line for one in found[1]]) == (line, lines)


STENCIL = "__global__ void work(float* x) {\n}\n"


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"b.cu": STENCIL}, ("b.cu", 1)),
        ({"b.cu": f"__global__ void work(float*);\n{STENCIL}"}, ("b.cu", 2)),  # declared before
        ({"b.cu": f"// __global__ void work(float*) {{}}\n{STENCIL}"}, ("b.cu", 2)),
        ({"b.cu": f"{STENCIL}__global__ void work(int* x) {{\n}}\n"}, None),  # an overload
        ({"b.cu": STENCIL, "c.cu": STENCIL}, None),
        ({"a.cu": STENCIL, "c.cu": f"\n{STENCIL}"}, ("a.cu", 1)),  # the program is `a`
        ({"a.cu": STENCIL * 2, "c.cu": STENCIL}, None),
    ],
)
def test_a_kernel_of_cuda_is_where_the_only_definition_beside_the_program_is(
    files: dict[str, str], place: tuple[str, int] | None, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    for name, text in files.items():
        (tmp_path / "bin" / name).write_text(text)
    kernel = KernelTime(Kernel("work(float *)", (1, 1, 1), (32, 1, 1)), 5, 1.0)
    read = with_definitions(GpuTrace("nsys", (kernel,)), Workload(("bin/a",), "a", str(tmp_path)))
    assert read is not None
    found = read.kernels[0]
    assert ((Path(found.file).name, found.line) if found.file else None) == place


def test_a_line_table_leads_to_the_file_that_defines_the_kernel(tmp_path: Path) -> None:
    source = tmp_path / "elsewhere.cu"
    source.write_text(f"\n{STENCIL}")
    scope = Scope("kernel", "work(float *)", "1x1x1 of 32x1x1")
    lines = line_table_definitions([KernelInstruction(scope, 16, None, str(source), 3, 1.0, 0.0, 0.0)])
    assert lines == (("work", "", GpuLine(str(source), 2, "work")),)
    gone = line_table_definitions(
        [KernelInstruction(scope, 16, None, str(tmp_path / "gone.cu"), 3, 1.0, 0.0, 0.0)]
    )
    assert gone == ()


def test_a_triton_kernel_is_the_function_that_is_compiled_and_not_its_namesake(tmp_path: Path) -> None:
    text = "import triton\ndef work(x):\n    pass\n@triton.jit\ndef work(x):\n    pass\n"
    (tmp_path / "a.py").write_text(text)
    assert read_as("python a.py", tmp_path, "work")[0] == 5


@pytest.mark.parametrize(("before", "line"), [("", 5), ("@cuda.jit\ndef work(b):\n    pass\n", None)])
def test_the_only_kernel_of_numba_with_that_name_is_where_it_is_defined(
    before: str, line: int | None, tmp_path: Path
) -> None:
    text = "def work(a):\n    pass\n@cuda.jit('void(f4[:])',\n  fastmath=True)\ndef work(a):\n    pass\n"
    (tmp_path / "a.py").write_text(before + text)
    found = read_as("python a.py", tmp_path, "__main__::work[abi:v1,cw51cX_3d](Array<float, (int)1, C>)")
    assert found[0] == line


@pytest.mark.parametrize(
    ("body", "line"),
    [("float* w = new float[9];", 3), ("grow(x);", 1), ("x = new (x) float; // malloc(9)", None)],
)
def test_a_kernel_that_takes_memory_from_the_heap(body: str, line: int | None, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(
        "__device__ float* grow(float* x) { return (float*)malloc(9); }\n"
        f"__global__ void __launch_bounds__(32) work(float* x) {{\n  {body}\n}}\nvoid* f() {{ return malloc(1); }}\n"
    )
    found = [one.line for one in read_as("./a", tmp_path)[1] if one.call in ("malloc", "new")]
    assert found == ([line] if line else [])
