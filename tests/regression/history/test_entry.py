"""What a history keeps of a run: what has a value, for one iteration, under a name that no copy changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import (
    Directive,
    GpuTrace,
    Kernel,
    KernelTime,
    PassPlan,
    PassResult,
    Plan,
    Reading,
    RunDocument,
    SampleSet,
    Scope,
    Source,
    Step,
    Timing,
    Workload,
)
from profkit.regression.history import entry_of, run_id
from tests.spoken import message, spoken

REGION = Scope("region", "mlp")


def reading(
    metric: str, value: float | None, unit: str = "s", scope: Scope = REGION, **more: object
) -> Reading:
    quality = "measured" if value is not None else "unavailable"
    made = Reading(
        metric,
        value,
        unit,
        quality,
        scope,
        Source("profkit"),
        reason=message(None if value is not None else "no"),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def kernels(count: int, launches: int = 20) -> tuple[KernelTime, ...]:
    return tuple(
        KernelTime(Kernel(f"k{n}", (1, 1, 1), (32, 1, 1)), launches, (n + 1) * 1e-3) for n in range(count)
    )


def document(**more: object) -> RunDocument:
    made = RunDocument(
        name="mlp",
        backend="cuda",
        state="complete",
        workload=Workload(("python", "mlp.py"), "mlp", "/home/somebody"),
        started="2026-11-20T05:47:00+00:00",
        plan=Plan(
            "cuda",
            "gate",
            (
                PassPlan(
                    "trace",
                    "nsys",
                    (Step("trace", ("python",), directive=Directive("trace", "x", iterations=10)),),
                ),
            ),
        ),
        passes=(PassResult("timing", None, "finished", seconds=1.234567891),),
        timings=(
            Timing(
                "mlp", "benchmark", (SampleSet((1e-3, 1.1e-3)), SampleSet(()), SampleSet((1.2e-3,))), 0.01
            ),
        ),
        trace=GpuTrace("nsys", kernels(2), marked=True),
        readings=(
            reading("time.median", 1.125e-3),
            reading("time.p99", None),
            reading("ipc", 1.0, doubt=message("clock")),
        ),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def values(document: RunDocument) -> dict[tuple[str, str | None], float]:
    return {(v.key.metric, v.key.scope.name): v.value for v in entry_of(document).values}


def test_what_has_no_value_is_not_kept_and_what_is_contradicted_is_marked() -> None:
    kept = {value.key.metric: value for value in entry_of(document()).values}
    assert "time.p99" not in kept
    assert (kept["ipc"].doubt, kept["time.median"].doubt) == (message("clock"), None)


def test_sums_of_a_trace_are_kept_for_one_iteration() -> None:
    run = Scope("run")
    traced = document(
        readings=(reading("time.gpu", 3e-3, scope=run), reading("launch.latency", 5e-6, scope=run))
    )
    found = values(traced)
    assert found["time.gpu", None] == pytest.approx(3e-4)
    assert found["launch.latency", None] == 5e-6


def test_values_of_kernels_are_not_kept() -> None:
    counted = reading("occupancy.achieved", 50.0, "%", kernels(1)[0].kernel.scope)
    assert {value.key.metric for value in entry_of(document(readings=(counted,))).values} == set()


@pytest.mark.parametrize("state", ["interrupted", "failed"])
def test_a_run_that_did_not_end_well_is_kept_and_decides_nothing(state: str) -> None:
    entry = entry_of(document(state=state, failure="the workload was killed by SIGKILL"))
    assert (entry.valid, spoken(entry.reason)) == (False, "the workload was killed by SIGKILL")


def test_a_run_keeps_its_name_when_it_is_moved_scrubbed_or_read_anew() -> None:
    run = document()
    moved = replace(run, workload=replace(run.workload, folder="<folder>", command=("<command>",)))
    newer = replace(run, readings=(*run.readings, reading("time.p95", 1.3e-3)))
    assert run_id(run) == run_id(moved) == run_id(newer)
