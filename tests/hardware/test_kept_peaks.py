"""Peaks that are kept between runs: of this machine, this start of it and this numpy, for a day."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.process import ProcessOutcome
from profkit.core.types import Machine, Peaks
from profkit.hardware import peaks as module
from profkit.hardware.machine import read_machine
from profkit.hardware.peaks import SCHEMA, keep_peaks, kept_peaks
from profkit.profiling import run_passes

PEAKS = Peaks(16.9e9, 25.1e9, 101e9, 190e9, 2, "best of copy 16.9 GB/s")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: Callable[..., Path]) -> Machine:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    boot = tmp_path / "boot_id"
    boot.write_text("0b7c\n")
    monkeypatch.setattr(module, "_BOOT", boot)
    monkeypatch.setattr(module.metadata, "version", lambda _: "2.4.6")
    return read_machine(tree("amd_zen4"))


def test_peaks_come_back_with_the_time_at_which_they_were_measured(machine: Machine) -> None:
    keep_peaks(machine, PEAKS)
    kept = kept_peaks(machine)
    assert kept is not None
    assert replace(kept, method=PEAKS.method) == PEAKS
    assert f"measured {time.strftime('%Y-')}" in kept.method


def test_another_machine_another_start_another_numpy_and_another_day_have_none(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_peaks(machine, PEAKS)
    assert kept_peaks(replace(machine, cores=1)) is None
    now = time.time()
    for later in (module.KEPT_SECONDS + 60, -60.0):
        monkeypatch.setattr(module.time, "time", lambda later=later: now + later)
        assert kept_peaks(machine) is None
    monkeypatch.setattr(module.time, "time", lambda: now)
    assert kept_peaks(machine) is not None
    monkeypatch.setattr(module.metadata, "version", lambda _: "2.5.0")
    assert kept_peaks(machine) is None
    monkeypatch.setattr(module.metadata, "version", lambda _: "2.4.6")
    (tmp_path / "boot_id").write_text("77aa\n")
    assert kept_peaks(machine) is None


@pytest.mark.parametrize(("queued", "measurements"), [(0.01, 2), (0.9, 4)])
def test_only_what_a_quiet_machine_reached_is_kept(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queued: float, measurements: int
) -> None:
    """Of two runs the second measures again where the first one's threads waited for a processor."""
    calls: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...], **_: object) -> ProcessOutcome:
        calls.append(argv)
        one = argv[argv.index("--threads") + 1] == "1"
        rates = {"bandwidth_one": 17e9, "flops_f32_one": 1e11} if one else {}
        rates |= {} if one else {"bandwidth_all": 25e9, "flops_f32_all": 2e11}
        printed = {"schema": SCHEMA, "threads": 1 if one else 16, "method": "numpy", **rates}
        usage = ((1.5, 1.4, queued),)
        return ProcessOutcome(argv, 0, False, 1.5, 1.4, 1, json.dumps(printed), 1, 0, usage)

    monkeypatch.setattr(run_passes.process, "run", run)
    first, _ = run_passes.measure_peaks(machine, tmp_path / "log")
    again, _ = run_passes.measure_peaks(machine, tmp_path / "log")
    assert first is not None
    assert again is not None
    assert len(calls) == measurements
    assert again.bandwidth_all == first.bandwidth_all == 25e9
