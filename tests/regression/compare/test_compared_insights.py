"""Insights of two runs: fixed, new, still there, and where one run did not measure enough, none of these."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import InsightChange, RunDocument
from profkit.profiling.evaluate_targets import judge_document
from profkit.regression.compare import compare
from tests.regression.compare.rms_norm import FLOAT4, MATRIX, float4, matrix
from tests.reporting.shown import comparison_text
from tests.spoken import spoken


def compared(before: RunDocument, after: RunDocument) -> dict[str, InsightChange]:
    return {change.rule: change for change in compare(before, after).insights}


def without(document: RunDocument, *metrics: str) -> RunDocument:
    """The document as if these had not been measured."""
    readings = tuple(r for r in document.readings if r.metric not in metrics)
    summaries = tuple(
        replace(s, readings=tuple(r for r in s.readings if r.metric not in metrics))
        for s in document.summaries
    )
    return replace(document, readings=readings, summaries=summaries)


def test_what_the_rewrite_fixed_and_what_it_broke_is_told_with_values_of_both() -> None:
    found = compared(matrix(), float4())
    fixed, new = found["waiting-warps"], found["wasted-sectors"]
    assert (fixed.word, fixed.baseline and fixed.baseline.where.kernel, fixed.candidate) == (
        "fixed",
        MATRIX,
        None,
    )
    assert "busiest unit 67.1 % -> 89.3 %" in spoken(fixed)
    assert (new.word, new.candidate and new.candidate.where.kernel) == ("new", FLOAT4)
    assert spoken(new).startswith("memory coalescing 100.0 % -> 57.1 %")
    back = compared(float4(), matrix())
    assert (back["waiting-warps"].word, back["wasted-sectors"].word) == ("new", "fixed")
    assert spoken(back["wasted-sectors"]).startswith("memory coalescing 57.1 % -> 100.0 %")


def test_what_was_not_measured_again_is_not_called_fixed() -> None:
    found = compared(float4(), without(matrix(), "memory.coalescing"))
    assert found["wasted-sectors"].word == "unknown"
    assert spoken(found["wasted-sectors"]) == "not measured in the candidate: Memory coalescing"
    found = compared(without(matrix(), "memory.coalescing"), float4())
    assert found["wasted-sectors"].word == "unknown"


def test_a_kernel_that_the_tool_was_not_told_to_count_is_not_called_fixed() -> None:
    other = matrix(name="softmax")
    other = replace(other, workload=replace(other.workload, command=("./softmax", "--profile")))
    words = {(change.word, spoken(change)) for change in compare(matrix(), other).insights}
    assert words == {
        ("unknown", "rms_norm_matrix_kernel was not measured in the candidate"),
        ("unknown", "softmax was not measured in the baseline"),
    }


def test_values_that_hardly_moved_neither_fixed_nor_broke_anything() -> None:
    def busy(percent: float) -> RunDocument:
        names = ("bandwidth.dram.share", "memory.throughput", "throughput.busiest")
        document = matrix()
        readings = tuple(replace(r, value=percent) if r.metric in names else r for r in document.readings)
        return judge_document(replace(document, readings=readings), ())

    found = compared(busy(79.6), busy(80.4))["waiting-warps"]  # the rule is quiet from 80 % on
    assert found.word == "unknown"
    assert spoken(found).endswith("nearly the same in the candidate: it is at the limit of what counts")
    assert compared(busy(67.0), busy(80.4))["waiting-warps"].word == "fixed"


def test_the_screen_says_what_changed_and_who_became_whom() -> None:
    text = comparison_text(compare(matrix(), float4()), color=False)
    flat = " ".join(text.split())
    assert "rms_norm_matrix_kernel_float4 was rms_norm_matrix_kernel" in flat
    assert (
        text.index("What changed") < text.index("Insights: 1 fixed, 1 new") < text.index("Kernels: 1 faster")
    )
    assert "fixed: Have more loads under way at a time" in flat
    assert "new: Let neighbouring threads access neighbouring addresses" in flat
