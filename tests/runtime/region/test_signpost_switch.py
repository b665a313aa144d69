"""Spans and signposts of regions, and waiting for torch's MPS device: with a torch that stands in for one on a Mac.

What a Mac's kernel does with the signposts is not shown here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.runtime.region import mps
from profkit.runtime.region.mps import MARK, SignpostSwitch
from profkit.runtime.region.record import RegionRecord, decode_record, encode_record

ROOT = Path(__file__).resolve().parents[3]
STAND_IN = ROOT / "tests" / "stand_ins" / "mps"
Run = Callable[..., list[RegionRecord]]


@pytest.fixture
def records(tmp_path: Path) -> Run:
    """What a program under the signpost switch recorded, by process; its output is shown where it fails."""

    def run(
        code: str, *, pass_name: str = "trace", said: str = "", fails: bool = False
    ) -> list[RegionRecord]:
        path = tmp_path / "workload.py"
        path.write_text("import profkit, os, sys, time\n" + textwrap.dedent(code))
        directive = {"pass_name": pass_name, "record": str(tmp_path / "r"), "switch": {"kind": "signpost"}}
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{STAND_IN}",
            "PROFKIT_DIRECTIVE": json.dumps(directive),
            "STAND_IN_MPS": said,
        }
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, env=environment, timeout=60
        )
        assert (done.returncode != 0) == fails, done.stderr
        return [decode_record(each.read_text(), each.name) for each in sorted(tmp_path.glob("r.*.json"))]

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


def test_an_exit_without_its_entry_is_no_span() -> None:
    switch = SignpostSwitch()
    switch.exit("a")
    switch.enter("a")
    switch.forget()
    switch.exit("a")
    assert switch.spans == ()


# ---------------------------------------------------------------- signposts


def test_a_signpost_has_the_number_of_its_name_and_of_the_entry() -> None:
    switch = SignpostSwitch()
    seen: list[tuple[int, ...]] = []
    switch._start, switch._end = (lambda *a: seen.append(a)), (lambda *a: seen.append(a))
    for name in ("a", "b", "a"):
        switch.enter(name)
        switch.exit(name)
    expected = [(1, 1, MARK, 0, 1), (2, 2, MARK, 0, 2), (1, 3, MARK, 0, 1)]
    assert seen == [each for one in expected for each in (one, one)]


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


def test_regions_of_the_timing_pass_wait_and_leave_no_spans(records: Run) -> None:
    (record,) = records(
        """
        import torch
        torch.work(200_000)
        with profkit.region("a"):
            torch.work(50_000)
        """,
        pass_name="timing",
        said="simulated",
    )
    assert record.spans == ()
    assert 0.05 <= record.regions[0].seconds[0] < 0.051


@pytest.mark.parametrize("said", ["absent", "bad-fork"])
def test_a_device_that_is_not_there_or_the_parents_is_never_asked(records: Run, said: str) -> None:
    code = "import torch\nwith profkit.region('a'):\n    torch.work(300_000)\nassert torch.state.waits == 0"
    (record,) = records(code, said=f"{said} simulated")
    assert lengths(record)[0] < 0.3


def test_a_process_that_does_not_use_the_device_never_waits_for_it(records: Run) -> None:
    records("import torch\nwith profkit.region('a'): pass\nassert torch.state.waits == 0")


def test_work_that_failed_is_the_workloads_business(records: Run) -> None:
    (record,) = records("import torch\ntorch.use()\nwith profkit.region('a'): pass", said="broken")
    assert (len(record.spans), record.notes) == (1, ())


# ---------------------------------------------------------------- the record


@pytest.mark.parametrize("span", [[9, 5], [1], [1, 2, 3], ["1", 2], [-1, 2], [1.5, 2], None, 7])
def test_a_span_that_is_no_span_is_damage(span: object) -> None:
    data = json.loads(encode_record(RegionRecord(7, "trace")))
    data["spans"] = [span]
    with pytest.raises(UnreadableReport, match=r"^region record"):
        decode_record(json.dumps(data))
