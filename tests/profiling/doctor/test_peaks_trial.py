from __future__ import annotations

import os
from pathlib import Path

import pytest

from profkit.backends.checks import judge_peaks, peaks_checks
from profkit.backends.cpu import peaks_check as doctor_peaks
from profkit.core.types import Peaks
from profkit.hardware.peaks import peaks_environment

FAST = Peaks(2e10, None, 6e10, None, 1, "how it was measured")


def test_the_peaks_of_this_machine_can_be_measured() -> None:
    pytest.importorskip("numpy")
    (check,) = peaks_checks()
    assert check.state in ("ok", "limited")
    assert "GB/s" in check.detail


@pytest.mark.parametrize(
    ("peaks", "multiply_add", "state"),
    [
        (FAST, True, "ok"),
        (Peaks(2e10, None, 2e9, None, 1, "netlib"), True, "limited"),
        (Peaks(2e10, None, 2e9, None, 1, "netlib"), False, "ok"),
        (Peaks(None, None, 6e10, None, 1, "no bandwidth: too few MiB"), True, "limited"),
    ],
)
def test_a_library_that_does_not_use_the_processor_is_named(
    peaks: Peaks, multiply_add: bool, state: str
) -> None:
    [check] = judge_peaks(peaks, multiply_add)
    assert check.state == state
    assert (check.fix is None) == (state == "ok")


@pytest.mark.parametrize(
    ("numpy", "words"),
    [("raise ImportError('no such numpy')", "no such numpy"), ("import os; os.abort()", "SIGABRT")],
)
def test_without_a_numpy_that_loads_the_peaks_are_missing_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numpy: str, words: str
) -> None:
    (tmp_path / "numpy.py").write_text(numpy)
    path = os.pathsep.join([str(tmp_path), peaks_environment(1)["PYTHONPATH"]])
    changed = {**peaks_environment(1), "PYTHONPATH": path}
    monkeypatch.setattr(doctor_peaks, "peaks_environment", lambda _: changed)
    (check,) = peaks_checks()
    assert check.state == "missing"
    assert words in check.detail
