"""The account of a step of JAX: operations with their shapes, compilations, and idle time where the host launches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.account import make_account
from profkit.analysis.hot_spots import hot_spots
from profkit.core.types import (
    Account,
    AccountRow,
    ApiCall,
    CodeLine,
    CodeSpot,
    Gpu,
    GpuTrace,
    Hotspot,
    Kernel,
    KernelTime,
    LineCode,
    LineSamples,
    Place,
    Profile,
    RunDocument,
    SampledTime,
    TimeSplit,
)
from tests import documents
from tests.analysis.timeline.test_xla_order import MODULE, placed_step

H200 = Gpu("NVIDIA H200", 0, "9.0", bandwidth=4.8e12)


def run(trace: GpuTrace, **changes: object) -> RunDocument:
    document = replace(
        documents.document(), trace=trace, metal=None, kernels=(), hot_spots=(), insights=(), gpus=(H200,)
    )
    return replace(document, **changes)  # type: ignore[arg-type]


def account_of(document: RunDocument) -> Account:
    account = make_account(document)
    assert account is not None
    return account


def test_a_recorded_step_has_its_operations_with_shapes_and_their_time_at_the_limit() -> None:
    rows = [row for row in account_of(run(placed_step())).rows if row.kind == "kernel"]
    said = [(row.what, row.type, row.library, row.where.line, round(row.launches or 0)) for row in rows]
    assert said[:4] == [
        ("dot_general [2048,4096] x [4096,2048]", "tf32", "cuBLAS", 6, 7),
        ("dot_general [4096,2048] x [2048,2048]", "tf32", "cuBLAS", 6, 4),
        ("add_any [4096,2048]", "fp32", "XLA", 6, 4),
        ("mul, tanh [4096,2048]", "fp32", "XLA", 6, 3),
    ]
    # 4 x 34.4 GFLOP at 494.7 TFLOP/s, and 3 x 100.7 MB at 4.8 TB/s
    assert rows[1].least == pytest.approx(4 * 34.36e9 / 494.7e12, rel=2e-3)
    assert rows[3].least == pytest.approx(3 * 100.66e6 / 4.8e12, rel=2e-3)


# ------------------------------------------------------------ compilations


def compiling(calls: int) -> GpuTrace:
    times = (KernelTime(Kernel("loop_add_fusion", (1,), (32,)), 50, 0.01),)
    return GpuTrace(
        "jax_profiler", times, span=10.0, busy=0.01, repeats=5, api=(ApiCall("JAX compiles", calls, 9.0),)
    )


def compiled(*lines: tuple[int, int, float]) -> tuple[Profile, ...]:
    """What JAX compiled again: the line, how often, and seconds."""
    spots = tuple(
        Hotspot("main", float(count), seconds, count, "a.py", line, "jit(f)", counters={"jax": 1.0})
        for line, count, seconds in lines
    )
    return (Profile("compiled again by JAX", "count", 1.0, spots, "recompilations"),)


def compiling_row(document: RunDocument) -> AccountRow:
    return next(row for row in account_of(document).rows if row.what == "JAX compiles")


def test_what_compiles_in_each_step_is_at_the_one_line_that_compiles_again() -> None:
    found = compiling_row(run(compiling(30), profiles=compiled((18, 39, 34.6), (18, 39, 5.6), (13, 1, 0.05))))
    assert (found.where.file, found.where.line, found.where.function) == ("a.py", 18, "main")


@pytest.mark.parametrize(
    "profiles",
    [
        (),
        compiled((18, 39, 3.0), (22, 39, 2.0)),  # either
        compiled((18, 7, 3.0)),  # fewer times than in the steps: others compile there, for the first time
    ],
)
def test_where_several_lines_may_compile_none_is_said(profiles: tuple[Profile, ...]) -> None:
    assert compiling_row(run(compiling(30), profiles=profiles)).where.line is None


# ------------------------------------------------------------ idle time where the host launches

EAGER = GpuTrace(
    "jax_profiler",
    (KernelTime(Kernel("wrapped_add", (1,), (32,)), 4500, 0.1, ranges=MODULE),),
    span=2.0,
    busy=0.1,
    repeats=45,
    starved=0.95,
)
JAX = "/lib/site-packages/jax/_src/numpy/array_methods.py"
LOOP = CodeLine("main", "a.py", 26, 1.0)


def line(
    number: int,
    seconds: float,
    *,
    loop: int | None = None,
    compiles: float = 0.0,
    file: str = JAX,
    inside: bool = True,
) -> LineSamples:
    below = (CodeLine("backend_compile_and_load", JAX, 5, compiles),) if compiles else ()
    callees = (CodeLine("_operator_add", file, 1, seconds),)
    code = LineCode("x", loop=loop) if loop is not None else None
    within = (LOOP,) if inside and loop is None else ()
    function = "main" if loop is not None else "<lambda>"
    return LineSamples(
        function, "a.py", number, main_wall=seconds, callees=callees, below=below, code=code, within=within
    )


STEP = line(26, 1.6, loop=25, compiles=1.55)


def places(*lines: LineSamples, trace: GpuTrace = EAGER) -> dict[int | None, float]:
    """The idle time of the lines, in shares of all that is idle."""
    document = run(trace, sampled=(SampledTime(9.0, 9.0, 0.1, 0.1, lines=lines),))
    rows = [row for row in account_of(document).rows if row.kind == "idle"]
    every = sum(row.seconds for row in rows)
    return {row.where.line: round(row.seconds / every, 2) for row in rows if row.where.line is not None}


def test_idle_time_of_an_eager_loop_is_at_the_lines_that_launch_without_what_they_compiled() -> None:
    assert places(STEP, line(17, 1.37, compiles=0.3), line(14, 0.7), line(21, 2.6, inside=False)) == {
        17: pytest.approx(0.95 * 1.07 / 1.77, abs=0.01),
        14: pytest.approx(0.95 * 0.7 / 1.77, abs=0.01),
    }


def test_a_line_that_compiles_much_counts_where_the_rest_of_all_fits_into_the_traced_idle_time() -> None:
    # Of 60 steps on an H200 the trace saw 49, which were idle for 1.8 s.
    assert places(STEP, line(17, 1.25, compiles=0.47), line(14, 0.58, compiles=0.2)) == {
        17: pytest.approx(0.95 * 0.78 / 1.16, abs=0.01),
        14: pytest.approx(0.95 * 0.38 / 1.16, abs=0.01),
    }
    assert places(STEP, line(17, 2.5, compiles=0.94), line(14, 0.7)) == {}
    # A window of 2 s saw a third of the loop.
    longer = places(STEP, line(17, 2.5, compiles=0.94), line(14, 0.7), trace=replace(EAGER, untraced=4.0))
    assert longer == {
        17: pytest.approx(0.95 * 1.56 / 2.26, abs=0.01),
        14: pytest.approx(0.95 * 0.7 / 2.26, abs=0.01),
    }


@pytest.mark.parametrize(
    "lines",
    [
        (STEP, line(14, 0.7), line(30, 0.7, loop=29)),  # another loop
        (STEP, line(14, 0.7), line(15, 0.7, file="/app/loader.py")),  # the loop does something else
        (line(26, 4.7, loop=25, compiles=1.6),),  # compiles, and traces, which nothing tells apart
        (replace(line(26, 1.7, loop=25), callees=(CodeLine("_run_python_pjit", JAX, 9, 1.2),)),),
        (line(21, 2.6, inside=False),),  # no loop
        (),
    ],
)
def test_where_something_else_may_keep_the_host_no_line_is_said(lines: tuple[LineSamples, ...]) -> None:
    assert places(*lines) == {}


@pytest.mark.parametrize(
    "trace",
    [
        replace(EAGER, busy=1.9),
        replace(EAGER, starved=0.1),
        replace(EAGER, repeats=None),
        replace(EAGER, kernels=tuple(replace(one, ranges=()) for one in EAGER.kernels)),
    ],
)
def test_a_device_that_is_busy_or_waits_for_nothing_to_be_launched_has_no_such_line(trace: GpuTrace) -> None:
    assert places(STEP, line(14, 0.7), trace=trace) == {}


def test_a_line_that_launches_in_the_steps_is_none_of_the_start() -> None:
    spots = tuple(
        CodeSpot(0.2, seconds, "library", Place(function=function, file="a.py", line=number))
        for number, seconds, function in ((14, 0.7, "<lambda>"), (21, 2.6, "main"))
    )
    sampled = (SampledTime(9.0, 9.0, 0.1, 0.1, lines=(STEP, line(14, 0.7), line(21, 2.6, inside=False))),)
    split = TimeSplit(wall=9.0, startup=7.0)
    document = run(EAGER, sampled=sampled, hot_spots=spots, time_split=split)
    assert [one.where.line for one in account_of(document).start] == [21]


COMPILER = "/lib/site-packages/jax/_src/compiler.py"


@pytest.mark.parametrize(
    ("seconds", "kind"), [(1.6, "library"), (0.5, "lock")], ids=["most of it", "a part of it"]
)
def test_a_line_that_waits_for_the_compiler_of_xla_compiles_and_waits_for_no_lock(
    seconds: float, kind: str
) -> None:
    below = (CodeLine("backend_compile_and_load", COMPILER, 5, seconds),)
    waiting = LineSamples("main", "a.py", 39, main_wall=1.7, waits={"lock": 1.4}, below=below)
    (spot, *_) = hot_spots(run(EAGER, sampled=(SampledTime(2.0, 2.0, 0.1, 0.1, lines=(waiting,)),)))
    assert (spot.kind, spot.where.line) == (kind, 39)
    assert (spot.under is not None and spot.under.name == "XLA's compiler") == (kind == "library")
