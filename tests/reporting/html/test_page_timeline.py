"""A timeline on a page in a real browser: what is drawn is what is recorded, and every mark can be reached."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import ActivityBins, Fact, Lane, MarkLabel, PassResult, RunDocument, Timeline
from profkit.profilers.perf.thread_lanes import read_threads
from profkit.profilers.registry import recognise_format
from profkit.profiling.summarize import report_as_run
from profkit.reporting.views.run_about import Extras
from profkit.reporting.views.run_timeline import timeline_sections
from tests import documents, gpu_documents
from tests.answers.gpu.recordings import RECORDINGS
from tests.answers.trial import recorded_document, truth_set
from tests.conftest import ROOT
from tests.page_documents import HOSTILE
from tests.reporting.html.conftest import Show
from tests.reporting.shown import run_page as render

MS = 1_000_000
GEMM, SHAPE = "void gemm<float>(int)", "4 of 128"
PERF = ROOT / "tests" / "data" / "perf"
GPT = ROOT / "tests" / "data" / "cuda" / "torch" / "torch.gpt.json.gz"
# A copy of a canvas that is read, and not drawn on: a browser complains of one that is both.
COPY = """(name) => {
  const from = document.querySelector(name), copy = document.createElement("canvas");
  [copy.width, copy.height] = [from.width, from.height];
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(from, 0, 0);
  return [from, pen, window.devicePixelRatio];
}"""
# Of one lane of a canvas the colour of each column of pixels at the lower edge of its bars, and the runs of equal ones:
# what waits is low, and letters end above it.
COLUMNS = f"""(lane) => {{
  const [canvas, pen, scale] = ({COPY})(".timeline-canvas");
  const wide = canvas.clientWidth, left = wide < 620 ? 0 : 190, row = wide < 620 ? 36 : 22, above = wide < 620 ? 15 : 3;
  const y = Math.round((24 + lane * row + above + 15) * scale), from = Math.round(left * scale);
  const line = pen.getImageData(from, y, Math.round((wide - left) * scale), 1).data;
  const runs = [];
  for (let n = 0; n < line.length; n += 4) {{
    const colour = line.slice(n, n + 3).join();
    if (runs.length && runs[runs.length - 1][0] === colour) runs[runs.length - 1][1] += 1; else runs.push([colour, 1]);
  }}
  return runs;
}}"""
STRIP = f"""() => {{
  const [canvas, pen, scale] = ({COPY})(".timeline-strip"), wide = canvas.clientWidth;
  const x = (share) => Math.round((190 + share * (wide - 190)) * scale);
  const at = (share, y) => pen.getImageData(x(share), y * scale, 1, 1).data.join();
  return {{ idle: at(0.2, 12), busy: at(0.9, 12), above: at(0.9, 1), edge: at(0.5, 9) }};
}}"""
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
REDRAWN = """() => {
  const begun = performance.now();
  for (let n = 0; n < 20; n++) window.dispatchEvent(new Event("afterprint"));
  return (performance.now() - begun) / 20;
}"""


def timeline() -> Timeline:
    """A step of 100 ms: a kernel for half of it, an idle stretch, a copy; and the host's calls."""
    labels = (
        MarkLabel("kernel", GEMM, "", SHAPE, "aten::mm [2,3] x [3,4]", "/src/train.py", 9, "step"),
        MarkLabel("copy", "host to device"),
        MarkLabel("program", "", file="/src/data.py", line=13, function="augment"),
        MarkLabel("launch", "cudaLaunchKernel", GEMM, SHAPE, None, "/src/train.py", 9, "step"),
        MarkLabel("wait", "cudaDeviceSynchronize"),
    )  # fmt: skip
    lanes = (
        Lane("kernels", (0,), (50 * MS,), (0,), device=0, number=7),
        Lane("copies", (75 * MS,), (25 * MS,), (1,), device=0),
        Lane("idle", (50 * MS,), (25 * MS,), (2,), device=0),
        Lane(
            "calls", (0, 10 * MS), (5 * MS, 80 * MS), (3, 4), counts=(12, 1), busy=(3 * MS, 80 * MS), number=0
        ),
    )
    strip = (ActivityBins((0,) * 150 + (80,) * 150, device=0),)
    return Timeline("step", 0.5, 0.1, 1.0, labels, lanes, strip, of=7, merged=11, shortest=1e-6)


def document(made: Timeline | None = None) -> RunDocument:
    base = gpu_documents.run()
    assert base.trace is not None
    workload = replace(base.workload, folder="/src")
    return replace(base, workload=workload, trace=replace(base.trace, timeline=made or timeline()))


