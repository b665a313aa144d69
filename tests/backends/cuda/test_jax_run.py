"""Which instrument traces a JAX program, with a JAX that stands in and leaves what was recorded on an H200."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from profkit.backends.cuda.process_rows import seconds_after
from profkit.core.types import PassResult, RunDocument
from tests.backends.cuda.conftest import Machine
from tests.conftest import ROOT
from tests.spoken import spoken, spoken_lines

DATA = ROOT / "tests" / "data" / "cuda" / "jax"
LOOP = """
import sys
sys.path.insert(0, {stand_in!r})
import jax
jax.compile("step")
{more}
print(sum(range(2_000_000)))
"""
ALL = ("timing", "trace", "counters")


def program(more: str = "") -> str:
    return LOOP.format(stand_in=str(ROOT / "tests" / "stand_ins" / "jax"), more=more)


def traces(document: RunDocument) -> list[PassResult]:
    return [result for result in document.passes if result.name == "trace"]


@pytest.fixture
def jax(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The program's Python has JAX, whose profiler leaves a jitted loop."""
    monkeypatch.setattr("profkit.backends.cuda.run.has_module", lambda _, name, __: name in ("jax", "nvtx"))
    monkeypatch.setenv("JAX_TRACE", str(DATA / "jitted.trace.json.gz"))
    return monkeypatch


def test_a_jax_program_is_traced_by_jax_profiler_and_its_kernels_are_counted(
    machine: Machine, jax: pytest.MonkeyPatch
) -> None:
    run = machine.profile(program(), passes=ALL)
    assert [(one.tool, one.state) for one in traces(run)] == [("jax_profiler", "finished")]
    assert run.trace is not None
    assert (run.trace.tool, run.trace.launches, run.trace.repeats) == ("jax_profiler", 240, 20)
    assert machine.calls("nsys", "workload.py") == []


def without_strings(folder: Path) -> Path:
    """The export of a recording whose NVTX strings nsys did not find: no kernel, and its own message."""
    path = folder / "lost.sqlite"
    with (
        sqlite3.connect(ROOT / "tests/data/cuda/nsys/truths.sqlite") as source,
        sqlite3.connect(path) as copy,
    ):
        source.backup(copy)
        copy.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
        copy.execute("DROP TABLE IF EXISTS DIAGNOSTIC_EVENT")
        copy.execute("CREATE TABLE DIAGNOSTIC_EVENT (severity INTEGER, text TEXT)")
        copy.execute(
            "INSERT INTO DIAGNOSTIC_EVENT VALUES (2, 'Error when processing events: Cannot find string for an "
            "exterior index')"
        )
    return path


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("jax.profiler.start_trace('/tmp/own')", "the program uses jax.profiler itself"),
        ("jax.profiler.start_server(9999)", "the program uses jax.profiler itself"),
        ("jax.listeners.clear()", ""),
    ],
)
def test_where_jax_profiler_is_the_programs_own_nsys_traces_and_it_is_said(
    machine: Machine, jax: pytest.MonkeyPatch, more: str, reason: str
) -> None:
    run = machine.profile(program().replace('jax.compile("step")', more), passes=ALL)
    first, second = traces(run)
    assert (first.tool, first.state, second.tool, second.state) == (
        "jax_profiler", "failed", "nsys", "finished",
    )  # fmt: skip
    assert reason in spoken(first.reason)
    assert run.plan is not None
    assert "by nsys without NVTX ranges, because jax.profiler failed" in " ".join(
        spoken_lines(run.plan.passes[2].notes)
    )
    assert [one.name for one in run.passes] == ["timing", "trace", "trace", "counters"]


