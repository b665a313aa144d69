"""How long a recording is to be, before it is made."""

from __future__ import annotations

import pytest

from profkit.backends import PlanState
from profkit.backends.mps.passes import LONGEST_RECORDING, recorded_iterations
from profkit.profilers.xctrace.find import XctraceAbility


@pytest.mark.parametrize(
    ("once", "count"),
    [
        (None, 5),
        (0.0, 5),
        (0.01, 50),
        (1e-6, 500),
        (0.2, 5),
        (20.0, 3),  # no more than the recording holds
        (LONGEST_RECORDING * 2, 1),
    ],
)
def test_a_benchmark_runs_as_often_as_the_recording_holds(once: float | None, count: int) -> None:
    assert recorded_iterations(PlanState(marked=True, iteration_seconds=once), 0.5) == count


def test_what_xctrace_did_not_list_may_be_there() -> None:
    silent = XctraceAbility(None, "16.0", True)
    assert silent.lacks(template="Metal System Trace") is None
    assert silent.lacks(instrument="Metal GPU Counters") is None
    listed = XctraceAbility(None, "16.0", True, templates=("Time Profiler",), instruments=("CPU Counters",))
    assert "no template called Metal System Trace" in str(listed.lacks(template="Metal System Trace"))
    assert "no instrument called Metal GPU Counters" in str(listed.lacks(instrument="Metal GPU Counters"))
