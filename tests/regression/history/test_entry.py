"""What a history keeps of a run: what has a value, for one iteration, under a name that no copy changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import RUN, Directive, PassPlan, Plan, Reading, RunDocument, Step
from profkit.profiling.summarize import judge_document, targets_for
from profkit.regression.history import entry_of, run_id
from tests import documents, metal_documents
from tests import gpu_documents as gpu
from tests.spoken import message, spoken


def reading(metric: str, value: float | None, **more: object) -> Reading:
    return replace(documents.reading(metric, value, "s", quality="measured"), **more)  # type: ignore[arg-type]


def document(*readings: Reading) -> RunDocument:
    step = Step("trace", ("python",), directive=Directive("trace", "x", iterations=10))
    plan = Plan("cuda", "gate", (PassPlan("trace", "nsys", (step,)),))
    return replace(gpu.run(), plan=plan, readings=readings or (reading("time.median", 1.125e-3),))


def values(document: RunDocument) -> dict[tuple[str, str | None], float]:
    return {(v.key.metric, v.key.scope.name): v.value for v in entry_of(document).values}


def test_what_has_no_value_is_not_kept_and_what_is_contradicted_is_marked() -> None:
    readings = (reading("time.median", 1e-3), reading("time.p99", None))
    run = document(*readings, reading("ipc", 1.0, doubt=message("clock")))
    kept = {value.key.metric: value for value in entry_of(run).values}
    assert "time.p99" not in kept
    assert (kept["ipc"].doubt, kept["time.median"].doubt) == (message("clock"), None)


def test_sums_of_a_trace_are_kept_for_one_iteration() -> None:
    found = values(document(reading("time.gpu", 3e-3, scope=RUN), reading("launch.latency", 5e-6, scope=RUN)))
    assert found["time.gpu", None] == pytest.approx(3e-4)
    assert found["launch.latency", None] == 5e-6


def test_of_an_apple_gpu_they_are_kept_for_one_entry_of_the_region_or_one_call_of_a_benchmark() -> None:
    region = metal_documents.run(timings=(replace(metal_documents.timing(), kind="region"),))
    step = Step("trace", ("xctrace",), directive=Directive("trace", "x", iterations=150))
    planned = replace(metal_documents.plan(), passes=(PassPlan("trace", "xctrace", (step,)),))
    benchmark = metal_documents.run(plan=planned)
    for document, times in ((region, 300), (benchmark, 150)):
        judged = judge_document(document, targets_for("mps"))
        whole = next(r.value for r in judged.readings if r.metric == "buffer.count")
        kept = next(v.value for v in entry_of(judged).values if v.key.metric == "buffer.count")
        assert kept == pytest.approx((whole or 0.0) / times)


def test_values_of_kernels_are_not_kept() -> None:
    assert values(document(gpu.told(gpu.GEMM, "occupancy.achieved", 50.0))) == {}


@pytest.mark.parametrize("state", ["interrupted", "failed"])
def test_a_run_that_did_not_end_well_is_kept_and_decides_nothing(state: str) -> None:
    failure = "the workload was killed by SIGKILL"
    entry = entry_of(replace(document(), state=state, failure=failure))  # type: ignore[arg-type]
    assert (entry.valid, spoken(entry.reason)) == (False, "the workload was killed by SIGKILL")


def test_a_run_keeps_its_name_when_it_is_moved_scrubbed_or_read_anew() -> None:
    run = document()
    moved = replace(run, workload=replace(run.workload, folder="<folder>", command=("<command>",)))
    newer = replace(run, readings=(*run.readings, reading("time.p95", 1.3e-3)))
    assert run_id(run) == run_id(moved) == run_id(newer)
