"""When threads of machine code ran and waited, by perf's switches: a recording, and one written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.analysis.stacks.files import flame_of
from profkit.analysis.stacks.wall_time import is_wall_time
from profkit.core.types import Timeline
from profkit.profilers.perf.thread_lanes import read_threads
from tests.conftest import ROOT

DATA = ROOT / "tests" / "data" / "perf"
SLEEPS = "\n".join(
    ("app 7/8  10.100000:          1 context-switches: ",
     "\tffffffff8220043e do_nanosleep+0x5e ([kernel.kallsyms])",
     "\t            d3a7 clock_nanosleep@@GLIBC_2.17+0x67 (/usr/lib/libc.so.6)",
     "\t            1325 Worker::rest+0x25 (/app/app)",
     "", "app 7/7  10.050000:    1000000        cpu-clock: ",
     "\t            1999 crunch+0x12 (/app/app)", "", "")
)  # fmt: skip
SWITCHES = """\
7/7  10.000000: PERF_RECORD_SWITCH IN
7/8  10.000000: PERF_RECORD_SWITCH IN
7/8  10.100000: context-switches:
7/8  10.100010: PERF_RECORD_SWITCH OUT
7/7  10.300000: PERF_RECORD_SWITCH OUT preempt
7/7  10.400000: PERF_RECORD_SWITCH IN
7/8  10.600000: PERF_RECORD_SWITCH IN
7/7  11.000000: PERF_RECORD_SWITCH OUT
7/8  11.000000: PERF_RECORD_SWITCH OUT
"""


def seconds_of(timeline: Timeline, lane: int) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for number, length in zip(timeline.lanes[lane].labels, timeline.lanes[lane].lengths, strict=True):
        label = timeline.labels[number]
        found[label.kind, label.name] = found.get((label.kind, label.name), 0.0) + length / 1e9
    return found


def test_each_thread_ran_waited_and_had_no_processor_for_as_long_as_the_records_say(tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text(SLEEPS)
    (tmp_path / "switches.txt").write_text(SWITCHES)
    _, made = read_threads(tmp_path / "switches.txt", tmp_path / "script.txt", Path("/app/app"))
    assert made is not None
    assert made.seconds == pytest.approx(1.0)
    assert [lane.name for lane in made.lanes] == ["main", "thread 2"]
    near = pytest.approx
    main, other = seconds_of(made, 0), seconds_of(made, 1)
    ran = sum(seconds for (kind, _), seconds in main.items() if kind == "native")
    waited = sum(seconds for (kind, _), seconds in main.items() if kind == "processor-wait")
    assert (ran, waited) == (near(0.9, abs=0.01), near(0.1, abs=0.01))
    assert ("native", "crunch") in main
    assert other["sleep", "Worker::rest"] == near(0.5, abs=0.01)
    assert {kind for kind, _ in other} == {"native", "sleep"}


def test_a_recording_has_a_lane_for_each_thread_and_its_waits_are_known_by_their_stacks() -> None:
    _, made = read_threads(DATA / "switches.waits.txt", DATA / "script.waits.txt", Path("/app/feed"))
    assert made is not None
    main = seconds_of(made, 0)
    assert (
        max(main, key=main.__getitem__)[0] == "lock"
    )  # it waits for what the other thread puts into a queue
    for lane in range(len(made.lanes)):
        assert sum(seconds_of(made, lane).values()) <= made.seconds * 1.001


def test_a_recording_without_switches_has_no_lanes(tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text(SLEEPS)
    (tmp_path / "switches.txt").write_text("7/7  10.000000:        cpu-clock: \n")
    assert read_threads(tmp_path / "switches.txt", tmp_path / "script.txt", Path("/app/app")) == (None, None)


def test_wall_time_has_a_stack_for_each_wait_and_the_seconds_that_the_switches_count(tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text(SLEEPS)
    (tmp_path / "switches.txt").write_text(SWITCHES)
    made, _ = read_threads(tmp_path / "switches.txt", tmp_path / "script.txt", Path("/app/app"))
    assert made is not None
    assert is_wall_time(made)
    found = {tuple(frame.function for frame in stack): seconds for stack, seconds in made.weights.items()}
    near = pytest.approx
    assert found == {
        ("main", "crunch"): near(0.9, abs=1e-4),
        ("main", "waits for a processor"): near(0.1, abs=1e-4),
        ("thread 2",): near(0.5, abs=1e-4),  # it ran, and no sample says where
        ("thread 2", "Worker::rest", "clock_nanosleep@@GLIBC_2.17", "sleeps"): near(0.5, abs=1e-4),
    }
    flame = flame_of(made)
    assert flame is not None
    assert {box.name: box.kind for box in flame.boxes if box.kind != "native"} == {
        "main": "thread", "thread 2": "thread", "waits for a processor": "processor", "sleeps": "sleep",
    }  # fmt: skip


def test_wall_time_of_a_recording_is_as_long_as_its_lanes() -> None:
    files = DATA / "switches.waits.txt", DATA / "script.waits.txt", Path("/app/feed")
    made, lanes = read_threads(*files)
    assert lanes is not None
    assert made is not None
    whole = sum(sum(lane.lengths) for lane in lanes.lanes) / 1e9
    assert sum(made.weights.values()) == pytest.approx(whole, rel=0.02)
    assert any(stack[-1].function == "waits for a lock" for stack in made.weights)


def test_a_recording_without_switches_has_no_wall_time(tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text(SLEEPS)
    (tmp_path / "switches.txt").write_text("7/7  10.000000:        cpu-clock: \n")
    files = tmp_path / "switches.txt", tmp_path / "script.txt", Path("/app/app")
    assert read_threads(*files) == (None, None)
