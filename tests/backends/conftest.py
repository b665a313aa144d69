"""A run on a machine with a PMU: a recorded machine's files, and a stand-in for perf that counts by a scenario."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import Silent
from profkit.core.run_folder import read_run
from profkit.core.types import Counter, Peaks, Reading, RunDocument
from profkit.hardware.machine import read_machine
from profkit.profilers.perf.probe import PerfAbility
from profkit.profiling.profile import ProfileOptions, profile_workload

TESTS = Path(__file__).resolve().parent.parent
# 20 entries of 1 ms; the stand-in counts each as one window, so a scenario's counts are those of one iteration.
ENTRIES = 20
STEPS = f"""
import time
import profkit

def walk():
    for _ in range({ENTRIES}):
        with profkit.region("step"):
            time.sleep(0.001)
"""
MARKED = f"{STEPS}\nwalk()\n"
PEAKS = Peaks(10e9, 20e9, 50e9, 100e9, 2, "set by the test")


@dataclass(frozen=True)
class Run:
    """A judged run as its run.json has it."""

    document: RunDocument
    folder: Path

    def counter(self, name: str, pmu: str | None = None) -> Counter:
        found = [c for c in self.document.counters if (c.name, c.pmu) == (name, pmu)]
        assert len(found) == 1, (name, [c.name for c in self.document.counters])
        return found[0]

    def readings(self, metric: str) -> list[Reading]:
        return [r for r in self.document.readings if r.metric == metric and r.scope.kind != "function"]

    def reading(self, metric: str, scope: str | None = None) -> Reading:
        found = [r for r in self.readings(metric) if r.scope.id == scope]
        assert len(found) == 1, (metric, found)
        return found[0]

    def verdict(self, target: str) -> Any:
        found = [v for v in self.document.verdicts if v.target == target and v.scope.kind != "function"]
        assert len(found) == 1, (target, found)
        return found[0]

    def counted(self) -> list[list[str]]:
        """The events of each group, as its file has them."""
        files = sorted((self.folder / "artifacts").glob("count-*.csv"))
        return [re.findall(r"^[^#|]*\|[^|]*\|([^|]+)\|", f.read_text(), re.MULTILINE) for f in files]


def _ability(scenario: dict[str, Any]) -> PerfAbility:
    return PerfAbility(
        path=str(TESTS / "stand_ins" / "perf"),
        version="6.1.0",
        software_ok=True,
        hardware_ok=True,
        control_fifo_ok=not scenario.get("deaf", False),
        system_wide_ok=scenario.get("wide", True),
        user_only=scenario.get("user", False),
        paranoid=2 if scenario.get("user") else 0,
    )


# What makes a trial of the events tell something; without these it is left out, since it takes half of a test.
TELLING = {"unknown", "states", "mute", "wide"}


@pytest.fixture
def pmu_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """`pmu_run("amd_zen4", {"window": {...}})`: a run of `script` on that recorded machine with that scenario."""
    return maker(tmp_path, monkeypatch)


def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """See `pmu_run`."""
    from tests.hardware.conftest import unpack

    def make(
        machine: str | None,
        scenario: dict[str, Any],
        script: str = MARKED,
        *,
        passes: str | None = "counters",
        depth: str = "gate",
        watchdog: bool = False,
        argv: tuple[str, ...] | None = None,
        probe: bool = False,
    ) -> Run:
        if machine is not None:
            tree = TESTS / "data" / "hardware" / f"{machine}.tree"
            told = read_machine(unpack(tree.read_text(), tmp_path / machine))
            monkeypatch.setattr("profkit.profiling.profile.read_machine", lambda: told)
        file = tmp_path / "scenario.json"
        file.write_text(json.dumps(scenario))
        monkeypatch.setenv("PERF_SCENARIO", str(file))
        monkeypatch.setenv("PATH", f"{TESTS / 'stand_ins'}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setattr("profkit.backends.cpu.counting.has_nmi_watchdog", lambda: watchdog)
        monkeypatch.setattr(
            "profkit.profilers.perf.probe.read_paranoid", lambda: 2 if scenario.get("user") else 0
        )
        monkeypatch.setattr("profkit.profiling.collect.measure_peaks", lambda *_: (PEAKS, None))
        if not probe:  # trying all that perf can do is told true by one test, and takes a second
            monkeypatch.setattr("profkit.backends.cpu.linux.probe_perf", lambda: _ability(scenario))
            if not TELLING & set(scenario) and scenario.get("pmus"):
                monkeypatch.setattr("profkit.backends.cpu.counting.find_refused_events", lambda *_: {})
        (tmp_path / "steps.py").write_text(STEPS)
        workload = tmp_path / "workload.py"
        workload.write_text(script)
        request = ProfileOptions(
            argv or (sys.executable, str(workload)),
            passes=tuple(passes.split(",")) if passes else None,
            depth=depth,
            output=tmp_path / "runs",
            precision=0.5,
            sampling=0.2,
        )
        _, folder = profile_workload(request, Silent())
        return Run(read_run(folder), folder)

    return make
