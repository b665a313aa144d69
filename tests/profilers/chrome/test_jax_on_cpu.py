"""What XLA runs on a processor: instructions in a trace, their lines out of its modules, and the account of both."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profkit.analysis.account.host import host_account
from profkit.analysis.hot_spots import hot_spots
from profkit.core.types import (
    AccountRow,
    CodeLine,
    Construct,
    Hotspot,
    LineCode,
    LineSamples,
    Profile,
    RunDocument,
    SampledTime,
)
from profkit.profilers.chrome.jax_lines import read_jax_compilations, read_jax_lines
from profkit.profilers.registry import recognise_format
from profkit.runtime.passes.host.compilers import operations_of_module
from tests import documents
from tests.conftest import ROOT

DATA = ROOT / "tests" / "data" / "jax"
MODULE = (DATA / "cpu.hlo.txt").read_text()
LAYER, RELU, LOSS = ("/src/train.py", 3, "layer"), ("/src/train.py", 4, "layer"), ("/src/train.py", 8, "loss")


def recorded_window(folder: Path) -> Path:
    """A run's folder with the recorded window, and the lines of its module."""
    rows = [[*row[:4], "jit_loss", row[4]] for row in operations_of_module(MODULE, lambda _: False)]
    shutil.copyfile(DATA / "cpu.trace.json.gz", folder / "stacks.xla.7-1.json.gz")
    (folder / "stacks.xla.operations").write_text(json.dumps({"pid": 7, "xla": rows}) + "\ntorn {\n")
    return folder


def test_a_trace_of_the_processor_has_xlas_instructions_by_their_own_time() -> None:
    report = recognise_format(DATA / "cpu.trace.json.gz").read(DATA / "cpu.trace.json.gz")
    (profile,) = report.profiles
    calls = {spot.function: spot.calls for spot in profile.hotspots}
    assert report.trace is None
    assert profile.hotspots[0].function == "sort.0 of jit_loss"
    assert calls["sort.0 of jit_loss"] == 2
    assert calls["ynn_fusion of jit__lambda"] == 10  # five times in each loop
    loop = next(spot for spot in profile.hotspots if spot.function == "while.5 of jit__lambda")
    assert loop.total is not None
    assert loop.own < loop.total  # what its body takes is the body's
    assert [fact.code for fact in report.warnings] == ["trace-of-xla-on-cpu"]


def test_each_instruction_of_a_module_has_its_line_and_jaxs_name() -> None:
    found = {str(row[3]): (tuple(row[:3]), row[4]) for row in operations_of_module(MODULE, lambda _: False)}
    assert found["sort.0"] == (LOSS, "sort")
    assert found["ynn_fusion.2"] == (LAYER, "dot_general")
    assert found["dot.1"] == (LAYER, "dot_general")  # of the gradient; its own name is `transpose`
    assert found["ynn_fusion.1"] == (LOSS, "square, reduce_sum")
    assert found["compare_select_fusion"] == (RELU, "max, gt, select_n")
    assert not found.keys() & {"tuple.3", "constant.15", "x.1", "square.0"}  # no work, or a part of a fusion


def test_a_window_is_read_by_line_and_adds_up_to_the_time_in_which_xla_ran(tmp_path: Path) -> None:
    profile = read_jax_lines(recorded_window(tmp_path), "stacks")
    assert profile is not None
    by_line: dict[tuple[str | None, int | None, str], float] = {}
    for spot in profile.hotspots:
        by_line[spot.file, spot.line, spot.lines[0].function if spot.lines else ""] = spot.own
    assert {LAYER, RELU, LOSS} <= by_line.keys()
    assert (profile.hotspots[0].function, profile.hotspots[0].line) == ("sort", 8)
    assert 0 < sum(spot.own for spot in profile.hotspots) <= profile.total
    unknown = {spot.function for spot in profile.hotspots if spot.file is None}
    assert {"while.5", "copy.5"} <= unknown  # of a module whose text was not kept


