from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

from profkit.doctor.accelerators import cuda_checks, mps_checks

Fake = Callable[[dict[str, str]], Path]


def test_without_nvidias_tools_each_is_missing_and_the_backend_is_not_promised(fake_tools: Fake) -> None:
    fake_tools({})
    found = {check.name: check for check in cuda_checks()}
    assert {check.state for check in found.values()} == {"missing"}
    assert "does not use them yet" in found["cuda backend"].detail


def test_a_tool_that_answers_is_told_with_its_version_and_one_that_fails_with_its_words(
    fake_tools: Fake,
) -> None:
    folder = fake_tools(
        {
            "ncu": "echo 'NVIDIA (R) Nsight Compute'; echo 'Version 2026.1.0.0 (build 1)'",
            "nvidia-smi": "echo 'NVIDIA-SMI has failed: no driver' >&2; exit 9",
        }
    )
    found = {check.name: check for check in cuda_checks()}
    assert found["ncu"].state == "ok"
    assert found["ncu"].version == "Version 2026.1.0.0 (build 1)"
    assert found["ncu"].path == str(folder / "ncu")
    assert found["nvidia-smi"].state == "refused"
    assert "no driver" in found["nvidia-smi"].detail
    assert found["cuda backend"].state == "missing"


def test_metal_is_sought_only_on_macos() -> None:
    checks = list(mps_checks())
    if platform.system() != "Darwin":
        assert [check.name for check in checks] == ["mps backend"]
        assert "macOS" in checks[0].detail