@pytest.mark.thorough
def test_ranges_that_nsys_cannot_import_are_left_out_in_one_more_trace(
    machine: Machine, jax: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of any program: this one marks a region, and has no JAX."""
    machine.tools(
        nsys={
            "sqlite": str(without_strings(tmp_path)),
            "without-nvtx": str(ROOT / "tests/data/cuda/nsys/truths.sqlite"),
        }
    )
    run = machine.profile(passes=ALL)
    assert [(one.tool, one.state) for one in traces(run)] == [("nsys", "failed"), ("nsys", "finished")]
    first, second = machine.calls("nsys", "workload.py")
    assert "--trace=cuda,nvtx" in first
    assert "--trace=cuda" in second
    assert run.trace is not None
    assert run.trace.launches == 39


@pytest.mark.thorough
def test_a_jax_program_without_any_trace_is_not_tried_with_torch(
    machine: Machine, jax: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine.tools(nsys={"sqlite": str(without_strings(tmp_path))})
    jax.setenv("STAND_IN_JAX", "start")
    run = machine.profile(program(), passes=ALL)
    assert [one.tool for one in traces(run)] == ["jax_profiler", "nsys"]
    assert {one.state for one in traces(run)} == {"failed"}
    assert "RuntimeError: No GPU tracer" in spoken(traces(run)[0].reason)


FLAG = "--xla_gpu_enable_command_buffer="


def told_xla(document: RunDocument) -> dict[str, list[str | None]]:
    """What each pass tells XLA."""
    assert document.plan is not None
    return {
        one.name: [step.env.get("XLA_FLAGS") for step in one.steps]
        for one in document.plan.passes
        if one.steps
    }


@pytest.mark.parametrize(("own", "told"), [(None, FLAG), ("--xla_dump_to=d", f"--xla_dump_to=d {FLAG}")])
def test_while_kernels_of_a_jax_program_are_counted_xla_makes_no_graphs(
    machine: Machine, jax: pytest.MonkeyPatch, own: str | None, told: str
) -> None:
    if own is None:
        jax.delenv("XLA_FLAGS", raising=False)
    else:
        jax.setenv("XLA_FLAGS", own)
    run = machine.profile(program(), passes=ALL)
    assert told_xla(run) == {"timing": [None], "trace": [None], "counters": [told]}
    assert run.plan is not None
    assert "XLA launches them one by one" in " ".join(spoken_lines(run.plan.passes[-1].notes))


@pytest.mark.thorough
def test_a_jax_program_that_ncu_makes_crash_is_counted_with_one_compilation_at_a_time(
    machine: Machine, jax: pytest.MonkeyPatch
) -> None:
    one = "--xla_gpu_force_compilation_parallelism=1"
    machine.tools(ncu={"crashes_without": one})
    jax.delenv("XLA_FLAGS", raising=False)
    run = machine.profile(program(), passes=ALL)
    counters = [result for result in run.passes if result.name == "counters"]
    assert "ncu itself made the program fail" in spoken(counters[0].reason)
    # the second try was read: the stand-in's report is another program's
    assert "none of the planned kernels" in spoken(counters[1].reason)
    assert run.plan is not None
    flags = [
        step.env["XLA_FLAGS"] for plan in run.plan.passes if plan.name == "counters" for step in plan.steps
    ]
    assert flags == [FLAG, f"{FLAG} {one}"]
    # a crash that was mended is none of a program without JAX: it would crash again
    machine.tools(ncu={"crashes_without": one})
    other = machine.profile("print('no JAX')", passes=ALL)
    assert [result.state for result in other.passes if result.name == "counters"] == ["failed"]


@pytest.mark.thorough
def test_a_program_without_jax_or_without_graphs_is_told_nothing(
    machine: Machine, jax: pytest.MonkeyPatch
) -> None:
    machine.tools(nsys={"sqlite": str(ROOT / "tests/data/cuda/nsys/graphs.node.sqlite")})
    other = machine.profile("print('no JAX')", passes=ALL, depth="full")
    assert other.trace is not None
    assert any(one.graph for one in other.trace.kernels)
    assert told_xla(other)["counters"] == [None]
    jax.setenv("JAX_TRACE", str(DATA / "eager.trace.json.gz"))
    assert told_xla(machine.profile(program(), passes=ALL, depth="full"))["counters"] == [None]


def test_the_program_says_what_its_modules_launch_and_the_account_has_it_by_operation(
    machine: Machine, jax: pytest.MonkeyPatch
) -> None:
    """From the text of XLA's module in the workload's process to the rows."""
    jax.setenv("JAX_TRACE", str(DATA / "step.trace.json.gz"))
    jax.setenv("JAX_MODULE", str(ROOT / "tests" / "data" / "jax" / "step.hlo.txt.gz"))
    run = machine.profile(program(), passes=("timing", "trace"))
    assert run.trace is not None
    assert {one.operation is not None for one in run.trace.kernels} == {True}
    assert run.account is not None
    first = run.account.rows[0]
    assert (first.what, first.type, first.library, first.where.line) == (
        "dot_general [2048,4096] x [4096,2048]", "tf32", "cuBLAS", 6,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "seconds"),
    [
        ([["trace.jax.7-2", 5.5]], 5.5),
        ([["trace.jax.7-1", 5.5]], None),  # of another window
        ([["trace.jax.7-2", -1]], None),
        ([["trace.jax.7-2", 1e300]], None),
        ([["trace.jax.7-2"], [], 3, "x"], None),
        ("no rows", None),
    ],
)
def test_how_long_a_program_went_on_after_a_window_is_read_from_what_it_wrote(
    rows: object, seconds: float | None
) -> None:
    assert seconds_after([{"windows": rows}], Path("trace.jax.7-2.json.gz")) == seconds
