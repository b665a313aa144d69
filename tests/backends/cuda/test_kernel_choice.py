"""Which kernels are counted, at which launch, in how many runs, and under which name they come back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.backends.cuda.kernels import (
    choose_kernels,
    count_in_benchmark,
    count_in_program,
    entries_needed,
    match_kernels,
)
from profkit.core.types import GpuTrace, Kernel, KernelTime

FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"
RANDOM = "void at::native::distribution_elementwise_grid_stride_kernel<float, 4>(long)"
NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgs)"


def kernel(name: str, *, grid: int = 132, mangled: str | None = None) -> Kernel:
    return Kernel(name, (grid, 1, 1), (256, 1, 1), mangled)


def took(name: str, total: float, launches: int = 10, *, setup: int = 0, grid: int = 132) -> KernelTime:
    return KernelTime(kernel(name, grid=grid), launches, total, setup_launches=setup)


def trace(*kernels: KernelTime, marked: bool = True) -> GpuTrace:
    return GpuTrace("nsys", kernels, marked=marked)


@pytest.mark.parametrize(
    ("totals", "names"),
    [
        ([96.0, 3.0, 1.0], "a"),
        ([60.0, 35.0, 5.0], "ab"),
        ([50.0, 44.0, 6.0], "abc"),
        ([1.0, 3.0, 96.0], "c"),
        ([10.0], "a"),
        ([], ""),
    ],
)
def test_the_fewest_configurations_that_make_up_95_percent_are_counted(
    totals: list[float], names: str
) -> None:
    chosen = choose_kernels(trace(*(took("abc"[i], total) for i, total in enumerate(totals))))
    assert "".join(sorted(k.kernel.name for k in chosen.kernels)) == names
    assert chosen.seconds == pytest.approx(sum(totals))


@pytest.mark.parametrize(
    ("name", "marked", "counted"),
    [
        (NCCL, True, False),
        (NCCL, False, False),
        (RANDOM, False, False),
        (RANDOM, True, True),  # in a marked region it is the workload's: dropout
        (FILL, False, False),
        ("triton_poi_fused_mul_0", False, True),
    ],
)
def test_collectives_and_an_unmarked_workloads_initialisers_are_left_out_and_that_is_said(
    name: str, marked: bool, counted: bool
) -> None:
    chosen = choose_kernels(trace(took(name, 90.0), took("mine", 10.0), marked=marked))
    assert (name in {k.kernel.name for k in chosen.kernels}) is counted
    assert bool(chosen.notes) is not counted
    assert chosen.share(took("mine", 10.0)) == pytest.approx(0.1)  # of all the time, not of what is left


NSYS = (
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, (int)10, (bool)0>"
    "(T2 *, const T1 *, int)"
)
NCU = "void <unnamed>::softmax_warp_forward<float, float, float, 10, 0>(T2 *, const T1 *, int)"


@pytest.mark.parametrize(
    ("traced", "counted", "meets"),
    [
        (kernel("f<1>()", mangled="_Z1f"), kernel("f<(int)1>()", mangled="_Z1f"), True),
        (kernel("f", mangled="_Z1fv"), kernel("f", mangled="_Z1fi"), False),
        (kernel("f", mangled="_Z1fv"), kernel("f"), True),
        (kernel(NSYS), kernel(NCU), True),
        (kernel(NSYS), kernel(NCU, grid=7), False),
        (kernel("void g<true>(int)"), kernel("void g<(bool)1>(int)"), True),
        (kernel("void lib::gemm<A, B>(Params)"), kernel("gemm"), True),
        (kernel("gemm"), kernel("silu"), False),
    ],
)
def test_what_ncu_counted_comes_back_under_the_name_that_the_trace_gave(
    traced: Kernel, counted: Kernel, meets: bool
) -> None:
    assert match_kernels([traced], [counted]) == ({counted.scope: traced.scope} if meets else {})


# ---------------------------------------------------------------- windows of launches


def in_order(words: str, *, setup: dict[str, int] | None = None) -> GpuTrace:
    """A trace of launches `words`, each one kernel; longest time first by alphabet."""
    names = sorted(set(words))
    kernels = tuple(
        took(n, 100.0 - i, words.count(n), setup=(setup or {}).get(n, 0)) for i, n in enumerate(names)
    )
    only_before = tuple(took(n, 0.0, 0, setup=c) for n, c in (setup or {}).items() if n not in names)
    return GpuTrace(
        "nsys", kernels, marked=False, order=tuple(names.index(w) for w in words), setup=only_before
    )


@pytest.mark.parametrize(
    ("words", "wanted", "window"),
    [
        ("abc" * 10, "abc", (6, 3)),  # two of each are passed over
        ("aab" * 10, "ab", (7, 2)),
        ("abc" * 10, "b", (7, 1)),
        ("a" * 30 + "b" * 30, "ab", (29, 4)),  # the last a, the first warm b
        ("abcc" * 20, "ab", (8, 2)),
        ("ab", "ab", (0, 2)),  # launched once each: there is no other
    ],
)
def test_the_first_stretch_of_warm_launches_with_each_kernel_is_counted(
    words: str, wanted: str, window: tuple[int, int]
) -> None:
    trace = in_order(words)
    found = count_in_program(trace, [k for k in trace.kernels if k.kernel.name in wanted], lambda _: True)
    assert found.window == window
    assert {k.kernel.name for k in found.kernels} == set(wanted)


def test_launches_that_the_filter_does_not_match_are_not_counted_and_those_of_the_set_up_are() -> None:
    trace = in_order("axb" * 10, setup={"a": 5, "tuning a": 700, "x": 9})
    kernels = [k for k in trace.kernels if k.kernel.name in "ab"]
    assert count_in_program(trace, kernels, lambda k: k.name != "x").window == (5 + 700 + 4, 2)
    marked = replace(trace, marked=True)  # the profiler was off before
    assert count_in_program(marked, kernels, lambda k: k.name != "x").window == (4, 2)


def test_of_phases_far_apart_that_with_most_time_is_counted() -> None:
    trace = in_order("b" * 500 + "c" * 500 + "a" * 500)
    found = count_in_program(trace, [k for k in trace.kernels if k.kernel.name in "ab"], lambda _: True)
    assert ([k.kernel.name for k in found.kernels], found.window) == (["a"], (1002, 1))


def test_a_stretch_that_takes_too_long_is_cut_to_what_has_most_time() -> None:
    trace = in_order(("ab" + "x" * 40 + "c" + "x" * 40) * 4)
    kernels = [k for k in trace.kernels if k.kernel.name in "abc"]

    def window(most_seconds: float) -> tuple[str, tuple[int, int] | None]:
        found = count_in_program(trace, kernels, lambda _: True, replays=5, most_seconds=most_seconds)
        return "".join(sorted(k.kernel.name for k in found.kernels)), found.window

    # A launch that is counted takes 0.25 s, one that is passed over 0.01 s.
    assert window(20.0) == ("abc", (166, 43))
    assert window(10.0) == ("ab", (166, 2))
    assert window(1.0) == ("a", (166, 1))


def test_without_an_order_a_launch_number_is_counted_that_is_warm_for_most() -> None:
    early, late = took("early", 2.0, 10), took("late", 1.0, 10, setup=400)
    found = count_in_program(trace(early, late, marked=False), (early, late), lambda _: True)
    assert (found.kernels, found.launch, found.window) == ((early,), 2, None)
    both = count_in_program(trace(early, late), (early, late), lambda _: True)
    assert (both.kernels, both.launch) == ((early, late), 2)


@pytest.mark.parametrize(
    ("launches", "traced", "iterations", "launch"),
    [((100, 50), 50, 2, 1), ((100, 50, 5), 50, 20, 1), ((1,), 50, 50, 0), ((), 50, 2, 1)],
)
def test_a_benchmark_runs_as_often_as_its_rarest_kernel_needs_and_the_first_launch_is_passed_over(
    launches: tuple[int, ...], traced: int, iterations: int, launch: int
) -> None:
    counted, needed = count_in_benchmark([took(f"k{n}", 1.0, n) for n in launches], traced)
    assert (needed, counted.launch) == (iterations, launch)


@pytest.mark.parametrize(
    ("launches", "entries", "processes", "expected"),
    [
        (40, 40, 1, (2, 1)),
        (4, 40, 1, (2, 10)),
        (80, 40, 2, (2, 1)),
        (40, 40, 4, (2, 4)),
        (1, 1, 1, (0, 1)),
        (1, 9, 1, (0, 9)),
    ],
)
def test_of_a_region_that_is_entered_often_a_few_warm_entries_are_looked_at(
    launches: int, entries: int, processes: int, expected: tuple[int, int]
) -> None:
    assert entries_needed([took("k", 1.0, launches)], entries, processes) == expected
