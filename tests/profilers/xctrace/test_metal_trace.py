"""What a Metal System Trace adds up to: truths that can be counted by hand.

What lies at the edges of the part that counts, or is of another process, buffer or ring of the same name.
"""

from __future__ import annotations

import pytest

from profkit.profilers.xctrace.alignment import Alignment
from tests.profilers.xctrace.metal_cases import (
    BROWSER,
    SCREEN,
    SEC,
    encoder,
    read,
    state,
    work,
)
from tests.spoken import spoken_lines

INTERVALS, STATES = "metal-gpu-intervals", "metal-gpu-state-intervals"
ENCODERS = "metal-application-encoders-list"


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
    assert metal.buffers == 2


def test_work_side_by_side_is_busy_once_and_spent_twice():
    rows = [work(0, 100, cmdbuffer_id=1), work(50, 100, cmdbuffer_id=2), work(60, 10, cmdbuffer_id=2)]
    metal = read({INTERVALS: rows}).metal
    assert metal.process_busy == us(150)
    (encoder,) = metal.encoders
    assert encoder.seconds == us(210)
    assert metal.buffers == 2


def test_without_a_region_the_window_goes_from_the_first_work_of_the_process_to_its_last():
    report = read(TWO)
    assert report.metal.window == us(250)
    assert report.metal.longest_gap == us(100)
    assert (report.trace.span, report.trace.busy) == (us(250), us(150))
    assert not report.metal.marked
    (note,) = spoken_lines(report.warnings)
    assert "no region is marked" in note
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
    assert metal.buffers == 0
    assert metal.encoders == ()


def test_a_gap_waits_for_the_host_until_something_is_committed():
    tables = {
        INTERVALS: [  # committed at 70 and 230
            work(100, 100, cmdbuffer_id=1, latency=30),
            work(300, 100, cmdbuffer_id=2, latency=70),
            work(240, 20, SCREEN),
        ],
        STATES: [state(100, 100), state(240, 20), state(300, 100)],
    }
    report = read(tables)
    metal = report.metal
    assert metal.window == us(330)  # 70 to 400
    assert metal.unsubmitted == us(30)  # 200 to 230
    assert metal.blocked == us(20)
    assert report.trace.starved == pytest.approx(30 / 130)


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
    assert spoken_lines(idle.warnings)[0] == "python3.12 (812) was started, but ran nothing on the GPU"
    said = read({INTERVALS: [*other, work(60, 20)]}, pids=[900])
    assert said.metal.process_busy == us(50)


def test_without_a_table_of_contents_the_busiest_counts_but_never_the_compositor():
    report = read({INTERVALS: [work(0, 500, SCREEN), work(10, 20), work(40, 10, BROWSER)]}, contents=())
    assert report.metal.process_busy == us(20)
    assert (
        spoken_lines(report.warnings)[0]
        == "the recording names no process: python3.12 (812), the busiest on the GPU, is taken"
    )
    assert report.metal.guessed == report.warnings[0]
    assert read({INTERVALS: [work(0, 9)]}).metal.guessed is None
    assert read({INTERVALS: [work(0, 500, SCREEN)]}, contents=()).metal.process_busy == us(500)


def test_a_region_that_was_not_found_is_told():
    note = "the whole trace is analysed, not only the region: the clock of the trace is not known"
    tables = {INTERVALS: [work(0, 10)]}
    assert read(tables, alignment=Alignment(notes=(note,))).metal.lost == note
    assert read(tables).metal.lost is None
    assert read(tables, windows=[(0, 5)]).metal.lost is None
