"""What a kernel engineer sees first, on screens of any width, in Markdown, and in a plan."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.types import KernelTime, RunDocument, Verdict
from profkit.profiling.summarize import judge_document, targets_for
from profkit.reporting import json as json_report
from profkit.reporting.views import plan as plan_view
from profkit.reporting.views import run_text as views_run_text
from profkit.reporting.views.summaries import concern_sections
from tests import gpu_documents as gpu
from tests.documents import verdict
from tests.reporting.shown import cells_of, run_markdown, run_text, text_of

FOLDER = Path("reports/20261120-054700-gated_mlp-cuda")
HOSTILE = (
    "void ns::[red]x[/red]<script>alert(1)</script> \x1b[31m\x1b]0;title\x07 \u202egnp.exe `rm` | a\nb @everyone",
    "<script>alert(1)</script>",
    "a" * 2_000,
    "void f<" + "at::native::thing<float, " * 80 + ">" * 80 + "(int)",
    "",
)


def judged(document: RunDocument) -> RunDocument:
    return judge_document(document, targets_for("cuda"))


def hostile() -> RunDocument:
    kernels = tuple(replace(gpu.GEMM, name=name) for name in HOSTILE)
    times = tuple(KernelTime(kernel, 1, 1e-3) for kernel in kernels)
    readings = tuple(replace(r, scope=kernel.scope) for kernel in kernels for r in gpu.readings()[:13])
    bad = replace(gpu.H200, name=HOSTILE[0])
    trace = replace(gpu.trace(), kernels=times)
    facts = {HOSTILE[0]: HOSTILE[0], "clocks": "x" * 5_000}
    return judged(replace(gpu.run(), trace=trace, readings=readings, gpus=(bad,), facts=facts))


DOCUMENTS = {
    "run": judged(gpu.run()),
    "trace": judged(gpu.of_trace()),
    "counters": judged(gpu.of_counters()),
    "without counters": judged(gpu.without_counters()),
    "nothing": judged(gpu.report()),
    "hostile": hostile(),
}
every_document = pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)


# ---------------------------------------------------------------- terminal


@pytest.mark.thorough
@every_document
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("details", [True, False])
def test_no_line_is_wider_than_the_screen(document: RunDocument, width: int, details: bool) -> None:
    lines = run_text(document, FOLDER, color=False, width=width, details=details).split("\n")
    assert max(len(line) for line in lines if not line.lstrip().startswith("profkit profile ")) <= width


def test_time_and_gpu_then_what_to_do_then_kernels_then_timeline_then_verdicts_then_what_is_not_known() -> (
    None
):
    text = run_text(DOCUMENTS["run"], FOLDER, color=False)
    assert text.startswith(
        "? 1 target could not be checked  no-leak; 7 met, 1 not applicable\ngated_mlp on cuda\n$ python x.py\n"
    )
    order_ = [
        "Time     134 µs",
        "GPU      The GPU is busy 90.0 % of 10.0 ms.",
        "Device   NVIDIA H200 (GH100, compute capability 9.0), 132 SMs,",
        "\nWhat to do",
        "\nKernels\n",
        "  Kernels by GPU time",
        "\nGPU\n",
        "  Timeline",
        "\nTargets\n",
        "\n  Why, and what to try\n",
        "\nWhat is not known\n",
        "\nPasses\n",
        "\nMeasured under\n",
    ]
    places = [text.index(words) for words in order_]
    assert places == sorted(places)


def test_the_first_columns_of_80_say_which_kernel_how_long_and_what_limits_it() -> None:
    text = run_text(DOCUMENTS["run"], color=False)
    head = next(line for line in text.split("\n") if line.startswith("  kernel  "))
    assert head.split() == ["kernel", "launches", "GPU", "time", "median", "limited", "by"]
    row = next(line for line in text.split("\n") if line.startswith("  nvjet"))
    assert re.fullmatch(r"  nvjet_\S+…\S*NNT +40 +84\.3 % +175 µs +tensor cores 95 %", row)


def test_a_table_that_is_too_wide_goes_on_below_and_loses_nothing() -> None:
    kernels = concern_sections(DOCUMENTS["run"])["kernels"]
    cells = cells_of(kernels, "Kernels by GPU time")
    for width in (60, 80, 120):
        text = run_text(DOCUMENTS["run"], color=False, width=width)
        section = text[text.index("Kernels by GPU time") : text.index("\nGPU\n")]
        for title, cell in list(cells.items())[1:]:
            assert title in section
            assert cell.strip() in section
    wide = run_text(DOCUMENTS["run"], color=False, width=240)
    assert gpu.GEMM.name + "  " in wide
    assert sum(line.startswith("  kernel  ") for line in wide[: wide.index("\nGPU\n")].split("\n")) == 1


def failed(target: str, weight: float) -> Verdict:
    return verdict("fail", target, target, scope=gpu.ADD.scope, weight=weight)


def test_failures_stand_by_their_share_of_the_time() -> None:
    document = gpu.report(verdicts=(failed("little", 0.1), failed("none", 0.04), failed("much", 0.4)))
    assert [action.what for action in views_run_text.actions(document)] == ["much", "little"]
    assert "because much" in " ".join(run_text(document, color=False).split())
    name = "vectorized_elementwise_kernel<…, CUDAFunctor_add<…>>"
    assert views_run_text.scope_prefix(gpu.ADD.scope).startswith("in ")
    assert views_run_text.scope_prefix(gpu.ADD.scope).endswith(" (16384 of 128): ")
    assert len(views_run_text.scope_prefix(gpu.ADD.scope)) < len(name) + 24


def test_without_details_a_run_is_what_to_do_where_the_time_goes_and_memory() -> None:
    text = run_text(DOCUMENTS["run"], FOLDER, color=False, details=False)
    sections = re.findall(r"^([A-Z][\w ]+)$", text[text.index("What to do") :], re.M)
    assert sections == ["What to do first", "Targets", "All numbers", "Files", "Next"]
    assert re.findall(r"^(Where .+|What to do.*|Kernels)$", text, re.M) == [
        "Where one call goes",
        "What to do first",
    ]
    assert "Marked ranges" not in text


def test_a_fact_that_both_passes_tell_stands_once() -> None:
    facts = {
        "clocks": "not locked",
        "clocks (explain)": "not locked",
        "replay passes": "5",
        "replay passes (explain)": "9",
    }
    told = views_run_text.session_conditions(gpu.report(facts=facts, tools={"ncu": "2025.3.1"}))
    assert told == {
        "ncu": "2025.3.1",
        "clocks": "not locked",
        "replay passes": "5",
        "replay passes (explain)": "9",
    }


def test_a_hostile_name_is_shown_and_not_obeyed() -> None:
    for color in (True, False):
        text = re.sub(r"\x1b\[[0-9;]*m", "", run_text(DOCUMENTS["hostile"], color=color))
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "\u202e" not in text
    page = run_markdown(DOCUMENTS["hostile"])
    outside_code = re.sub(r"(`+).*?\1", "", page)
    assert "<script>" not in outside_code
    assert "\x1b" not in page
    assert "@everyone" not in outside_code


# ---------------------------------------------------------------- markdown and json


def test_markdown_has_the_same_order_with_all_columns_and_conditions() -> None:
    text = run_markdown(DOCUMENTS["run"])
    order_ = [
        "**Time:**",
        "**GPU:**",
        "### What to do",
        "### Kernels",
        "| kernel | launches | GPU time | median | limited by | occupancy |",
        "### GPU",
        "### Targets",
        "<summary>Why, and what to try</summary>",
        "<summary>In single kernels</summary>",
        "<summary>Occupancy</summary>",
        "### What is not known",
        "### Measured under",
    ]
    places = [text.index(words) for words in order_]
    assert places == sorted(places)
    assert text.count("<details>") == text.count("</details>")
    assert "cache control: all" in text


# ---------------------------------------------------------------- plan


def test_a_plan_shows_what_is_counted_and_its_cost() -> None:
    text = text_of(plan_view.view(gpu.plan()))
    assert "about 1.5 times as long as one normal run" in " ".join(text.split())
    assert "metric_7 and" in " ".join(text.split())
    assert "32 more (--format json has them all)" in " ".join(text.split())
    assert max(len(line) for line in text.split("\n")) <= 80
    assert len(json.loads(json_report.document(gpu.plan()))["passes"][2]["kernels"]) == 2
