"""Which kernels are counted, at which launch, in how many runs, and under which name they come back."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.backends import PlanState, RunContext
from profkit.backends.cuda.counter_passes import ExplanationPass, KernelCountersPass, NcuPass
from profkit.backends.cuda.kernels import (
    choose_kernels,
    count_in_benchmark,
    count_in_program,
    entries_needed,
    match_kernels,
)
from profkit.core.types import (
    Depth,
    GpuTrace,
    Kernel,
    KernelTime,
    PassPlan,
    PassResult,
    Scope,
    Step,
    Threshold,
    Verdict,
    VerdictWord,
    Workload,
)
from profkit.hardware.machine import read_machine
from profkit.profilers.ncu.probe import NcuAbility
from tests.spoken import message, spoken, spoken_lines

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
        ([1.0, 3.0, 96.0], "c"),
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
    assert bool(spoken_lines(chosen.notes)) is not counted
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
        (kernel(NSYS), kernel(NCU), True),
        (kernel(NSYS), kernel(NCU, grid=7), False),
        (kernel("void g<true>(int)"), kernel("void g<(bool)1>(int)"), True),
        (kernel("void lib::gemm<A, B>(Params)"), kernel("gemm"), True),
    ],
)
def test_what_ncu_counted_comes_back_under_the_name_that_the_trace_gave(
    traced: Kernel, counted: Kernel, meets: bool
) -> None:
    assert match_kernels([traced], [counted]) == ({counted.scope: traced.scope} if meets else {})


def test_what_is_launched_in_another_way_is_known_by_its_name_where_one_of_each_has_it() -> None:
    """Without CUDA graphs XLA may launch a kernel of cuBLAS in another grid."""
    traced, counted = kernel("gemm", grid=128), kernel("gemm", grid=132)
    assert match_kernels([traced], [counted]) == {}
    assert match_kernels([traced], [counted], launched_alike=False) == {counted.scope: traced.scope}
    other = kernel("gemm", grid=7)
    assert match_kernels([traced, other], [counted], launched_alike=False) == {}
    assert match_kernels([traced], [counted, other], launched_alike=False) == {}


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
        ("a" * 30 + "b" * 30, "ab", (29, 4)),  # the last a, the first warm b
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


def test_a_stretch_that_takes_too_long_is_cut_to_what_has_most_time() -> None:
    trace = in_order(("ab" + "x" * 40 + "c" + "x" * 40) * 4)
    kernels = [k for k in trace.kernels if k.kernel.name in "abc"]

    def window(max_seconds: float) -> tuple[str, tuple[int, int] | None]:
        found = count_in_program(trace, kernels, lambda _: True, replays=5, max_seconds=max_seconds)
        return "".join(sorted(k.kernel.name for k in found.kernels)), found.window

    # A launch that is counted takes 0.25 s, one that is passed over 0.01 s.
    assert window(20.0) == ("abc", (166, 43))
    assert window(10.0) == ("ab", (166, 2))
    assert window(1.0) == ("a", (166, 1))


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
        (40, 40, 4, (2, 4)),
        (1, 9, 1, (0, 9)),
    ],
)
def test_of_a_region_that_is_entered_often_a_few_warm_entries_are_looked_at(
    launches: int, entries: int, processes: int, expected: tuple[int, int]
) -> None:
    assert entries_needed([took("k", 1.0, launches)], entries, processes) == expected


# ------------------------------------------------------------ the plan

ABLE = NcuAbility(Path("/usr/bin/ncu"), "2025.3.1", True)
TIMED = PlanState(marked=True, iteration_seconds=0.001, benchmark=True, plain_seconds=5.0, start_seconds=4.0)


def site(depth: Depth = "standard") -> RunContext:
    workload = Workload(("python", "train.py"), "train", "/somewhere")
    return RunContext(workload, read_machine(), Path("/runs/one"), depth, None, 0.01, 8.0)


def traced(name: str, total: float, launches: int, *, setup: int = 0) -> KernelTime:
    kernel = Kernel(name, (132, 1, 1), (256, 1, 1), mangled=name)
    return KernelTime(kernel, launches, total, median=total / launches, setup_launches=setup)


def after(known: PlanState, *kernels: KernelTime, marked: bool = True) -> PlanState:
    trace = GpuTrace("nsys", kernels, marked=marked, order=tuple(range(len(kernels))) * 100)
    return replace(known, trace=trace, passes=(*known.passes, PassResult("trace", "nsys", "finished")))


def plan_of(kind: type[NcuPass], context: RunContext, ncu: NcuAbility, known: PlanState) -> PassPlan:
    (plan,) = kind(context, ncu, "GH100").plan(known)
    return plan


def option(step: Step, name: str) -> str | None:
    return step.argv[step.argv.index(name) + 1] if name in step.argv else None


def test_in_a_benchmarks_region_a_warm_launch_is_counted_in_as_few_iterations_as_it_takes() -> None:
    known = after(TIMED, traced("gemm", 0.9, 400), traced("silu", 0.1, 200))  # of 200 iterations
    step = plan_of(KernelCountersPass, site(), ABLE, known).steps[0]
    assert option(step, "--profile-from-start") == "off"
    assert option(step, "--launch-skip") == "1"
    assert step.directive is not None
    assert step.directive.switch is not None
    assert (step.directive.switch.kind, step.directive.iterations) == ("cuda", 2)


def test_where_nothing_is_marked_the_launches_of_the_set_up_are_skipped() -> None:
    known = after(
        PlanState(marked=False), traced("gemm", 0.9, 100, setup=7), traced("silu", 0.1, 100), marked=False
    )
    step = plan_of(KernelCountersPass, site(), ABLE, known).steps[0]
    assert option(step, "--profile-from-start") is None
    assert option(step, "--launch-skip") == "11"
    assert step.directive is not None
    assert step.directive.switch is None


@pytest.mark.parametrize(
    ("busy", "depth", "counts"),
    [(0.03, "standard", False), (0.5, "standard", True), (0.03, "full", True), (0.03, "gate", True)],
)
def test_kernels_that_run_for_next_to_no_time_are_not_counted_unless_that_was_asked(
    busy: float, depth: Depth, counts: bool
) -> None:
    known = after(PlanState(marked=False), traced("gemm", 0.9, 100), marked=False)
    assert known.trace is not None
    known = replace(known, trace=replace(known.trace, span=1.0, busy=busy + 0.2, copying=0.2))
    plan = plan_of(KernelCountersPass, site(depth), ABLE, known)
    assert bool(plan.steps) is counts
    if not counts:
        assert spoken(plan.skipped).startswith("kernels take only 3 % of the time")


def counted_by_ncu(step: Step, launches: list[str]) -> list[str]:
    """What ncu counts of a program's launches: it looks at those whose name fits, skips some, and counts the next."""
    names = re.compile((option(step, "--kernel-name") or "").removeprefix("regex:"))
    fitting = [name for name in launches if names.search(name)]
    skip, count = (int(option(step, word) or 0) for word in ("--launch-skip", "--launch-count"))
    return fitting[skip : skip + count]


