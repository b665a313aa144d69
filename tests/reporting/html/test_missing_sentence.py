"""What would bring a chart that is missing: a line to type in monospace, advice as the prose that it is."""

from __future__ import annotations

import pytest

from profkit.reporting.chart_blocks import NoChart
from profkit.reporting.html.blocks import PageBlocks


@pytest.mark.parametrize(
    "fix",
    [
        "--passes trace,counters",
        "sudo sysctl kernel.perf_event_paranoid=1",
        "xctrace export --input TRACE --xpath '/trace-toc/run[@number=\"1\"]' --output t.xml",
        "profkit record --tool xctrace --report exports -- python train.py",
    ],
)
def test_a_line_to_type_is_shown_as_one(fix: str) -> None:
    assert "To have it: <code>" in PageBlocks().block(NoChart("No chart.", fix))


@pytest.mark.parametrize(
    "fix",
    [
        "an Apple GPU of M3 or later, recorded with a template",
        "launch the program with xctrace; attached to, some versions record nothing of it",
        "record the counters by themselves: xctrace record --launch -- COMMAND; or choose a counter set",
        "choose a counter set in Instruments & save that",
    ],
)
def test_advice_in_words_is_no_line_to_type(fix: str) -> None:
    shown = PageBlocks().block(NoChart("No chart.", fix))
    assert "<code>" not in shown
    assert fix.replace("&", "&amp;") in shown
