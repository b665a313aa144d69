"""Samples as they lie: counted right, outliers not lost, processes apart, the order kept."""

from __future__ import annotations

import random
from math import inf, nan

import pytest

from profkit.analysis.summaries.time import BINS, SampleDistribution, distribution_of, sample_sequence
from profkit.core.types import SampleSet, Timing
from profkit.reporting.charts.distribution import distribution_chart, sequence_chart
from tests.reporting.charts.svg_facts import hovers, marks, outside, overlaps, parsed, words


def noise(count: int, centre: float = 4.1e-3, seed: int = 3) -> tuple[float, ...]:
    dice = random.Random(seed)
    return tuple(centre * (1 + dice.gauss(0, 0.01)) for _ in range(count))


def spread(*processes: tuple[float, ...], warmup: tuple[float, ...] = ()) -> SampleDistribution:
    sets = tuple(SampleSet(seconds, warmup=warmup) for seconds in processes)
    found = distribution_of(Timing("mlp", "benchmark", sets, 0.01))
    assert found is not None
    return found


def test_every_sample_is_in_a_bin_or_counted_outside() -> None:
    values = (*noise(300), 1.0, 2.0, 1e-6)
    (one,) = spread(values).processes
    assert sum(one.bins) + one.below + one.above == len(values)
    assert (one.below, one.above) == (1, 2)
    assert one.outliers >= 3
    chart = distribution_chart(spread(values))
    assert "‹ 1 below 2 beyond ›" in words(chart)


def test_samples_lie_in_the_bin_of_their_value() -> None:
    found = spread((1.0, 1.0, 1.0, 2.0))
    (one,) = found.processes
    assert (found.begin, found.end, found.log) == (1.0, 2.0, False)
    assert one.bins[0] == 3
    assert one.bins[BINS - 1] == 1
    assert sum(one.bins) == 4


def test_the_histogram_is_drawn_as_high_as_its_counts() -> None:
    chart = distribution_chart(spread((1.0, 1.0, 1.0, 2.0)))
    (outline,) = marks(chart, "path", "bins")
    steps = (outline.get("d") or "").split("l")
    first, last = steps[1], steps[-2]
    assert first.startswith("0-")  # up at the first bin, by three times as much as down at the last
    up, down = -int(first[1:]), int(last.split()[1])
    assert up > 0
    assert down == 0 or up == pytest.approx(3 * down, abs=3)


def test_processes_that_lie_far_apart_share_a_logarithmic_axis() -> None:
    found = spread(noise(100, 1e-3), noise(100, 1e-1, 4))
    assert found.log
    assert [sum(one.bins[: BINS // 2]) for one in found.processes] == [100, 0]


def test_median_and_interval_stand_in_words_and_on_the_axis() -> None:
    found = spread(noise(200), noise(200, seed=9), noise(200, seed=11))
    chart = distribution_chart(found)
    assert len(marks(chart, "path", "median")) == 3
    assert sum("95 % interval" in told for told in hovers(chart)) == 4  # three processes, and all of them
    assert overlaps(chart) == []


def test_the_order_is_kept_and_columns_hold_the_extremes() -> None:
    values = [float(i) for i in range(1000)]
    found = sample_sequence(values, 100)
    assert len(found) == 100
    assert found[0][1:] == (0.0, 4.5, 9.0)
    assert [middle for _, _, middle, _ in found] == sorted(middle for _, _, middle, _ in found)
    assert sample_sequence([], 100) == ()
    assert len(sample_sequence(values[:7], 100)) == 7


def test_drift_is_told_and_warm_up_is_apart() -> None:
    falling = tuple(value * (1.5 - i / 400) for i, value in enumerate(noise(200)))
    chart = sequence_chart(spread(falling, warmup=noise(30, 9e-3)))
    assert "It drifts" in (parsed(chart).find("desc").text or "")  # type: ignore[union-attr]
    assert len(marks(chart, "path", "warm")) == 1
    quiet = sequence_chart(spread(noise(200)))
    assert marks(quiet, "path", "warm") == []
    assert "No drift" in (parsed(quiet).find("desc").text or "")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "values", [(1.0,), (1.0,) * 50, (1e-12, 2e-12), (1e15,) * 3, (0.0, 0.0), (0.0, 1.0), (5e-324,) * 2]
)
@pytest.mark.parametrize("processes", [1, 3, 40])
def test_strange_samples_are_drawn(values: tuple[float, ...], processes: int) -> None:
    timing = Timing(
        "<script>" + "x" * 4000, "benchmark", (SampleSet(values, warmup=values),) * processes, 0.01
    )
    found = distribution_of(timing)
    assert found is not None
    for chart in (distribution_chart(found), sequence_chart(found)):
        assert overlaps(chart) == []
        assert outside(chart) == []
        assert "<script" not in chart
        assert len(chart) < 30_000


def test_no_sample_is_no_distribution() -> None:
    assert distribution_of(Timing("mlp", "benchmark", (SampleSet(()),), 0.01)) is None
    assert distribution_of(Timing("mlp", "benchmark", (), 0.01)) is None


def test_a_sample_that_is_no_number_is_left_out_of_the_distribution() -> None:
    sound = (0.01, 0.011, 0.012)
    sets = (SampleSet((nan, *sound, inf)), SampleSet((nan,)))
    assert distribution_of(Timing("mlp", "benchmark", sets, 0.01)) == distribution_of(
        Timing("mlp", "benchmark", (SampleSet(sound),), 0.01)
    )


def test_many_samples_make_no_large_chart() -> None:
    found = spread(*(noise(5000, seed=i) for i in range(6)))
    assert len(distribution_chart(found)) + len(sequence_chart(found)) < 25_000
