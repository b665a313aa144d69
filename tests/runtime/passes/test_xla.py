"""The lines of kernels, out of a module as XLA wrote it for an H200, and the trace that takes them."""

import gzip
from pathlib import Path

import pytest

from profkit.analysis.timeline.joined_recordings import with_compiled_lines
from profkit.core.types import GpuLine, GpuTrace, Kernel, KernelTime
from profkit.runtime.passes.host.compilers import copied_arguments, lines_of_module, xla_copies

MODULE = (Path(__file__).parents[2] / "data" / "cuda" / "texts" / "xla_module.hlo.txt").read_text()


def test_a_fusion_and_a_library_call_have_the_line_of_the_program() -> None:
    assert list(lines_of_module(MODULE, lambda _: False)) == [
        ["jax_steps.py", 9, "step", "__cublas"],
        ["jax_steps.py", 9, "step", "triton_softmax_2"],
        ["jax_steps.py", 10, "step", "gemm_fusion_dot_general_3"],
    ]


def test_of_a_packages_lines_the_one_of_the_program_that_calls_it_counts() -> None:
    packaged = MODULE.replace("file_name_id=1 function_name_id=3", "file_name_id=2 function_name_id=3")
    packaged = packaged.replace('1 "jax_steps.py"', '1 "jax_steps.py"\n2 "/site-packages/layers.py"')
    lines = {tuple(row[:3]) for row in lines_of_module(packaged, lambda file: "site-packages" in file)}
    assert lines == {("jax_steps.py", 18, "main")}


def test_what_older_versions_wrote_into_each_instruction_is_read() -> None:
    of_it = 'metadata={op_name="a" source_file="m.py" source_line=4}'
    written = f"ENTRY %main {{\n  ROOT %add.1 = f32[] fusion(%x), {of_it}\n}}"
    assert list(lines_of_module(written, lambda _: False)) == [["m.py", 4, "", "add_1"]]


REMEMBER = Path(__file__).parents[2] / "data" / "jax"


def is_foreign(file: str) -> bool:
    return "site-packages" in file


def test_arguments_that_were_not_donated_are_copied_where_the_program_changes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`copy.5 = f32[4096,32] copy(%memory__next_obs__.1)`: as JAX 0.10.2 compiled it."""
    monkeypatch.setattr(xla_copies, "MIN_BYTES", 100_000)
    text = gzip.decompress((REMEMBER / "remember.hlo.txt.gz").read_bytes()).decode()
    rows = sorted(copied_arguments([("jit_remember", text)], is_foreign), key=str)
    assert rows == [
        ["quad_replay.py", 46, "remember", "jit_remember", "memory", 524_288],
        ["quad_replay.py", 47, "remember", "jit_remember", "memory", 524_288],
        ["quad_replay.py", 48, "remember", "jit_remember", "memory", 131_072],
    ]
    donated = gzip.decompress((REMEMBER / "remember.donated.hlo.txt.gz").read_bytes()).decode()
    assert list(copied_arguments([("jit_remember", donated)], is_foreign)) == []
    assert list(copied_arguments([("jit_step", MODULE)], is_foreign)) == []


WRITES = 'metadata={op_name="jit(f)/dynamic_update_slice" source_file="m.py" source_line=7}'
AS_A_GRAPH = f"""HloModule jit_f

%command_buffer (p: f32[1024,512], p.1: f32[4]) -> f32[1024,512] {{
  %p = f32[1024,512]{{1,0}} parameter(0)
  %p.1 = f32[4]{{0}} parameter(1)
  %copy.1 = f32[1024,512]{{1,0}} copy(%p)
  ROOT %fusion.1 = f32[1024,512]{{1,0}} fusion(%copy.1, %p.1), kind=kLoop, calls=%fused, {WRITES}
}}

ENTRY %main (state.1: f32[1024,512], x.1: f32[4]) -> f32[1024,512] {{
  %state.1 = f32[1024,512]{{1,0}} parameter(0), metadata={{op_name="state"}}
  %x.1 = f32[4]{{0}} parameter(1), metadata={{op_name="x"}}
  ROOT %call = f32[1024,512]{{1,0}} call(%state.1, %x.1), to_apply=%command_buffer
}}
"""


def test_of_what_runs_as_a_graph_the_arguments_are_those_of_the_program() -> None:
    assert list(copied_arguments([("jit_f", AS_A_GRAPH)], is_foreign)) == [
        ["m.py", 7, "", "jit_f", "state", 1 << 21]
    ]
    # What the program made itself, a loop's state say, cannot be donated.
    made = AS_A_GRAPH.replace("call(%state.1,", "call(%made.1,")
    assert list(copied_arguments([("jit_f", made)], is_foreign)) == []
    # What is given back as it was, is copied, too; nothing says where.
    returned = AS_A_GRAPH.replace(
        "fusion(%copy.1, %p.1), kind=kLoop, calls=%fused, " + WRITES, "tuple(%copy.1)"
    )
    assert list(copied_arguments([("jit_f", returned)], is_foreign)) == [
        ["", 0, "", "jit_f", "state", 1 << 21]
    ]


def test_a_collective_has_the_line_that_asks_for_it() -> None:
    of_it = 'metadata={op_name="a" source_file="m.py" source_line=7}'
    written = f"ENTRY %main {{\n  %all-reduce-start.1 = f32[] all-reduce-start(%x), {of_it}\n}}"
    assert list(lines_of_module(written, lambda _: False)) == [["m.py", 7, "", "__nccl"]]


def test_a_kernel_of_a_library_has_the_line_of_that_library_alone() -> None:
    known = [("__cublas", "jit_step", GpuLine("a.py", 9)), ("__nccl", "jit_step", GpuLine("a.py", 12))]
    ranges = ("XlaModule:#hlo_module=jit_step#",)
    names = ("sm90_xmma_gemm_f32f32_nt", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "own_kernel")
    times = tuple(KernelTime(Kernel(name, (1,), (32,)), 2, 0.1, ranges=ranges) for name in names)
    traced = with_compiled_lines(GpuTrace("nsys", times), known)
    assert traced is not None
    assert [one.line for one in traced.kernels] == [9, 12, None]


@pytest.mark.parametrize(("module", "line"), [("jit_step", 9), ("jit_other", 3), ("jit_none", None)])
def test_a_name_of_two_modules_is_told_by_the_one_around_the_launch(module: str, line: int | None) -> None:
    known = [
        ("loop_add_fusion", "jit_step", GpuLine("a.py", 9)),
        ("loop_add_fusion", "jit_other", GpuLine("a.py", 3)),
    ]
    ranges = (f"XlaModule:#hlo_module={module},program_id=0#",)
    time = KernelTime(Kernel("loop_add_fusion", (1, 1, 1), (32, 1, 1)), 2, 0.1, ranges=ranges)
    traced = with_compiled_lines(GpuTrace("nsys", (time,)), known)
    assert traced is not None
    assert traced.kernels[0].line == line
