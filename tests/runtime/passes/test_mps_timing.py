"""Timing on torch's MPS device, with one that stands in for it: asynchronous, its work of known length.

The clock is simulated, so times are exact. What a Mac's GPU does is not shown here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profkit.core.statistics import median
from profkit.core.types import SampleSet
from profkit.reporting.views.summaries.time import device_notes
from profkit.runtime.passes.benchmark import time_function
from profkit.runtime.passes.timing import TimedCalls
from tests.mps_stand_in import FOLDER
from tests.mps_stand_in import torch as torch
from tests.workload_process import run_workload

Torch = Callable[..., Any]


def timed(fn: Callable[[], object]) -> SampleSet:
    return time_function(TimedCalls(fn), precision=0.05, max_seconds=4.0)


# ---------------------------------------------------------------- back to back


def test_a_clock_that_does_not_wait_would_be_wrong_and_ours_is_right(torch: Torch) -> None:
    fake = torch()
    begin = fake.clock()
    for _ in range(10):
        fake.work(1000)
    assert fake.clock() - begin < 20e-6  # of 10 ms: the work was only put down
    found = timed(lambda: fake.work(1000))
    assert median(found.seconds) == pytest.approx(1e-3, rel=0.03)
    assert found.clock == "mps-synchronized"


def test_a_sample_is_so_long_that_the_wait_does_not_show(torch: Torch) -> None:
    fake = torch()
    found = timed(lambda: fake.work(50))
    # single calls would say 200 µs
    assert median(found.seconds) == pytest.approx(50e-6, rel=0.05)
    assert found.loops * median(found.seconds) >= 40e-3


# ---------------------------------------------------------------- first use, warm-up


def test_a_device_that_the_first_call_begins_to_use_is_found_with_its_first_time(torch: Torch) -> None:
    fake = torch()
    found = timed(lambda: fake.compiled(30_000, 50_000))
    assert found.clock == "mps-synchronized"
    assert found.warmup[0] >= 80e-3  # the device's part is in it, which was not waited for at first


# ---------------------------------------------------------------- as a workload sees it


def test_the_timing_pass_records_it_and_the_record_is_read(tmp_path: Path) -> None:
    code = "import torch, profkit\nprofkit.benchmark(lambda: torch.work(2000), name='w')"
    directive = {"pass_name": "timing", "sampling": 1, "precision": 0.05, "switch": {"kind": "signpost"}}
    done = run_workload(tmp_path, code, directive, path=FOLDER, STAND_IN_MPS="simulated")
    assert (done.code, done.err) == (0, "")
    (timing,) = done.timings
    (samples,) = timing.processes
    assert samples.clock == "mps-synchronized"
    words = " ".join(device_notes(timing))
    assert "CUDA" not in words
    assert "L2" not in words
