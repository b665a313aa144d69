"""A backend that only this test knows goes through every command: nothing else names one."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.backends import (
    BACKENDS,
    Backend,
    CheckGroup,
    DeviceCandidate,
    PassFindings,
    RunContext,
    backend_of_report,
    choose_backend,
)
from profkit.backends.passes import BackendRun
from profkit.core.types import (
    RUN,
    Check,
    Fact,
    Gpu,
    GpuTrace,
    PassPlan,
    PassResult,
    Reading,
    Report,
    Source,
    Workload,
)
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


BEADS = Gpu("wooden beads")


class Seen(Abacus):
    def candidate(self, workload: Workload) -> DeviceCandidate | None:
        return DeviceCandidate(Fact.of("arguments-say", word=workload.command[1]), (BEADS,))


class Lost(Abacus):
    def candidate(self, workload: Workload) -> DeviceCandidate | None:
        return DeviceCandidate(Fact.of("arguments-say", word=workload.command[1]), missing="nobody has one")


@pytest.mark.parametrize(
    ("present", "chosen", "why"),
    [(True, "abacus", "backend-chosen"), (False, "cpu", "backend-without-device")],
)
def test_a_missing_device_does_not_hide_one_of_a_later_backend(
    monkeypatch: pytest.MonkeyPatch, present: bool, chosen: str, why: str
) -> None:
    for name in ("cuda", "mps"):
        monkeypatch.setitem(BACKENDS, name, Lost)
    if present:
        monkeypatch.setitem(BACKENDS, "abacus", Seen)
    choice = choose_backend("auto", Workload("count", ("count", "beads"), "."))
    assert (choice.backend.name, choice.gpus) == (chosen, (BEADS,) if present else ())
    assert choice.reason is not None
    assert choice.reason.code == why


def test_a_trace_of_its_own_tool_is_not_taken_for_one_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "abacus", Abacus)
    reports = [Report(tool, tool, trace=GpuTrace(tool, ())) for tool in ("ticks", "nsys")]
    assert [backend_of_report(report).name for report in reports] == ["abacus", "cuda"]
