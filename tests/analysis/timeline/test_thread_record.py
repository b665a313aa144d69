"""Lanes of threads: as long as what they did took, each part of the run split by its kinds."""

from __future__ import annotations

import pytest

from profkit.analysis.stacks.stretches import ProcessStretches, WrittenStretch, thread_records
from profkit.analysis.timeline.marks import MAX_LANES, MAX_MARKS
from profkit.analysis.timeline.thread_record import Stretch, ThreadRecord, threads_timeline
from profkit.core.types import Frame, MarkKind, MarkLabel, Timeline

RUN = MarkLabel("python", "work", file="app.py", line=3)
LOCK = MarkLabel("lock", "work", file="app.py", line=4)


def seconds_of(timeline: Timeline, lane: int) -> dict[MarkKind, float]:
    found: dict[MarkKind, float] = {}
    one = timeline.lanes[lane]
    for number, length in zip(one.labels, one.lengths, strict=True):
        kind = timeline.labels[number].kind
        found[kind] = found.get(kind, 0.0) + length / 1e9
    return found


def made(records: list[ThreadRecord], seconds: float = 10.0) -> Timeline:
    timeline = threads_timeline(records, seconds, ("app.py",))
    assert timeline is not None
    return timeline


def test_a_lane_is_as_long_as_each_thing_took_and_what_goes_on_is_one_mark() -> None:
    record = ThreadRecord("thread", "main", 0, 0)
    record.stretches = [Stretch(n / 10, (n + 1) / 10, 0.1, RUN if n < 70 else LOCK) for n in range(100)]
    timeline = made([record])
    assert len(timeline.lanes[0].starts) == 2
    assert seconds_of(timeline, 0) == {"python": pytest.approx(7), "lock": pytest.approx(3)}
    assert timeline.activity[0].shares == (100,) * 210 + (0,) * 90


def test_a_stretch_in_which_two_things_were_done_has_both_in_their_proportion() -> None:
    record = ThreadRecord("thread", "main", 0, 0, [Stretch(2, 4, 0.5, RUN), Stretch(2, 4, 1.5, LOCK)])
    timeline = made([record])
    assert seconds_of(timeline, 0) == {"python": pytest.approx(0.5), "lock": pytest.approx(1.5)}
    lane = timeline.lanes[0]
    ends = [start + length for start, length in zip(lane.starts, lane.lengths, strict=True)]
    assert all(end <= start + 1 for end, start in zip(ends, lane.starts[1:], strict=False))


def test_a_thousand_threads_that_do_something_else_each_moment_stay_within_the_bounds() -> None:
    records = []
    for number in range(1000):
        one = ThreadRecord("thread", f"worker {number}", 0, number)
        one.stretches = [Stretch(t / 100, (t + 1) / 100, 0.01, (RUN, LOCK)[t % 2]) for t in range(200)]
        records.append(one)
    records[500].stretches.append(Stretch(5, 9, 4.0, RUN))
    timeline = made(records)
    assert sum(len(lane.starts) for lane in timeline.lanes) <= MAX_MARKS
    assert (len(timeline.lanes), timeline.left_out) == (MAX_LANES, 1000 - MAX_LANES)
    assert "worker 500" in {lane.name for lane in timeline.lanes}


def test_one_sample_is_a_lane_and_none_is_no_timeline() -> None:
    record = ThreadRecord("thread", "main", 0, 0, [Stretch(0, 0.001, 0.001, RUN)])
    assert len(made([record], 0.001).lanes) == 1
    assert threads_timeline([], 1.0) is None
    assert threads_timeline([ThreadRecord("thread", "main")], 1.0) is None
    assert threads_timeline([record], 0.0) is None


APP, LIBRARY = (
    Frame("work", "python", "/src/app.py", 1),
    Frame("dumps", "python", "/usr/lib/python3/json/__init__.py", 9),
)
RUN_LOOP = Frame("Handle._run", "python", "/usr/lib/python3.12/asyncio/events.py", 80)
STACKS = {
    1: ((APP, 7),),
    2: ((APP, 7), (LIBRARY, 11)),
    3: ((APP, 7), (RUN_LOOP, 84), (Frame("poll", "python", "/src/app.py", 20), 22)),
    4: ((None, 0), (Frame("<module>", "python", "/usr/lib/python3/site-packages/torch/__init__.py", 1), 1)),
}


def lanes(*rows: WrittenStretch) -> list[ThreadRecord]:
    return list(
        thread_records([ProcessStretches(0.0, {0: "main", 1: "loader"}, rows, lambda n: STACKS.get(n, ()))])
    )


def test_a_mark_is_at_the_innermost_line_of_the_program_and_names_the_library_below() -> None:
    (lane,) = lanes(WrittenStretch(0, 0.0, 1.0, "run", 2, 1.0))
    label = lane.stretches[0].label
    assert (label.kind, label.name, label.file, label.line) == ("python", "work", "/src/app.py", 7)
    assert label.what.endswith("dumps")


def test_what_an_event_loop_runs_has_a_lane_for_each_coroutine_below_its_thread() -> None:
    found = lanes(WrittenStretch(0, 0.0, 1.0, "run", 3, 1.0), WrittenStretch(1, 0.0, 1.0, "lock", 1, 1.0))
    assert [(one.kind, one.name) for one in found] == [
        ("thread", "main"),
        ("task", "poll"),
        ("thread", "loader"),
    ]


def test_an_import_is_called_after_what_is_imported_and_a_lost_stack_has_no_name() -> None:
    (lane,) = lanes(
        WrittenStretch(0, 0.0, 1.0, "run", 4, 1.0), WrittenStretch(0, 1.0, 1.0, "never heard of", 9, 1.0)
    )
    assert [(one.label.kind, one.label.name) for one in lane.stretches] == [
        ("python", "import torch"),
        ("waiting", ""),
    ]
