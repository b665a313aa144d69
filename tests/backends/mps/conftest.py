"""A run on a Mac that is none: macOS by name, and xctrace a stand-in that runs the workload for real."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import Silent
from profkit.core.run_folder import read_run
from profkit.core.types import Gpu, MetalTrace, PassResult, RunDocument
from profkit.profilers.xctrace import export
from profkit.profiling.profile import ProfileOptions, profile_workload
from tests.what_comes_back import check_all_comes_back
from tests.xctrace_stand_in import Instruments, instruments

MARKED = """
import time, profkit
time.sleep(0.1)
for _ in range(3):
    with profkit.region("step"):
        time.sleep(0.05)
"""
TABLES = (
    "metal-gpu-intervals",
    "metal-gpu-state-intervals",
    "metal-application-encoders-list",
    "metal-gpu-counter-intervals",
    "time-info",
)
M1 = Gpu(name="Apple M1", cores=8, bandwidth=68e9)


@dataclass(frozen=True)
class Run:
    """A judged run as its run.json has it."""

    document: RunDocument
    folder: Path
    xctrace: Instruments

    def of(self, name: str) -> PassResult:
        return next(result for result in self.document.passes if result.name == name)

    @property
    def metal(self) -> MetalTrace:
        assert self.document.metal is not None
        return self.document.metal


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    """What profkit asks of the system says macOS on Apple silicon."""
    export._ask_version.cache_clear()
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr("profkit.hardware.macos.read_apple_gpus", lambda: (M1,))


@pytest.fixture
def mac_run(tmp_path: Path, mac: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """`mac_run({"rows": "empty"})`: a run of a script with that scenario."""

    def make(
        scenario: dict[str, Any] | None = None,
        script: str = MARKED,
        passes: str | None = "trace",
        *,
        every_table: bool = False,
        **asked: Any,
    ) -> Run:
        if not every_table:  # each export is a process of its own, as on a Mac
            monkeypatch.setattr("profkit.backends.instruments.wanted_schemas", lambda: TABLES)
        xctrace = instruments(tmp_path, **(scenario or {}))
        for name, value in xctrace.env.items():
            monkeypatch.setenv(name, value)
        file = tmp_path / "workload.py"
        file.write_text(script)
        request = ProfileOptions(
            (sys.executable, str(file)),
            backend="mps",
            passes=tuple(passes.split(",")) if passes else None,
            depth="gate",
            output=tmp_path / "runs",
            precision=0.5,
            sampling=0.1,
            **asked,
        )
        _, folder = profile_workload(request, Silent())
        check_all_comes_back(folder)
        return Run(read_run(folder), folder, xctrace)

    return make
