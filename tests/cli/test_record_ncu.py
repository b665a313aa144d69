"""`record --tool ncu` with a stand-in for ncu, as on a machine with a GPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, Silent, WorkloadError
from profkit.profilers.ncu.probe import NcuAbility
from profkit.profilers.registry import recognise_format
from profkit.profiling.record import RecordOptions, record_report
from tests.conftest import ROOT

STAND_IN = ROOT / "tests" / "stand_ins" / "ncu"
REPORT = ROOT / "tests" / "data" / "cuda" / "ncu" / "truths.gate.ncu-rep"
WORDS = ["a b", 'say "x"', "it's"]
COMMAND = (sys.executable, "-c", "import sys; open('words', 'w').write(repr(sys.argv[1:]))", *WORDS)


class Bench:
    """A folder in which ncu is the stand-in."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._environment = monkeypatch
        ability = NcuAbility(STAND_IN, "2025.3.1", True, chips=("GH100",))
        monkeypatch.setattr("profkit.profilers.ncu.probe.probe_ncu", lambda: ability)
        monkeypatch.chdir(folder)

    def record(
        self,
        told: dict[str, object] | None = None,
        *,
        kernel: str | None = None,
        command: tuple[str, ...] = COMMAND,
    ) -> Path:
        scenario = {"report": str(REPORT), "log": str(self.folder / "calls"), **(told or {})}
        (self.folder / "scenario.json").write_text(json.dumps(scenario))
        self._environment.setenv("NCU_SCENARIO", str(self.folder / "scenario.json"))
        report = self.folder / "my out.ncu-rep"
        return record_report(RecordOptions("ncu", report, command, kernel=kernel, timeout=60.0), Silent())

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_the_report_lies_where_it_was_asked_for_and_can_be_read(bench: Bench) -> None:
    left = bench.record()
    assert left.read_bytes() == REPORT.read_bytes()
    assert recognise_format(left).read(left).counters
    assert (bench.folder / "words").read_text() == repr(WORDS)


def test_the_kernel_that_is_named_is_the_only_one_that_is_asked_for(bench: Bench) -> None:
    bench.record(kernel="silu_mul")
    [call] = bench.calls()
    before = call[: call.index("-c") if "-c" in call else len(call)]
    assert any("silu_mul" in word for word in before)
    (bench.folder / "my out.ncu-rep").unlink()
    bench.record()
    assert not any("silu_mul" in word for word in bench.calls()[-1])


NAMES = "==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. chase\n2. stream_copy\n"


@pytest.mark.parametrize(
    ("told", "says", "fix"),
    [
        ({"report": None, "after": NAMES}, "chase, stream_copy", "--kernel NAME"),
        ({"report": None}, "ncu saw none", "uses the GPU at all"),
        (
            {
                "report": None,
                "text": "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission",
                "status": 1,
            },
            "only administrators",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (
            {
                "report": None,
                "after": "==ERROR== Profiling failed because a driver resource was unavailable.",
            },
            "another tool holds",
            "dcgmi profile --pause",
        ),
    ],
)
def test_where_nothing_was_counted_the_reason_is_told_with_what_to_do(
    bench: Bench, told: dict[str, object], says: str, fix: str
) -> None:
    with pytest.raises(MachineError) as refused:
        bench.record(told)
    assert says in refused.value.message
    assert refused.value.fix is not None
    assert fix in refused.value.fix
    assert not (bench.folder / "my out.ncu-rep").exists()


def test_a_workload_that_fails_is_told_with_its_code_and_the_report_is_kept(bench: Bench) -> None:
    with pytest.raises(WorkloadError, match="7"):
        bench.record(command=("sh", "-c", "exit 7"))
    assert (bench.folder / "my out.ncu-rep").exists()


def test_a_workload_that_fails_before_its_first_kernel_is_not_blamed_on_the_gpu(bench: Bench) -> None:
    with pytest.raises(WorkloadError, match="7"):
        bench.record({"report": None}, command=("sh", "-c", "echo oh no; exit 7"))
