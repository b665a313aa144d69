"""What a program of XLA launches, in order, and what each instruction needs, by the text of its module."""

from __future__ import annotations

import gzip
import time

import pytest

from profkit.runtime.passes.host.compilers.xla_schedule import (
    MAX_INSTRUCTIONS,
    schedule_of_module,
    schedule_rows,
)
from tests.conftest import ROOT

STEP = gzip.decompress((ROOT / "tests/data/jax/step.hlo.txt.gz").read_bytes()).decode()
HEAD = "HloModule jit_step, is_scheduled=true\n\n"
BODY = """%body (p.0: f32[64,32], p.1: f32[64,32]) -> f32[64,32] {
  %p.0 = f32[64,32]{1,0} parameter(0)
  %p.1 = f32[64,32]{1,0} parameter(1)
  ROOT %r = f32[64,32]{1,0} add(%p.0, %p.1), metadata={op_name="jit(step)/jvp()/add"}
}

"""
AT = 'metadata={op_name="jit(step)/add" source_file="m.py" source_line=4}'
FUSION = f"  %add_fusion.1 = f32[64,32]{{1,0}} fusion(%a, %b), kind=kLoop, calls=%body, {AT}\n"


def entry(*lines: str, inside: str = BODY, head: str = HEAD) -> list[dict[str, object]]:
    """What a module launches whose entry has these lines, behind two arguments."""
    arguments = (f"  %{name} = f32[64,32]{{1,0}} parameter({at})\n" for at, name in enumerate("ab"))
    text = f"{head}{inside}ENTRY %main (a: f32[64,32]) -> f32[] {{\n{''.join(arguments)}{''.join(lines)}}}\n"
    names = ("file", "line", "function", "kernel", "runs", "group", "operation", "backward", "type", "unit", "flop",
             "bytes", "loop", "times", "instruction")  # fmt: skip
    return [dict(zip(names, row, strict=True)) for row in schedule_of_module(text, lambda _: False)]


def test_a_recorded_step_launches_its_thirty_kernels_in_the_order_of_its_schedule() -> None:
    rows = schedule_of_module(STEP, lambda file: file != "step.py")
    assert len(rows) == 30
    assert [row[3] or row[4] for row in rows[:9]] == [
        "cublas", "loop_multiply_tanh_fusion", "cublas", "loop_multiply_tanh_fusion_1", "cublas",
        "loop_multiply_tanh_fusion_2", "cublas", "loop_add_fusion_3", "input_reduce_fusion_3",
    ]  # fmt: skip
    assert {(row[0], row[1], row[2]) for row in rows} == {
        ("step.py", 6, "loss"),
        ("step.py", 12, "step.<locals>.<lambda>"),
    }
    # three fusions are `loop_add_fusion_2` in the trace; the fourth has other operands
    groups = [row[5] for row in rows if str(row[3]).startswith("loop_add_fusion")]
    assert len(set(groups)) == 2
    # these have no `deduplicated_name`, and one name all the same
    assert len({row[5] for row in rows if str(row[3]).startswith("wrapped_subtract")}) == 1


def test_a_fusion_moves_its_operands_and_results_each_once() -> None:
    (one,) = entry(FUSION)
    assert (one["kernel"], one["operation"], one["type"], one["unit"]) == (
        "add_fusion_1", "add [64,32]", "fp32", "memory",
    )  # fmt: skip
    assert one["bytes"] == 3 * 64 * 32 * 4
    (same,) = entry("  %c = f32[2048]{0} bitcast(%a)\n", FUSION.replace("(%a, %b)", "(%a, %c)"))
    assert same["bytes"] == 2 * 64 * 32 * 4


@pytest.mark.parametrize("part", ["slice", "dynamic-slice", "gather", "dynamic-update-slice"])
def test_of_a_fusion_that_reads_a_part_of_an_operand_the_bytes_are_not_known(part: str) -> None:
    sliced = BODY.replace("parameter(1)", f"{part}(%p.0)")
    (one,) = entry(FUSION, inside=sliced)
    assert (one["bytes"], one["unit"]) == ("", "")


