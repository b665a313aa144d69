"""GPU counters: means by how long samples held, and what is no counter at all."""

from __future__ import annotations

import random

import pytest

from tests.profilers.xctrace.metal_cases import SEC, read, run, work

INTERVALS, COUNTERS = "metal-gpu-intervals", "metal-gpu-counter-intervals"
CHOSEN = ("Counter Set: Performance Limiters", "Shader Timeline: Enabled")


def sample(start, duration, value, name="ALU Utilization", label=None, **more):
    """A row of metal-gpu-counter-intervals; times in us."""
    return {
        "start": int(start * 1000),
        "duration": int(duration * 1000),
        "name": name,
        "value": value,
        "gpu": "M1",
        "label": f"{value:.4f}%" if label is None else label or None,
        **{key.replace("_", "-"): cell for key, cell in more.items()},
    }


def only(report):
    (counter,) = report.metal.counters
    return counter


def test_a_mean_is_weighted_by_how_long_each_sample_held():
    counter = only(read({INTERVALS: [work(0, 100)], COUNTERS: [sample(0, 10, 80.0), sample(10, 30, 20.0)]}))
    assert (counter.name, counter.samples) == ("ALU Utilization", 2)
    assert counter.mean == pytest.approx((10 * 80 + 30 * 20) / 40)
    assert (counter.least, counter.most) == (20.0, 80.0)
    assert counter.covered == pytest.approx(0.4)


def test_samples_count_as_far_as_they_lie_in_the_region_and_apart_while_the_process_worked():
    rows = [sample(0, 50, 10.0), sample(50, 50, 90.0), sample(200, 50, 50.0)]
    counter = only(read({INTERVALS: [work(60, 20)], COUNTERS: rows}, windows=[(40, 80)]))
    assert counter.mean == pytest.approx((10 * 10 + 30 * 90) / 40)
    assert counter.active == pytest.approx(90)
    assert counter.filled == pytest.approx(20 / 30)  # of 50 to 80, as far as it lies in the region
    assert (counter.samples, counter.most, counter.covered) == (2, 90.0, 1.0)


def test_samples_against_brute_force():
    chance = random.Random(5)
    rows, at = [], 0.0
    for _ in range(3000):
        at += chance.choice((0, 0, 7))
        length = chance.randrange(1, 9)
        rows.append(sample(at, length, chance.random() * 100, chance.choice("ab")))
        at += length
    windows = [(100, 900), (2000, 7000)]
    report = read({INTERVALS: [work(0, 9000)], COUNTERS: rows[::-1]}, windows=windows)
    for counter in report.metal.counters:
        own = [
            (
                min(end, row["start"] / 1000 + row["duration"] / 1000) - max(begin, row["start"] / 1000),
                row["value"],
            )
            for row in rows
            if row["name"] == counter.name
            for begin, end in windows
        ]
        own = [(held, amount) for held, amount in own if held > 0]
        weight = sum(held for held, _ in own)
        assert counter.mean == pytest.approx(sum(held * amount for held, amount in own) / weight)
        assert counter.covered == pytest.approx(weight / 5800)
        assert counter.samples == len(own)
        assert (counter.least, counter.most) == (min(a for _, a in own), max(a for _, a in own))


def test_a_counter_is_in_per_cent_where_the_table_says_so_and_has_no_unit_else():
    assert only(read({INTERVALS: [work(0, 20)], COUNTERS: [sample(0, 10, 3.0)]})).unit == ""
    rows = [sample(0, 10, 3.0, label="", is_percentage=1)]
    assert only(read({INTERVALS: [work(0, 20)], COUNTERS: rows})).unit == "%"
    rows = [{**sample(0, 10, None, label=""), "percent-value": 3.0, "is-percentage": 1}]
    assert only(read({INTERVALS: [work(0, 20)], COUNTERS: rows})).mean == 3.0


def test_the_ray_tracing_unit_at_rest_is_no_counter():
    rows = [sample(n, 1, 0.0, "RT Unit Active") for n in range(5)]
    report = read({INTERVALS: [work(0, 40)], COUNTERS: rows})
    assert report.metal.counters == ()
    (absent,) = [one for one in report.metal.absent if one.what == COUNTERS]
    assert "Counter Set: (null)" in absent.reason
    moved = [*rows, sample(9, 1, 4.0, "RT Unit Active")]
    assert only(read({INTERVALS: [work(0, 40)], COUNTERS: moved})).most == 4.0


def test_samples_without_a_value_or_a_name_are_left_out():
    rows = [
        sample(0, 10, 80.0),
        {**sample(10, 10, 1.0), "value": None},
        {**sample(20, 10, 1.0), "start": "x"},
        sample(30, 10, 5.0, name=None),
    ]
    report = read({INTERVALS: [work(0, 40)], COUNTERS: rows})
    assert only(report).samples == 1
    assert any("3 rows" in one for one in report.warnings)


def test_counters_of_a_recording_without_gpu_work_cover_all_of_it():
    contents = run(CHOSEN, duration="0.000100")
    counter = only(read({COUNTERS: [sample(10, 50, 80.0)]}, contents=contents))
    assert (counter.mean, counter.covered, counter.active) == (80.0, pytest.approx(0.5), None)
    alone = read({COUNTERS: [sample(10, 30, 80.0), sample(60, 20, 20.0)]}, contents=())
    assert only(alone).covered == pytest.approx(50 / 70)
    assert alone.metal.span == pytest.approx(70 * SEC)
