"""Regions on the host's clock as windows of a trace; the row of time-info is one that Instruments 27 showed."""

from __future__ import annotations

import pytest

from profkit.core.types import Fact
from profkit.profilers.xctrace.alignment import (
    TraceClock,
    align_regions,
    read_clock,
    read_signposts,
)
from profkit.runtime.region.mps import MARK
from profkit.runtime.region.record import RegionRecord, RegionTimes
from tests.spoken import spoken, spoken_lines

EPOCH = 2_897_656_234_073
HOST = EPOCH * 125 // 3  # host ns at the begin of the trace
CLOCK = TraceClock(EPOCH, 125, 3)
SECOND = 1_000_000_000
LENGTH = 6 * SECOND


def record(*spans: tuple[int, int], left_out: int = 0, pid: int = 7) -> RegionRecord:
    """Spans are given in the time of the trace."""
    regions = (RegionTimes("mlp", len(spans) + left_out, len(spans), ()),)
    told = tuple((HOST + a, HOST + b) for a, b in spans)
    return RegionRecord(pid, "trace", regions, spans=told, spans_left_out=left_out)


# ---------------------------------------------------------------- the clock


def test_ticks_become_nanoseconds_without_losing_one() -> None:
    clock = read_clock([(EPOCH, "125/3")] * 3)
    assert clock == CLOCK
    assert clock.in_trace(HOST + 123_456_789) == 123_456_789
    # an epoch of 25 days of uptime: a float would be off by hundreds of ns
    late = TraceClock(51_840_000_000_001, 125, 3)
    assert late.in_trace(2_160_000_000_000_041 + 5) == 5


@pytest.mark.parametrize("timebase", ["", "125", "125/0", "0/3", "a/b", "125/3/2", 3, "9" * 30 + "/1"])
def test_a_timebase_that_is_none_is_refused(timebase: object) -> None:
    found = read_clock([(EPOCH, timebase)])
    assert isinstance(found, Fact)
    assert "as the timebase" in spoken(found)


# ---------------------------------------------------------------- windows


def test_entries_of_all_processes_are_windows_sorted_and_apart() -> None:
    found = align_regions(
        [record((3_000, 4_000), (9_000, 9_500)), record((3_500, 5_000), (1_000, 2_000))], CLOCK, LENGTH
    )
    assert found.windows == ((1_000, 2_000), (3_000, 5_000), (9_000, 9_500))
    assert (found.entries, spoken_lines(found.notes)) == (4, ())


def test_a_region_cut_by_the_ends_of_the_trace_or_outside_of_it_is_cut_and_told() -> None:
    found = align_regions([record((-5, 10), (LENGTH - 3, LENGTH + 3))], CLOCK, LENGTH)
    assert found.windows == ((0, 10), (LENGTH - 3, LENGTH))
    assert spoken_lines(found.notes) == (
        "2 of 2 entries of the region lie outside of the trace, or across its ends",
    )
    found = align_regions([record((-9, -4), (5, 6), (LENGTH + 1, LENGTH + 2))], CLOCK, LENGTH)
    assert (found.windows, found.entries) == (((5, 6),), 1)


def test_a_region_of_another_recording_never_counts() -> None:
    found = align_regions([record((LENGTH + 40 * SECOND, LENGTH + 41 * SECOND))], CLOCK, LENGTH)
    assert found.windows == ()
    (note,) = spoken_lines(found.notes)
    assert note.startswith("the whole trace is analysed, not only the region: 1 of 1 entry")
    assert spoken(found.loss) == note
    assert "it is of another recording, or of another clock" in note


# ---------------------------------------------------------------- without a clock


def test_without_time_info_the_whole_trace_counts_and_says_why() -> None:
    found = align_regions([record((5, 6))], None, LENGTH)
    assert (found.windows, found.entries) == ((), 0)
    assert spoken_lines(found.notes) == (
        "the whole trace is analysed, not only the region: the clock of the trace is not known: it "
        "has no table time-info",
    )


# ---------------------------------------------------------------- signposts


def test_signposts_of_ours_are_told_from_others() -> None:
    rows = [(900, 50, MARK), (100, 50, MARK), (200, 50, 0), (300, 50, None), (None, 5, MARK), (5, -1, MARK)]
    assert read_signposts(rows) == ((100, 150), (900, 950))


def test_signposts_decide_where_the_clock_does_not() -> None:
    found = align_regions([record((5, 6))], None, LENGTH, ((100, 150), (900, 950)))
    assert (found.windows, found.entries) == (((100, 150), (900, 950)), 2)
    assert spoken_lines(found.notes)[0].startswith(
        "the region is taken from its signposts: the clock of the trace is not known"
    )
