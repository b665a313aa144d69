"""What a Metal System Trace adds up to: truths that can be counted by hand.

What lies at the edges of the part that counts, or is of another process, buffer or ring of the same name.
"""

from __future__ import annotations

import pytest

from profkit.core.types import Spread
from profkit.profilers.xctrace.alignment import Alignment
from tests.profilers.xctrace.metal_cases import (
    BROWSER,
    SCREEN,
    SEC,
    completion,
    encoder,
    read,
    state,
    work,
)

INTERVALS, STATES = "metal-gpu-intervals", "metal-gpu-state-intervals"
ENCODERS = "metal-application-encoders-list"
COMPLETED = "metal-command-buffer-completed"


def us(value):
    return pytest.approx(value * SEC)


TWO = {  # the process at 200 to 300 and 400 to 450, the screen at 100 to 150 and 420 to 500
    INTERVALS: [
        work(100, 50, SCREEN),
        work(200, 100, cmdbuffer_id=1, encoder_id=11),
        work(400, 50, cmdbuffer_id=2, encoder_id=12),
        work(420, 80, SCREEN),
    ],
    STATES: [
        state(100, 50),
        state(150, 50, "Idle"),
        state(200, 100),
        state(300, 100, "Idle"),
        state(400, 50),
        state(450, 50),
        state(500, 100, "Idle"),
    ],
}


def test_the_device_is_busy_for_all_and_the_process_for_itself():
    metal = read(TWO).metal
    assert metal.span == us(500)  # all that the table of states speaks of
    assert metal.device_busy == us(250)
    assert metal.process_busy == us(150)
    assert metal.others == us(100)
    assert [(p.name, p.target, p.intervals) for p in metal.processes] == [
        ("python3.12", True, 2),
        ("WindowServer", False, 2),
    ]
    assert metal.processes[1].busy == us(130)


def test_work_side_by_side_is_busy_once_and_spent_twice():
    rows = [work(0, 100, cmdbuffer_id=1), work(50, 100, cmdbuffer_id=2), work(60, 10, cmdbuffer_id=2)]
    metal = read({INTERVALS: rows}).metal
    assert metal.process_busy == us(150)
    (encoder,) = metal.encoders
    assert encoder.seconds == us(210)
    # The second's parts overlap
    assert metal.command_buffers == Spread(2, us(100), us(100), us(100))


def test_without_a_region_the_window_goes_from_the_first_work_of_the_process_to_its_last():
    report = read(TWO)
    assert report.metal.window == us(250)
    assert report.metal.window_busy == us(150)  # the screen's until 500 lies behind it
    assert report.metal.longest_gap == us(100)
    assert (report.trace.span, report.trace.busy) == (us(250), us(150))
    assert not report.metal.marked
    (note,) = report.warnings
    assert "nothing is marked" in note
    assert "250 µs lie between" in note


def test_a_region_cuts_what_lies_across_its_edges():
    report = read(TWO, windows=[(250, 410), (440, 480)])
    metal = report.metal
    assert metal.marked
    assert metal.entries == 2
    assert metal.span == metal.window == us(200)
    assert metal.process_busy == us(50 + 10 + 10)
    assert metal.device_busy == us(50 + 10 + 40)
    assert metal.longest_gap == us(100)
    assert report.trace.setup_seconds == us(50)
    (one,) = metal.encoders
    assert (one.count, one.seconds) == (2, us(70))
    assert report.warnings == ()


def test_a_region_without_gpu_work_is_a_busy_time_of_zero_and_one_gap():
    metal = read(TWO, windows=[(310, 390)]).metal
    assert (metal.process_busy, metal.longest_gap) == (0.0, us(80))
    assert metal.command_buffers is None
    assert metal.encoders == ()


def test_a_gap_waits_for_the_host_until_something_is_committed():
    tables = {
        INTERVALS: [  # committed at 70 and 230
            work(100, 100, cmdbuffer_id=1, latency=30),
            work(300, 100, cmdbuffer_id=2, latency=70),
            work(240, 20, SCREEN),
        ],
        STATES: [state(100, 100), state(240, 20), state(300, 100)],
        COMPLETED: [completion(1, 215), completion(2, 450)],
    }
    report = read(tables)
    metal = report.metal
    assert metal.window == us(330)  # 70 to 400
    assert metal.unsubmitted == us(30)  # 200 to 230: that the first is not completed yet is no work
    assert metal.blocked == us(20)
    assert metal.latency == Spread(2, us(50), us(68), us(70))
    assert metal.completion == Spread(2, us(182.5), us(216.25), us(220))
    assert metal.queue_most == 1
    assert metal.queue_depth == pytest.approx((215 - 70 + 400 - 230) / 330)
    assert report.trace.starved == pytest.approx(30 / 130)
    assert report.trace.launch_latency == us(50)