def test_instructions_that_run_at_a_time_share_it(tmp_path: Path) -> None:
    def ran(thread: int, name: str, at: float, took: float) -> dict[str, Any]:
        args = {"hlo_op": name, "hlo_module": "jit_f"}
        return {"ph": "X", "pid": 1, "tid": thread, "name": name, "ts": at, "dur": took, "args": args}

    events = [ran(1, "a", 0, 1e6), ran(2, "b", 0, 1e6), ran(1, "a", 3e6, 1e6)]
    text = json.dumps({"traceEvents": events})
    (tmp_path / "stacks.xla.7-1.json.gz").write_bytes(gzip.compress(text.encode()))
    profile = read_jax_lines(tmp_path, "stacks")
    assert profile is not None
    assert profile.total == pytest.approx(4)
    assert {spot.function: spot.own for spot in profile.hotspots} == pytest.approx({"a": 4 / 3, "b": 2 / 3})


def test_half_a_window_and_none_are_no_profile(tmp_path: Path) -> None:
    assert read_jax_lines(tmp_path, "stacks") is None
    (tmp_path / "stacks.xla.7-1.json.gz").write_bytes(b"\x1f\x8b\x08")
    assert read_jax_lines(tmp_path, "stacks") is None


# ---------------------------------------------------------------- the account


def waiting(call: str, *, below_jax: bool, busy: float = 8.0) -> RunDocument:
    """A line that waits for a lock for 9 of 10 s; XLA ran for `busy` s of its window, three quarters of it a sort."""
    folder = "/site-packages/jax/_src/api.py"
    callees = (CodeLine("block_until_ready", folder, 5, 9.0),) if below_jax else ()
    code = LineCode(f"{call}(x)", None, (Construct("call", call),))
    line = LineSamples(
        "train", "/src/train.py", 20, 10.0, 1.0, waits={"lock": 9.0}, callees=callees, code=code
    )
    spots = (
        Hotspot(
            "sort",
            busy * 0.75,
            None,
            9,
            "/src/train.py",
            8,
            lines=(CodeLine("loss", "/src/train.py", 8, 1.0),),
        ),
        Hotspot("copy", busy * 0.25, None, 9),
    )
    xla = Profile("operations of XLA by line", "s", 10.0, spots, "xla-operations")
    sampled = SampledTime(10.0, 1.0, lines=(line,))
    document = replace(
        documents.empty(), state="complete", sampled=(sampled,), profiles=(xla,) if busy else ()
    )
    return replace(document, hot_spots=hot_spots(document))


def rows_of(document: RunDocument) -> list[AccountRow]:
    account = host_account(document)
    assert account is not None
    return list(account.rows)


@pytest.mark.parametrize(("call", "below_jax"), [("jax.block_until_ready", True), ("step", False)])
def test_a_wait_for_xla_is_what_xla_ran_at_its_own_lines(call: str, below_jax: bool) -> None:
    document = waiting(call, below_jax=below_jax)
    assert document.hot_spots[0].kind == "library"
    rows = {(row.where.line, row.what): row.seconds for row in rows_of(document)}
    assert rows[8, "sort"] == pytest.approx(10 * 0.9 * 0.8 * 0.75)
    assert rows[None, "other operations of XLA"] == pytest.approx(10 * 0.9 * 0.8 * 0.25)
    assert sum(rows.values()) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("call", "busy"), [("lock.acquire", 8.0), ("worker.join", 8.0), ("step", 4.0), ("step", 0.0)]
)
def test_a_lock_of_the_programs_own_and_an_idle_xla_stay_a_wait_for_a_lock(call: str, busy: float) -> None:
    document = waiting(call, below_jax=False, busy=busy)
    assert document.hot_spots[0].kind == "lock"
    assert [row.where.line for row in rows_of(document)] == [20]


def test_what_jax_compiled_again_is_read_with_its_line_and_seconds_and_odd_rows_are_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "stacks.jsonl.operations"
    rows = [
        ["a.py", 18, "main", "jit(features)", 39, 0.13],
        ["a.py", 18, "main", "jit(features)", "many", 0.13],
        ["a.py", 18, "main"],
    ]
    path.write_text(json.dumps({"pid": 1, "jax": rows}) + "\n[1]\n{half a li")
    profile = read_jax_compilations(path)
    assert profile is not None
    (spot,) = profile.hotspots
    assert (spot.file, spot.line, spot.function, spot.library) == ("a.py", 18, "main", "jit(features)")
    assert (spot.calls, spot.total, spot.counters) == (39, pytest.approx(39 * 0.13), {"jax": 1.0})
    assert read_jax_compilations(tmp_path / "none") is None
