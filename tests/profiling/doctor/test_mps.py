"""What the doctor says of MPS, by what the GPU, xctrace, macOS and torch told."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.backends.checks import read_torch
from profkit.backends.mps.checks import (
    judge_mps,
    judge_mps_torch,
    mps_checks,
    mps_torch_checks,
    switch_checks,
)
from profkit.core.types import Check, Gpu
from profkit.hardware.macos import add_specification
from profkit.profilers.xctrace.find import XctraceAbility
from profkit.profiling.doctor import blocking_reason, groups_for, python_checks, signed_checks

ABLE = XctraceAbility(Path("/X/xctrace"), "16.0 (17F42)", True, instruments=("Metal GPU Counters",))
ABSENT = XctraceAbility(
    None, None, False, "only the command line tools are selected", "sudo xcode-select -s /X"
)


def gpu(name: str = "Apple M1", cores: int | None = 8, guest: bool = False) -> Gpu:
    return add_specification(Gpu(name, cores=cores), name, 16 << 30, guest)


def told(
    *gpus: Gpu, xctrace: XctraceAbility = ABLE, system: str = "15.7.1", translated: bool = False
) -> dict[str, Check]:
    return {check.name: check for check in judge_mps(gpus or (gpu(),), xctrace, system, translated)}


def test_metal_is_sought_only_on_macos_and_elsewhere_one_line_says_what_can_be_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    (check,) = mps_checks()
    assert (check.name, check.state, check.fix) == ("mps backend", "missing", "--backend cpu")
    assert "profkit summarize" in check.detail
    assert blocking_reason("mps", (check,)) == check.detail


def test_a_chip_in_the_table_is_told_with_its_peaks() -> None:
    found = told(gpu("Apple M3 Max", 30))
    assert found["GPU 0"].detail == (
        "Apple M3 Max (30 GPU cores, 300 GB/s, 10.6 TFLOP/s in float32 by its specification)"
    )
    assert found["GPU 0"].state == "ok"
    assert found["mps backend"].state == "ok"


@pytest.mark.parametrize(
    ("device", "says"),
    [
        (gpu("Apple M3 Max", None), "30 and 40 GPU cores"),
        (gpu("Apple M19", 8), "not in profkit's table"),
    ],
)
def test_a_gpu_without_a_specification_says_why(device: Gpu, says: str) -> None:
    check = told(device)["GPU 0"]
    assert check.state == "limited"
    assert says in check.detail


def test_a_virtual_machine_has_no_counters() -> None:
    found = told(gpu("Apple Paravirtual device", None, guest=True))
    assert found["virtual machine"].state == "limited"
    assert found["GPU counters"].state == "missing"


def test_without_xctrace_the_backend_is_limited_and_not_blocked() -> None:
    found = told(xctrace=ABSENT)
    assert (found["mps backend"].state, found["mps backend"].fix) == ("limited", "sudo xcode-select -s /X")
    assert blocking_reason("mps", tuple(found.values())) is None
    assert "GPU counters" not in found


def test_without_a_gpu_the_backend_is_blocked() -> None:
    checks = tuple(judge_mps((), ABLE, "15.7.1"))
    assert blocking_reason("mps", checks) is not None


def test_a_chip_on_which_no_counters_were_recorded_says_so_beforehand() -> None:
    assert "reported to record none" in told(gpu("Apple M4 Max", 40))["GPU counters"].detail
    assert "reported to count" in told(gpu("Apple M1", 8))["GPU counters"].detail
    old = told(xctrace=replace(ABLE, instruments=("Time Profiler",)))["GPU counters"]
    assert (old.state, "no instrument called Metal GPU Counters" in old.detail) == ("missing", True)


@pytest.mark.parametrize(
    ("system", "state"),
    [("15.7.1", "ok"), ("12.3", "ok"), ("12.2.1", "refused"), ("27", "ok"), ("", "limited")],
)
def test_macos_by_its_version(system: str, state: str) -> None:
    assert told(system=system)["macOS"].state == state


def test_a_python_under_rosetta_has_no_mps() -> None:
    assert told(translated=True)["Rosetta"].state == "limited"
    assert "Rosetta" not in told()


@pytest.mark.parametrize(
    ("answer", "state", "says"),
    [
        ({"version": "2.11.0", "built": True, "available": True}, "ok", "available"),
        ({"version": "2.11.0", "built": True, "available": False}, "refused", "finds no device"),
        ({"version": "2.2.2", "built": False, "available": False}, "limited", "without MPS"),
        ({"version": None}, "missing", "not installed"),
    ],
)
def test_torch_by_its_answer(answer: dict[str, object], state: str, says: str) -> None:
    [check] = judge_mps_torch(read_torch(f"a warning\n{json.dumps(answer)}\n", "", "/opt/python"))
    assert check.state == state
    assert says in check.detail
    assert (check.fix is None) == (state == "ok")


def test_a_torch_that_does_not_start_says_its_last_line() -> None:
    [check] = judge_mps_torch(read_torch("", "ImportError: dlopen(libtorch.dylib)", "python"))
    assert (check.state, "dlopen" in check.detail) == ("refused", True)


def test_the_torch_that_is_here_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python").write_text(
        f'#!/bin/sh\nexec {sys.executable} -S "$@"\n'
    )  # -S: a Python without packages
    (folder / "python").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    checks = {check.name: check for check in mps_torch_checks()}
    assert checks["torch on MPS"].state == "missing"
    assert checks["MPS fallback"].state == "limited"
    assert list(switch_checks({"PYTORCH_ENABLE_MPS_FALLBACK": "0"})) == []


def test_on_a_mac_instruments_stands_where_perf_and_valgrind_do_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    titles = {backend: [s.title for s in groups_for(backend)][4:] for backend in ("cpu", "mps", "all")}
    assert titles == {
        "cpu": ["peaks", "xctrace"],
        "mps": ["xctrace", "mps"],
        "all": ["peaks", "xctrace", "cuda", "mps"],
    }
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    assert [s.title for s in groups_for("all")][4:] == ["peaks", "perf", "valgrind", "cuda", "mps"]


def test_on_a_mac_pythons_frames_are_not_perfs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr("profkit.profiling.doctor._import_all", dict.fromkeys)
    monkeypatch.setattr("profkit.profiling.doctor._PACKAGES", ())
    names = [check.name for check in python_checks()]
    assert "python frames in Instruments" in names
    assert "python frames in perf" not in names
    assert [check.state for check in signed_checks("/usr/bin/env")] == ["limited"]
    assert list(signed_checks("/opt/homebrew/bin/python3")) == []
