"""A backend that only this test knows goes through every command: nothing else names one."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.backends import BACKENDS, Backend, CheckGroup, PassFindings, RunContext
from profkit.backends.passes import BackendRun
from profkit.core.types import RUN, Check, Gpu, PassPlan, PassResult, Reading, Report, Source
from tests.profilers.test_made_up_profiler import Call, TicksPass, TicksRun
from tests.profilers.test_made_up_profiler import call as call  # the fixture


class AbacusPass(TicksPass):
    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:
        (ticks,) = super().read(plan, result).counters
        seconds = Reading("time.geometric_mean", ticks.value, "s", "measured", RUN, Source("abacus"))
        return PassFindings(readings=(seconds,))


class AbacusRun(TicksRun):
    name = "abacus"
    kind = AbacusPass


class Abacus(Backend):
    name = "abacus"
    targets = Path("targets.yaml")

    def claims(self, report: Report) -> bool:
        return report.tool == "ticks"

    def start(self, context: RunContext, gpus: tuple[Gpu, ...]) -> BackendRun:
        return AbacusRun(context, gpus)

    def check_groups(self) -> tuple[CheckGroup, ...]:
        return (CheckGroup("abacus", lambda: [Check("beads", "ok", "they move")]),)


def test_it_goes_through_every_command(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "abacus", Abacus)
    Path("targets.yaml").write_text("targets: {beads: {metric: time.geometric_mean, below: 0.5}}")
    done = call("profile --backend abacus --depth gate --precision 0.5 --check --format json -- true")
    assert done.code == 1, done.err
    (folder,) = Path("reports").iterdir()
    for shown in (done, call(f"summarize {folder} --format json"), call(f"check {folder} --format json")):
        (verdict,) = shown.json()["verdicts"]
        assert (verdict["metric"], verdict["verdict"]) == ("time.geometric_mean", "fail")
    assert "they move" in call("doctor --backend abacus").out
    assert call(f"scrub {folder} --output public").code == 0
    assert call("check public").code == 1
    assert call(f"report {folder} --format html").code == 0
    assert call("record --tool ticks --report out -- true").code == 0
    assert call("summarize out --format json").json()["backend"] == "abacus"
