"""Time: what is said of samples, and what is not said where there are too few."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.summaries.host import time_readings
from profkit.core.inference import combine_processes
from profkit.core.types import SampleSet, Timing
from profkit.reporting.view import Section
from tests import documents
from tests.reporting.shown import concern_section, notes_of, rows_of
from tests.spoken import spoken


def told(*timings: Timing) -> Section:
    readings = [reading for timing in timings for reading in time_readings(timing)]
    return concern_section("time", *readings, timings=timings)


def values(timing: Timing) -> dict[str, float | None]:
    return {r.metric: r.value for r in time_readings(timing)}


def test_the_median_and_its_interval_are_those_of_the_statistics() -> None:
    timing = documents.timing()
    centre = combine_processes(tuple(p.seconds for p in timing.processes))
    assert centre is not None
    assert centre.low is not None
    assert centre.high is not None
    found = values(timing)
    assert found["time.median"] == centre.median
    assert found["time.interval"] == pytest.approx(100 * (centre.high - centre.low) / 2 / centre.median)
    assert found["time.processes"] == pytest.approx(1.5, abs=0.1)


def test_every_reading_is_of_the_region_and_carries_its_formula() -> None:
    for reading in time_readings(documents.timing()):
        assert (reading.scope.kind, reading.scope.name) == ("region", "gated_mlp")
        assert reading.source.formula


@pytest.mark.parametrize(("count", "there"), [(5, False), (19, False), (20, True)])
def test_a_percentile_needs_its_samples(count: int, there: bool) -> None:
    found = values(Timing("x", "process", (SampleSet(documents.noise(count)),), 0.01))
    assert ("time.p95" in found) is there
    assert "time.p99" not in found


def test_too_few_samples_have_no_interval_and_the_reason_is_said() -> None:
    timing = Timing("x", "process", (SampleSet((1.0, 1.1, 0.9)),), 0.01)
    interval = next(r for r in time_readings(timing) if r.metric == "time.interval")
    assert interval.value is None
    reason = "a 95 % interval of the median cannot be computed from 3 samples in 1 process"
    assert spoken(interval.reason) == reason
    assert "precision not known" in told(timing).headline


@pytest.mark.parametrize("processes", [(), (SampleSet(()),)])
def test_no_sample_is_unavailable_and_never_zero(processes: tuple[SampleSet, ...]) -> None:
    (only,) = time_readings(Timing("x", "benchmark", processes, 0.01))
    assert only.value is None
    assert told(Timing("x", "benchmark", processes, 0.01)).headline.startswith("x was not timed")


def test_the_headline_is_one_sentence_with_time_interval_and_samples() -> None:
    headline = told(documents.timing()).headline
    assert headline == "gated_mlp takes 4.10 ms ±2.2 % per iteration: 120 samples in 3 processes."


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"precise": False}, "the time budget ended before ±1 % was reached"),
        ({"warm": False}, "still drifting"),
    ],
)
def test_what_makes_a_time_doubtful_is_said(change: dict[str, object], says: str) -> None:
    samples = replace(SampleSet(documents.noise(40)), **change)  # type: ignore[arg-type]
    notes = notes_of(told(Timing("x", "benchmark", (samples,), 0.01)))
    assert any(says in note for note in notes), notes


def test_a_quiet_single_process_has_no_remarks() -> None:
    quiet = Timing("x", "benchmark", (SampleSet(documents.noise(200, spread=0.001)),), 0.01)
    assert notes_of(told(quiet)) == ()


def test_a_report_without_timing_shows_its_own_times() -> None:
    elapsed = documents.reading("time.elapsed", 2.5, "s", quality="measured", tool="perf")
    summary = concern_section("time", elapsed, timings=())
    assert summary.headline.startswith("No iteration was timed.")
    assert rows_of(summary, "Times in the report") == [("Time under the tool", "2.50 s")]


def mps() -> Timing:
    samples = SampleSet((1e-3,) * 40, 32, (0.25, 1e-3), clock="mps-synchronized")
    return Timing("mlp", "benchmark", (samples,), 0.01)


def test_on_mps_the_first_use_and_the_wait_are_told() -> None:
    summary = told(mps())
    assert summary.headline.startswith("mlp takes 1.00 ms")
    assert "(GPU waited for): 40 samples" in summary.headline
    found = values(mps())
    assert found["time.first"] == 0.25
    assert not any(word in note for note in notes_of(summary) for word in ("CUDA", "L2", "SM clock"))