@pytest.mark.parametrize("type_", ["f4e2m1fn", "token", "f32[<=64]"])
def test_of_an_array_whose_type_or_size_is_not_known_neither(type_: str) -> None:
    shaped = type_ if "[" in type_ else f"{type_}[64,32]"
    (one,) = entry(f"  %c = {shaped} parameter(2)\n", FUSION.replace("(%a, %b)", "(%a, %c)"))
    assert one["bytes"] == ""


DOT = (
    "  ROOT %d = f32[{result}]{{0}} dot(%p.0, %p.1), lhs_batch_dims={{{lb}}}, lhs_contracting_dims={{{lc}}}, "
    "rhs_batch_dims={{{rb}}}, rhs_contracting_dims={{{rc}}}{more}\n"
)


def dot(left: str, right: str, lb: str, lc: str, rb: str, rc: str, more: str = "", type_: str = "f32") -> str:
    sides = "".join(
        f"  %p.{at} = {type_}[{shape}]{{0}} parameter({at})\n" for at, shape in enumerate((left, right))
    )
    made = DOT.format(result="4,4", lb=lb, lc=lc, rb=rb, rc=rc, more=more)
    return f"%body (p.0: f32[1]) -> f32[4,4] {{\n{sides}{made}}}\n\n"


@pytest.mark.parametrize(
    ("body", "operation", "flop"),
    [
        (dot("64,32", "32,16", "", "1", "", "0"), "dot_general [64,32] x [32,16]", 2 * 64 * 32 * 16),
        (dot("32,64", "16,32", "", "0", "", "1"), "dot_general [64,32] x [32,16]", 2 * 64 * 32 * 16),
        (
            dot("8,64,32", "8,32,16", "0", "2", "0", "1"),
            "dot_general [8,64,32] x [8,32,16]",
            16 * 64 * 32 * 16,
        ),
        (dot("64,32", "32,16", "", "9", "", "0"), "dot_general", ""),
        (dot("64,32", "32,16", "", "1", "", "0").replace("%p.1)", "%none)"), "dot_general", ""),
    ],
)
def test_a_product_has_its_shapes_as_rows_by_columns_and_its_flop(
    body: str, operation: str, flop: float
) -> None:
    (one,) = entry(FUSION, inside=body)
    assert (one["operation"], one["flop"]) == (operation, flop)


@pytest.mark.parametrize(
    ("type_", "more", "known"),
    [
        ("f32", "", ("tf32", "tensor")),
        ("f32", ", operand_precision={highest,highest}", ("fp32", "fma")),
        ("f32", ", algorithm=dot_bf16_bf16_f32_x3", ("fp32", "fma")),
        ("bf16", "", ("bf16", "tensor")),
        ("f64", "", ("fp64", "fma")),
        ("s4", "", ("", "")),
    ],
)
def test_a_product_is_computed_by_tensor_cores_where_its_type_and_precision_say_so(
    type_: str, more: str, known: tuple[str, str]
) -> None:
    (one,) = entry(FUSION, inside=dot("64,32", "32,16", "", "1", "", "0", more, type_))
    assert (one["type"], one["unit"]) == known


def test_what_is_made_for_a_product_has_not_the_products_name() -> None:
    moved = BODY.replace("add(", "transpose(").replace("jvp()/add", "jvp()/dot_general")
    (one,) = entry(FUSION, inside=moved)
    assert one["operation"] == "transpose [64,32]"


def test_a_part_of_a_backward_pass_is_told_by_its_name() -> None:
    (one,) = entry(FUSION.replace("jit(step)/add", "jit(step)/transpose(jvp(Model))/Dense_0/add"))
    assert one["backward"] == 1


