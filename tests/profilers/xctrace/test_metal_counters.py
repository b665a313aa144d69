"""GPU counters: means by how long samples held, units out of labels, and what is no counter at all."""

from __future__ import annotations

import random

import pytest

from profkit.profilers.xctrace.metal.counters import UnitOfCounter, read_label
from tests.profilers.xctrace.metal_cases import SEC, read, run, work

INTERVALS, COUNTERS = "metal-gpu-intervals", "metal-gpu-counter-intervals"
INFO, VALUES = "gpu-counter-info", "gpu-counter-value"
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


def value(at, counter, amount, ring=0):
    """A row of gpu-counter-value; times in us."""
    return {
        "timestamp": int(at * 1000),
        "counter-id": counter,
        "value": amount,
        "accelerator-id": 1,
        "ring-buffer-index": ring,
    }


def only(report):
    (counter,) = report.metal.counters
    return counter


def test_a_mean_is_weighted_by_how_long_each_sample_held():
    counter = only(read({INTERVALS: [work(0, 100)], COUNTERS: [sample(0, 10, 80.0), sample(10, 30, 20.0)]}))
    assert (counter.name, counter.unit, counter.samples) == ("ALU Utilization", "%", 2)
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


def test_the_unit_is_what_the_label_says_in_base_units():
    rows = [
        sample(0, 10, 2.5, "GPU Read Bandwidth", "2.5000 GB/s"),
        sample(10, 10, 7.5, "GPU Read Bandwidth", ""),
    ]
    counter = only(read({INTERVALS: [work(0, 20)], COUNTERS: rows}))
    assert (counter.unit, counter.mean, counter.most) == ("B/s", pytest.approx(5e9), pytest.approx(7.5e9))


@pytest.mark.parametrize(
    ("text", "number", "unit", "note"),
    [
        ("0.1426%", 0.1426, "%", ""),
        ("0,1426 %", 0.1426, "%", ""),
        ("0.0148% (9.Texture Write Limiter)", 0.0148, "%", "9.Texture Write Limiter"),
        ("1,234.5 MB/s", 1234.5e6, "B/s", ""),
        ("3 GiB/s (x)", 3 * 2.0**30, "B/s", "x"),
        ("12 KB", 12e3, "B", ""),
        ("17 ops", 17.0, "ops", ""),
        ("17", 17.0, "", ""),
    ],
)
def test_labels_are_read_with_their_unit_and_note(text, number, unit, note):
    label = read_label(text)
    assert label is not None
    assert (label.value, label.unit, label.note) == (pytest.approx(number), unit, note)


@pytest.mark.parametrize("text", ["", "n/a", "%", "GB/s 3", "--3 %"])
def test_what_begins_with_no_number_is_no_label(text):
    assert read_label(text) is None


def test_values_in_another_unit_than_their_labels_are_noticed():
    counter = UnitOfCounter()
    counter.learn(2.5e9, "2.5000 GB/s")  # bytes already
    assert (counter.factor, counter.unit) == (1.0, "B/s")
    share = UnitOfCounter()
    share.learn(0.0, "0.0000%")
    share.learn(0.42, "42.0000%")
    assert share.factor == 100.0
    tiny = UnitOfCounter()
    tiny.learn(1e-5, "0.0000%")
    assert (tiny.factor, tiny.unit) == (1.0, "%")
    tiny.learn(6e-5, "0.0001%")
    assert tiny.factor == 1.0
    strange = UnitOfCounter()
    strange.learn(3.0, "55.0000 GB/s")
    assert strange.factor is None


def test_a_counter_whose_label_and_value_disagree_has_no_unit():
    rows = [sample(0, 10, 3.0, label="55.0000 GB/s")]
    assert only(read({INTERVALS: [work(0, 20)], COUNTERS: rows})).unit == ""


def test_without_labels_the_table_itself_says_that_it_counts_per_cent():
    rows = [sample(0, 10, 3.0, label="", is_percentage=1)]
    assert only(read({INTERVALS: [work(0, 20)], COUNTERS: rows})).unit == "%"
    rows = [{**sample(0, 10, None, label=""), "percent-value": 3.0, "is-percentage": 1}]
    assert only(read({INTERVALS: [work(0, 20)], COUNTERS: rows})).mean == 3.0


