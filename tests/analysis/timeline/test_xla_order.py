"""Kernels of JAX by the schedule of their program: two steps recorded on an H200, and what may be wrong there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from profkit.analysis.timeline.joined_recordings import with_compiled_lines
from profkit.analysis.timeline.xla_order import ProgramSchedule, ScheduledKernel, unrolled, with_schedules
from profkit.backends.cuda.process_rows import lines_of, schedules_of
from profkit.core.types import GpuOperation, GpuTrace, Kernel, KernelTime, Report
from profkit.profilers.registry import recognise_format
from profkit.runtime.passes.host.compilers.xla_schedule import schedule_rows
from tests.conftest import ROOT

DATA = ROOT / "tests" / "data" / "cuda" / "jax"
MODULE = ("XlaModule:#hlo_module=jit_step#",)
PRODUCT = "sm90_xmma_gemm_f32f32_tf32_nt"


def recorded_step() -> tuple[Report, tuple[ProgramSchedule, ...]]:
    text = gzip.decompress((ROOT / "tests" / "data" / "jax" / "step.hlo.txt.gz").read_bytes()).decode()
    rows = schedule_rows([("jit_step", text)], lambda file: file != "step.py")
    path = DATA / "step.trace.json.gz"
    return recognise_format(path).read(path), schedules_of([{"schedule": rows}])


def placed_step() -> GpuTrace:
    report, schedules = recorded_step()
    trace = with_schedules(report.trace, schedules, report.launches)
    assert trace is not None
    return trace


# ------------------------------------------------------------ as they were recorded


def test_each_kernel_of_a_recorded_step_has_its_operation_with_shapes_and_its_line() -> None:
    told = {
        (one.kernel.name.partition("_tilesize")[0], one.kernel.grid[0]): (
            one.operation,
            one.backward_of,
            one.line,
        )
        for one in placed_step().kernels
    }
    product = "sm90_xmma_gemm_f32f32_tf32f32_f32"
    assert told == {
        (f"{product}_nt_n", 128): ("dot_general [2048,4096] x [4096,2048]", "dot_general", 6),
        (f"{product}_nn_n", 66): ("dot_general [4096,2048] x [2048,2048]", None, 6),
        (f"{product}_tn_n", 132): ("dot_general [4096,2048] x [2048,2048]", "dot_general", 6),
        ("loop_add_fusion_2", 16384): ("add_any [4096,2048]", "add_any", 6),
        ("loop_multiply_tanh_fusion", 16384): ("mul, tanh [4096,2048]", None, 6),
        ("input_reduce_fusion_3", 32): ("reduce_sum [4096,2048]", "reduce_sum", 6),
        ("wrapped_subtract_3", 8192): ("sub [2048,2048]", None, 12),
        ("loop_add_fusion_3", 16384): ("add_any [4096,2048]", "add_any", 6),
        ("loop_subtract_fusion", 16): ("sub [2048]", None, 12),
    }


def test_an_operation_of_a_recorded_step_has_its_calls_and_the_least_that_each_needs() -> None:
    work = {(one.operation, one.backward_of, one.kernel[:20]): one for one in placed_step().work}
    product = work["dot_general [2048,4096] x [4096,2048]", "dot_general", "sm90_xmma_gemm_f32f3"]
    assert (product.calls, product.launches, product.type, product.unit) == (48, 48, "tf32", "tensor")
    assert product.flop == 2 * 2048 * 4096 * 2048
    assert product.bytes == 4 * (2 * 4096 * 2048 + 2048 * 2048)  # the library's own memory is none of it
    fusion = work["mul, tanh [4096,2048]", None, "loop_multiply_tanh_f"]
    assert (fusion.calls, fusion.unit, fusion.flop, fusion.bytes) == (36, "memory", None, 3 * 4 * 4096 * 2048)


def test_of_a_recorded_step_of_flax_98_percent_of_the_time_have_a_place_where_57_had_one() -> None:
    told = json.loads(
        gzip.decompress((ROOT / "tests" / "data" / "jax" / "flax.schedule.json.gz").read_bytes())
    )
    ranges = (f"XlaModule:#hlo_module={told['module']}#",)
    kernels = tuple(
        KernelTime(Kernel(name, tuple(grid), tuple(block)), launches, total, ranges=ranges)
        for name, grid, block, launches, total in told["launched"]
    )
    launches = [(number, ns / 1e9) for number, ns in told["launches"]]
    trace, lines = GpuTrace("jax_profiler", kernels), lines_of([told])
    before = with_compiled_lines(trace, lines)
    after = with_compiled_lines(with_schedules(trace, schedules_of([told]), launches), lines)
    assert placed_share(before) == pytest.approx(0.571, abs=1e-3)
    assert placed_share(after) == pytest.approx(0.983, abs=1e-3)
    assert after is not None
    # twelve products of three shapes by one configuration
    first = after.kernels[0]
    assert [(one.line, one.operation, one.launches) for one in first.lines] == [
        (12, "dot_general [2,2048,4096] x [2,4096,512]", 1148),
        (12, "dot_general [2,512,4096] x [2,4096,2048]", 1148),
        (10, "dot_general [8,512,1024] x [8,1024,512]", 1148),
    ]
    seconds = [one.kernel_seconds for one in first.lines]
    assert sum(seconds) == pytest.approx(first.total)
    assert seconds[2] < 0.5 * seconds[0]  # a quarter of the others' FLOP: each part has the time that it took


def placed_share(trace: GpuTrace | None) -> float:
    assert trace is not None
    return sum(one.total for one in trace.kernels if one.file) / sum(one.total for one in trace.kernels)


# ------------------------------------------------------------ made


def test_an_instruction_that_the_trace_names_is_placed_whatever_the_order_was() -> None:
    def of(name: str, runs: str, line: int, *, group: int = 0) -> ScheduledKernel:
        return ScheduledKernel(
            f"f{group}" if group else "", runs, group, f"{name} [4]", file="m.py", line=line, instruction=name
        )

    add, mul = of("add", "xla", 1, group=1), of("mul", "xla", 2, group=2)
    dot, psum, mean = of("dot.1", "cublas", 3), of("psum.1", "nccl", 4), of("psum.2", "nccl", 5)
    program = unrolled("jit_step", [(one, 0, 1) for one in (add, psum, dot, mul, mean)])
    assert program is not None
    kernels = tuple(
        KernelTime(
            Kernel(name, (8,), (32,), instruction=f"jit_step/{told}" if told else None), 3, 0.3, ranges=MODULE
        )
        for name, told in (
            ("f1", None),
            (PRODUCT, None),
            ("f2", None),
            ("ncclDevKernel_AllReduce", "psum.1"),
            ("ncclDevKernel_AllReduce", "psum.2"),
        )
    )
    # the first collective ends after the second began: on a stream of its own
    launches = [(number, 0.1) for _ in range(3) for number in (0, 1, 2, 4, 3)]
    trace = with_schedules(GpuTrace("jax_profiler", kernels), (program,), launches)
    assert trace is not None
    assert [(one.operation, one.line, one.operation_launches) for one in trace.kernels] == [
        ("add [4]", 1, 3),
        ("dot.1 [4]", 3, 3),
        ("mul [4]", 2, 3),
        ("psum.1 [4]", 4, 3),
        ("psum.2 [4]", 5, 3),
    ]
    # Of two programs of one name, in which the name is another instruction's, it is neither's.
    other = replace(program, kernels=tuple(replace(one, line=9) for one in program.kernels))
    trace = with_schedules(GpuTrace("jax_profiler", kernels[3:]), (program, other), [(0, 0.1), (1, 0.1)])
    assert trace is not None
    assert [one.line for one in trace.kernels] == [None, None]


def fusion(name: str, line: int, group: int | None = None) -> ScheduledKernel:
    return ScheduledKernel(
        name,
        "xla",
        group if group is not None else line,
        f"op{line} [8]",
        file="a.py",
        line=line,
        function="step",
    )


def product(line: int, rows: int = 4, runs: str = "cublas") -> ScheduledKernel:
    shapes = f"dot_general [{rows},8] x [8,2]"
    work = {"type": "tf32", "unit": "tensor", "flop": 32.0 * rows, "bytes": 64.0}
    return ScheduledKernel("", runs, 0, shapes, file="a.py", line=line, function="step", **work)  # type: ignore[arg-type]


ONE = (
    fusion("loop_a_fusion", 1),
    product(2),
    fusion("loop_b_fusion", 3),
    product(4),
    product(5),
    fusion("fusion_9", 6),
)
NAMES = ("loop_a_fusion", PRODUCT, "loop_b_fusion", f"{PRODUCT}2", f"{PRODUCT}3", "fusion_9")


def traced(names: Sequence[str], launched: Sequence[str], *more: ProgramSchedule) -> dict[str, KernelTime]:
    """The kernels, by name, of a trace with these launches of `jit_step`, once they are held against the schedules."""
    kernels = tuple(
        KernelTime(Kernel(name, (1,), (32,)), launched.count(name), 1.0 * launched.count(name), ranges=MODULE)
        for name in names
    )
    trace = with_schedules(
        GpuTrace("jax_profiler", kernels), more, [(names.index(one), 1.0) for one in launched]
    )
    assert trace is not None
    return {one.kernel.name: one for one in trace.kernels}


def lines_by(names: Sequence[str], launched: Sequence[str], *more: ProgramSchedule) -> dict[str, int | None]:
    return {name: one.line for name, one in traced(names, launched, *more).items()}


def test_what_a_library_launches_between_two_fusions_is_the_product_between_them() -> None:
    found = lines_by(NAMES, NAMES * 3, ProgramSchedule("jit_step", ONE))
    assert found == dict(zip(NAMES, range(1, 7), strict=True))


def test_a_step_that_was_already_begun_is_passed_over() -> None:
    found = lines_by(NAMES, [*NAMES[3:], *(NAMES * 2), *NAMES[:2]], ProgramSchedule("jit_step", ONE))
    assert found == dict(zip(NAMES, range(1, 7), strict=True))


def test_where_another_number_of_products_was_launched_nothing_is_said_of_them() -> None:
    launched = [*NAMES[:3], f"{PRODUCT}2", "fusion_9"] * 3
    found = lines_by(NAMES, launched, ProgramSchedule("jit_step", ONE))
    assert (found["loop_a_fusion"], found[PRODUCT], found[f"{PRODUCT}2"]) == (1, 2, None)


def test_in_another_order_fusions_have_their_lines_and_products_none() -> None:
    """Parallel branches of a graph run in any order."""
    launched = [NAMES[2], NAMES[3], NAMES[4], NAMES[0], NAMES[1], NAMES[5]] * 3
    found = lines_by(NAMES, launched, ProgramSchedule("jit_step", ONE))
    assert found == dict(zip(NAMES, (1, None, 3, None, None, 6), strict=True))


def test_in_any_order_a_product_has_the_line_at_which_all_are() -> None:
    program = (fusion("loop_a_fusion", 1), product(2), fusion("loop_b_fusion", 3), product(2, rows=16))
    names = ("loop_a_fusion", PRODUCT, "loop_b_fusion")
    found = traced(
        names, ["loop_b_fusion", "loop_a_fusion", PRODUCT, PRODUCT], ProgramSchedule("jit_step", program)
    )
    assert (found[PRODUCT].line, found[PRODUCT].operation, found[PRODUCT].flops) == (2, "dot_general", None)


def test_what_adds_up_the_parts_of_a_product_is_of_it_and_no_call_of_its_own() -> None:
    names = ("loop_a_fusion", PRODUCT, "cublasLt::splitKreduce_kernel", "fusion_9")
    program = ProgramSchedule("jit_step", (ONE[0], ONE[1], ONE[5]))
    kernels = tuple(KernelTime(Kernel(name, (1,), (32,)), 3, 3.0, ranges=MODULE) for name in names)
    launches = [(number, 1.0) for number in range(4)] * 3
    trace = with_schedules(GpuTrace("jax_profiler", kernels), [program], launches)
    assert trace is not None
    of_product = next(one for one in trace.work if one.unit == "tensor")
    assert (of_product.calls, of_product.launches, of_product.seconds, of_product.kernel) == (
        3,
        6,
        6.0,
        PRODUCT,
    )
    assert trace.kernels[2].line == 2


def test_fusions_that_compute_the_same_are_known_by_the_name_of_one() -> None:
    program = (fusion("f_fusion_1", 1, group=7), fusion("g_fusion", 2), fusion("f_fusion", 3, group=7))
    names = ("f_fusion", "g_fusion")
    found = traced(names, ["f_fusion", "g_fusion", "f_fusion"] * 4, ProgramSchedule("jit_step", program))
    assert [(one.line, one.launches) for one in found["f_fusion"].lines] == [(1, 4), (3, 4)]


def test_a_fusion_that_launches_no_kernel_is_not_waited_for() -> None:
    program = (*ONE[:1], fusion("copy_fusion", 30), *ONE[1:])
    assert lines_by(NAMES, NAMES * 2, ProgramSchedule("jit_step", program))[PRODUCT] == 2


def test_of_a_schedule_that_repeats_itself_only_what_all_turns_agree_on_is_said() -> None:
    half = (fusion("f_fusion", 1), product(2))
    other = (fusion("f_fusion", 1), product(9))
    names = ("f_fusion", PRODUCT)
    alike = ProgramSchedule("jit_step", half * 2)
    differing = ProgramSchedule("jit_step", half + other)
    elsewhere = ProgramSchedule("jit_step", (*half, fusion("f_fusion_1", 9, group=1), product(2)))
    assert lines_by(names, names * 6, alike) == {"f_fusion": 1, PRODUCT: 2}
    assert lines_by(names, names * 6, differing) == {"f_fusion": 1, PRODUCT: None}
    assert lines_by(names, names * 6, elsewhere) == {"f_fusion": None, PRODUCT: 2}


def test_of_two_programs_of_one_name_what_differs_is_not_said() -> None:
    """A function that is compiled again for another size."""
    small = ProgramSchedule("jit_step", (ONE[0], product(2, rows=4)))
    large = ProgramSchedule("jit_step", (ONE[0], product(2, rows=64)))
    moved = ProgramSchedule("jit_step", (ONE[0], product(8, rows=4)))
    names = ("loop_a_fusion", PRODUCT)
    found = traced(names, names * 4, small, large)
    assert (found[PRODUCT].line, found[PRODUCT].operation) == (2, "dot_general")
    assert lines_by(names, names * 4, small, moved)[PRODUCT] is None


def test_a_program_that_has_none_of_the_kernels_is_no_candidate() -> None:
    other = ProgramSchedule("jit_step", (fusion("loop_other_fusion", 40), product(41)))
    assert lines_by(NAMES, NAMES * 2, ProgramSchedule("jit_step", ONE), other)[PRODUCT] == 2


def test_beside_calls_of_which_nobody_knows_what_they_launch_products_have_no_line() -> None:
    program = ProgramSchedule("jit_step", (ONE[0], product(2), ScheduledKernel("", "?"), ONE[5]))
    names = ("loop_a_fusion", PRODUCT, "fusion_9")
    assert lines_by(names, names * 3, program) == {"loop_a_fusion": 1, PRODUCT: None, "fusion_9": 6}


def test_a_trace_of_another_program_stays_as_it_is() -> None:
    kernels = tuple(KernelTime(Kernel(name, (1,), (32,)), 3, 3.0, ranges=MODULE) for name in NAMES)
    trace = GpuTrace("jax_profiler", kernels, order=tuple(range(6)) * 3)
    assert with_schedules(trace, [ProgramSchedule("jit_other", ONE)]) == trace
    assert with_schedules(trace, []) == trace
    assert with_schedules(None, [ProgramSchedule("jit_step", ONE)]) is None


def test_what_another_instrument_told_of_operations_stays() -> None:
    kernels = (KernelTime(Kernel(NAMES[0], (1,), (32,)), 3, 3.0, ranges=MODULE, operation="aten::add"),)
    work = (GpuOperation("aten::add", 3, 3, 3.0, NAMES[0]),)
    trace = GpuTrace("nsys", kernels, order=(0, 0, 0), work=work)
    assert with_schedules(trace, [ProgramSchedule("jit_step", ONE)]) is trace


@pytest.mark.parametrize("order", [(0, 1, 3, 1, 2), (0, 1, 3, 2, 1, 2)])
def test_a_configuration_that_another_program_launches_as_well_has_no_line_of_this_one(
    order: tuple[int, ...],
) -> None:
    kernels = tuple(
        KernelTime(Kernel(name, (1,), (32,)), 3, 3.0, ranges=ranges)
        for name, ranges in (
            (NAMES[0], MODULE),
            (PRODUCT, (*MODULE, "XlaModule:#hlo_module=jit_other#")),
            ("wrapped_x", ("XlaModule:#hlo_module=jit_other#",)),
            (NAMES[2], MODULE),
        )
    )
    launches = [(number, 1.0) for number in order] * 3
    trace = with_schedules(
        GpuTrace("jax_profiler", kernels),
        [ProgramSchedule("jit_step", (ONE[0], product(2), ONE[2]))],
        launches,
    )
    assert trace is not None
    assert [one.line for one in trace.kernels] == [1, None, None, 3]


# ------------------------------------------------------------ loops, and rows that any program may have written


def test_a_loop_is_turned_as_often_as_its_module_says() -> None:
    program = unrolled("jit_step", [(ONE[0], 0, 1), (ONE[1], 1, 3), (ONE[2], 1, 3), (ONE[5], 0, 1)])
    assert program is not None
    names = ("loop_a_fusion", PRODUCT, "loop_b_fusion", "fusion_9")
    launched = [names[0], *names[1:3] * 3, names[3]]
    assert lines_by(names, launched * 2, program) == dict(zip(names, (1, 2, 3, 6), strict=True))


def test_a_loop_that_turns_nobody_knows_how_often_leaves_what_is_around_it() -> None:
    program = unrolled(
        "jit_step", [(ONE[0], 0, 1), (ONE[1], 0, 1), (ONE[2], 0, 1), (ONE[3], 1, 0), (ONE[5], 1, 0)]
    )
    assert program is not None
    names = ("loop_a_fusion", PRODUCT, "loop_b_fusion", f"{PRODUCT}2", "fusion_9")
    launched = [*names[:3], *names[3:], *names[3:]]
    assert lines_by(names, launched * 2, program) == dict(zip(names, (1, 2, 3, None, 6), strict=True))


ROW = [
    "jit_step",
    1,
    0,
    1,
    "a.py",
    3,
    "step",
    "f_fusion",
    "xla",
    1,
    "mul [8]",
    0,
    "fp32",
    "memory",
    "",
    64.0,
    0,
    1,
]


def changed(place: int, value: object) -> list[object]:
    return [*ROW[:place], value, *ROW[place + 1 :]]


def test_a_row_is_read_as_it_was_written() -> None:
    (program,) = schedules_of([{"schedule": [ROW]}])
    assert program.kernels == (
        ScheduledKernel(
            "f_fusion", "xla", 1, "mul [8]", False, "fp32", "memory", None, 64.0, "a.py", 3, "step"
        ),
    )


@pytest.mark.parametrize(
    "rows",
    [
        [changed(3, 2)],  # one is lost
        [changed(2, 1)],
        [ROW, ROW],
        [changed(2, None)],
        [changed(14, float("nan"))],
        [changed(15, -1)],
        [changed(14, "much")],
        [[*changed(16, 1)[:-1], 1 << 40]],
        [ROW[:-1]],
        "rows",
        [None, 7],
    ],
)
def test_of_a_program_of_which_a_part_is_lost_or_odd_there_is_no_schedule(rows: object) -> None:
    assert schedules_of([{"schedule": rows}]) == ()


def test_an_odd_unit_or_type_is_not_known_and_a_long_name_is_cut() -> None:
    row = changed(13, "warp drive")
    row[10] = "x" * 100_000
    (program,) = schedules_of([{"schedule": [row]}])
    assert (program.kernels[0].unit, len(program.kernels[0].operation)) == (None, 200)


def test_many_groups_are_told_apart() -> None:
    """More than there are letters below the surrogates, which no text may hold: the numbers are a file's."""
    program = tuple(replace(fusion(f"f{n}_fusion", n + 1), group=(1 << 61) + n) for n in range(300))
    names = [one.kernel for one in program]
    found = lines_by(names, names * 2, ProgramSchedule("jit_step", program))
    assert list(found.values()) == list(range(1, 301))
