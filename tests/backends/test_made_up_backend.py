"""A backend that only this test knows goes through every command: nothing else names one."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.analysis.summaries.readings import add_readings
from profkit.analysis.timeline import products
from profkit.analysis.timeline.products import mfu_readings
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
    Kernel,
    KernelTime,
    PassPlan,
    PassResult,
    Reading,
    Report,
    RunDocument,
    Source,
    Workload,
)
from profkit.hardware.gpu_locks import FOLDER as LOCKS_FOLDER
from tests.cli_runner import ENVIRONMENT
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


BEADS = Gpu("wooden beads", bandwidth=1e9)


class DevicePass(TicksPass):
    """Its device ran one kernel in half of 20 ms: 1e9 FLOP."""

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:
        kernel = KernelTime(Kernel("add_beads", (1, 1, 1), (32, 1, 1)), launches=1, total=0.01, flops=1e9)
        return PassFindings(trace=GpuTrace("ticks", (kernel,), span=0.02, busy=0.01, launches=1))


class DeviceRun(TicksRun):
    name = "abacus"
    kind = DevicePass


class AbacusWithDevice(Abacus):
    has_device = True

    def devices(self) -> tuple[Gpu, ...]:
        return (BEADS,)

    def device_ids(self) -> tuple[str, ...]:
        return ("beads-1",)

    def start(self, context: RunContext, gpus: tuple[Gpu, ...]) -> BackendRun:
        return DeviceRun(context, gpus)

    def enrich(self, document: RunDocument) -> RunDocument:
        return add_readings(document, mfu_readings(document.trace, document.gpus) if document.trace else ())


def test_its_device_is_locked_and_its_peak_is_what_a_kernel_is_compared_with(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BACKENDS, "abacus", AbacusWithDevice)
    monkeypatch.setattr(products, "TENSOR_PEAKS", ((r"\bbeads\b", 1e12), *products.TENSOR_PEAKS))
    monkeypatch.setitem(ENVIRONMENT, LOCKS_FOLDER, str(Path("locks").absolute()))
    Path("targets.yaml").write_text("targets: {}")
    done = call("profile --backend abacus --depth gate --precision 0.5 --format json -- true")
    assert done.code == 0, done.err
    document = done.json()
    assert [gpu["name"] for gpu in document["gpus"]] == ["wooden beads"]
    (share,) = (reading for reading in document["readings"] if reading["metric"] == "gpu.mfu")
    assert share["value"] == pytest.approx(100 * 1e9 / (0.02 * 1e12))
    assert [lock.name for lock in Path("locks").iterdir()] == ["gpu-beads-1.lock"]


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
