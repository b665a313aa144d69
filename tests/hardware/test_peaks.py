from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from profkit.core.errors import MachineError
from profkit.core.process import ProcessOutcome
from profkit.core.types import Fact, Machine, Peaks
from profkit.hardware import peaks as module
from profkit.hardware.machine import read_machine
from profkit.hardware.peaks import (
    MIB,
    Rates,
    array_bytes,
    keep_peaks,
    kept_peaks,
    peaks_argv,
    peaks_environment,
    read_rates,
)


@pytest.mark.parametrize(
    ("cache", "available", "expected"),
    [
        (0, None, 64 * MIB),
        (32 * MIB, 64 << 30, 128 * MIB),
        (768 * MIB, 1 << 40, 2048 * MIB),
        (32 * MIB, 960 * MIB, 80 * MIB),
    ],
)
def test_arrays_are_four_times_the_cache_within_a_quarter_of_the_memory(
    cache: int, available: int | None, expected: int
) -> None:
    assert array_bytes(cache, available) == expected


def test_too_little_memory_measures_nothing() -> None:
    with pytest.raises(MachineError, match="too few"):
        array_bytes(32 * MIB, 600 * MIB)


def _child(threads: int, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **peaks_environment(threads), **extra}
    argv = peaks_argv(threads, seconds=0.3)
    return subprocess.run(argv, env=environment, capture_output=True, text=True, cwd="/", timeout=120)


@pytest.mark.thorough
@pytest.mark.parametrize("threads", [1, 2])
def test_a_fresh_process_measures_what_so_many_threads_reach(threads: int) -> None:
    pytest.importorskip("numpy")
    rates = read_rates(_child(threads).stdout)
    assert rates.bandwidth is not None
    assert 1e8 < rates.bandwidth < 1e13
    assert 1e8 < rates.flops < 1e13
    assert "update" in rates.method


def test_without_numpy_the_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('a numpy that does not load')")
    path = os.pathsep.join([str(tmp_path), peaks_environment(1)["PYTHONPATH"]])
    with pytest.raises(MachineError, match="does not load"):
        read_rates(_child(1, PYTHONPATH=path).stderr)


@pytest.mark.thorough
def test_a_module_in_the_callers_folder_is_not_taken_for_the_standard_librarys(tmp_path: Path) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("PYTHONSAFEPATH came with Python 3.11")
    (tmp_path / "json.py").write_text("raise SystemExit(77)")
    argv, env = peaks_argv(1, 0.01), {**os.environ, **peaks_environment(1)}
    done = subprocess.run(argv, env=env, capture_output=True, cwd=tmp_path)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "text", ["", "[" * 100_000, '{"bandwidth": 1', '{"bandwidth": 1e10, "method": "how"}']
)
def test_what_is_not_measured_peaks_is_refused(text: str) -> None:
    with pytest.raises(MachineError):
        read_rates(text)


# ------------------------------------------------------------ test_kept_peaks

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
    keep_peaks(machine, PEAKS, module.KEPT_SECONDS)
    kept = kept_peaks(machine)
    assert kept is not None
    assert replace(kept, method=PEAKS.method) == PEAKS
    assert f"measured {time.strftime('%Y-')}" in kept.method


def test_another_machine_another_start_and_another_day_have_none(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_peaks(machine, PEAKS, module.KEPT_SECONDS)
    assert kept_peaks(replace(machine, cores=1)) is None
    now = time.time()
    monkeypatch.setattr(module.time, "time", lambda: now + module.KEPT_SECONDS + 60)
    assert kept_peaks(machine) is None
    monkeypatch.setattr(module.time, "time", lambda: now)
    assert kept_peaks(machine) is not None
    (tmp_path / "boot_id").write_text("77aa\n")
    assert kept_peaks(machine) is None


@pytest.mark.parametrize(("queued", "kept"), [(0.01, module.KEPT_SECONDS), (0.9, module.BUSY_SECONDS)])
def test_what_a_quiet_machine_reached_is_kept_for_longer(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queued: float, kept: float
) -> None:
    """A second run within that time measures nothing; one after it measures again."""
    calls: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...], **_: object) -> ProcessOutcome:
        calls.append(argv)
        printed = asdict(Rates(17e9, 1e11, "numpy") if argv[3] == "1" else Rates(25e9, 2e11, "numpy"))
        usage = ((1.5, 1.4, queued),)
        return ProcessOutcome(0, False, 1.5, 1.4, 1, json.dumps(printed), usage)

    monkeypatch.setattr(module.process, "run", run)
    first, _ = module.measure_peaks(machine, tmp_path / "log")
    again, _ = module.measure_peaks(machine, tmp_path / "log")
    assert first is not None
    assert again is not None
    assert len(calls) == 2
    now = time.time()
    monkeypatch.setattr(module.time, "time", lambda: now + kept + 1)
    module.measure_peaks(machine, tmp_path / "log")
    assert len(calls) == 4
    assert again.bandwidth_all == first.bandwidth_all == 25e9


def test_peaks_of_a_machine_that_others_use_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were planned with 3 s and took 72: both measurements have one deadline."""
    monkeypatch.setattr(module, "kept_peaks", lambda _: None)
    monkeypatch.setattr(module, "DEADLINE", 0.5)
    monkeypatch.setattr(
        module, "peaks_argv", lambda *_: (sys.executable, "-c", "import time; time.sleep(30)")
    )
    begin = time.monotonic()
    peaks, reason = module.measure_peaks(read_machine(), tmp_path / "log")
    assert time.monotonic() - begin < 20
    assert (peaks, reason) == (None, Fact.of("peaks-took-long", seconds=0.5))
