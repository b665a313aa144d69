from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, UnreadableReport
from profkit.hardware.peaks import (
    MIB,
    SCHEMA,
    array_bytes,
    combine_peaks,
    peaks_argv,
    peaks_environment,
    read_peaks,
)


@pytest.mark.parametrize(
    ("cache", "available", "expected"),
    [
        (0, None, 64 * MIB),
        (8 * MIB, 64 << 30, 64 * MIB),
        (32 * MIB, 64 << 30, 128 * MIB),
        (768 * MIB, 1 << 40, 2048 * MIB),
        (32 * MIB, 960 * MIB, 80 * MIB),
    ],
)
def test_arrays_are_four_times_the_cache_within_a_quarter_of_the_memory(
    cache: int, available: int | None, expected: int
) -> None:
    size, note = array_bytes(cache, available)
    assert size == expected
    assert note is None


def test_too_little_memory_measures_nothing() -> None:
    with pytest.raises(MachineError, match="too few"):
        array_bytes(32 * MIB, 100 * MIB)


def _child(threads: int, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **peaks_environment(threads), **extra}
    argv = peaks_argv(threads, seconds=0.3)
    return subprocess.run(argv, env=environment, capture_output=True, text=True, cwd="/", timeout=120)


def test_a_fresh_process_measures_one_and_two_threads_and_the_two_are_joined() -> None:
    pytest.importorskip("numpy")
    one, two = (read_peaks(_child(threads).stdout) for threads in (1, 2))
    assert one.bandwidth_all is None
    assert two.bandwidth_one is None
    peaks = combine_peaks(one, two)
    for rate in (peaks.bandwidth_one, peaks.bandwidth_all):
        assert rate is not None
        assert 1e8 < rate < 1e13
    assert peaks.flops_f32_one is not None
    assert 1e8 < peaks.flops_f32_one < 1e13
    assert peaks.threads == 2
    assert "update" in peaks.method


def test_without_numpy_the_reason_and_the_line_that_helps_are_told(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('a numpy that does not load')")
    path = os.pathsep.join([str(tmp_path), peaks_environment(1)["PYTHONPATH"]])
    done = _child(1, PYTHONPATH=path)
    assert done.returncode == 3
    with pytest.raises(MachineError, match="does not load") as raised:
        read_peaks(done.stdout)
    assert raised.value.fix is not None


def test_a_module_in_the_callers_folder_is_not_taken_for_the_standard_librarys(tmp_path: Path) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("PYTHONSAFEPATH came with Python 3.11")
    (tmp_path / "json.py").write_text("raise SystemExit(77)")
    argv = [*peaks_argv(1, 0.1)[:3], "--help"]
    done = subprocess.run(argv, env={**os.environ, **peaks_environment(1)}, capture_output=True, cwd=tmp_path)
    assert done.returncode == 0


GOOD = {"schema": SCHEMA, "bandwidth_one": 1e10, "threads": 1, "method": "how"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00\x01",
        "[" * 100_000,
        "[]",
        json.dumps({**GOOD, "schema": "other/1"}),
        json.dumps({**GOOD, "threads": 0}),
        json.dumps({**GOOD, "threads": True}),
        json.dumps({**GOOD, "bandwidth_one": 0}),
        json.dumps({**GOOD, "bandwidth_one": "fast"}),
        json.dumps({**GOOD, "bandwidth_one": float("inf")}),
        json.dumps({**GOOD, "bandwidth_one": float("nan")}),
        json.dumps(GOOD)[:-5],
    ],
)
def test_what_is_not_measured_peaks_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(UnreadableReport, match="measured peak"):
        read_peaks(text)
