"""What became of each kernel and function, and what the counters say of why."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import (
    Cause,
    Comparison,
    Hotspot,
    Profile,
    RunDocument,
)
from profkit.profiling.summarize import judge_document, targets_for
from profkit.regression.compare import compare
from tests import metal_documents as metal
from tests.comparison_documents import kernel, run, traced, value
from tests.spoken import spoken, spoken_lines

GEMM, ADD, NEW = kernel("gemm"), kernel("add"), kernel("fused")


def words(found: Comparison) -> dict[str, str]:
    return {k.name: k.word for k in found.kernels}


def cause(found: Comparison, kind: str) -> Cause:
    return next(cause for cause in found.causes if cause.kind == kind)


def kinds(found: Comparison) -> list[str]:
    return [cause.kind for cause in found.causes]


# ---------------------------------------------------------------- kernels


def test_kernels_are_slower_faster_new_and_gone() -> None:
    copy = kernel("copy")
    before = traced([(GEMM, 100, 1e-2), (ADD, 100, 4e-3), (copy, 10, 1e-3)])
    after = traced([(GEMM, 100, 1.3e-2), (copy, 10, 0.7e-3), (NEW, 100, 5e-3)])
    found = compare(before, after)
    assert words(found) == {"gemm": "slower", "copy": "faster", "fused": "appeared", "add": "vanished"}
    assert [k.name for k in found.kernels] == ["fused", "add", "gemm", "copy"]  # largest change first
    assert found.outcome == "regressed"


def test_traces_of_different_lengths_are_held_against_each_other_by_iteration() -> None:
    short = traced([(GEMM, 100, 1e-2)])
    long = traced([(GEMM, 400, 4e-2)])
    assert long.trace is not None
    found = compare(short, replace(long, trace=replace(long.trace, repeats=40)))
    assert words(found) == {"gemm": "same"}
    assert found.outcome == "same"


def test_two_spellings_of_one_kernel_are_one() -> None:
    found = compare(
        traced([(kernel("void (anonymous namespace)::f<(int)2>(float*)"), 10, 1e-2)]),
        traced([(kernel("void <unnamed>::f<2>(float *)"), 10, 1e-2)]),
    )
    assert list(words(found).values()) == ["same"]
    found = compare(
        traced([(kernel("f(int)", mangled="_Z1fi"), 10, 1e-2)]),
        traced([(kernel("something else", mangled="_Z1fi"), 10, 1e-2)]),
    )
    assert list(words(found).values()) == ["same"]


def test_a_kernel_in_another_shape_is_the_same_kernel() -> None:
    found = compare(traced([(kernel("f", grid=132), 10, 1e-2)]), traced([(kernel("f", grid=264), 10, 2e-2)]))
    assert words(found) == {"f": "slower"}
    assert "264x1x1" in spoken_lines(cause(found, "shape").evidence)[0]


def test_of_an_apple_gpu_the_encoder_that_became_slower_is_named() -> None:
    slow = replace(metal.MATMUL, seconds=1.35, median=4.5e-3, longest=6e-3)
    before, after = (
        judge_document(metal.report(told, gpus=(metal.M4,)), targets_for("mps"))
        for told in (metal.metal(), metal.metal(encoders=(slow, metal.SILU, metal.REST), process_busy=1.85))
    )
    found = compare(before, after)
    assert found.outcome == "regressed"
    assert words(found) == {slow.name: "slower", metal.SILU.name: "same", metal.REST.name: "same"}


# ---------------------------------------------------------------- causes on a device


def counted(registers: int, occupancy: float, seconds: float, extra: float = 1.0) -> RunDocument:
    """One kernel with its counters."""
    k = kernel("gemm", registers)
    scope = k.scope
    return traced(
        [(k, 100, seconds)],
        value("occupancy.theoretical", occupancy, "%", "ncu", scope),
        value("occupancy.achieved", occupancy * 0.9, "%", "ncu", scope),
        value("launch.registers", float(registers), "registers", "ncu", scope),
        value("dram.bytes", 1e9 * extra, "B", "ncu", scope),
        value("instructions", 1e8 * extra, "count", "ncu", scope),
        value("memory.spill.loads", 0.0 if registers < 200 else 5e5, "count", "ncu", scope),
    )


def test_occupancy_fell_because_registers_rose() -> None:
    found = compare(counted(40, 75.0, 1e-2), counted(128, 37.5, 1.4e-2))
    told = cause(found, "occupancy")
    assert spoken(told) == (
        "Theoretical occupancy of gemm fell from 75.0 to 37.5 %, because registers per thread rose."
    )
    assert "registers per thread 40 -> 128" in spoken_lines(told.evidence)


def test_more_bytes_and_more_instructions_are_named_where_the_kernel_is_slower() -> None:
    found = compare(counted(40, 75.0, 1e-2), counted(255, 75.0, 1.4e-2, 1.5))
    assert {"bytes", "work"} <= set(kinds(found))
    assert "50 % more" in spoken(cause(found, "bytes"))
    same_time = compare(counted(40, 75.0, 1e-2), counted(40, 75.0, 1e-2, 1.5))
    assert kinds(same_time) == []  # nothing became slower: there is nothing to explain


def test_other_kernels_are_another_algorithm() -> None:
    found = compare(traced([(GEMM, 100, 1e-2), (ADD, 10, 1e-4)]), traced([(NEW, 100, 2e-2), (ADD, 10, 1e-4)]))
    assert spoken_lines(cause(found, "algorithm").evidence) == ("gone: gemm, 1.00 ms", "new: fused, 2.00 ms")


# ---------------------------------------------------------------- causes on a CPU


def profiled(total: float, **own: float) -> Profile:
    spots = tuple(Hotspot(name, value, library="/usr/lib/libx.so") for name, value in own.items())
    return Profile("functions by instructions", "instructions", total, spots, "counted-functions")


def test_more_instructions_are_told_with_the_function_that_has_them() -> None:
    before = run(0.0, value("instructions", 1e7), profiles=(profiled(1e7, parse=6e6, build=4e6),))
    after = run(0.2, value("instructions", 1.2e7), seed=2, profiles=(profiled(1.2e7, parse=8e6, build=4e6),))
    found = compare(before, after)
    assert spoken(cause(found, "work")) == "It executes 20 % more instructions, most of that in parse."
    assert [(f.name, f.word) for f in found.functions] == [("parse", "slower")]
