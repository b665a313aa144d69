"""What the doctor says of MPS, by what the GPU, xctrace, macOS and torch told."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from profkit.backends.instruments import judge_mps, mps_checks
from profkit.core.types import Check, Gpu
from profkit.hardware.macos import add_specification
from profkit.profilers.programs import ToolAbility
from profkit.profiling.doctor import blocking_reason, groups_for

ABLE = ToolAbility(Path("/X/xctrace"), "16.0 (17F42)", True)
ABSENT = ToolAbility(None, None, False, "only the command line tools are selected", "sudo xcode-select -s /X")


def gpu(name: str = "Apple M1", cores: int | None = 8, guest: bool = False) -> Gpu:
    return add_specification(Gpu(name, cores=cores), name, 16 << 30, guest)


def told(*gpus: Gpu, xctrace: ToolAbility = ABLE) -> dict[str, Check]:
    return {check.name: check for check in judge_mps(gpus or (gpu(),), xctrace)}


def test_metal_is_sought_only_on_macos_and_elsewhere_one_line_says_what_can_be_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    (check,) = mps_checks()
    assert (check.name, check.state, check.fix) == ("mps backend", "missing", "--backend cpu")
    assert "profkit summarize" in check.detail
    assert blocking_reason("mps", (check,)) == check.detail


def test_a_chip_in_the_table_is_fine() -> None:
    found = told(gpu("Apple M3 Max", 30))
    assert found["GPU 0"].detail == "Apple M3 Max"
    assert found["GPU 0"].state == "ok"
    assert found["mps backend"].state == "ok"


def test_without_xctrace_the_backend_is_limited_and_not_blocked() -> None:
    found = told(xctrace=ABSENT)
    assert (found["mps backend"].state, found["mps backend"].fix) == ("limited", "sudo xcode-select -s /X")
    assert blocking_reason("mps", tuple(found.values())) is None
    assert "GPU counters" not in found


def test_that_only_a_recording_shows_whether_a_chip_counts_is_said_beforehand() -> None:
    assert "only the rows of a recording" in told()["GPU counters"].detail


def test_on_a_mac_instruments_stands_where_perf_and_valgrind_do_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    titles = {backend: [s.title for s in groups_for(backend)][2:] for backend in ("cpu", "mps", "all")}
    assert titles == {
        "cpu": ["xctrace"],
        "mps": ["xctrace", "mps"],
        "all": ["xctrace", "cuda", "mps"],
    }
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    assert [s.title for s in groups_for("all")][2:] == ["perf", "valgrind", "cuda", "mps"]
