"""A Mac's processor, its power, its conditions and its GPU, by what its small programs print; the table of chips."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import pytest

from profkit.core.errors import Fault
from profkit.hardware import macos
from profkit.hardware.conditions import MachineConditions, judge_conditions, read_conditions, read_moment
from profkit.hardware.machine import cache_warnings, read_machine
from profkit.hardware.macos import AppleChip, chip_table, find_chip, parse_ioreg, read_apple_gpus
from tests.mac_stand_in import CALM, IOREG, M3_MAX, accelerator, ioreg, programs

PRESSURE = "notifyutil -g com.apple.system.thermalpressurelevel"


@pytest.fixture
def on_a_mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def make(answers: Mapping[str, str | int] | None = None, sysctl: dict[str, str] | None = None) -> None:
        values = {**M3_MAX, **(sysctl or {})}
        monkeypatch.setenv("PATH", str(programs(tmp_path / "bin", {**CALM, **(answers or {})}, values)))
        monkeypatch.setattr(platform, "system", lambda: "Darwin")
        monkeypatch.setattr(platform, "machine", lambda: "arm64")

    return make


def test_the_machine_is_told_by_its_performance_cores(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac()
    machine = read_machine()
    assert (machine.cpu, machine.vendor, machine.architecture) == ("Apple M3 Max", "Apple", "arm64")
    assert (machine.cores, machine.memory_bytes, machine.virtual) == (16, 64 << 30, None)
    assert machine.features == ("12 performance", "4 efficiency", "bf16")
    assert [(c.level, c.size, c.line, c.shared) for c in machine.caches] == [
        (1, 128 << 10, 128, 1),
        (2, 16 << 20, 128, 6),
    ]
    assert machine.instruction_cache is not None
    assert machine.instruction_cache.size == 192 << 10
    assert "ways" in cache_warnings()[0]


def test_a_guest_and_a_python_under_rosetta_say_so(on_a_mac, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    on_a_mac(sysctl={"sysctl.proc_translated": "1", "kern.hv_vmm_present": "1"})
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    machine = read_machine()
    assert "rosetta" in machine.features
    assert (machine.vendor, machine.architecture, machine.virtual) == ("Apple", "x86_64", "hypervisor")


@pytest.mark.parametrize(
    ("answers", "slowed"),
    [
        ({}, ()),
        ({PRESSURE: "com.apple.system.thermalpressurelevel 2\n"}, ("thermal pressure: heavy",)),
        ({PRESSURE: "com.apple.system.thermalpressurelevel: no"}, ()),
        ({PRESSURE: "9" * 40}, ()),
        ({"pmset -g": "Currently in use:\n lowpowermode         1\n womp 1\n"}, ("low power mode",)),
        ({"pmset -g": " powermode            1\n"}, ("low power mode",)),
        ({"pmset -g": " powermode            2\n"}, ()),
    ],
)
def test_a_mac_that_holds_its_clocks_down_says_why(on_a_mac, answers, slowed) -> None:  # type: ignore[no-untyped-def]
    on_a_mac(answers)
    seen = read_moment("after timing", devices=True)
    assert (seen.slowed, seen.power, seen.clock) == (slowed, "mains", None)
    assert [(device.index, device.throttle) for device in seen.devices] == [(0, slowed)]
    assert seen.load is not None


def test_where_nothing_answers_nothing_is_told(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac(dict.fromkeys(CALM, 1))
    assert macos.read_power() == macos.MacPower()
    assert read_apple_gpus() == ()


def test_conditions_of_a_mac(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac({"pmset -g batt": "Now drawing from 'Battery Power'\n", "pmset -g": " lowpowermode 1\n"})
    seen = read_conditions(window=0.01)
    assert (seen.on_battery, seen.slowed, seen.governor) == (True, ("low power mode",), None)
    assert seen.memory is not None
    told = {check.name: check for check in judge_conditions(MachineConditions(8, slowed=seen.slowed))}
    assert (told["clocks"].state, "low power mode" in told["clocks"].detail) == ("limited", True)
    calm = {check.name: check.state for check in judge_conditions(MachineConditions(8, slowed=()))}
    assert calm["clocks"] == "ok"


def test_an_apple_gpu_has_the_specification_of_its_chip_and_its_cores(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac({IOREG: ioreg(accelerator(b"Apple M3 Max\0", (30).to_bytes(4, "little")))})
    (gpu,) = read_apple_gpus()
    assert (gpu.name, gpu.cores, gpu.chip, gpu.index) == ("Apple M3 Max", 30, "G15X", 0)
    assert (gpu.bandwidth, gpu.memory_bytes) == (300e9, 64 << 30)
    assert gpu.flops == pytest.approx(10.6e12, rel=0.01)
    assert (gpu.virtual, gpu.capability, gpu.multiprocessors) == (None, None, None)


def test_a_virtual_machine_has_no_specification(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac(
        {IOREG: ioreg(accelerator(None, None, "AppleParavirtGPU"))},
        {"kern.hv_vmm_present": "1", "machdep.cpu.brand_string": "Apple M1 (Virtual)"},
    )
    (gpu,) = read_apple_gpus()
    assert (gpu.virtual, gpu.bandwidth, gpu.flops) == ("macos guest", None, None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\0",
        b"<plist><dict/></plist>",
        b'<?xml version="1.0"?><!DOCTYPE plist [<!ENTITY a "b">]><plist><array><string>&a;</string></array></plist>',
        b"<plist><array><string>x</string></array></plist>",
    ],
)
def test_what_is_no_list_of_accelerators_is_none(content: bytes) -> None:
    assert parse_ioreg(content) == ()


# ------------------------------------------------------------ chips


def chip(name: str, cores: int | None = None) -> AppleChip:
    found = find_chip(name, cores)
    assert isinstance(found, AppleChip), found
    return found


@pytest.mark.parametrize(
    ("name", "cores", "gigabytes", "teraflops"),
    [
        ("Apple M1", 8, 68, 2.6),
        ("Apple M1 Ultra", 64, 800, 21.2),
        ("Apple M2 Max", 38, 400, 13.6),
        ("Apple M3 Max", 30, 300, 10.6),
        (" apple m3\tmax GPU", 40, 400, 14.1),
        ("M4", 10, 120, 3.8),
        ("Apple M4 Max", 40, 546, 16.2),
        ("Apple M5 Max", 40, 614, 16.6),
    ],
)
def test_the_peaks_of_a_chip_as_it_is_sold(name: str, cores: int, gigabytes: float, teraflops: float) -> None:
    found = chip(name, cores)
    assert found.bandwidth == pytest.approx(gigabytes * 1e9)
    assert found.flops == pytest.approx(teraflops * 1e12, rel=0.02)
    assert found.flops == cores * 128 * 2 * (found.clock or 0)
    assert found.reason is None


def test_reported_numbers_are_not_taken_for_certain() -> None:
    checked = {"Apple M1": (True, True), "Apple M4 Max": (True, False), "Apple M5 Max": (False, False)}
    for name, words in checked.items():
        found = chip(name, 40 if "Max" in name else 8)
        assert (found.bandwidth_checked, found.flops_checked) == words


@pytest.mark.parametrize(
    ("name", "cores", "bandwidth", "words"),
    [
        ("Apple M4 Max", None, None, "32 and 40 GPU cores and 410 GB/s or 546 GB/s"),
        ("M1", None, 68e9, "7 and 8 GPU cores"),
        ("Apple M3 Max", 35, None, "not with 35"),
        ("Apple M1", 35, 68e9, "profkit's table has Apple M1 with 7 and 8 GPU cores, not with 35"),
    ],
)
def test_what_a_number_of_cores_decides_is_not_told_without_it(
    name: str, cores: int | None, bandwidth: float | None, words: str
) -> None:
    found = chip(name, cores)
    assert (found.bandwidth, found.flops) == (bandwidth, None)
    assert words in (found.reason or "")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("AMD Radeon Pro 5300M", "AMD Radeon"),
        ("Apple M19 Max", "Apple M19 Max"),
        ("<script>", "<"),
        (None, "without"),
    ],
)
def test_what_has_no_specification_says_why(name: str | None, words: str) -> None:
    found = find_chip(name, 8)
    assert isinstance(found, Fault)
    assert words in found.reason


def test_the_table_has_every_chip_of_four_generations() -> None:
    kinds = {"M1": 4, "M2": 4, "M3": 4, "M4": 3}
    assert {g: sum(name.split()[1] == g for name in chip_table()) for g in kinds} == kinds
