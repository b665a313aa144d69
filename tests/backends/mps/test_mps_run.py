"""Whole runs of `profile --backend mps` with a stand-in for xctrace: what it is asked, and what comes of it."""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.backends.mps import mps_evidence
from profkit.core.errors import MachineError
from profkit.profiling.profile import ProfileOptions, make_plan
from profkit.profiling.workload import describe_workload
from tests.backends.mps.conftest import Run
from tests.spoken import spoken, spoken_lines
from tests.xctrace_stand_in import instruments

pytestmark = pytest.mark.usefixtures("no_page")

MakeRun = Callable[..., Run]
FULL = "Recording failed with errors. Saving output file...\nNo space left on device"
DEVELOPER = "Developer mode is disabled"
MISSING = "Export failed: Document Missing Template Error"


@pytest.mark.thorough
def test_a_run_traces_the_marked_region_and_names_what_is_absent(mac_run: MakeRun) -> None:
    run = mac_run(passes="timing,trace", every_table=True)
    assert run.document.state == "complete"
    assert [(p.name, p.state) for p in run.document.passes] == [("timing", "finished"), ("trace", "finished")]
    metal = run.metal
    assert metal.marked
    assert metal.entries == 3
    assert metal.process_busy is not None
    assert metal.device_busy is not None
    assert 0 < metal.process_busy <= metal.device_busy < (metal.span or 0)
    assert 0.14 < (metal.span or 0) < 0.4  # three entries of 50 ms
    assert [work.name for work in metal.encoders] == ["Compute Command 0"]
    assert any("counter" in absent.what for absent in metal.absent)
    assert run.document.trace is not None
    assert run.document.trace.tool == "xctrace"
    assert run.document.tools["xctrace"] == "16.0 (17F42)"
    assert run.of("trace").artifacts[:2] == ("artifacts/trace.trace", "artifacts/trace.xctrace")


@pytest.mark.thorough
def test_the_counters_have_a_recording_of_their_own_and_join_the_trace(mac_run: MakeRun) -> None:
    run = mac_run({"counters": True}, passes="trace,counters")
    trace, counters = run.xctrace.calls("record")
    assert trace[trace.index("--template") + 1] == "Metal System Trace"
    assert "--instrument" not in trace
    assert counters[counters.index("--instrument") + 1] == "Metal GPU Counters"
    assert "--template" not in counters
    assert {one.name for one in run.metal.counters} >= {"ALU Utilization", "Kernel Occupancy"}
    assert run.metal.process_busy  # of the trace
    assert not [absent for absent in run.metal.absent if "counter" in absent.what]


@pytest.mark.parametrize(
    ("scenario", "reason", "fix"),
    [
        ({"save_fails": FULL}, "the disk is full", "df -h"),
        (
            {"refuse": {"verb": "record", "text": DEVELOPER, "status": 1}},
            "developer mode is off",
            "DevToolsSecurity",
        ),
        ({"refuse": {"verb": "export", "text": MISSING, "status": 10}}, "was not finished", "shorter"),
        ({"templates": ["Time Profiler"]}, "no template called Metal System Trace", "xctrace list templates"),
    ],
)
def test_what_goes_wrong_with_xctrace_costs_the_trace_and_says_why(
    mac_run: MakeRun, scenario: dict[str, object], reason: str, fix: str
) -> None:
    run = mac_run(scenario, "pass")
    result = run.of("trace")
    assert result.state in ("failed", "skipped")
    assert reason in str(spoken(result.reason))
    assert fix in str(result.fix)
    assert run.document.state == "complete"