def test_calls_and_loops_are_opened_and_a_loop_of_unknown_length_is_marked() -> None:
    inner = BODY + f"%inner (p: f32[64,32]) -> f32[] {{\n  %a = f32[64,32] parameter(0)\n{FUSION}}}\n\n"
    call = "  %c = f32[64,32] call(%a), to_apply=%inner\n"
    loop = "  %{} = f32[64,32] while(%a), condition=%cond, body=%inner{}\n"
    trips = ', backend_config={"known_trip_count":{"n":"12"}}'
    rows = entry(call, loop.format("v", trips), loop.format("w", ""), FUSION, inside=inner)
    assert [(row["kernel"], row["loop"], row["times"]) for row in rows] == [
        ("add_fusion_1", 0, 1), ("add_fusion_1", 1, 12), ("add_fusion_1", 2, 0), ("add_fusion_1", 0, 1),
    ]  # fmt: skip


def test_what_launches_nobody_knows_what_is_marked() -> None:
    rows = entry(
        '  %c = f32[64,32] custom-call(%a), custom_call_target="other"\n',
        "  %s = f32[64,32] sort(%a)\n",
        "  %r = f32[64,32] all-reduce-start(%a), to_apply=%add\n",
        "  %e = f32[64,32] all-reduce-done(%r)\n",
        "  %g = f32[64,32] copy(%a)\n",
    )
    assert [row["runs"] for row in rows] == ["?", "?", "nccl"]


# ------------------------------------------------------------ any program may have any text


def test_without_a_schedule_nothing_is_told() -> None:
    assert entry(FUSION, head="HloModule jit_step\n\n") == []
    assert schedule_rows([("m", ""), ("n", "HloModule n, is_scheduled=true")], lambda _: False) == []


@pytest.mark.parametrize(
    "line",
    [
        "  %x = f32[64,32] fusion(%a, ((((%b), calls=%body\n",
        "  %x = (f32[64,32] fusion(%a), calls=%body\n",
        "  %x = \n",
        "  %x = f32[64,32]fusion(%a)\n",
        "  % = f32[] fusion()\n",
        "  %x" + "(" * 100_000 + "\n",
        "  %x = f32[1] fusion(" + "(" * 100_000 + "\n",
    ],
)
def test_a_line_that_cannot_be_read_is_none_of_the_schedule(line: str) -> None:
    assert [row["kernel"] for row in entry(line, FUSION)] == ["add_fusion_1"]


def test_sizes_that_no_memory_has_and_calls_in_a_circle_end() -> None:
    huge = "9" * 12
    (one,) = entry(f"  %c = f32[{','.join([huge] * 9)}] parameter(2)\n", FUSION.replace("%b", "%c"))
    assert isinstance(one["bytes"], float)
    (one,) = entry(f"  %c = f32[{'9' * 5000}] parameter(2)\n", FUSION.replace("%b", "%c"))
    assert one["bytes"] == ""
    circle = "%inner (p: f32[]) -> f32[] {\n  %c = f32[] call(%p), to_apply=%inner\n}\n\n"
    assert [row["runs"] for row in entry("  %c = f32[] call(%a), to_apply=%inner\n", inside=circle)] == ["?"]


def test_a_long_module_is_told_whole_or_not_at_all_and_soon() -> None:
    fusions = "".join(FUSION.replace("add_fusion.1", f"f_fusion.{n}") for n in range(MAX_INSTRUCTIONS + 1))
    many = f"{HEAD}{BODY}ENTRY %main (a: f32[1]) -> f32[] {{\n{fusions}}}\n"
    few = f"{HEAD}{BODY}ENTRY %main (a: f32[1]) -> f32[] {{\n{FUSION}}}\n"
    begun = time.monotonic()
    rows = schedule_rows([("many", many), ("few", few)], lambda _: False)
    assert [row[0] for row in rows] == ["few"]
    assert time.monotonic() - begun < 20