def at(page: Any, lane: int, share: float) -> tuple[float, float]:
    """A place on the screen: in a lane, at a share of the time that is shown."""
    page.locator(".timeline-canvas").scroll_into_view_if_needed()
    box = page.locator(".timeline-canvas").bounding_box()
    left = 190 if box["width"] >= 620 else 0
    row, above = (22, 3) if left else (36, 15)
    return box["x"] + left + share * (box["width"] - left), box["y"] + 24 + lane * row + above + 12


def is_zoomed(page: Any, *, wanted: bool = True) -> None:
    """Once all is drawn that was asked for."""
    page.evaluate(TWO_FRAMES)
    assert page.locator("[data-do=all]").is_enabled() == wanted


def lengths(page: Any, lane: int) -> list[tuple[str, float]]:
    """The runs of colours in a lane, as shares; single columns between two marks left out."""
    runs = page.evaluate(COLUMNS, lane)
    whole = sum(count for _, count in runs)
    return [(colour, count / whole) for colour, count in runs if count > 2]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_marks_are_as_long_as_what_they_are_of(show: Show, width: int, scheme: str) -> None:
    page = show(document(), viewport={"width": width, "height": 900}, color_scheme=scheme).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    near = pytest.approx
    kernel, copy, idle, calls = (lengths(page, lane) for lane in range(4))
    assert [share for _, share in kernel] == [near(0.5, abs=0.01)] * 2
    assert [share for _, share in copy] == [near(0.75, abs=0.01), near(0.25, abs=0.01)]
    assert [share for _, share in idle] == [near(0.5, abs=0.01), near(0.25, abs=0.01), near(0.25, abs=0.01)]
    assert [share for _, share in calls] == [near(part, abs=0.01) for part in (0.05, 0.05, 0.8, 0.1)]
    empty = kernel[1][0]
    colours = [kernel[0][0], copy[1][0], idle[1][0], calls[2][0]]
    assert len({empty, *colours}) == 5  # each kind has its own
    assert (copy[0][0], idle[0][0]) == (empty, empty)


@pytest.mark.parametrize(
    ("lane", "share", "words"),
    [
        (0, 0.25, ["gemm<float>: 50 ms, 50.0 %", "aten::mm [2,3] x [3,4], train.py:9 step", "stream 7, from 0 ns on"]),
        (1, 0.9, ["host to device: 25 ms", "from 75 ms on"]),
        (2, 0.6, ["idle: the host runs the program: 25 ms", "data.py:13 augment"]),
        (3, 0.02, ["12 marks in 5 ms, 3 ms of it busy; the longest: cudaLaunchKernel", "gemm<float>, train.py:9 step"]),
        (3, 0.5, ["cudaDeviceSynchronize: 80 ms"]),
    ],
)  # fmt: skip
def test_a_mark_says_what_it_is_where_the_pointer_rests(
    show: Show, lane: int, share: float, words: list[str]
) -> None:
    page = show(document()).page
    page.mouse.move(*at(page, lane, share))
    told = page.locator(".timeline-tip").text_content()
    assert [one for one in words if one not in told] == [], told
    page.mouse.move(*at(page, 1, 0.3))  # nothing is there
    assert page.locator(".timeline-tip").is_hidden()


def test_the_wheel_zooms_where_the_pointer_is_and_leaves_the_page_alone_before_a_click(show: Show) -> None:
    page = show(document()).page
    page.mouse.move(*at(page, 0, 0.5))
    page.mouse.wheel(0, -300)
    is_zoomed(page, wanted=False)
    page.mouse.click(*at(page, 0, 0.25))
    page.mouse.move(*at(page, 0, 0.5))
    page.mouse.wheel(0, -400)
    is_zoomed(page)
    # What was at the pointer stays there: the end of the kernel.
    assert lengths(page, 0)[0][1] == pytest.approx(0.5, abs=0.01)
    assert lengths(page, 2)[1][1] == pytest.approx(0.25 * 1.0015**400, abs=0.02)
    page.locator("[data-do=all]").click()
    is_zoomed(page, wanted=False)
    assert lengths(page, 2)[1][1] == pytest.approx(0.25, abs=0.01)


def test_the_keyboard_goes_from_mark_to_mark_and_zooms(show: Show) -> None:
    page = show(document()).page
    told = page.locator(".timeline-told")
    page.locator(".timeline-canvas").focus()
    page.keyboard.press("ArrowRight")
    assert told.text_content().startswith("gemm<float>: 50 ms")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    assert told.text_content().startswith("cudaDeviceSynchronize: 80 ms")
    page.keyboard.press("ArrowLeft")
    assert "cudaLaunchKernel" in told.text_content()
    page.keyboard.press("Enter")  # this mark alone
    is_zoomed(page)
    assert lengths(page, 3)[0][1] == pytest.approx(1 / 1.2, abs=0.01)
    page.keyboard.press("Escape")
    is_zoomed(page, wanted=False)
    page.keyboard.press("+")
    is_zoomed(page)
    assert lengths(page, 0)[0][1] == pytest.approx(0.5, abs=0.01)  # 25 to 75 ms


