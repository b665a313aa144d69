"""How nsys is found, tried, called and understood, with a stand-in for it where there is no GPU."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.core.errors import MachineError
from profkit.hardware.machine import read_machine
from profkit.profilers.nsys.command import explain, nsys_argv
from profkit.profilers.nsys.probe import collect_report, probe_nsys, recording_step
from profkit.profilers.profiler import RecordRequest
from profkit.profiling.run_steps import RunSettings, run_step
from tests.conftest import ROOT

STAND_IN = ROOT / "tests" / "stand_ins" / "nsys"
TEXTS = ROOT / "tests" / "data" / "cuda" / "texts"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine without nsys; the folder that is on its PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("true", "sh", "env", "mv"):
        folder.joinpath(tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    folder.joinpath("python3").symlink_to(
        sys.executable
    )  # the one on PATH may be a script that needs a shell
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("PROFKIT_NSYS", raising=False)
    monkeypatch.setattr("profkit.profilers.programs.BESIDE_PYTHON", tmp_path / "nowhere")
    monkeypatch.setattr("profkit.profilers.nsys.probe._PLACES", ())
    probe_nsys.cache_clear()
    yield folder
    probe_nsys.cache_clear()


@pytest.fixture
def stand_in(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same with a stand-in for nsys; the file that says how it behaves."""
    (bare / "nsys").symlink_to(STAND_IN)
    scenario = tmp_path / "scenario.json"
    scenario.write_text("{}")
    monkeypatch.setenv("NSYS_SCENARIO", str(scenario))
    return scenario


def test_a_marked_workload_is_traced_from_its_first_region_to_its_end() -> None:
    argv = nsys_argv(("python", "a b.py"), Path("/runs/50%/trace.nsys-rep"), marked=True, nsys="/opt/nsys")
    assert argv[:2] == ("/opt/nsys", "profile")
    assert argv[-2:] == ("python", "a b.py")
    assert {"--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node"} < set(argv)
    # `stop-shutdown`, nsys' default, ends the workload; `stop` leaves out a region's later entries.
    assert {"--capture-range=cudaProfilerApi", "--capture-range-end=none"} < set(argv)
    assert "--output=/runs/50%%/trace" in argv


def test_a_machine_without_nsys_says_how_to_install_it(bare: Path) -> None:
    ability = probe_nsys()
    assert (ability.path, ability.works) == (None, False)
    assert ability.reason == "nsys is not installed"
    assert ability.fix is not None


IMPORTER = (
    "Importer error status: An unknown error occurred.\n"
    "Unable to retrieve the importer version: skipping importation of the QDSTRM file.\n"
    "Generated:\n\t/tmp/probe.qdstrm"
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (IMPORTER, "importer is missing"),
        ("error while loading shared libraries: libdw.so.1: cannot open shared object file", "libdw.so.1"),
        ("Generated:\n\tNo reports were generated", "nsys made no report"),
        ("it rains", "left no report: it rains"),
    ],
)
def test_an_nsys_that_ends_with_0_and_leaves_none_does_not(stand_in: Path, text: str, reason: str) -> None:
    stand_in.write_text(json.dumps({"report": False, "text": text, "status": 0}))
    ability = probe_nsys()
    assert not ability.works
    assert ability.reason is not None
    assert reason in ability.reason


def request(scratch: Path, report: Path) -> RecordRequest:
    scratch.mkdir(exist_ok=True)
    return RecordRequest("samples", ("true",), report, scratch, read_machine(), marked=True)


def test_record_leaves_the_report_where_it_was_asked_for(stand_in: Path, tmp_path: Path) -> None:
    scratch, report = tmp_path / "scratch", tmp_path / "my report.any"
    wanted = request(scratch, report)
    step = recording_step(wanted)
    assert step.directive is not None
    assert step.directive.switch is not None
    assert step.directive.switch.kind == "cuda"
    recorded = run_step(step, RunSettings(scratch))
    assert recorded.workload_ok
    assert collect_report(wanted) == ()
    assert report.read_bytes() == b"a stand-in's report"


def test_record_says_why_there_is_no_report_though_nsys_ended_with_0(stand_in: Path, tmp_path: Path) -> None:
    wanted = request(tmp_path / "scratch", tmp_path / "r")
    step = recording_step(wanted)
    stand_in.write_text(json.dumps({"report": False, "text": "Generated:\n\tNo reports were generated"}))
    run_step(step, RunSettings(wanted.scratch))
    with pytest.raises(MachineError, match="nsys made no report") as caught:
        collect_report(wanted)
    assert caught.value.fix is not None


@pytest.mark.parametrize(
    ("text", "reason", "fix"),
    [
        (IMPORTER, "importer", "nsys export"),
        ("SKIPPED: a.sqlite does not contain CUDA kernel data.", "no kernel", "--cuda-graph-trace=node"),
        ("Subscribe returned 999: CUPTI_ERROR_UNKNOWN", "holds CUPTI", "torch.profiler"),
        ("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "holds CUPTI", "torch.profiler"),
        ("unrecognised option '--cuda-graph-trace=node'", "--cuda-graph-trace=node", "newer nsys"),
        (
            "Executable '/no/such' not found in current directory or standard search paths",
            "start the workload",
            None,
        ),
        ("Failed to create directory '/tmp/nvidia/nsight_systems': Permission denied", None, None),
        ("write failed: No space left on device", "disk is full", "df -h"),
    ],
)
def test_what_nsys_says_is_understood(text: str, reason: str | None, fix: str | None) -> None:
    fault = explain(text, 0)
    assert fault is not None
    assert reason is None or reason in fault.reason
    assert fix is None or (fault.fix is not None and fix in fault.fix)
