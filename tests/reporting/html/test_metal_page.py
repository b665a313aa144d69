"""The page of a run on an Apple GPU: what was seen with its source, what was not with its reason, no word of CUDA."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from profkit.analysis.summaries.readings import unavailable_reading
from profkit.core.types import RUN, MetalTrace, Threshold, Verdict
from profkit.reporting.views.summaries.time_bars import metal_bars
from tests.reporting.html import metal_pages
from tests.reporting.html.markup import problems
from tests.reporting.shown import run_page as render

FOREIGN = re.compile(
    r"\b(?:kernels?(?! release)|SMs?|NVTX|multiprocessors?|CUDA|warps?|nsys|ncu|NVIDIA|grid|blocks?"
    r"|launch configurations?)\b",
    re.IGNORECASE,
)


def tag_free(made: str) -> str:
    """What stands on a page, without scripts, styles and tags."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", made, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_no_word_of_cuda_is_on_the_page() -> None:
    said = tag_free(render(metal_pages.document()))
    assert FOREIGN.findall(said) == []


def test_every_part_is_there_in_its_order() -> None:
    made = render(metal_pages.document())
    parts = re.findall(r'<section[^>]* id="([a-z-]+)"', made)
    wanted = ["gpu-use", "where-time", "encoders", "shaders", "gpu-counters", "gpu-states", "not-in-trace"]
    assert [part for part in parts if part in wanted] == wanted
    assert "kernels" not in parts
    assert problems(made) == []


@pytest.mark.parametrize(
    "words",
    [
        "8.26 ms of 212 ms from its first work to its last",
        "23.0 ms of 578 ms",
        "the host had submitted nothing: 150 ms, 70.8 %",
        "Apple M1, 8 GPU cores, 68.3 GB/s peak",
        "Compute Command 0 takes 53.3 % of 7.74 ms",
        "The recording had Shader Timeline: Disabled.",
        "Dashed line: what the chip is specified with, 68.3 GB/s.",
        "While the process worked on the GPU: Minimum 8.00 ms, Maximum 200 µs.",
        "Minimum: 0 s to 145 ms",
    ],
)
def test_what_was_seen_is_told(words: str) -> None:
    assert words in tag_free(render(metal_pages.document()))


def test_a_run_that_was_not_asked_to_count_says_so_where_the_counters_would_stand() -> None:
    told = unavailable_reading(
        "gpu.occupancy", RUN, "the counters pass was not asked for", "--passes trace,counters"
    )
    document = replace(metal_pages.document(replace(metal_pages.trace(), counters=())), readings=(told,))
    text = tag_free(render(document))
    assert "The counters pass was not asked for. To have it: --passes trace,counters" in text


def test_what_was_not_recorded_is_a_reason_and_no_number() -> None:
    base = metal_pages.trace()
    bare = MetalTrace(span=0.5, absent=base.absent)
    made = tag_free(render(metal_pages.document(bare)))
    assert "Counter Set: (null)" in made
    assert "0.0 %" not in made
    assert not re.search(r"\b(?:nan|inf|None)\b", made)
    assert list(metal_bars(bare)) == []
    assert "gpu-use" not in re.findall(
        r'<section[^>]* id="([a-z-]+)"', render(metal_pages.document(MetalTrace()))
    )


def test_a_bandwidth_without_a_known_chip_has_no_line() -> None:
    document = replace(metal_pages.document(), gpus=())
    assert "What the chip is specified with is not known." in tag_free(render(document))


def test_a_target_is_a_mark_on_the_bar_of_the_process() -> None:
    verdict = Verdict(
        "gpu-utilization",
        "gpu.utilization",
        "fail",
        "low",
        Threshold(">", 70, "%"),
        3.9,
        "%",
        RUN,
        "measured",
    )
    made = render(replace(metal_pages.document(), verdicts=(verdict,)))
    assert 'class="target"' in made
    assert "target &gt; 70 %" in made


def test_hostile_names_are_only_names() -> None:
    made = render(metal_pages.hostile())
    assert problems(made) == []
    assert "<img src=x" not in made
    assert not re.search(r"<script>document|<svg onload", made)


def test_the_parts_of_a_window_are_all_of_it() -> None:
    window, encoders = metal_bars(metal_pages.trace())
    assert sum(part.share for part in window.pieces) == pytest.approx(1.0)
    assert sum(part.share for part in encoders.pieces) == pytest.approx(1.0)
    span = next(metal_bars(replace(metal_pages.trace(), unsubmitted=None)))
    assert [part.label for part in span.pieces][-1] == "nobody works on the GPU"
    assert sum(part.share for part in span.pieces) == pytest.approx(1.0)
