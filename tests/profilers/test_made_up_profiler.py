"""A profiler that only this test knows goes through every command: nothing else names a tool."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

from profkit.backends import PassFindings, PlanState
from profkit.backends.passes import BackendRun, Pass
from profkit.core.errors import Fault
from profkit.core.types import Check, Counter, PassName, PassPlan, PassResult, Report, Step
from profkit.profilers.profiler import Format, Profiler, Recorder, RecordRequest
from profkit.profilers.registry import PROFILERS, recognise_format
from tests.cli_runner import ENVIRONMENT, Said, call_in_process

Call = Callable[[str], Said]
TICKS = """#!/bin/sh
output=$1; shift
[ "$1" = false ] && { echo "ticks: no permission"; exit 9; }
"$@"
printf 'TICKS 1.2\\n%s\\n%d\\n' "$*" "$#" > "$output"
"""


def read_ticks(path: Path) -> Report:
    _, command, ticks = path.read_text().splitlines()
    counters = (Counter("ticks", float(ticks), "measured", unit="count"),)
    return Report("ticks", "ticks", "1.2", {"command": command}, counters)


def step(request: RecordRequest) -> Step:
    return Step("record", ("./ticks", str(request.report), *request.command), tool="ticks")


def explain(text: str, _: int) -> Fault | None:
    return Fault("it may not count", "ask for permission") if "no permission" in text else None


TICK_PROFILER = Profiler(
    "ticks",
    (Format("ticks", "ticks", "ticks", lambda head: head.startswith(b"TICKS "), read_ticks),),
    Recorder(step, follows_region=False),
    explain,
    lambda: (Check("ticks", "ok", "counts words"),),
)


class TicksPass(Pass):
    name, tool = "counters", "ticks"

    def plan(self, _: PlanState) -> list[PassPlan]:
        argv = ("./ticks", f"{self.folder}/ticks.txt", *self.context.workload.command)
        return self.planned((Step("ticks", argv, ("artifacts/ticks.txt",), tool="ticks"),))

    def read(self, _: PassPlan, result: PassResult) -> PassFindings:
        left = [read_ticks(self.context.folder / name) for name in result.artifacts]
        return PassFindings(counters=tuple(counter for report in left for counter in report.counters))


class TicksRun(BackendRun):
    name = "cpu"
    kind: ClassVar[type[Pass]] = TicksPass

    def make_pass(self, name: PassName) -> Pass | None:
        return self.kind(self.context) if name == "counters" else super().make_pass(name)


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls profkit in a folder with `ticks`, and with nothing that takes long."""
    monkeypatch.chdir(tmp_path)
    Path("ticks").write_text(TICKS)
    Path("ticks").chmod(0o755)
    monkeypatch.setitem(PROFILERS, "ticks", TICK_PROFILER)
    for slow in ("perf", "valgrind"):
        monkeypatch.delitem(PROFILERS, slow)
    monkeypatch.setattr("profkit.hardware.conditions.noise_checks", tuple)
    return lambda line: call_in_process(line.split(), tmp_path, ENVIRONMENT)


def test_it_goes_through_every_command(call: Callable[[str], Said], monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("record --tool ticks --report out -- true --token=hf_12345678901234").code == 0
    assert call("scrub out --output public").code == 0
    assert "hf_" not in Path("public").read_text()
    monkeypatch.setattr("profkit.backends.cpu.CpuBackend.start", lambda _, *run: TicksRun(*run))
    profile = "profile --backend cpu --passes counters"
    readers = ("summarize out", "summarize public", f"{profile} --format json -- true a")
    for line in readers:
        counters = call(line if "json" in line else f"{line} --format json").json()["counters"]
        assert [(counter["name"], counter["value"]) for counter in counters] == [("ticks", 2.0)]
    for line in ("record --tool ticks --report other", profile):
        assert "it may not count" in call(f"{line} -- false").err
    assert "counts words" in call("doctor").out


def test_its_sqlite_file_is_not_taken_for_an_export_of_nsys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Format("ticks-db", "ticks", "ticks database", lambda head: b"tick_table" in head, read_ticks)
    monkeypatch.setitem(PROFILERS, "ticks", Profiler("ticks", (own,)))
    named = []
    for table in ("tick_table", "StringIds"):
        with closing(sqlite3.connect(tmp_path / f"{table}.db")) as database:
            database.execute(f"CREATE TABLE {table} (id INTEGER)")
        named.append(recognise_format(tmp_path / f"{table}.db").name)
    assert named == ["ticks-db", "nsys-sqlite"]