def steps_of_loop(small: int) -> PlanState:
    """An update of a reinforcement learner: `small` launches of one kernel in a loop over time, then a few products.

    The loop was once in the set-up, and twice in what repeats.
    """
    step = ["product", "tanh", *["add"] * small]
    kernels = (
        traced("add", 0.2, 40 * small, setup=small),
        traced("product", 0.1, 40, setup=1),
        traced("tanh", 0.05, 40, setup=1),
    )
    names = [timed.kernel.name for timed in kernels]
    order = tuple(names.index(name) for name in step * 4)
    trace = GpuTrace("nsys", kernels, order=order, marked=False)
    passes = (PassResult("trace", "nsys", "finished"),)
    return replace(PlanState(marked=False, plain_seconds=10.0, start_seconds=2.0), trace=trace, passes=passes)


def test_a_kernel_that_each_step_launches_thousands_of_times_does_not_hold_ncu_for_minutes() -> None:
    """ncu stops at each of them for 10 ms, in the set-up as well; the others are counted without it."""
    few = plan_of(KernelCountersPass, site(), ABLE, steps_of_loop(50)).steps[0]
    assert "add" in (option(few, "--kernel-name") or "")
    plan = plan_of(KernelCountersPass, site(), ABLE, steps_of_loop(5000))
    (step,) = plan.steps
    assert "add" not in (option(step, "--kernel-name") or "")
    assert {kernel.kernel.name for kernel in plan.kernels} == {"product", "tanh"}
    assert option(step, "--launch-skip") == "6"  # of the set-up, and two of each to warm up
    assert any(
        "57.1 % of the GPU time is in kernels that are launched so often" in spoken(note)
        for note in plan.notes
    )
    assert not any("at other times" in spoken(note) for note in plan.notes)
    assert plan.cost is not None
    assert plan.cost < 1.0  # of a normal run; 5,000 stops would be five


def test_a_kernel_that_takes_nearly_all_time_is_worth_stopping_for_somewhat_longer() -> None:
    known = steps_of_loop(1500)
    assert known.trace is not None
    most = tuple(replace(k, total=9.0) if k.kernel.name == "add" else k for k in known.trace.kernels)
    plan = plan_of(KernelCountersPass, site(), ABLE, replace(known, trace=replace(known.trace, kernels=most)))
    assert "add" in {kernel.kernel.name for kernel in plan.kernels}
    assert "add" not in {
        kernel.kernel.name for kernel in plan_of(KernelCountersPass, site(), ABLE, known).kernels
    }


