"""A Mac's processor, its power and its conditions, by what its small programs print."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profkit.hardware import macos
from profkit.hardware.conditions import MachineConditions, read_conditions, read_moment
from profkit.hardware.machine import cache_warnings, read_machine
from profkit.hardware.macos import core_kinds
from profkit.hardware.noise import judge_conditions
from tests.mac_stand_in import CALM, M3_MAX, programs


@pytest.fixture
def on_a_mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def make(answers: dict[str, str | int] | None = None, sysctl: dict[str, str] | None = None) -> None:
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
    assert [(kind.name, kind.cores) for kind in core_kinds()] == [("Performance", 12), ("Efficiency", 4)]
    assert "ways" in cache_warnings()[0]


def test_a_python_under_rosetta_says_so(on_a_mac, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    on_a_mac(sysctl={"sysctl.proc_translated": "1"})
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    machine = read_machine()
    assert "rosetta" in machine.features
    assert (machine.vendor, machine.architecture) == ("Apple", "x86_64")


def test_a_guest_says_so(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac(sysctl={"kern.hv_vmm_present": "1"})
    assert read_machine().virtual == "hypervisor"


def test_a_calm_mac_holds_nothing_down(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac()
    seen = read_moment("before timing", devices=True)
    assert (seen.slowed, seen.power, seen.temperature, seen.clock) == ((), "mains", None, None)
    assert [(device.index, device.throttle, device.clock) for device in seen.devices] == [(0, (), None)]
    assert seen.load is not None


@pytest.mark.parametrize(
    ("answers", "slowed"),
    [
        (
            {
                "notifyutil -g com.apple.system.thermalpressurelevel": "com.apple.system.thermalpressurelevel 2\n"
            },
            ("thermal pressure: heavy",),
        ),
        ({"pmset -g": "Currently in use:\n lowpowermode         1\n womp 1\n"}, ("low power mode",)),
        ({"pmset -g": " powermode            1\n"}, ("low power mode",)),
        ({"pmset -g": " powermode            2\n"}, ()),
        (
            {
                "pmset -g therm": "CPU_Scheduler_Limit \t= 100\nCPU_Available_CPUs \t= 8\nCPU_Speed_Limit \t= 70\n"
            },
            ("processor limited to 70 % of its clock for heat",),
        ),
        (
            {
                "notifyutil -g com.apple.system.thermalpressurelevel": 1,
                "pmset -g therm": "Thermal Warning Level = 3\n",
            },
            ("thermal pressure: thermal warning level 3",),
        ),
    ],
)
def test_a_mac_that_holds_its_clocks_down_says_why(on_a_mac, answers, slowed) -> None:  # type: ignore[no-untyped-def]
    on_a_mac(answers)
    seen = read_moment("after timing", devices=True)
    assert seen.slowed == slowed
    assert seen.devices[0].throttle == slowed


def test_where_nothing_answers_nothing_is_told(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac(dict.fromkeys(CALM, 1))
    assert macos.read_power() == macos.MacPower()


@pytest.mark.parametrize("text", [None, "", "level", "com.apple.system.thermalpressurelevel: no", "9" * 40])
def test_a_level_that_is_none_is_not_told(text: str | None) -> None:
    assert macos.parse_pressure(text) is None


def test_conditions_of_a_mac(on_a_mac) -> None:  # type: ignore[no-untyped-def]
    on_a_mac({"pmset -g batt": "Now drawing from 'Battery Power'\n", "pmset -g": " lowpowermode 1\n"})
    seen = read_conditions(window=0.01)
    assert (seen.on_battery, seen.slowed, seen.governor) == (True, ("low power mode",), None)
    assert seen.memory is not None


def test_clocks_that_are_held_down_are_a_limit() -> None:
    told = {check.name: check for check in judge_conditions(MachineConditions(8, slowed=("low power mode",)))}
    assert (told["clocks"].state, "low power mode" in told["clocks"].detail) == ("limited", True)
    assert told["clocks"].fix is not None
    calm = {check.name: check.state for check in judge_conditions(MachineConditions(8, slowed=()))}
    assert calm["clocks"] == "ok"


def test_values_are_asked_of_the_c_library_where_it_has_them(tmp_path: Path) -> None:
    """As on every real Mac, where no program is started for them."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler, and a loader that preloads")
    library = tmp_path / "sysctl.so"
    source = Path(__file__).resolve().parents[1] / "stand_ins" / "macos_sysctl.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    code = (
        "from profkit.hardware.macos import sysctl_number as number, sysctl_text as text\n"
        "print(text('machdep.cpu.brand_string'), number('hw.memsize'), number('kern.hv_vmm_present'),"
        " number('machdep.cpu.brand_string'), text('no.such.name'), number('no.such.name'), sep='|')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "Apple M3 Max|68719476736|1|None|None|None", done.stderr
