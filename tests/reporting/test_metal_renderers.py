"""What a reader of an Apple GPU's run sees first, on 80 columns and in Markdown, whatever names it holds."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from profkit.core.types import MetalTrace, MetalWork, RunDocument
from profkit.profiling.summarize import judge_document, summarize_report, targets_for
from profkit.reporting.views import run_text as views_run_text
from tests import metal_documents as metal
from tests.conftest import ROOT
from tests.reporting.html.markup import problems
from tests.reporting.shown import run_markdown, run_page, run_text

HOSTILE = (
    "[red]x[/red]<script>alert(1)</script> \x1b[31m\x1b]0;title\x07 \u202egnp.exe `rm` | a\nb @everyone",
    "<script>alert(1)</script>",
    "a" * 2_000,
    'label "quoted" \ud800 \udfff',
    "",
)
FOREIGN = re.compile(r"cuda|nvidia|\bwarps?\b|\bSMs?\b|\bncu\b|\bnsys\b|launch config", re.IGNORECASE)
NOT_SAID = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.DOTALL)  # of a page


def judged(document: RunDocument) -> RunDocument:
    return judge_document(document, targets_for("mps"))


def hostile() -> MetalTrace:
    works = tuple(MetalWork(name, 3, 0.2, 1e-3, 2e-3) for name in HOSTILE)
    counters = tuple(metal.counter(name, 30.0, unit=name[:40]) for name in HOSTILE)
    return metal.metal(encoders=works, counters=counters)


DOCUMENTS = {
    "run": judged(metal.run()),
    "counted": judged(metal.run(metal.metal(counters=metal.counters()))),
    "idle": judged(metal.run(metal.idle())),
    "report": judged(metal.report()),
    "nothing": judged(metal.report(MetalTrace())),
    "untraced": judged(replace(metal.run(), metal=None, trace=None)),
    "hostile": judged(metal.run(hostile(), facts={HOSTILE[0]: HOSTILE[0]})),
}
every_document = pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)


@every_document
@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("details", [True, False])
def test_it_fits_the_screen(document: RunDocument, width: int, *, details: bool) -> None:
    text = run_text(document, color=False, width=width, details=details)
    assert max(len(line) for line in text.splitlines() if "xctrace export" not in line) <= width
    assert "\x1b" not in text
    assert "\u202e" not in text


@every_document
def test_no_word_of_another_vendor_reaches_a_reader_of_metal(document: RunDocument) -> None:
    page = run_page(document)
    assert problems(page) == []
    said = NOT_SAID.sub(" ", page)
    for text in (run_text(document, color=False, width=200), run_markdown(document), said):
        assert FOREIGN.findall(text) == []


def test_brief_shows_busy_encoders_and_three_things_first() -> None:
    text = run_text(DOCUMENTS["counted"], color=False, width=80, details=False)
    head = text.index("The process keeps the GPU busy 70.0 %")
    first = text.index("What to do first")
    assert head < first < text.index("Encoders by GPU time")
    assert text.count("\n") < 60
    assert len(views_run_text.actions(DOCUMENTS["counted"])) == 3
    assert "All counters" not in text
    assert "All counters" in run_text(DOCUMENTS["counted"], color=False, width=80)


def test_a_host_that_submits_too_slowly_is_the_first_thing_to_do() -> None:
    first = views_run_text.actions(DOCUMENTS["idle"])[0]
    assert first.what.startswith("The host submits too slowly")


def test_a_report_says_what_its_trace_lacks_and_how_to_get_it() -> None:
    text = " ".join(run_text(DOCUMENTS["report"], color=False, width=80).split())
    assert "Threadgroup occupancy is not known: the recording was set to no counter set" in text
    assert "What the GPU moves is not known" in text
    assert "xctrace record --instrument 'Metal GPU Counters'" in text


def test_a_recorded_m1_is_told_as_it_was() -> None:
    """Truths of the rows: active for 751 µs of 21.5 ms (3.5 %), the process in 100 intervals of 628 µs."""
    document = summarize_report(ROOT / "tests" / "data" / "xctrace" / "m1")
    text = run_text(document, color=False, width=80)
    assert re.search(r"Traced +21\.5 ms", text)
    assert re.search(r"The device, for all +751 µs", text)
    assert "(the whole device 3.5 % of 21.5 ms)" in " ".join(text.split())
    assert "takes 100.0 % of 628 µs in 100 encoders" in text
    words = {v.target: v.verdict for v in document.verdicts}
    assert words == {
        "gpu-busy": "fail",
        "memory-bandwidth": "not-applicable",
        "occupancy": "unknown",
        "longest-shader": "not-applicable",
    }
    assert views_run_text.actions(document)[0].what.startswith("The host submits too slowly")
