"""A profiler that only this test knows goes through profile, record, summarize, doctor and scrub: nothing else names a tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from profkit.backends import PassFindings, PlanState
from profkit.backends.passes import PlannedRun
from profkit.core.errors import Fault
from profkit.core.types import Check, Counter, PassName, PassPlan, PassResult, Report, Step
from profkit.profilers.profiler import Format, Profiler, Recorder, RecordRequest
from profkit.profilers.redact import COMMAND, Redactor
from profkit.profilers.registry import PROFILERS
from tests.cli_runner import ENVIRONMENT, Said, call_in_process

TICKS = """#!/bin/sh
# ticks OUTPUT COMMAND...: runs the command, and counts one tick for each of its words
output=$1; shift
[ "$1" = false ] && { echo "ticks: no permission"; exit 9; }
"$@"
printf 'TICKS 1.2\\n%s\\n%d\\n' "$*" "$#" > "$output"
"""


def read_ticks(path: Path) -> Report:
    _, command, ticks = path.read_text().splitlines()
    counters = (Counter("ticks", float(ticks), "measured", unit="count"),)
    return Report("ticks", "ticks", "1.2", {"command": command}, counters)


def scrub_ticks(source: Path, output: Path, redactor: Redactor) -> None:
    redactor.note(COMMAND)
    first, _, last = source.read_text().splitlines()
    output.write_text(f"{first}\nprogram\n{last}\n")


class Ticks:
    name = "ticks"
    formats = (
        Format(
            name, name, "a file of ticks", lambda head: head.startswith(b"TICKS "), read_ticks, scrub_ticks
        ),
    )

    def __init__(self) -> None:
        self.recorder = Recorder(self.step, follows_region=False)

    def step(self, request: RecordRequest) -> Step:
        return Step("record", ("./ticks", str(request.report), *request.command), tool=self.name)

    def explain(self, text: str, _: int) -> Fault | None:
        return Fault("it may not count", "ask for permission") if "no permission" in text else None

    def checks(self) -> Iterable[Check]:
        yield Check("ticks", "ok", "counts words")


class TicksRun(PlannedRun):
    name = "cpu"

    def plan_pass(self, name: PassName, _: PlanState) -> list[PassPlan]:
        report = self.context.folder / "artifacts" / "ticks.txt"
        argv = ("./ticks", str(report), *self.context.workload.command)
        return [PassPlan(name, "ticks", (Step("ticks", argv, ("artifacts/ticks.txt",), tool="ticks"),))]

    def read_pass(self, _: PassPlan, result: PassResult) -> PassFindings:
        return PassFindings(counters=read_ticks(self.context.folder / result.artifacts[0]).counters)


def test_it_goes_through_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ticks").write_text(TICKS)
    Path("ticks").chmod(0o755)
    load: Callable[[], Profiler] = Ticks  # where mypy compares it with the Protocol
    monkeypatch.setitem(PROFILERS, "ticks", load)
    monkeypatch.setattr(
        "profkit.backends.cpu.CpuBackend.start", lambda _, context, gpus: TicksRun(context, gpus)
    )
    for slow in ("perf", "valgrind"):
        monkeypatch.delitem(PROFILERS, slow)
    for slow in ("hardware.noise.noise", "profiling.doctor.machine.python", "backends.cpu.peaks_check.peaks"):
        monkeypatch.setattr(f"profkit.{slow}_checks", tuple)

    def call(line: str) -> Said:
        return call_in_process(line.split(), tmp_path, ENVIRONMENT)

    done = call("record --tool ticks --report out -- true --token=hf_12345678901234")
    assert done.code == 0, done.err
    assert call("scrub out --output public").code == 0
    assert "hf_" not in Path("public").read_text()
    for name in ("out", "public"):
        assert call(f"summarize {name}").code == 0
        document = call(f"summarize {name} --format json").json()
        assert document["tools"] == {"ticks": "1.2"}
        assert [(counter["name"], counter["value"]) for counter in document["counters"]] == [("ticks", 2.0)]
    refused = call("record --tool ticks --report other -- false")
    assert (refused.code, "it may not count" in refused.err) == (3, True)
    profiled = call("profile --backend cpu --passes counters --format json -- true a b").json()
    assert [(counter["name"], counter["value"]) for counter in profiled["counters"]] == [("ticks", 3.0)]
    assert "it may not count" in call("profile --backend cpu --passes counters -- false").out
    assert "counts words" in call("doctor").out
