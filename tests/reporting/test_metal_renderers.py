"""What a reader of an Apple GPU's run sees first, on 80 columns and in Markdown, whatever names it holds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from profkit.core.types import MetalProcess, MetalTrace, MetalWork, RunDocument
from profkit.profiling.summarize import judge_document, summarize_report, targets_for
from profkit.reporting import json as json_report
from profkit.reporting.screen import Screen
from profkit.reporting.views import run_text as views_run_text
from tests import metal_documents as metal
from tests import schemas
from tests.reporting.shown import run_markdown, run_text, texts_of

HOSTILE = (
    "[red]x[/red]<script>alert(1)</script> \x1b[31m\x1b]0;title\x07 \u202egnp.exe `rm` | a\nb @everyone",
    "<script>alert(1)</script>",
    "a" * 2_000,
    'label "quoted" \ud800 \udfff',
    "",
)
FOREIGN = re.compile(r"cuda|nvidia|\bwarps?\b|\bSMs?\b|\bncu\b|\bnsys\b|launch config", re.IGNORECASE)


def judged(document: RunDocument) -> RunDocument:
    return judge_document(document, targets_for("mps"))


def hostile() -> MetalTrace:
    works = tuple(MetalWork(name, "encoder", 3, 0.2, 0.2, 1e-3, 2e-3) for name in HOSTILE)
    shaders = tuple(replace(work, kind="shader") for work in works)
    processes = tuple(MetalProcess(name, None, 0.1, 3, target=name == "") for name in HOSTILE)
    counters = tuple(metal.counter(name, 30.0, unit=name[:40]) for name in HOSTILE)
    return metal.metal(
        encoders=works, shaders=shaders, processes=processes, counters=counters, induced=HOSTILE[0]
    )


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


def test_a_long_word_beside_a_label_is_not_cut_off() -> None:
    screen = Screen(color=False, width=40)
    screen.labelled(("label", ""), "x" * 50, width=9)
    assert screen.text().count("x") == 50


@every_document
def test_no_word_of_another_vendor_reaches_a_reader_of_metal(document: RunDocument) -> None:
    for text in (run_text(document, color=False, width=200), run_markdown(document)):
        assert FOREIGN.findall(text) == []


@every_document
def test_markdown_shows_names_and_obeys_none(document: RunDocument) -> None:
    text = re.sub(r"(`+).*?\1", "", run_markdown(document))  # in a span of code it is text
    assert "<script>" not in text
    assert "@everyone" not in text.replace("@<!-- -->everyone", "")


@every_document
def test_the_document_is_valid_and_holds_no_number_that_is_none(document: RunDocument) -> None:
    told = json.loads(json_report.run(document), parse_constant=lambda word: pytest.fail(word))
    jsonschema.validate(told, schemas.run())


def test_brief_shows_busy_encoders_and_three_things_first() -> None:
    text = run_text(DOCUMENTS["counted"], color=False, width=80, details=False)
    head = text.index("The process keeps the GPU busy 70.0 %")
    first = text.index("What to do first")
    assert head < first < text.index("Encoders by GPU time")
    assert text.count("\n") < 60
    assert len(views_run_text.actions(DOCUMENTS["counted"])) == 3
    assert "Command buffers and queue" not in text
    assert "Command buffers and queue" in run_text(DOCUMENTS["counted"], color=False, width=80)


def test_a_host_that_submits_too_slowly_is_the_first_thing_to_do() -> None:
    first = views_run_text.actions(DOCUMENTS["idle"])[0]
    assert (first.about.target if first.about else None, first.verdict) == ("gpu-busy", "fail")
    assert first.what.startswith("The host submits too slowly")


def test_a_report_says_what_its_trace_lacks_and_how_to_get_it() -> None:
    text = " ".join(run_text(DOCUMENTS["report"], color=False, width=80).split())
    assert "Time by shader is not known: Shader Timeline: Disabled" in text
    assert "an Apple GPU of M3 or later" in text
    assert "Threadgroup occupancy is not known: the recording was set to no counter set" in text
    assert "What the GPU moves is not known" in text
    assert "xctrace record --instrument 'Metal GPU Counters'" in text


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (metal.metal(), "busy 70.0 % of 2.00 s (the whole device 75.0 %). It is host-bound: 22.5 % of the time"),
        (metal.metal(unsubmitted=0.05), "25.0 % of the time work was submitted and had not begun."),
        (metal.metal(unsubmitted=0.0, queue_most=1), "had not begun, one command buffer at a time."),
        (metal.metal(unsubmitted=0.0, blocked=0.5), "25.0 % of the time others had the GPU, with work queued."),
        (metal.metal(marked=False, span=9.0, window_busy=1.9), "of 2.00 s (the whole device 95.0 %)"),
        (metal.metal(marked=False, span=6.0), "of 2.00 s (the whole device 25.0 % of 6.00 s)"),
        (metal.metal(process_busy=0.0), "nothing on the GPU in 2.00 s; the whole device 75.0 %."),
        (metal.metal(process_busy=None), "of the GPU is not known; the whole device 75.0 %."),
        (metal.metal(process_busy=1.9, unsubmitted=0.1), "(the whole device 75.0 %)."),
        (MetalTrace(), "What the process had of the GPU is not known."),
    ],
)  # fmt: skip
def test_the_headline_names_what_the_gpu_waited_for(trace: MetalTrace, words: str) -> None:
    found = texts_of(metal.report(trace))["gpu"]
    assert words in found.headline


def test_notes_tell_what_must_be_known_of_the_numbers() -> None:
    trace = metal.metal(marked=False, device="Apple M4 Pro")
    found = texts_of(metal.report(trace))["gpu"]
    assert any(n.startswith("No region is marked") for n in found.notes)


def test_a_recorded_m1_is_told_as_it_was(fixtures: Path) -> None:
    """Truths of the recording: active for 23.0 of 578 ms (4.0 %), 1,001 intervals of the process in 8.26 ms."""
    document = summarize_report(fixtures / "xctrace" / "m1-metal-system-trace")
    text = run_text(document, color=False, width=80)
    assert "Traced   578 ms" in text
    assert "23.0 ms (4.0 %) active for all" in text
    assert "8.26 ms" in text
    assert re.search(r" +8\.26 ms +1001\n", text)
    words = {v.target: v.verdict for v in document.verdicts}
    assert words == {
        "gpu-busy": "fail",
        "memory-bandwidth": "not-applicable",
        "occupancy": "unknown",
        "longest-shader": "not-applicable",
        "gpu-state": "unknown",
    }
    assert views_run_text.actions(document)[0].what.startswith("One command buffer at a time")
