from __future__ import annotations

import platform

from profkit.doctor.accelerators import mps_checks


def test_metal_is_sought_only_on_macos() -> None:
    checks = list(mps_checks())
    if platform.system() != "Darwin":
        assert [check.name for check in checks] == ["mps backend"]
        assert "macOS" in checks[0].detail
