"""How ncu is called: each planned launch once, whatever the names of kernels, files and versions look like."""

from __future__ import annotations

import re

import pytest

from profkit.core.types import Kernel, KernelPlan
from profkit.profilers.ncu.command import function_name, name_filter, ncu_argv

WORKLOAD = ("python", "bench.py", "a b", "$x")


def plan(name="silu_mul", mangled=None, launch=None):
    return KernelPlan(Kernel(name, (2, 66, 1), (384, 1, 1), mangled=mangled), 0.5, launch=launch)


def argv(**more):
    given_ = {"metrics": ("a.sum", "b.pct"), "marked": False, **more}
    return ncu_argv(WORKLOAD, "out.ncu-rep", **given_)


def option(line, name):
    """The value of an option that stands once."""
    assert line.count(name) == 1, (name, line)
    return line[line.index(name) + 1]


def test_the_workload_comes_last_the_metrics_are_one_list_and_sections_stand_each_alone():
    line = argv(sections=("SourceCounters", "WarpStateStats"))
    assert line[-4:] == WORKLOAD
    assert option(line, "--metrics") == "a.sum,b.pct"
    sections = [line[i + 1] for i, word in enumerate(line) if word == "--section"]
    assert sections == ["SourceCounters", "WarpStateStats"]


FIXED = """config-file=off target-processes=all clock-control=none cache-control=all replay-mode=kernel import-sass=no
    launch-count=1 filter-mode=per-launch-config kernel-name-base=mangled"""


def test_clocks_are_left_alone_every_launch_is_replayed_with_cold_caches_and_other_profilers_are_kept_out():
    line = argv()
    for name, _, value in (word.partition("=") for word in FIXED.split()):
        assert option(line, f"--{name}") == value
    assert "--kernel-name" not in line
    assert line[0] == "env"
    unset = {line[i + 1] for i, word in enumerate(line) if word == "-u"}
    assert {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "KINETO_USE_DAEMON"} == unset


def test_only_a_marked_workload_waits_for_its_region():
    assert option(argv(marked=True), "--profile-from-start") == "off"
    assert "--profile-from-start" not in argv()


@pytest.mark.parametrize(("launch", "skip"), [(None, "0"), (0, "0"), (3, "3")])
def test_the_planned_launch_is_skipped_to(launch, skip):
    assert option(argv(kernels=[plan(launch=launch), plan("other", launch=launch)]), "--launch-skip") == skip


def test_macros_of_ncu_in_a_files_name_are_no_macros():
    line = ncu_argv(WORKLOAD, "/tmp/100%/%p.ncu-rep", metrics=("a",), marked=False)
    assert option(line, "--export") == "/tmp/100%%/%%p.ncu-rep"


@pytest.mark.parametrize(
    ("versions", "left_out"),
    [
        ("2022.4.1", "--config-file --import-sass"),
        ("2023.1.0", "--import-sass"),
        ("2024.3.0.0 2026.2.1 nightly", ""),
    ],
)
def test_an_older_ncu_is_not_given_what_it_does_not_know(versions, left_out):
    for version in versions.split():
        assert {"--config-file", "--import-sass"} - set(argv(version=version)) == set(left_out.split())


# ------------------------------------------------------------ names


MANGLED = [
    "_Z9transposeILi0EEvPKfPfi",
    "_Z9transposeILi1EEvPKfPfi",
    "silu_mul",
    "triton_poi_fused_$_mul.0d1d",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13BinaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm3EEEEviT0_T1_",
]


def matches(expression: str, name: str) -> bool:
    assert expression.startswith("regex:")
    return re.search(expression.removeprefix("regex:"), name) is not None


@pytest.mark.parametrize("chosen", MANGLED)
def test_a_mangled_name_is_matched_whole_and_no_other(chosen):
    base, expression = name_filter([plan("f", chosen)])
    assert base == "mangled"
    assert [name for name in MANGLED if matches(expression, name)] == [chosen]
    assert not matches(expression, chosen + "x")


# As NVIDIA's tools demangle (nsys, ncu), as libstdc++ does (torch's profiler), and the function's name.
SPELLED = """
void transpose<(int)1>(const float *, float *, int)
void transpose<1>(float const*, float*, int)
transpose
void at::native::<unnamed>::softmax_warp_forward<float, (int)10, (bool)0>(T2 *, const T1 *, int)
void at::native::(anonymous namespace)::softmax_warp_forward<float, 10, false>(float*, float const*, int)
softmax_warp_forward
fma32(float *, int)
fma32(float*, int)
fma32
silu_mul
silu_mul
silu_mul
std::enable_if<(bool)1, void>::type ns::bar<int>(float *)
std::enable_if<true, void>::type ns::bar<int>(float*)
bar
void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_f16_64x64_32x6_nn_align8>(T1::Params)
void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_f16_64x64_32x6_nn_align8>(cutlass_80::Params)
Kernel2
"""
SPELLINGS = list(zip(*[iter(SPELLED.strip().splitlines())] * 3, strict=True))


@pytest.mark.parametrize(("nvidia", "gnu", "function"), SPELLINGS)
def test_a_demangled_name_is_found_again_however_it_is_spelled(nvidia, gnu, function):
    assert function_name(nvidia) == function_name(gnu) == function
    for written in (nvidia, gnu):
        base, expression = name_filter([plan(written)])
        assert base == "demangled"
        assert matches(expression, nvidia)
        assert matches(expression, gnu)
        assert not matches(expression, f"void x{function}(int)")
        assert not matches(expression, f"void {function}2(int)")


@pytest.mark.parametrize(
    ("only", "taken", "left"),
    [
        ("silu_mul", ["silu_mul", "void ns::silu_mul<(int)4>(float *)"], ["silu(float *)"]),
        ("regex:^void", ["void f(int)"], ["f(int)"]),
        (
            "void transpose<(int)1>(const float *",
            ["void transpose<(int)1>(const float *, float *, int)"],
            ["void transpose<(int)0>(int)"],
        ),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_a_kernel_named_by_hand_is_a_part_of_what_is_printed_or_an_expression(only, taken, left):
    line = argv(only=only)
    expression = option(line, "--kernel-name")
    assert option(line, "--kernel-name-base") == "demangled"
    assert all(matches(expression, name) for name in taken)
    assert not any(matches(expression, name) for name in left)
