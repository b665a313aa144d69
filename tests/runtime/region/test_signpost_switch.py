"""Spans and signposts of regions, and waiting for torch's MPS device: with a torch that stands in for one on a Mac.

What a Mac's kernel does with the signposts is not shown here.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.runtime.region import mps
from profkit.runtime.region.record import RegionRecord
from tests.mps_stand_in import FOLDER
from tests.workload_process import run_workload

Run = Callable[..., list[RegionRecord]]


@pytest.fixture
def records(tmp_path: Path) -> Run:
    """What a program under the signpost switch recorded, by process; its output is shown where it fails."""

    def run(code: str, said: str = "") -> list[RegionRecord]:
        full = "import profkit, os, sys, time\n" + textwrap.dedent(code)
        directive = {"pass_name": "trace", "switch": {"kind": "signpost"}}
        done = run_workload(tmp_path, full, directive, path=FOLDER, STAND_IN_MPS=said)
        assert done.code == 0, done.err
        return done.records

    return run


def lengths(record: RegionRecord) -> list[float]:
    return [(end - begin) / 1e9 for begin, end in record.spans]


# ---------------------------------------------------------------- spans


def test_outermost_entries_are_spans_on_the_clock_of_a_trace(records: Run) -> None:
    before = time.clock_gettime_ns(mps.CLOCK)
    (record,) = records(
        """
        for _ in range(3):
            with profkit.region("a"), profkit.region("inner"):
                time.sleep(0.002)
        """
    )
    after = time.clock_gettime_ns(mps.CLOCK)
    assert len(record.spans) == 3
    assert all(length >= 0.002 for length in lengths(record))
    flat = [before, *(moment for span in record.spans for moment in span), after]
    assert flat == sorted(flat)
    assert (record.spans_left_out, record.notes) == (0, ())


def test_a_forked_child_has_spans_of_its_own_only(records: Run) -> None:
    found = records(
        """
        with profkit.region("a"): pass
        with profkit.region("a"): pass
        pid = os.fork()
        with profkit.region("b"): pass
        if pid:
            os.waitpid(pid, 0)
        """
    )
    assert sorted(len(record.spans) for record in found) == [1, 3]


# ---------------------------------------------------------------- waiting for the device


def test_what_the_region_launched_is_in_its_span_and_what_came_before_is_not(records: Run) -> None:
    (record,) = records(
        """
        import torch
        torch.work(200_000)
        with profkit.region("a"):
            torch.work(50_000)
        with profkit.region("b"):
            pass
        """,
        said="simulated",
    )
    first, second = lengths(record)
    assert 0.05 <= first < 0.051  # 200 ms more had it begun before the device was done
    assert second < 0.001


@pytest.mark.parametrize("said", ["absent", "bad-fork"])
def test_a_device_that_is_not_there_or_the_parents_is_never_asked(records: Run, said: str) -> None:
    code = "import torch\nwith profkit.region('a'):\n    torch.work(300_000)\nassert torch.state.waits == 0"
    (record,) = records(code, said=f"{said} simulated")
    assert lengths(record)[0] < 0.3
