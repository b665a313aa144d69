"""The GPUs of a Mac from what its registry and system_profiler print, on a stand-in for both."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from pathlib import Path

import pytest

from profkit.hardware.apple_gpu import (
    explain_missing_specification,
    parse_displays,
    parse_ioreg,
    read_apple_gpus,
)
from tests.mac_stand_in import DISPLAYS, IOREG, M3_MAX, accelerator, ioreg, programs


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def make(answers: Mapping[str, str | int], **sysctl: str) -> None:
        values = {**M3_MAX, **{name.replace("__", "."): value for name, value in sysctl.items()}}
        monkeypatch.setenv("PATH", str(programs(tmp_path / "bin", answers, values)))
        monkeypatch.setattr(platform, "system", lambda: "Darwin")

    return make


def test_an_apple_gpu_has_the_specification_of_its_chip_and_its_cores(mac) -> None:  # type: ignore[no-untyped-def]
    mac({IOREG: ioreg(accelerator("Apple M3 Max", 30))})
    (gpu,) = read_apple_gpus()
    assert (gpu.name, gpu.cores, gpu.chip, gpu.index) == ("Apple M3 Max", 30, "G15X", 0)
    assert (gpu.bandwidth, gpu.max_clock, gpu.memory_bytes) == (300e9, 1.38e9, 64 << 30)
    assert gpu.flops == pytest.approx(10.6e12, rel=0.01)
    assert (gpu.virtual, gpu.capability, gpu.multiprocessors, explain_missing_specification(gpu)) == (
        None,
        None,
        None,
        None,
    )


def test_names_and_numbers_may_be_bytes(mac) -> None:  # type: ignore[no-untyped-def]
    mac({IOREG: ioreg(accelerator(b"Apple M3 Max\0", (40).to_bytes(4, "little")))})
    assert [(gpu.name, gpu.cores, gpu.bandwidth) for gpu in read_apple_gpus()] == [
        ("Apple M3 Max", 40, 400e9)
    ]


def test_where_ioreg_says_nothing_system_profiler_is_asked(mac) -> None:  # type: ignore[no-untyped-def]
    cards = {
        "SPDisplaysDataType": [{"_name": "Apple M3 Max", "sppci_model": "Apple M3 Max", "sppci_cores": "40"}]
    }
    for answer in (1, "", "no plist", ioreg()):
        mac({IOREG: answer, DISPLAYS: json.dumps(cards)})
        assert [(gpu.name, gpu.cores, gpu.bandwidth) for gpu in read_apple_gpus()] == [
            ("Apple M3 Max", 40, 400e9)
        ]


def test_the_gpus_of_an_intel_mac_have_no_specification(mac) -> None:  # type: ignore[no-untyped-def]
    cards = [{"sppci_model": "Intel UHD Graphics 630"}, {"sppci_model": "AMD Radeon Pro 5300M"}]
    found = (accelerator(None, None, "IntelAccelerator"), accelerator(None, None, "AMDRadeonX6000"))
    brand = "Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz"
    mac(
        {IOREG: ioreg(*found), DISPLAYS: json.dumps({"SPDisplaysDataType": cards})},
        machdep__cpu__brand_string=brand,
    )
    gpus = read_apple_gpus()
    assert [gpu.name for gpu in gpus] == ["Intel UHD Graphics 630", "AMD Radeon Pro 5300M"]
    assert {gpu.bandwidth for gpu in gpus} == {gpu.memory_bytes for gpu in gpus} == {None}
    reason = explain_missing_specification(gpus[1])
    assert reason is not None
    assert "not Apple's" in reason.reason


def test_a_virtual_machine_has_no_specification(mac) -> None:  # type: ignore[no-untyped-def]
    mac(
        {IOREG: ioreg(accelerator(None, None, "AppleParavirtGPU")), DISPLAYS: 1},
        kern__hv_vmm_present="1",
        machdep__cpu__brand_string="Apple M1 (Virtual)",
    )
    (gpu,) = read_apple_gpus()
    assert (gpu.name, gpu.virtual, gpu.bandwidth, gpu.flops) == (
        "Apple Paravirtual device",
        "macos guest",
        None,
        None,
    )
    assert "virtual machine" in str(explain_missing_specification(gpu))


def test_a_mac_that_answers_nothing_has_no_gpu(mac) -> None:  # type: ignore[no-untyped-def]
    mac({})
    assert read_apple_gpus() == ()


def test_elsewhere_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(programs(tmp_path / "bin", {IOREG: ioreg(accelerator("Apple M1", 8))})))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    assert read_apple_gpus() == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\0",
        b"<plist><dict/></plist>",
        b'<?xml version="1.0"?><!DOCTYPE plist [<!ENTITY a "b">]><plist><array><string>&a;</string></array></plist>',
        b"<plist><array><dict><key>model</key>",
        b"<plist><array><string>x</string></array></plist>",
    ],
)
def test_what_is_no_list_of_accelerators_is_none(content: bytes) -> None:
    assert parse_ioreg(content) == ()


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"SPDisplaysDataType": 3}', b'{"SPDisplaysDataType": [1, {"sppci_cores": "8"}]}'],
)
def test_what_is_no_list_of_cards_is_none(content: bytes) -> None:
    assert parse_displays(content) == ()


@pytest.mark.parametrize("cores", [0, -1, 10**9, True])
def test_a_number_of_cores_that_cannot_be_is_not_told(cores: int) -> None:
    (gpu,) = parse_ioreg(ioreg(accelerator("Apple M1", cores)).encode())
    assert gpu.cores is None
