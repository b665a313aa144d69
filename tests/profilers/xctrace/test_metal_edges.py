"""What lies at the edges of the part that counts, or is of another process, buffer or ring of the same name."""

from __future__ import annotations

import pytest

from profkit.profilers.xctrace.alignment import Alignment
from profkit.profilers.xctrace.cells import Process
from tests.profilers.xctrace.metal_cases import ME, SEC, completion, read, submission, work
from tests.profilers.xctrace.test_metal_counters import INFO, VALUES, value

INTERVALS = "metal-gpu-intervals"
SUBMISSIONS, COMPLETED = "metal-application-command-buffer-submissions", "metal-command-buffer-completed"
PERFORMANCE, MEMORY = "gpu-performance-state-intervals", "metal-current-allocated-size"


def us(value):
    return pytest.approx(value * SEC)


def test_a_region_that_was_not_found_is_told():
    note = "the whole trace counts, not the region alone: the trace does not tell its clock"
    tables = {INTERVALS: [work(0, 10)]}
    assert read(tables, alignment=Alignment(notes=(note,))).metal.lost == note
    assert read(tables).metal.lost is None
    assert read(tables, windows=[(0, 5)]).metal.lost is None


def test_another_process_of_the_same_name_is_not_the_one_that_was_launched():
    rows = [work(0, 10), work(20, 50, Process(ME.name, 999))]
    metal = read({INTERVALS: rows}).metal
    assert metal.process_busy == us(10)
    assert [p.pid for p in metal.processes if p.target] == [ME.pid]


def test_a_commit_of_what_never_came_to_the_gpu_is_no_begin_of_the_window():
    tables = {
        INTERVALS: [work(100, 50, cmdbuffer_id=1)],
        SUBMISSIONS: [submission(7, 0, 5), submission(1, 80, 10)],
    }
    assert read(tables).metal.window == us(60)


def test_of_parts_that_tell_several_commits_the_latest_is_that_of_their_command_buffer():
    rows = [
        work(100, 10, cmdbuffer_id=1, encoder_id=1, latency=50),
        work(120, 10, cmdbuffer_id=1, encoder_id=2, latency=60),
    ]
    assert read({INTERVALS: rows}).metal.latency.median == us(40)


def test_what_began_outside_of_the_region_is_no_notice_in_it():
    tables = {
        INTERVALS: [work(100, 10, cmdbuffer_id=1), work(300, 10, cmdbuffer_id=2)],
        SUBMISSIONS: [submission(1, 80, 10), submission(2, 280, 10)],
        COMPLETED: [completion(1, 150), completion(2, 330)],
    }
    told = read(tables, windows=[(250, 400)]).metal.notice
    assert (told.count, told.median) == (1, us(20))


def test_the_work_of_a_state_is_that_in_the_region():
    states = [{"start": 0, "duration": 400_000, "gpu-performance-state": "Minimum", "track-label": "M1"}]
    tables = {INTERVALS: [work(100, 50), work(200, 30)], PERFORMANCE: states}
    (state,) = read(tables, windows=[(180, 300)]).metal.performance
    assert (state.seconds, state.busy) == (us(120), us(30))


def test_memory_counts_from_the_begin_of_a_recording_that_has_no_region():
    rows = [
        {"start": at * 1000, "duration": 10_000, "process": ME, "current-allocated-size": size}
        for at, size in ((0, 900), (100, 500))
    ]
    tables = {INTERVALS: [work(100, 50)], MEMORY: rows}
    assert read(tables).metal.memory_peak == 900  # allocated before the first work
    assert read(tables, windows=[(90, 160)]).metal.memory_peak == 500


def test_the_union_of_an_encoder_is_cut_as_its_sum_is():
    (one,) = read({INTERVALS: [work(100, 100, encoder_id=3)]}, windows=[(150, 300)]).metal.encoders
    assert (one.seconds, one.busy) == (us(50), us(50))


def test_each_ring_holds_its_own_samples():
    info = [{"counter-id": 1, "name": "ALU Utilization", "type": "Percentage"}]
    rows = [value(at, 1, amount, ring) for at in (0, 10, 20) for ring, amount in ((0, 10.0), (1, 50.0))]
    tables = {INTERVALS: [work(0, 100)], INFO: info, VALUES: rows}
    (counter,) = read(tables).metal.counters
    assert (counter.mean, counter.least, counter.most) == (30.0, 10.0, 50.0)
    assert counter.covered == pytest.approx(0.2)