def test_the_drawing_is_dragged_along_the_time(show: Show) -> None:
    page = show(document()).page
    page.locator("[data-do=in]").click()  # 25 to 75 ms
    is_zoomed(page)
    before = lengths(page, 0)
    assert before[0][1] == pytest.approx(0.5, abs=0.01)
    page.mouse.move(*at(page, 0, 0.2))
    page.mouse.down()
    page.mouse.move(*at(page, 0, 0.4))
    page.mouse.up()
    page.evaluate(TWO_FRAMES)
    assert lengths(page, 0)[0][1] == pytest.approx(0.7, abs=0.01)


def test_what_is_searched_for_stays_in_its_colour_and_all_else_fades(show: Show) -> None:
    page = show(document()).page
    before = [lengths(page, lane) for lane in range(4)]
    page.locator(".timeline-tools input").fill("DATA.py:13")
    page.evaluate(TWO_FRAMES)
    assert page.locator(".timeline-told").text_content().startswith("found 1 mark, 25 ms together")
    after = [lengths(page, lane) for lane in range(4)]
    assert after[2] == before[2]
    assert after[0][0][0] != before[0][0][0]
    page.keyboard.press("Enter")
    assert page.locator(".timeline-told").text_content().startswith("idle: the host runs the program")
    page.locator(".timeline-tools input").fill("nobody")
    assert page.locator(".timeline-told").text_content() == "nothing is called like that"


