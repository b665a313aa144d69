"""A backend that only this test knows goes through profile, record, summarize, doctor and scrub: nothing else names one."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.backends import BACKENDS, Backend, BackendRun, CheckGroup, PassFindings, PlanState, RunContext
from profkit.backends.passes import PlannedRun
from profkit.core.types import RUN, Check, Gpu, PassName, PassPlan, PassResult, Reading, Report, Source, Step
from profkit.profilers.registry import PROFILERS
from tests.cli_runner import ENVIRONMENT, Said, call_in_process
from tests.profilers.test_made_up_profiler import TICKS, Ticks


class AbacusRun(PlannedRun):
    name = "abacus"

    def plan_pass(self, name: PassName, state: PlanState) -> list[PassPlan]:
        file = "artifacts/beads.txt"
        return [
            PassPlan(
                name, None, (Step("beads", ("cp", "beads.txt", str(self.context.folder / file)), (file,)),)
            )
        ]

    def read_pass(self, plan: PassPlan, result: PassResult) -> PassFindings:
        beads = float((self.context.folder / result.artifacts[0]).read_text())
        return PassFindings(readings=(Reading("ipc", beads, "", "measured", RUN, Source("abacus")),))


class Abacus(Backend):
    name = "abacus"
    targets = Path("targets.yaml")

    def claims(self, report: Report) -> bool:
        return report.tool == "ticks"

    def start(self, context: RunContext, gpus: tuple[Gpu, ...]) -> BackendRun:
        return AbacusRun(context, gpus)

    def check_groups(self) -> tuple[CheckGroup, ...]:
        return (CheckGroup("abacus", lambda: [Check("beads", "ok", "they move")]),)


def test_it_goes_through_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(BACKENDS, "abacus", Abacus)
    for slow in ("hardware.noise.noise_checks", "profiling.doctor.machine.python_checks"):
        monkeypatch.setattr(f"profkit.{slow}", tuple)
    monkeypatch.setitem(PROFILERS, "ticks", Ticks)
    Path("ticks").write_text(TICKS)
    Path("ticks").chmod(0o755)
    Path("beads.txt").write_text("7")
    Path("targets.yaml").write_text("targets: {beads: {metric: ipc, above: 9}}")

    def call(line: str) -> Said:
        return call_in_process(line.split(), tmp_path, ENVIRONMENT)

    done = call("profile --backend abacus --depth gate --precision 0.5 --check --format json -- true")
    assert done.code == 1, done.err
    (folder,) = Path("reports").iterdir()
    for shown in (done, call(f"summarize {folder} --format json"), call(f"check {folder} --format json")):
        assert [(v["metric"], v["verdict"]) for v in shown.json()["verdicts"]] == [("ipc", "fail")]
    assert "they move" in call("doctor --backend abacus").out
    assert call(f"scrub {folder} --output public").code == 0
    assert call("check public").code == 1
    assert call(f"report {folder} --format html").code == 0
    assert call("record --tool ticks --report out -- true").code == 0
    assert call("summarize out --format json").json()["backend"] == "abacus"