def test_encoders_have_the_labels_of_the_list_and_else_their_own():
    tables = {
        INTERVALS: [
            work(0, 10, encoder_id=1),
            work(10, 30, encoder_id=2, label="Command Buffer 0:softmax"),
            work(40, 20, encoder_id=3, label="GPU Execution"),
            work(60, 5, encoder_id=1),
        ],
        ENCODERS: [encoder(1, "matmul")],
    }
    metal = read(tables).metal
    assert [(one.name, one.count, one.seconds) for one in metal.encoders] == [
        ("softmax", 1, us(30)),
        ("Compute (no label)", 1, us(20)),
        ("matmul", 1, us(15)),  # one encoder in two pieces
    ]
    assert [one.kernel.name for one in read(tables).trace.kernels] == [one.name for one in metal.encoders]


def test_another_process_than_the_launched_one_counts_only_with_a_reason():
    other = [work(0, 50, BROWSER)]
    idle = read({INTERVALS: other})
    assert idle.metal.process_busy == 0.0
    assert idle.trace is None
    assert idle.warnings[0] == "python3.12 (812) was launched and had nothing on the GPU"
    called = read({INTERVALS: other, ENCODERS: [encoder(1, "a", process=BROWSER)]})
    assert called.metal.process_busy == us(50)
    assert "Firefox GPU Helper (900) counts, whose Metal calls were recorded with it" in called.warnings[0]
    said = read({INTERVALS: [*other, work(60, 20)]}, pids=[900])
    assert said.metal.process_busy == us(50)
    assert [p.name for p in said.metal.processes if p.target] == ["Firefox GPU Helper"]


def test_without_a_table_of_contents_the_busiest_counts_but_never_the_compositor():
    report = read({INTERVALS: [work(0, 500, SCREEN), work(10, 20), work(40, 10, BROWSER)]}, contents=())
    assert report.metal.process_busy == us(20)
    assert (
        report.warnings[0]
        == "the recording names no process: python3.12 (812) counts, the busiest on the GPU"
    )
    assert report.metal.guessed == report.warnings[0]
    encoders = [encoder(1, "a", process=BROWSER)]
    assert read({INTERVALS: [work(0, 9, BROWSER)], ENCODERS: encoders}, contents=()).metal.guessed is None
    assert read({INTERVALS: [work(0, 9)]}).metal.guessed is None
    assert read({INTERVALS: [work(0, 500, SCREEN)]}, contents=()).metal.process_busy == us(500)


def test_clocks_and_heat_are_told_in_the_part_that_counts_and_while_the_process_worked():
    tables = {
        **TWO,
        "gpu-performance-state-intervals": [
            {"start": 100_000, "duration": 150_000, "gpu-performance-state": "Minimum", "track-label": "M1"},
            {"start": 250_000, "duration": 200_000, "gpu-performance-state": "Maximum", "track-label": "M1"},
        ],
        "device-thermal-state-intervals": [
            {"start": 0, "duration": 900_000, "thermal-state": "Fair", "track-label": "Current"},
            {"start": 0, "duration": 900_000, "thermal-state": "Serious", "track-label": "Induced"},
        ],
    }
    metal = read(tables).metal
    assert [(s.name, s.seconds, s.busy) for s in metal.performance] == [
        ("Maximum", us(200), us(100)),
        ("Minimum", us(150), us(50)),
    ]
    assert [(s.name, s.seconds) for s in metal.thermal] == [("Fair", us(500))]
    cut = read(tables, windows=[(0, 200)]).metal
    assert [(s.name, s.seconds) for s in cut.performance] == [("Minimum", us(100))]


PERFORMANCE = "gpu-performance-state-intervals"


def test_a_region_that_was_not_found_is_told():
    note = "the whole trace counts, not the region alone: the trace does not tell its clock"
    tables = {INTERVALS: [work(0, 10)]}
    assert read(tables, alignment=Alignment(notes=(note,))).metal.lost == note
    assert read(tables).metal.lost is None
    assert read(tables, windows=[(0, 5)]).metal.lost is None