@pytest.mark.parametrize("depth", ["standard", "full"])
def test_a_window_has_its_kernels_by_the_names_that_ncu_is_given(depth: Depth) -> None:
    """Also where some kernels are left out: a launch that ncu does not look at counts nowhere."""
    set_up, steps = list("ssbb"), list(("ab" + "a" * 40 + "s" + "a" * 40 + "x" * 9) * 9)
    names = sorted(set(steps))
    total = dict(zip("absx", (5.0, 4.0, 0.5, 0.5), strict=True))
    kernels = tuple(traced(n, total[n], steps.count(n), setup=set_up.count(n)) for n in names)
    order = tuple(names.index(name) for name in steps)
    trace = GpuTrace("nsys", kernels, order=order, marked=False)
    known = replace(
        PlanState(marked=False, plain_seconds=1.0, start_seconds=1.0),
        trace=trace,
        passes=(PassResult("trace", "nsys", "finished"),),
    )
    plan = plan_of(KernelCountersPass, site(depth), ABLE, known)
    planned = {kernel.kernel.name for kernel in plan.kernels}
    assert planned >= {"a", "b"}
    assert planned <= {name for step in plan.steps for name in counted_by_ncu(step, set_up + steps)}


@pytest.mark.parametrize(
    ("marked", "says"), [(True, "the marked region launched no kernel"), (False, "the workload launched")]
)
def test_a_trace_without_kernels_leaves_nothing_to_count(marked: bool, says: str) -> None:
    planned = plan_of(KernelCountersPass, site(), ABLE, after(replace(TIMED, marked=marked), marked=marked))
    assert says in spoken(planned.skipped)
    assert planned.fix == "--backend cpu"


@pytest.mark.parametrize(
    ("depth", "name"), [("gate", "gate"), ("standard", "standard"), ("full", "standard")]
)
def test_the_depth_chooses_the_set_and_its_replays_make_the_cost(depth: Depth, name: str) -> None:
    planned = plan_of(KernelCountersPass, site(depth), ABLE, after(TIMED, traced("gemm", 1.0, 100)))
    assert f"set {name!r}" in spoken_lines(planned.notes)[0]
    assert ("one-replay" in str(planned.notes)) is (depth == "gate")
    assert planned.cost == pytest.approx(1.24, abs=0.1)  # start 4 s, ncu 2 s, and replays of some 10 ms


def verdict(kernel: KernelTime, word: VerdictWord) -> Verdict:
    what = ("occupancy", "occupancy.achieved", word, message(""), Threshold(">", 75, "%"), 1.0, "%")
    return Verdict(*what, kernel.kernel.scope, "measured")


GEMM, SILU = traced("gemm", 0.9, 100), traced("silu", 0.1, 100)
COUNTED = PassResult("counters", "ncu", "finished")


@pytest.mark.parametrize(
    ("depth", "counted", "verdicts", "explained"),
    [
        ("standard", "finished", (verdict(GEMM, "pass"), verdict(SILU, "fail")), ["silu"]),
        (
            "standard",
            "finished",
            (replace(verdict(GEMM, "unknown"), value=None), verdict(SILU, "not-applicable")),
            "no kernel missed",
        ),
        ("standard", "finished", (replace(verdict(GEMM, "fail"), scope=Scope("run")),), "no kernel missed"),
        (
            "standard",
            "finished",
            (verdict(GEMM, "unknown"),),
            ["gemm"],
        ),  # there is a value that decides nothing
        ("full", "finished", (), ["gemm", "silu"]),
        ("standard", "failed", (), "nothing was counted"),
    ],
)
def test_what_missed_a_target_is_explained_and_at_full_depth_everything(
    depth: Depth, counted: str, verdicts: tuple[Verdict, ...], explained: list[str] | str
) -> None:
    known = after(TIMED, GEMM, SILU)
    result = replace(COUNTED, state=counted)  # type: ignore[arg-type]
    known = replace(known, passes=(*known.passes, result), verdicts=verdicts)
    planned = plan_of(ExplanationPass, site(depth), ABLE, known)
    if isinstance(explained, str):
        assert explained in spoken(planned.skipped)
        assert planned.steps == ()
    else:
        assert sorted(k.kernel.name for k in planned.kernels) == explained
        assert len(planned.steps) == 1


def test_where_ncu_cannot_count_both_passes_say_why() -> None:
    refused = NcuAbility(None, None, False, "ncu is not installed", "install it")
    known = replace(after(TIMED, GEMM), verdicts=())
    for kind in (KernelCountersPass, ExplanationPass):
        planned = plan_of(kind, site(), refused, known)
        assert (spoken(planned.skipped), planned.fix) == ("ncu is not installed", "install it")
