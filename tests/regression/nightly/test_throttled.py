"""When a night's samples say nothing of the code, because the hardware slowed itself down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import RunDocument, SampleSet, Timing
from profkit.regression.nightly.session import throttling_reason
from profkit.reporting.facts import fact_text
from tests import documents

SECONDS = (1e-3, 1e-3, 1e-3)


def run(**sample: object) -> RunDocument:
    """A run of one process with these peculiarities of its samples."""
    samples = replace(SampleSet(SECONDS), **sample)  # type: ignore[arg-type]
    return replace(documents.empty(), timings=(Timing("mlp", "benchmark", (samples,), 0.01),))


def test_a_device_at_its_power_limit_does_what_it_does_every_night() -> None:
    assert throttling_reason(run(throttle_reasons=("power limit",))) is None


@pytest.mark.parametrize("reason", ["temperature, by the driver", "hardware slowdown", "power brake"])
def test_heat_and_faults_make_the_samples_invalid(reason: str) -> None:
    told = throttling_reason(run(throttle_reasons=("power limit", reason)))
    assert told is not None
    assert reason in fact_text(told)


def test_more_samples_thrown_away_than_kept_are_no_measurement() -> None:
    assert "4 samples discarded, 3 left" in fact_text(
        throttling_reason(run(throttled=4, throttle_reasons=("power limit",)))
    )
    assert throttling_reason(run(throttled=2, throttle_reasons=("power limit",))) is None
