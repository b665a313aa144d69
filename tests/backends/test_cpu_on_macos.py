"""The CPU backend as it runs on a Mac: xctrace is a stand-in that runs the workload for real."""

import json
import sys
from pathlib import Path

import pytest

from profkit.core.progress import Silent
from profkit.core.run_folder import read_run
from profkit.core.types import Machine, Peaks
from profkit.profilers.xctrace import find
from profkit.profiling.profile import ProfileOptions, profile_workload

pytestmark = pytest.mark.usefixtures("no_page")

STAND_IN = Path(__file__).resolve().parents[1] / "stand_ins" / "xctrace" / "xctrace"
MAC = Machine(
    "Darwin",
    "25.3.0",
    "arm64",
    "Apple M1",
    "Apple",
    None,
    None,
    8,
    (),
    16 << 30,
    None,
    None,
    None,
    "3.12",
)
MARKED = """
import time
import profkit

time.sleep(0.15)
for _ in range(4):
    with profkit.region("step"):
        time.sleep(0.05)
"""


@pytest.fixture
def mac_run(tmp_path, monkeypatch):
    """`mac_run(script, passes, scenario)`: the document of a run on a Mac, and its folder."""

    def make(script=MARKED, passes="trace,counters", plan=False, **scenario):
        file = tmp_path / "scenario.json"
        log = tmp_path / "calls.txt"
        file.write_text(json.dumps({**scenario, "log": str(log)}))
        monkeypatch.setenv("XCTRACE_SCENARIO", str(file))
        monkeypatch.setenv("PROFKIT_XCTRACE", str(STAND_IN))
        monkeypatch.setattr("profkit.profiling.profile.read_machine", lambda: MAC)
        monkeypatch.setattr(
            "profkit.profiling.collect.measure_peaks", lambda *_: (Peaks(1e9, 2e9, 5e9, 1e10, 2, "set"), None)
        )
        workload = tmp_path / "workload.py"
        workload.write_text(script)
        request = ProfileOptions(
            (sys.executable, str(workload)),
            passes=tuple(passes.split(",")),
            output=tmp_path / "runs",
            backend="cpu",
            precision=0.5,
            sampling=0.2,
        )
        _, folder = profile_workload(request, Silent())
        calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return read_run(folder), folder, calls

    find._probe_program.cache_clear()
    yield make
    find._probe_program.cache_clear()


def readings(document):
    return {r.metric: r for r in document.readings if r.scope.kind == "run"}


def test_a_mac_is_sampled_by_time_profiler_and_counted_by_cpu_counters(mac_run):
    document, folder, calls = mac_run()
    assert {p.name: (p.tool, p.state) for p in document.passes} == {
        "trace": ("xctrace", "finished"),
        "counters": ("xctrace", "finished"),
    }
    assert document.tools["xctrace"].startswith("16.0")
    told = readings(document)
    assert told["stalls.frontend"].quality == "estimated"
    assert told["stalls.frontend"].value == pytest.approx(20)
    assert told["stalls.backend"].value == pytest.approx(25)
    assert told["ipc"].value is None
    assert "system level cache" in told["cache.l3.miss_rate"].reason
    assert (folder / "artifacts" / "trace.speedscope.json").is_file()
    assert any(p.title == "CPU time by function" for p in document.profiles)
    recorded = [call for call in calls if "--launch" in call]
    assert [call[call.index("--template") + 1] for call in recorded] == [
        "Time Profiler",
        "CPU Counters",
    ]
    assert all(call[call.index("--launch") + 1 :][1] == sys.executable for call in recorded)


def test_counts_are_those_of_the_region_and_of_one_iteration(mac_run):
    document, _, _ = mac_run(passes="counters")
    # One of four entries of 50 ms; each may take longer on a busy machine.
    assert 0.95 * 50 * 3_200_000 < readings(document)["cycles"].value < 2 * 50 * 3_200_000
    assert set(document.facts) == {"Instruments", "device model", "system"}


def test_where_the_region_cannot_be_found_what_was_counted_is_an_estimate(mac_run):
    document, _, _ = mac_run(passes="counters", signposts=False)
    told = readings(document)
    assert told["cycles"].quality == "estimated"
    assert "of the whole process" in told["cycles"].reason
    assert any("the trace does not tell its clock" in note for note in document.notes)


def test_without_xctrace_both_passes_say_why(mac_run, monkeypatch):
    monkeypatch.setattr(
        "profkit.backends.cpu.macos.probe_xctrace",
        lambda: find.XctraceAbility(
            None, None, False, "only the command line tools are selected", "install Xcode"
        ),
    )
    document, _, _ = mac_run(passes="timing,trace,counters")
    assert [p.state for p in document.passes] == ["finished", "skipped", "skipped"]
    assert {p.fix for p in document.passes[1:]} == {"install Xcode"}
