"""A machine with a GPU, as far as that can be had without one: stand-ins for NVIDIA's profilers that run the workload
for real and leave reports that were recorded on an H200."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import Gpu, RunDocument
from profkit.hardware import nvidia
from profkit.profilers.ncu import probe as ncu_probe
from profkit.profilers.ncu.probe import probe_ncu
from profkit.profilers.nsys.probe import probe_nsys
from profkit.profiling.profile import ProfileOptions, profile_workload
from tests.conftest import ROOT
from tests.what_comes_back import check_all_comes_back

H200 = Gpu("NVIDIA H200", 0, "9.0", "GH100", 132, 150_109_880_320, driver="580.159")
STAND_INS = ROOT / "tests" / "stand_ins"
# A trace of 13 kernels, three launches each, and the counters of 12 of them: transpose<0> was not asked for.
TRACE = ROOT / "tests" / "data" / "cuda" / "nsys" / "truths.sqlite"
COUNTERS = ROOT / "tests" / "data" / "cuda" / "ncu"

# Marked as a workload on a GPU is; what it launches stands in the recorded reports.
MARKED = """
import profkit
def work():
    return sum(number * number for number in range(2000))
profkit.benchmark(work, name="truths")
"""


@dataclass
class Machine:
    """The machine of a test: what its profilers do, and what they were called with."""

    folder: Path
    said: list[str] = field(default_factory=list)

    def tools(self, *, nsys: dict[str, Any] | None = None, ncu: dict[str, Any] | None = None) -> None:
        """What the profilers do from now on, on top of leaving the recorded reports."""
        recorded = {
            "nsys": {"sqlite": str(TRACE)},
            "ncu": {
                "report": str(COUNTERS / "truths.gate.ncu-rep"),
                "explain": str(COUNTERS / "truths.full.ncu-rep"),
            },
        }
        for name, more in (("nsys", nsys), ("ncu", ncu)):
            scenario = {**recorded[name], "log": str(self.folder / "calls"), **(more or {})}
            (self.folder / f"{name}.json").write_text(json.dumps(scenario))

    def calls(self, tool: str, holding: str = "") -> list[list[str]]:
        """The command lines that a profiler was called with."""
        lines = (self.folder / "calls").read_text().splitlines() if (self.folder / "calls").exists() else []
        return [
            call
            for call in map(json.loads, lines)
            if call[0] == tool and any(holding in word for word in call)
        ]

    def profile(self, program: str = MARKED, **asked: Any) -> RunDocument:
        """Profile a Python program on the GPU, with little spent on timing."""
        script = self.folder / "workload.py"
        script.write_text(program)
        request = ProfileOptions(
            (sys.executable, str(script)),
            **{
                "backend": "cuda",
                "output": self.folder / "runs",
                "sampling": 0.05,
                "precision": 0.4,
                **asked,
            },
        )
        document, folder = profile_workload(request, self)
        check_all_comes_back(folder)
        return document

    # what a progress is told

    def begin(self, title: str, detail: str = "") -> None:
        self.said.append(f"{title} {detail}")

    def tick(self, seconds: float) -> None:
        pass

    def end(self, result: str) -> None:
        self.said.append(result)

    def fail(self, result: str) -> None:
        self.said.append(result)

    def note(self, text: str) -> None:
        self.said.append(text)


def devices(monkeypatch: pytest.MonkeyPatch, *found: Gpu) -> None:
    """Sets the devices that the driver tells of."""
    for room in (nvidia, ncu_probe):
        monkeypatch.setattr(room, "read_gpus", lambda *_, **__: found)


@contextmanager
def machine_in(folder: Path) -> Iterator[Machine]:
    """An H200 with nsys and ncu."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        devices(monkeypatch, H200)
        monkeypatch.setattr("profkit.profiling.profile.write_page", lambda *_: None)
        for kind, seconds in (("PythonPass", 0.2), ("StacksPass", 0.5)):  # of a benchmark's region
            monkeypatch.setattr(f"profkit.backends.passes.{kind}.seconds", seconds)
        made = Machine(folder)
        made.tools()
        for name in ("ncu", "nsys"):
            monkeypatch.setenv(f"PROFKIT_{name.upper()}", str(STAND_INS / name))
            monkeypatch.setenv(f"{name.upper()}_SCENARIO", str(folder / f"{name}.json"))
        for probe in (probe_ncu, probe_nsys):
            probe.cache_clear()
        yield made
        for probe in (probe_ncu, probe_nsys):
            probe.cache_clear()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine of the test's own."""
    with machine_in(tmp_path) as made:
        yield made
