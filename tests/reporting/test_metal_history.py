"""What is stored of a run on an Apple GPU is shown as what it is: encoders, and nothing of CUDA."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import Directive, PassPlan, Step
from profkit.profiling.summarize import judge_document, targets_for
from profkit.regression.history import entry_of
from tests import metal_documents


def test_sums_of_a_trace_are_kept_for_one_entry_of_the_region_or_one_call_of_a_benchmark() -> None:
    region = metal_documents.run(timings=(replace(metal_documents.timing(), kind="region"),))
    step = Step("trace", ("xctrace",), directive=Directive("trace", "x", iterations=150))
    planned = replace(metal_documents.plan(), passes=(PassPlan("trace", "xctrace", (step,)),))
    benchmark = metal_documents.run(plan=planned)
    for document, times in ((region, 300), (benchmark, 150)):
        judged = judge_document(document, targets_for("mps"))
        whole = next(r.value for r in judged.readings if r.metric == "buffer.count")
        kept = next(v.value for v in entry_of(judged).values if v.key.metric == "buffer.count")
        assert kept == pytest.approx((whole or 0.0) / times)
