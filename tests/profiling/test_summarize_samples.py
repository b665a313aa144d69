"""NVIDIA's own sample reports, from the file to the verdict and the screen, where an installation of ncu is here.

Truths: ../shared/reference/cuda.md, section 6, and what NVIDIA's own rules say in these reports (quoted beside them).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.profiling import summarize as examine
from tests.profilers.ncu.test_rep_recorded import sample
from tests.reporting.shown import run_text

TARGETS = ("occupancy", "memory-bandwidth", "bank-conflicts", "warp-efficiency", "coalescing")
VERDICTS = {
    "transposeNoBankConflicts": "pass pass pass pass pass",
    "transposeCoalesced": "pass fail fail pass pass",
    "addConstDouble": "not-applicable pass pass pass pass",  # DRAM saturated: more warps would not help
    "addConstDouble3": "pass pass pass pass fail",  # 66 % of the sectors wasted
    "sobelFloat": "pass not-applicable pass pass not-applicable",
    "sobelDouble": "pass not-applicable pass pass not-applicable",
}
CLASSES = {
    "transposeNoBankConflicts": "dram",  # "Start by analyzing DRAM"
    "transposeCoalesced": "shared",  # "Start by analyzing L1"; 96.39 % of the wavefronts of loads are conflicts
    "addConstDouble": "dram",
    "addConstDouble3": "dram",
    "sobelFloat": "issue",  # "Compute is more heavily utilized than Memory", and no pipe above 57.7 %
    "sobelDouble": "fp64",  # "FP64 is the highest-utilized pipeline (86.4 %)"
}
WORDS = {
    "transposeNoBankConflicts": ("95.6/100.0 %", "88.7 %"),
    "transposeCoalesced": ("93.9/100.0 %", "61.9 %", "65.0 M bank conflicts", "(53 % of their waiting)"),
    "addConstDouble": ("73.5/100.0 %", "90.6 %"),
    "addConstDouble3": (
        "33.3 % of the sectors",
        "3.15 M sectors too many",
        "24.0 sectors per request of loads",
    ),
    "sobelFloat": ("1.51 TFLOP/s in FP32", "11.3 FLOP/B", "11.2 %"),  # "11% of this device's fp32 peak"
    "sobelDouble": ("123 GFLOP/s in FP64", "18.3 FLOP/B", "52.5 %"),  # "53% of its fp64 peak"
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_sample_is_judged_as_an_engineer_would(name: str, fixtures: Path) -> None:
    document = examine.summarize_report(sample(name, fixtures))
    of_run = {v.target: v.verdict for v in document.verdicts if v.scope.kind == "run"}
    assert " ".join(of_run[target] for target in TARGETS) == VERDICTS[name]
    assert {target for target, word in of_run.items() if word == "fail"} <= set(TARGETS)
    assert "unknown" not in of_run.values()
    assert [one.bound for one in document.kernels] == [CLASSES[name]]
    assert [r.metric for r in document.readings if r.doubt is not None] == []


@pytest.mark.parametrize("name", VERDICTS)
def test_the_screen_has_the_numbers_that_are_known(name: str, fixtures: Path) -> None:
    text = " ".join(
        run_text(examine.summarize_report(sample(name, fixtures)), width=120, color=False).split()
    )
    assert [words for words in WORDS[name] if words not in text] == []


def test_the_conflicts_are_to_be_mended_before_the_bandwidth(fixtures: Path) -> None:
    from profkit.reporting.views.run_text import actions

    found = actions(examine.summarize_report(sample("transposeCoalesced", fixtures)))
    assert [action.about.target for action in found if action.about] == ["bank-conflicts", "memory-bandwidth"]
