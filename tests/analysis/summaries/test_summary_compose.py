"""All concerns of one document: derived once, told for a run always, for a report where it says something."""

from __future__ import annotations

from dataclasses import replace

from profkit.core.types import RUN, PassResult, RunDocument
from profkit.profiling.summarize import enrich_document as enrich
from profkit.profiling.summarize import summarize_document as summarize
from tests import documents
from tests.documents import reading
from tests.spoken import message, spoken

CONCERNS = [
    "time",
    "cache",
    "branches",
    "instructions",
    "bandwidth",
    "roofline",
    "trace",
    "python",
    "memory",
]


def judged() -> RunDocument:
    document = enrich(documents.document())
    return replace(document, summaries=summarize(document))


def test_a_run_has_every_concern() -> None:
    assert [s.concern for s in judged().summaries] == CONCERNS


def test_doing_it_again_changes_nothing() -> None:
    document = judged()
    assert enrich(document) == document
    assert summarize(document) == document.summaries


def test_a_reading_that_a_tool_told_is_kept_and_an_unavailable_one_replaced() -> None:
    told = reading("bandwidth.dram", 5e9, "B/s", quality="measured", scope=RUN, tool="perf")
    blind = reading("flops.rate", None, "FLOP/s", scope=documents.REGION)
    document = replace(documents.document(), readings=(told, blind))
    found = enrich(document).readings
    assert [r for r in found if r.metric == "bandwidth.dram"] == [told]
    (rate,) = [r for r in found if r.metric == "flops.rate"]
    assert rate.value is not None


def test_what_nobody_told_has_the_reason_of_the_pass_that_could_have() -> None:
    base = replace(documents.document(), readings=(), profiles=())
    cases = {
        "the counters pass was skipped: no valgrind": PassResult(
            "counters", "valgrind", "skipped", message("no valgrind")
        ),
        "the counters pass failed: died": PassResult("counters", "valgrind", "failed", message("died")),
        "the counters pass was interrupted": PassResult("counters", "valgrind", "interrupted"),
        "the counters pass did not measure it": PassResult("counters", "valgrind", "finished"),
    }
    for reason, result in cases.items():
        cache = {s.concern: s for s in summarize(enrich(replace(base, passes=(result,))))}["cache"]
        assert {spoken(r.reason) for r in cache.readings} == {reason}
    ended = {s.concern: s for s in summarize(enrich(replace(base, passes=())))}["cache"]
    assert {spoken(r.reason) for r in ended.readings} == {"the run ended before its counters pass"}


def test_a_report_speaks_only_of_what_it_holds() -> None:
    report = replace(
        documents.empty(), state="complete", readings=(reading("branch.miss_rate", 1.0, scope=RUN),)
    )
    assert [s.concern for s in summarize(enrich(report))] == ["branches"]


def test_a_document_that_has_just_begun_can_be_summarized() -> None:
    assert summarize(enrich(documents.empty())) == ()
