"""The CPU backend as it runs on a Mac: xctrace is a stand-in that runs the workload for real."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import Silent
from profkit.core.run_folder import read_run
from profkit.hardware.machine import read_machine
from profkit.profilers.programs import ToolAbility
from profkit.profilers.xctrace import export
from profkit.profiling.profile import ProfileOptions, profile_workload

pytestmark = pytest.mark.usefixtures("no_page")

STAND_IN = Path(__file__).resolve().parents[1] / "stand_ins" / "xctrace" / "xctrace"
MAC = replace(
    read_machine(), system="Darwin", architecture="arm64", cpu="Apple M1", vendor="Apple", caches=()
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

    export._ask_version.cache_clear()
    yield make
    export._ask_version.cache_clear()


def test_a_mac_is_sampled_by_time_profiler_and_nothing_is_counted(mac_run):
    document, folder, calls = mac_run()
    assert {p.name: (p.tool, p.state) for p in document.passes} == {
        "trace": ("xctrace", "finished"),
        "counters": (None, "skipped"),
    }
    assert document.tools["xctrace"].startswith("16.0")
    assert set(document.facts) == {"Instruments", "device model", "system"}
    assert (folder / "artifacts" / "trace.speedscope.json").is_file()
    assert any(p.title == "CPU time by function" for p in document.profiles)
    (recorded,) = [call for call in calls if "--launch" in call]
    assert recorded[recorded.index("--template") + 1] == "Time Profiler"
    assert recorded[recorded.index("--launch") + 1 :][1] == sys.executable


def test_without_xctrace_the_trace_says_why(mac_run, monkeypatch):
    monkeypatch.setattr(
        "profkit.backends.instruments.probe_xctrace",
        lambda: ToolAbility(None, None, False, "only the command line tools are selected", "install Xcode"),
    )
    document, _, _ = mac_run(passes="timing,trace")
    assert [(p.state, p.fix) for p in document.passes] == [("finished", None), ("skipped", "install Xcode")]
