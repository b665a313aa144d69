"""The page of a run on an Apple GPU: what was seen with its source, what was not with its reason, no word of CUDA."""

from __future__ import annotations

import html
import re

import pytest

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


@pytest.mark.parametrize(
    "words",
    [
        "Apple M1, 8 GPU cores, 68.3 GB/s peak",
        "Compute Command 0 takes 53.3 % of 7.74 ms",
    ],
)
def test_what_was_seen_is_told(words: str) -> None:
    assert words in tag_free(render(metal_pages.document()))


def test_hostile_names_are_only_names() -> None:
    made = render(metal_pages.hostile())
    assert problems(made) == []
    assert "<img src=x" not in made
    assert not re.search(r"<script>document|<svg onload", made)
