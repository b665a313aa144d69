"""Triton's tuning and compiling is told apart from every time, and what is not known of it is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import SampleSet, Timing, TritonWork, Tuning
from profkit.profiling import evaluate_targets as judgement
from profkit.reporting.views.summaries import summary_texts
from profkit.reporting.views.summaries.parts import SummaryText
from tests.gpu_documents import run, trace
from tests.reporting.shown import rows_of, run_markdown, run_text

TUNING = Tuning("_kernel", "mlp", "M 4096, fp16", "BLOCK_M 128, 8 warps", 3, 1, 2.1)
WORK = TritonWork("timing", 7, (TUNING,))
BENCHMARK = (Timing("mlp", "benchmark", (SampleSet((1e-3,) * 20),), 0.01),)
READ = replace(TUNING, cached=True, seconds=None, failed=0)


def told(*works: TritonWork, timings: tuple[Timing, ...] = BENCHMARK) -> SummaryText | None:
    """What is said of Triton."""
    document = replace(run(), triton=works, timings=timings, trace=trace())
    return next((text for text in summary_texts(document) if text.concern == "triton"), None)


@pytest.mark.parametrize(
    ("work", "headline"),
    [
        (
            WORK,
            "Triton tuned _kernel in 2.10 s: 3 configurations tried, best BLOCK_M 128, 8 warps;"
            " left out of every time.",
        ),
        (
            replace(WORK, tunings=(TUNING, replace(TUNING, kernel="other", seconds=0.4))),
            "Triton tuned 2 kernels in 2.50 s; left out of every time.",
        ),
        (
            replace(WORK, tunings=(replace(TUNING, seconds=None, configurations=None),)),
            "Triton tuned _kernel: BLOCK_M 128, 8 warps; left out of every time.",
        ),
        (
            replace(WORK, tunings=(READ,)),
            "Triton's choice for _kernel came from its cache on disk: 3 configurations tried, best BLOCK_M 128,"
            " 8 warps.",
        ),
    ],
)
def test_the_headline_says_what_was_done_and_what_it_took(work: TritonWork, headline: str) -> None:
    summary = told(work)
    assert summary is not None
    assert summary.headline == headline


def notes(*works: TritonWork, timings: tuple[Timing, ...] = BENCHMARK) -> str:
    summary = told(*works, timings=timings)
    assert summary is not None
    return " ".join(summary.notes)


def test_a_region_that_is_no_benchmark_may_hold_the_tuning_in_its_first_time() -> None:
    region = (replace(BENCHMARK[0], kind="region"),)
    assert "has that in its first time" in notes(WORK, timings=region)
    assert "has that in its first time" not in notes(WORK)
    summary = told(WORK, timings=region)
    assert summary is not None
    assert "left out" not in summary.headline


def test_passes_that_ran_one_configuration_say_so_and_others_are_named() -> None:
    same = TritonWork("counters", 8, (READ,))
    assert "Every pass ran the same configurations." in notes(WORK, same)
    other = TritonWork("counters", 8, (replace(READ, best="BLOCK_M 64, 4 warps"),))
    said = notes(WORK, other)
    assert "The counters pass ran _kernel as BLOCK_M 64, 4 warps, the timing as BLOCK_M 128, 8 warps" in said
    assert "same configurations" not in said
    unrelated = TritonWork("counters", 8, (replace(READ, key="M 1"),))
    assert "configurations" not in notes(replace(WORK, tunings=(READ,)), unrelated)


def test_the_process_that_tuned_is_told_and_not_one_that_read_its_choice() -> None:
    summary = told(TritonWork("timing", 6, (READ,)), WORK, TritonWork("trace", 9, (READ,)))
    assert summary is not None
    assert rows_of(summary, "Tuned by Triton") == [("_kernel", "M 4096, fp16", "3", "2.10 s")]


def test_without_triton_there_is_no_word_of_it() -> None:
    assert told() is None


def test_both_renderings_have_it() -> None:
    document = judgement.judge_document(replace(run(), triton=(WORK,)), ())
    for text in (run_text(document, color=False), run_markdown(document)):
        assert "Tuned by Triton" in text
        assert "2.10 s" in text
    brief = run_text(document, color=False, details=False)
    assert "Triton tuned _kernel in 2.10 s" in " ".join(brief.split())