def test_the_strip_shows_the_whole_run_and_where_in_it_the_step_is(show: Show) -> None:
    page = show(document()).page
    found = page.evaluate(STRIP)
    assert len({found["idle"], found["busy"], found["edge"]}) == 3
    assert found["above"] == found["idle"]  # 80 %: a fifth of the height is free


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_timeline_is_not_hard_to_see_hear_or_reach(show: Show, scheme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = show(document(), color_scheme=scheme, viewport={"width": width, "height": 900}).page
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    found = (
        Axe().run(page, context="#timeline", options={"resultTypes": ["violations"]}).response["violations"]
    )
    assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []


def test_without_a_script_the_table_says_the_same(show: Show) -> None:
    page = show(document(), java_script_enabled=False).page
    assert page.locator(".timeline-canvas").is_hidden()
    page.get_by_text("The same as a table").click()
    rows = page.locator("#timeline tbody tr").all_text_contents()
    assert any("GPU 0, idle" in row and "data.py:13" in row and "25.0 %" in row for row in rows)


def test_names_of_marks_lanes_and_processes_are_never_markup(show: Show) -> None:
    labels = tuple(
        MarkLabel("kernel", name, name, name, name, name, 3, HOSTILE[-n]) for n, name in enumerate(HOSTILE)
    )
    lanes = tuple(
        Lane("thread", (10 * n,), (9,), (n,), name=name, process=n) for n, name in enumerate(HOSTILE)
    )
    strip = (ActivityBins((5,), 0, name=HOSTILE[0]),)
    made = Timeline("threads", 0, 1e-6, 1e-6, labels, lanes, strip, name=HOSTILE[1], processes=HOSTILE)
    page = show(replace(document(), timeline=made)).page
    before = page.title()
    page.locator(".timeline-canvas").nth(1).focus()
    for _ in HOSTILE:
        page.keyboard.press("ArrowDown")
        assert page.locator(".timeline-told").nth(1).text_content()
    assert page.title() == before != "ran"
    assert page.locator("#timeline img, #timeline svg").count() == 0


def test_a_run_without_a_timeline_has_no_section_and_one_mark_is_a_drawing(show: Show) -> None:
    assert list(timeline_sections(gpu_documents.run(), Extras())) == []
    one = replace(timeline(), lanes=(Lane("kernels", (0,), (1,), (0,), device=0),), seconds=1e-9, activity=())
    page = show(document(one)).page
    page.locator(".timeline-canvas").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".timeline-told").text_content().startswith("gemm<float>: 1 ns, 100.0 %")
    assert page.locator(".timeline-strip").is_hidden()


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("py-spy", "py-spy counts how often a thread"),
        ("perf", "when threads of this program waited was not recorded"),
    ],
)
def test_a_program_that_ran_already_has_a_line_that_says_why_its_threads_have_no_lanes(
    show: Show, tool: str, said: str
) -> None:
    watched = Fact.of("watched-and-goes-on", pid=7, seconds=4.0)
    passes = (PassResult("stacks", tool, "finished"),)
    run = replace(documents.empty(), state="complete", notes=(watched,), passes=passes)
    page = show(run).page
    assert said in page.locator("#timeline").inner_text()
    lanes = replace(timeline(), kind="threads")
    assert "No timeline" not in render(replace(run, timeline=lanes))
    assert "No timeline" not in render(replace(run, notes=()))


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_a_page_of_a_program_that_ran_already_is_not_hard_to_see_hear_or_reach(
    show: Show, width: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    watched = Fact.of("watched-and-goes-on", pid=7, seconds=4.0)
    run = replace(documents.empty(), state="complete", notes=(watched,), timeline=native_lanes())
    page = show(run, color_scheme=scheme, viewport={"width": width, "height": 900}).page
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.locator(".timeline-canvas").count() == 1
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []


def native_lanes() -> Timeline:
    """Return the lanes of a compiled program's threads, as perf recorded its switches."""
    _, made = read_threads(PERF / "switches.waits.txt", PERF / "script.waits.txt", Path("/app/feed"))
    assert made is not None
    return made


@pytest.mark.thorough
def test_a_timeline_of_as_many_marks_as_there_may_be_is_small_and_soon_there(show: Show) -> None:
    chance, at_ns = random.Random(1), 0
    starts, counts = [], []
    for _ in range(4960):
        at_ns += chance.randint(500, 90_000)
        starts.append(at_ns)
        counts.append(chance.randint(1, 100))
    labels = tuple(
        MarkLabel("kernel", f"void at::native::kernel_{n}<{'float, ' * 20}int>()") for n in range(400)
    )
    numbers = tuple(chance.randrange(400) for _ in starts)
    lengths = tuple(chance.randint(100, 400) for _ in starts)
    lane = Lane("kernels", tuple(starts), lengths, numbers, tuple(counts), lengths, device=0)
    lanes = (lane, *(Lane("kernels", (0,), (1,), (0,), device=n) for n in range(1, 40)))
    made = Timeline("trace", 0, at_ns / 1e9, at_ns / 1e9, labels, lanes, ())
    assert len(render(document(made)).encode()) < 500_000
    page = show(document(made)).page
    spent = page.evaluate(REDRAWN)
    assert spent < 500  # ms to draw all of it; some 10 where nothing else runs


WAIT_COLOUR = """() => {
  const box = document.querySelector(".timeline-box"), dot = document.createElement("i");
  dot.style.color = getComputedStyle(box).getPropertyValue("--k-wait");
  box.append(dot);
  const colour = getComputedStyle(dot).color.match(/\\d+/g).join();
  dot.remove();
  return colour;
}"""


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_waits_of_a_recorded_host_for_its_gpu_have_a_colour_of_their_own(show: Show, scheme: str) -> None:
    run = recorded_document(truth_set(gpu=True), "item_each", RECORDINGS / "item_each")
    assert run.trace is not None
    made = run.trace.timeline
    assert made is not None
    waits = [
        (number, place)
        for number, lane in enumerate(made.lanes)
        for place, label in enumerate(lane.labels)
        if lane.kind == "calls" and made.labels[label].kind == "wait"
    ]
    ((number, place),) = waits  # of `loss.item()`
    page = show(run, color_scheme=scheme).page
    assert "waits for the GPU" in page.locator(".timeline-key").first.all_inner_texts()[0]
    share = made.lanes[number].lengths[place] / 1e9 / made.seconds
    assert made.labels[made.lanes[number].labels[place]].name == "cudaStreamSynchronize"
    drawn = [length for colour, length in lengths(page, number) if colour == page.evaluate(WAIT_COLOUR)]
    assert drawn == [pytest.approx(share, abs=0.002)]
    middle = (made.lanes[number].starts[place] + made.lanes[number].lengths[place] / 2) / 1e9 / made.seconds
    page.mouse.move(*at(page, number, middle))
    assert page.locator(".timeline-tip").first.text_content().startswith("cudaStreamSynchronize: 8.35 µs")


@pytest.mark.thorough
def test_a_recorded_step_is_drawn_as_it_was(show: Show) -> None:
    run = report_as_run(recognise_format(GPT).read(GPT), GPT)  # type: ignore[union-attr]
    assert run.trace is not None
    made = run.trace.timeline
    assert made is not None
    page = show(run).page
    for number, lane in enumerate(made.lanes):
        if lane.kind in ("kernels", "range"):
            drawn = page.evaluate(COLUMNS, number)
            empty = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--raised')")
            colour = ",".join(str(int(empty.strip()[n : n + 2], 16)) for n in (1, 3, 5))
            filled = sum(count for found, count in drawn if found != colour)
            covered = sum(lane.lengths) / 1e9 / made.seconds
            # A mark is at least one column of pixels, so that lanes of short ones look fuller than they are.
            assert filled / sum(count for _, count in drawn) == pytest.approx(covered, abs=0.2)
