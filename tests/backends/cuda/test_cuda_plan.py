"""What is planned once the trace has been seen, and once the judge has spoken: pure functions on hand-made traces."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.backends import PlanState, RunContext
from profkit.backends.cuda.counters import plan_counters, plan_explain
from profkit.core.types import (
    Depth,
    GpuTrace,
    Kernel,
    KernelTime,
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

NCU = NcuAbility(Path("/usr/bin/ncu"), "2025.3.1", True)
TIMED = PlanState(marked=True, iteration_seconds=0.001, benchmark=True, plain_seconds=5.0, start_seconds=4.0)


def site(depth: Depth = "standard") -> RunContext:
    workload = Workload(("python", "train.py"), "train", "/somewhere")
    return RunContext(workload, read_machine(), Path("/runs/one"), depth, None, 0.01, 8.0)


def took(name: str, total: float, launches: int, *, setup: int = 0) -> KernelTime:
    kernel = Kernel(name, (132, 1, 1), (256, 1, 1), mangled=name)
    return KernelTime(kernel, launches, total, median=total / launches, setup_launches=setup)


def after(known: PlanState, *kernels: KernelTime, marked: bool = True) -> PlanState:
    trace = GpuTrace("nsys", kernels, marked=marked)
    return replace(known, trace=trace, passes=(*known.passes, PassResult("trace", "nsys", "finished")))


def option(step: Step, name: str) -> str | None:
    return step.argv[step.argv.index(name) + 1] if name in step.argv else None


def test_in_a_benchmarks_region_a_warm_launch_is_counted_in_as_few_iterations_as_it_takes() -> None:
    known = after(TIMED, took("gemm", 0.9, 400), took("silu", 0.1, 200))  # of 200 iterations
    step = plan_counters(site(), NCU, known, "GH100").steps[0]
    assert option(step, "--profile-from-start") == "off"
    assert option(step, "--launch-skip") == "1"
    assert step.directive is not None
    assert step.directive.switch is not None
    assert (step.directive.switch.kind, step.directive.iterations) == ("cuda", 2)


def test_where_nothing_is_marked_the_launches_of_the_set_up_are_skipped() -> None:
    known = after(
        PlanState(marked=False), took("gemm", 0.9, 100, setup=7), took("silu", 0.1, 100), marked=False
    )
    step = plan_counters(site(), NCU, known, "GH100").steps[0]
    assert option(step, "--profile-from-start") is None
    assert option(step, "--launch-skip") == "9"
    assert step.directive is not None
    assert step.directive.switch is None


def counted_by_ncu(step: Step, launches: list[str]) -> list[str]:
    """What ncu counts of a program's launches: it looks at those whose name fits, skips some, and counts the next."""
    names = re.compile((option(step, "--kernel-name") or "").removeprefix("regex:"))
    fitting = [name for name in launches if names.search(name)]
    skip, count = (int(option(step, word) or 0) for word in ("--launch-skip", "--launch-count"))
    return fitting[skip : skip + count]


@pytest.mark.parametrize("depth", ["standard", "full"])
def test_a_window_has_its_kernels_by_the_names_that_ncu_is_given(depth: Depth) -> None:
    """Also where some kernels are left out: a launch that ncu does not look at counts nowhere."""
    set_up, steps = list("ssbb"), list(("ab" + "a" * 40 + "s" + "a" * 40 + "x" * 9) * 9)
    names = sorted(set(steps))
    total = dict(zip("absx", (5.0, 4.0, 0.5, 0.5), strict=True))
    kernels = tuple(took(n, total[n], steps.count(n), setup=set_up.count(n)) for n in names)
    order = tuple(names.index(name) for name in steps)
    trace = GpuTrace("nsys", kernels, order=order, marked=False)
    known = replace(
        PlanState(marked=False, plain_seconds=1.0, start_seconds=1.0),
        trace=trace,
        passes=(PassResult("trace", "nsys", "finished"),),
    )
    plan = plan_counters(site(depth), NCU, known, "GH100")
    planned = {kernel.kernel.name for kernel in plan.kernels}
    assert planned >= {"a", "b"}
    assert planned <= {name for step in plan.steps for name in counted_by_ncu(step, set_up + steps)}


@pytest.mark.parametrize(
    ("marked", "says"), [(True, "the marked region launched no kernel"), (False, "the workload launched")]
)
def test_a_trace_without_kernels_leaves_nothing_to_count(marked: bool, says: str) -> None:
    planned = plan_counters(site(), NCU, after(replace(TIMED, marked=marked), marked=marked), "GH100")
    assert says in str(planned.skipped)
    assert planned.fix == "--backend cpu"


@pytest.mark.parametrize(
    ("depth", "name"), [("gate", "gate"), ("standard", "standard"), ("full", "standard")]
)
def test_the_depth_chooses_the_set_and_its_replays_make_the_cost(depth: Depth, name: str) -> None:
    planned = plan_counters(site(depth), NCU, after(TIMED, took("gemm", 1.0, 100)), "GH100")
    assert f"set {name!r}" in planned.cost_note
    assert (planned.kernels[0].replays == 1) is (depth == "gate")
    assert planned.seconds == pytest.approx(
        6.2, abs=0.3
    )  # start 4 s, ncu 2 s, the region, and replays of some 10 ms
    assert planned.cost == pytest.approx(1.24, abs=0.1)


def verdict(kernel: KernelTime, word: VerdictWord) -> Verdict:
    return Verdict(
        "occupancy",
        "occupancy.achieved",
        word,
        "",
        Threshold(">", 75, "%"),
        1.0,
        "%",
        kernel.kernel.scope,
        "measured",
    )


GEMM, SILU = took("gemm", 0.9, 100), took("silu", 0.1, 100)
COUNTED = PassResult("counters", "ncu", "finished")


@pytest.mark.parametrize(
    ("depth", "counted", "verdicts", "explained"),
    [
        ("standard", "finished", (verdict(GEMM, "pass"), verdict(SILU, "fail")), ["silu"]),
        ("standard", "finished", (verdict(GEMM, "fail"), verdict(SILU, "fail")), ["gemm", "silu"]),
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
        ("full", "skipped", (), "nothing was counted"),
    ],
)
def test_what_missed_a_target_is_explained_and_at_full_depth_everything(
    depth: Depth, counted: str, verdicts: tuple[Verdict, ...], explained: list[str] | str
) -> None:
    known = after(TIMED, GEMM, SILU)
    result = replace(COUNTED, state=counted)  # type: ignore[arg-type]
    known = replace(known, passes=(*known.passes, result), verdicts=verdicts)
    planned = plan_explain(site(depth), NCU, known, "GH100")
    if isinstance(explained, str):
        assert explained in str(planned.skipped)
        assert planned.steps == ()
    else:
        assert sorted(k.kernel.name for k in planned.kernels) == explained
        assert len(planned.steps) == 1


def test_where_ncu_cannot_count_both_passes_say_why() -> None:
    refused = NcuAbility(None, None, False, "ncu is not installed", "install it")
    known = replace(after(TIMED, GEMM), verdicts=())
    for planned in (plan_counters(site(), refused, known, None), plan_explain(site(), refused, known, None)):
        assert (planned.skipped, planned.fix) == ("ncu is not installed", "install it")