def test_the_users_time_limit_is_xctraces_own_and_ends_the_pass(mac_run: MakeRun) -> None:
    script = "import os, time\nif 'trace' in os.environ.get('PROFKIT_DIRECTIVE', ''): time.sleep(60)\n"
    run = mac_run({}, script, timeout=1.0)
    (call,) = run.xctrace.calls("record")
    assert call[call.index("--time-limit") + 1] == "1s"
    result = run.of("trace")
    assert result.state == "failed"
    assert "trace took more than 1 s and was ended" in str(spoken(result.reason))
    assert result.fix == "--timeout 2"
    assert (run.folder / "artifacts" / "trace.xctrace" / "toc.xml").is_file()  # what was recorded is read
    assert run.metal.process_busy


@pytest.mark.thorough
def test_a_time_limit_of_the_plan_is_no_failure(mac_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profkit.backends.instruments.recording_limit", lambda known: 1.0)
    script = "import os, time\nif 'trace' in os.environ.get('PROFKIT_DIRECTIVE', ''): time.sleep(60)\n"
    run = mac_run({}, script)
    assert run.of("trace").state == "finished"
    assert run.metal.process_busy
    assert any("the time limit ended the recording" in note for note in spoken_lines(run.document.notes))


def test_a_ctrl_c_ends_with_a_finished_document(mac_run: MakeRun, tmp_path: Path) -> None:
    began = tmp_path / "began"
    script = f"import time\nopen({str(began)!r}, 'w').close()\ntime.sleep(60)\n"

    def press() -> None:
        while not began.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        run = mac_run({"save": 0.3}, script, "trace")
    finally:
        thread.join()
    assert run.document.state == "interrupted"
    assert run.of("trace").state == "interrupted"
    assert (run.folder / "artifacts" / "trace.trace" / "form.template").is_file()


# ------------------------------------------------------------ test_mps_plan


def test_mps_elsewhere_is_a_fault_of_the_machine_with_a_way_out() -> None:
    with pytest.raises(MachineError, match="Metal exists only on macOS") as caught:
        make_plan(ProfileOptions((sys.executable, "-c", "pass"), backend="mps"))
    assert caught.value.fix is not None
    assert "profkit summarize" in caught.value.fix


@pytest.mark.parametrize(
    ("words", "uses"),
    [
        (("-c", "import torch; torch.ones(1, device='mps')"), True),
        (("-c", "import torch"), False),
        (("x.py", "--backend", "mps"), True),
        (("-c", "device = 'mps'", "--device=cpu"), False),
    ],
)
@pytest.mark.usefixtures("mac")
def test_auto_takes_the_gpu_of_a_mac_where_the_workload_names_it(
    words: tuple[str, ...], uses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.py").write_text("pass")
    for name, value in instruments(tmp_path).env.items():
        monkeypatch.setenv(name, value)
    command = (sys.executable, *words)
    assert (mps_evidence(describe_workload(command, None)) is not None) == uses
    plan = make_plan(ProfileOptions(command, backend="auto", passes=("timing", "trace")))
    assert plan.backend == ("mps" if uses else "cpu")


@pytest.mark.usefixtures("mac")
def test_a_mac_without_xcode_still_times_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFKIT_XCTRACE", "/absent/xctrace")
    plan = make_plan(ProfileOptions((sys.executable, "-c", "pass"), backend="mps"))
    by_name = {planned.name: planned for planned in plan.passes}
    assert list(by_name) == ["timing", "stacks", "tracemalloc", "trace", "counters"]
    assert by_name["timing"].skipped is None
    for name in ("trace", "counters"):
        assert "not a program that can be started" in str(by_name[name].skipped)
        assert by_name[name].fix


@pytest.mark.usefixtures("mac")
def test_the_gate_is_timing_and_trace_and_explain_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in instruments(tmp_path).env.items():
        monkeypatch.setenv(name, value)
    command = (sys.executable, "-c", "pass")
    gate = make_plan(ProfileOptions(command, backend="mps", depth="gate"))
    assert [planned.name for planned in gate.passes] == ["timing", "trace"]
    (explain,) = make_plan(ProfileOptions(command, backend="mps", passes=("explain",))).passes
    assert "no counters of single launches" in spoken(explain.skipped)
    assert platform.system() == "Darwin"
