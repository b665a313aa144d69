"""The machine's GPUs as a library that stands in for the driver's tells them, and every way in which there are none."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import Gpu
from profkit.hardware import nvidia as nvidia_devices
from profkit.hardware import nvml
from profkit.hardware.nvidia import (
    ListedGpu,
    count_multiprocessors,
    driver_fault,
    list_devices,
    read_gpus,
    visible_devices,
)
from tests.cuda_stand_in import nvidia as nvidia

H200 = Gpu(
    "NVIDIA H200",
    index=0,
    capability="9.0",
    multiprocessors=132,
    memory_bytes=150754820096,
    bandwidth=2 * 3201e6 * 6016 / 8,
    driver="580.159.04",
    mig=False,
    power_limit=700.0,
    highest_clock=1.98e9,
)


@pytest.fixture
def library(nvidia: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(nvml, "LIBRARIES", (str(nvidia / "libnvidia-ml.so.1"),))
    return monkeypatch


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setattr(nvml, "LIBRARIES", ("libprofkit-is-not-here.so",))
    monkeypatch.setenv("PATH", str(tmp_path))
    return monkeypatch


def machine(folder: Path, **files: str) -> Path:
    """A tree with these files; `__` in a name is a slash, an empty tree is a machine without anything."""
    for name, text in files.items():
        path = folder / "root" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "root").mkdir(exist_ok=True)
    return folder / "root"


CARD = {
    "sys__bus__pci__devices__0000:00:06.0__vendor": "0x10de\n",
    "sys__bus__pci__devices__0000:00:06.0__class": "0x030200\n",
}
MODULE = {
    "proc__driver__nvidia__version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release\n"
}
DOCKER = {".dockerenv": ""}

# ---------------------------------------------------------------- what there is


def test_an_h200_is_told_whole(library: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert read_gpus({}, machine(tmp_path)) == (H200,)
    assert H200.bandwidth == pytest.approx(4.8e12, rel=0.01)  # NVIDIA's data sheet


@pytest.mark.parametrize(
    ("release", "mode", "expected"),
    [
        ("5.15.167.4-microsoft-standard-WSL2", "1", "wsl"),
        ("6.1.0", "2", "vgpu"),
        ("6.1.0", "1", None),  # passed through whole
    ],
)
def test_a_part_of_a_device_or_windows_behind_it_is_said(
    library: pytest.MonkeyPatch, tmp_path: Path, release: str, mode: str, expected: str | None
) -> None:
    library.setenv("STAND_IN_VIRTUAL", mode)
    (found,) = read_gpus({}, machine(tmp_path, proc__sys__kernel__osrelease=release))
    assert found.virtual == expected
    assert (found.bandwidth is None) == (expected == "vgpu")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, [0, 1, 2, 3]),
        ("2", [2]),
        ("3,1", [3, 1]),
        ("", []),
        ("1,-1,2", [1]),
        ("1,1", []),
        ("GPU-00000003", [2]),
        ("GPU-0000000", []),  # fits several
        ("gpu-00000002-bbbb,0", [1, 0]),
        ("1,no such thing", [1]),
    ],
)
def test_only_visible_devices_are_told_in_the_order_of_the_list(
    library: pytest.MonkeyPatch, asked: str | None, expected: list[int]
) -> None:
    library.setenv("STAND_IN_GPUS", "4")
    devices = [ListedGpu(Gpu(f"gpu {i}"), one.uuid) for i, one in enumerate(list_devices(None))]
    found = visible_devices(devices, {} if asked is None else {"CUDA_VISIBLE_DEVICES": asked})
    assert [device.gpu.name for device in found] == [f"gpu {number}" for number in expected]


def test_cuda_counts_the_fastest_device_first_unless_it_is_told_otherwise(
    library: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library.setenv("STAND_IN_GPUS", "2")
    library.setenv("STAND_IN_MIXED", "1")
    root = machine(tmp_path)
    assert [g.name for g in read_gpus({}, root)] == ["NVIDIA H200", "NVIDIA T4"]
    found = read_gpus({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, root)
    assert [(g.name, g.index, g.multiprocessors) for g in found] == [
        ("NVIDIA T4", 0, 40),
        ("NVIDIA H200", 1, 132),
    ]


def test_a_device_in_mig_mode_is_its_first_instance_or_the_one_that_is_named(
    library: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library.setenv("STAND_IN_MIG", "1")
    root = machine(tmp_path)
    (first,) = read_gpus({}, root)
    assert (first.name, first.mig, first.multiprocessors) == ("NVIDIA H200 MIG 1g.18gb", True, None)
    assert (first.memory_bytes, first.bandwidth) == (18 << 30, None)
    assert len(read_gpus({"CUDA_VISIBLE_DEVICES": "MIG-00000102-aaaa"}, root)) == 1
    assert read_gpus({"CUDA_VISIBLE_DEVICES": "MIG-00000109-aaaa"}, root) == ()
    library.setenv("STAND_IN_GPUS", "2")
    assert [g.mig for g in read_gpus({}, root)] == [False]  # CUDA leaves the cut one out


def test_a_driver_that_hangs_costs_its_time_and_no_more(library: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library.setattr(nvidia_devices, "ANSWER_SECONDS", 0.1)
    library.setenv("STAND_IN_SLEEP", "20")
    library.setenv("PATH", str(tmp_path))
    begin = time.monotonic()
    assert read_gpus({}, machine(tmp_path)) == ()
    assert time.monotonic() - begin < 15
    fault = driver_fault({}, machine(tmp_path))
    assert fault is not None
    assert "does not answer" in fault.reason


@pytest.mark.parametrize(
    ("cores", "capability", "expected"),
    [
        (16896, "9.0", 132),
        (6912, "8.0", 108),
        (100, "9.0", None),
        (128, None, None),
    ],
)
def test_multiprocessors_are_told_where_the_cores_come_out_even(
    cores: int | None, capability: str | None, expected: int | None
) -> None:
    assert count_multiprocessors(cores, capability) == expected


# ---------------------------------------------------------------- why there is none


@pytest.mark.parametrize(
    ("code", "lost", "gpus", "files", "reason", "fix"),
    [
        ("18", "0", "1", MODULE, "Driver/library version mismatch", "restart the mach"),
        ("0", "15", "1", {}, "does not answer", "dmesg"),
        ("999", "0", "1", DOCKER, "this container has no access", "--gpus all"),
        ("4", "0", "1", {}, "may not open the GPU's device files", "usermod -aG"),
        ("9", "0", "1", CARD, "its driver is not loaded", "modprobe nvidia"),
        ("9", "0", "1", CARD | DOCKER, "this container has no access", "--gpus all"),
        ("0", "0", "0", {}, "has no NVIDIA GPU", "--backend cpu"),
        ("0", "0", "0", MODULE, "no device files", "nvidia-modprobe"),
    ],
)
def test_what_the_driver_answers_is_explained_with_what_mends_it(
    library: pytest.MonkeyPatch,
    tmp_path: Path,
    code: str,
    lost: str,
    gpus: str,
    files: Any,
    reason: str,
    fix: str,
) -> None:
    for name, value in (("STAND_IN_NVML", code), ("STAND_IN_LOST", lost), ("STAND_IN_GPUS", gpus)):
        library.setenv(name, value)
    library.setenv("PATH", str(tmp_path))
    is_explained(machine(tmp_path, **files), reason, fix)


def is_explained(root: Path, reason: str, fix: str) -> None:
    assert read_gpus({}, root) == ()
    fault = driver_fault({}, root)
    assert fault is not None
    assert reason in fault.reason
    assert fix in (fault.fix or "")


@pytest.mark.parametrize(
    ("files", "reason", "fix"),
    [
        ({}, "has no NVIDIA GPU", "--backend cpu"),
        (CARD, "its driver is not loaded", "modprobe"),
        (CARD | DOCKER, "this container has no access", "--gpus all"),
        (MODULE | DOCKER, "its driver's libraries", "NVIDIA_DRIVER_CAPABILITIES"),
    ],
)
def test_without_the_library_the_machine_itself_tells_why(
    no_library: pytest.MonkeyPatch, tmp_path: Path, files: dict[str, str], reason: str, fix: str
) -> None:
    is_explained(machine(tmp_path, **files), reason, fix)


@pytest.mark.parametrize("asked", ["", "-1", "7", "GPU-ffffffff"])
def test_devices_that_the_environment_hides_are_no_fault_of_the_driver(
    library: pytest.MonkeyPatch, tmp_path: Path, asked: str
) -> None:
    fault = driver_fault({"CUDA_VISIBLE_DEVICES": asked}, machine(tmp_path))
    assert fault is not None
    assert "CUDA_VISIBLE_DEVICES" in fault.reason
    assert fault.fix == "unset CUDA_VISIBLE_DEVICES"
    assert driver_fault({"CUDA_VISIBLE_DEVICES": "0"}, machine(tmp_path)) is None