def test_the_top_limiter_is_named_with_its_share_of_the_time():
    name = "Top Performance Limiter"
    rows = [
        sample(0, 30, 5.0, name, "5.0000% (9.Texture Write Limiter)"),
        sample(30, 10, 7.0, name, "7.0000% (1.ALU Limiter)"),
    ]
    counter = only(read({INTERVALS: [work(0, 40)], COUNTERS: rows}))
    assert counter.description == "Texture Write Limiter 75 %, ALU Limiter 25 %"
    assert counter.mean == pytest.approx(5.5)


def test_the_ray_tracing_unit_at_rest_is_no_counter():
    rows = [sample(n, 1, 0.0, "RT Unit Active") for n in range(5)]
    report = read({INTERVALS: [work(0, 40)], COUNTERS: rows})
    assert report.metal.counters == ()
    (absent,) = [one for one in report.metal.absent if one.what == COUNTERS]
    assert "RT Unit Active" in absent.reason
    assert "Counter Set: (null)" in absent.reason
    moved = [*rows, sample(9, 1, 4.0, "RT Unit Active")]
    assert only(read({INTERVALS: [work(0, 40)], COUNTERS: moved})).most == 4.0


def test_raw_samples_hold_until_the_next_of_their_counter():
    info = [
        {
            "counter-id": 3,
            "name": "Kernel Occupancy",
            "description": "Share of ...",
            "type": "Percentage",
            "max-value": 100,
        },
        {"counter-id": 4, "name": "L1 Read Bandwidth", "description": "", "type": "Value", "max-value": 0},
    ]
    rows = [value(0, 3, 20.0), value(0, 4, 1.0), value(10, 3, 60.0), value(10, 4, 9.0), value(20, 3, 0.0)]
    report = read({INTERVALS: [work(0, 20)], INFO: info, VALUES: rows})
    occupancy, bandwidth = report.metal.counters
    assert (occupancy.name, occupancy.unit, occupancy.mean) == ("Kernel Occupancy", "%", pytest.approx(40))
    assert (occupancy.covered, occupancy.description) == (1.0, "Share of ...")
    assert (bandwidth.unit, bandwidth.mean, bandwidth.covered) == ("", 1.0, 0.5)  # no label, no unit


def test_a_sleeping_gpu_is_not_sampled():
    info = [{"counter-id": 3, "name": "Kernel Occupancy", "type": "Percentage"}]
    awake = [value(3 * n, 3, 50.0) for n in range(20)]
    later = [value(10_000 + 3 * n, 3, 50.0) for n in range(20)]
    counter = only(read({INTERVALS: [work(0, 20_000)], INFO: info, VALUES: [*awake, *later]}))
    assert counter.covered < 0.02  # and not all of the 10 ms in between
    assert counter.mean == pytest.approx(50)


def test_of_both_tables_the_labelled_one_counts():
    info = [{"counter-id": 3, "name": "ALU Utilization", "type": "Percentage"}]
    tables = {
        INTERVALS: [work(0, 40)],
        COUNTERS: [sample(0, 10, 80.0)],
        INFO: info,
        VALUES: [value(0, 3, 1.0), value(5, 3, 2.0)],
    }
    assert only(read(tables)).mean == 80.0


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
    assert read({INTERVALS: [work(0, 40)], VALUES: [value(0, 9, 1.0), value(1, 9, 1.0)]}).metal.counters == ()


def test_counters_of_a_recording_without_gpu_work_cover_all_of_it():
    contents = run(CHOSEN, duration="0.000100")
    counter = only(read({COUNTERS: [sample(10, 50, 80.0)]}, contents=contents))
    assert (counter.mean, counter.covered, counter.active) == (80.0, pytest.approx(0.5), None)
    alone = read({COUNTERS: [sample(10, 30, 80.0), sample(60, 20, 20.0)]}, contents=())
    assert only(alone).covered == pytest.approx(50 / 70)
    assert alone.metal.span == pytest.approx(70 * SEC)
