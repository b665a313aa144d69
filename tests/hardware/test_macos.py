"""A Mac's processor, its power, its conditions and its GPU, by what its small programs print; the table of chips."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import pytest

from profkit.hardware.machine import read_machine
from profkit.hardware.macos import chip_table, find_chip, parse_ioreg, read_apple_gpus
from tests.mac_stand_in import IOREG, M3_MAX, accelerator, ioreg, programs
from tests.spoken import spoken


@pytest.fixture
def on_a_mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def make(answers: Mapping[str, str | int] | None = None, sysctl: dict[str, str] | None = None) -> None:
        values = {**M3_MAX, **(sysctl or {})}
        monkeypatch.setenv("PATH", str(programs(tmp_path / "bin", answers or {}, values)))
        monkeypatch.setattr(platform, "system", lambda: "Darwin")
        monkeypatch.setattr(platform, "machine", lambda: "arm64")

    return make


def test_the_machine_is_told_by_its_performance_cores(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac()
    machine = read_machine()
    assert (machine.cpu, machine.vendor, machine.architecture) == ("Apple M3 Max", "Apple", "arm64")
    assert (machine.cores, machine.memory_bytes, machine.virtual) == (16, 64 << 30, None)
    assert [(c.level, c.size, c.line, c.shared) for c in machine.caches] == [
        (1, 128 << 10, 128, 1),
        (2, 16 << 20, 128, 6),
    ]


def test_a_guest_and_a_python_under_rosetta_say_so(on_a_mac, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    on_a_mac(sysctl={"kern.hv_vmm_present": "1"})
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    machine = read_machine()
    assert (machine.vendor, machine.architecture, machine.virtual) == ("Apple", "x86_64", "virtual machine")


def test_where_nothing_answers_nothing_is_told(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac()
    assert read_apple_gpus() == ()


def test_an_apple_gpu_has_the_specification_of_its_chip_and_its_cores(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac({IOREG: ioreg(accelerator(b"Apple M3 Max\0", (30).to_bytes(4, "little")))})
    (gpu,) = read_apple_gpus()
    assert (gpu.name, gpu.cores, gpu.chip, gpu.index) == ("Apple M3 Max", 30, "G15X", 0)
    assert (gpu.bandwidth, gpu.memory_bytes) == (300e9, 64 << 30)
    assert (gpu.virtual, gpu.capability, gpu.multiprocessors) == (None, None, None)


def test_a_virtual_machine_has_no_specification(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac(
        {IOREG: ioreg(accelerator(None, None, "AppleParavirtGPU"))},
        {"kern.hv_vmm_present": "1", "machdep.cpu.brand_string": "Apple M1 (Virtual)"},
    )
    (gpu,) = read_apple_gpus()
    assert (gpu.virtual, gpu.bandwidth) == ("macos guest", None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\0",
        b'<?xml version="1.0"?><!DOCTYPE plist [<!ENTITY a "b">]><plist><array><string>&a;</string></array></plist>',
    ],
)
def test_what_is_no_list_of_accelerators_is_none(content: bytes) -> None:
    assert parse_ioreg(content) == ()


# ------------------------------------------------------------ chips


@pytest.mark.parametrize(
    ("name", "cores", "gigabytes"),
    [
        ("Apple M1 Ultra", 64, 800),
        ("Apple M3 Max", 30, 300),
        (" apple m3\tmax GPU", 40, 400),
        ("M1", None, 68),
        ("Apple M1", 35, 68),
    ],
)
def test_the_bandwidth_of_a_chip_as_it_is_sold(name: str, cores: int | None, gigabytes: float) -> None:
    found = find_chip(name, cores)
    assert (found.bandwidth, found.reason) == (gigabytes * 1e9, None)


def test_reported_numbers_are_not_taken_for_certain() -> None:
    for name, checked in {"Apple M1": True, "Apple M4 Max": True, "Apple M5 Max": False}.items():
        assert find_chip(name, 40 if "Max" in name else 8).checked is checked


@pytest.mark.parametrize(
    ("name", "cores", "words"),
    [
        ("Apple M4 Max", None, "sold with 32 and 40 GPU cores"),
        ("Apple M3 Max", 35, "the recording says 35"),
        ("Apple M19 Max", 8, "Apple M19 Max is not in"),
        (None, 8, "a GPU without a name"),
    ],
)
def test_what_has_no_specification_says_why(name: str | None, cores: int | None, words: str) -> None:
    found = find_chip(name, cores)
    assert found.bandwidth is None
    assert words in spoken(found.reason)


def test_the_table_has_every_chip_of_four_generations() -> None:
    kinds = {"M1": 4, "M2": 4, "M3": 4, "M4": 3}
    assert {g: sum(name.split()[1] == g for name in chip_table()) for g in kinds} == kinds
