"""GPU counters: means by how long samples held, and what is no counter at all."""

from __future__ import annotations

import pytest

from profkit.core.errors import UnreadableReport
from tests.profilers.xctrace.metal_cases import SEC, read, run, state, work
from tests.spoken import spoken, spoken_lines

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


def test_samples_count_as_far_as_they_lie_in_the_region_and_apart_while_the_process_worked():
    rows = [sample(0, 50, 10.0), sample(50, 50, 90.0), sample(200, 50, 50.0)]
    counter = only(read({INTERVALS: [work(60, 20)], COUNTERS: rows}, windows=[(40, 80)]))
    assert counter.mean == pytest.approx((10 * 10 + 30 * 90) / 40)
    assert counter.active == pytest.approx(90)
    assert counter.filled == pytest.approx(20 / 30)  # of 50 to 80, as far as it lies in the region
    assert (counter.samples, counter.most) == (2, 90.0)


def test_a_counter_is_in_per_cent_where_the_table_says_so_and_has_no_unit_else():
    assert only(read({INTERVALS: [work(0, 20)], COUNTERS: [sample(0, 10, 3.0)]})).unit == ""
    rows = [sample(0, 10, 3.0, label="", is_percentage=1)]
    assert only(read({INTERVALS: [work(0, 20)], COUNTERS: rows})).unit == "%"
    rows = [{**sample(0, 10, None, label=""), "percent-value": 3.0, "is-percentage": 1}]
    assert only(read({INTERVALS: [work(0, 20)], COUNTERS: rows})).mean == 3.0


STATES = "metal-gpu-state-intervals"
ROWS = [work(0, 10)]


def absent(report, what):
    (one,) = [one for one in report.metal.absent if one.what == what]
    return one


@pytest.mark.parametrize(
    ("contents", "tables", "reason", "fix"),
    [
        (run(), {}, "Counter Set: (null)", "--instrument 'Metal GPU Counters'"),
        (run((), schemas=[COUNTERS]), {}, "was not exported", "xctrace export"),
        (run((), schemas=[COUNTERS]), {COUNTERS: []}, "has no rows", "--instrument 'Metal GPU Counters'"),
        (run(()), {}, "has no table", "--instrument 'Metal GPU Counters'"),
        ((), {}, "was not exported", "xctrace export"),
    ],
)
def test_counters_are_absent_for_the_reason_that_the_recording_shows(contents, tables, reason, fix):
    found = absent(read({INTERVALS: ROWS, **tables}, contents=contents), COUNTERS)
    assert reason in spoken(found.reason)
    assert fix in found.fix


def test_nothing_but_a_table_of_contents_is_a_trace_that_lacks_everything():
    contents = run(schemas=[INTERVALS, "metal-gpu-state-intervals"])
    report = read({}, contents=contents)
    metal = report.metal
    assert (metal.span, metal.device_busy, metal.process_busy, report.trace) == (None, None, None, None)
    assert {INTERVALS, "metal-gpu-state-intervals", COUNTERS} <= {one.what for one in metal.absent}
    assert read({}, contents=run()).metal is None  # a recording of the CPU


DAMAGE = [{"duration": -5}, {"duration": None}, {"duration": 10**20}, {"start": None}, {"start": 1 << 60}]


@pytest.mark.parametrize("damaged", DAMAGE)
@pytest.mark.parametrize("schema", [INTERVALS, STATES])
def test_a_table_of_which_many_rows_tell_no_time_is_damaged(damaged, schema):
    """A table with many of them does not say how busy the GPU was; before, it was busy for 0 % of the time."""
    make = work if schema == INTERVALS else state
    rows = [{**make(20 * k, 10), **(damaged if k < 2 else {})} for k in range(100)]
    with pytest.raises(UnreadableReport, match="2 of its 100 rows have no time"):
        read({schema: rows})
    report = read({schema: [*rows[1:], make(2000, 10)]})
    assert report.metal.device_busy == pytest.approx(990 * SEC)
    assert any("1 row without a time" in note for note in spoken_lines(report.warnings))
