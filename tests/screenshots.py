"""The pictures of docs/: pages of real runs, as a browser shows them.

    python -m tests.screenshots [KIND=PAGE.html...]

Without a page those of the recordings of tests/answers/gpu are taken, which are real runs on an H100. KIND is that of a
shot below; the pages are those that `profkit profile`, `nightly`, `report --format html` and `history site` write. What
is shown of a page, in which colours, stands in SHOTS. Pictures go to docs/images/, below 150 kB.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from profkit.reporting.html.page import render
from profkit.reporting.view import View
from profkit.reporting.views import run
from profkit.reporting.views.run_account import account_section
from tests.answers.gpu.recordings import RECORDINGS
from tests.answers.trial import recorded_document, truth_set
from tests.browser import started, why_not
from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "images"
MAX_BYTES = 150_000  # bytes of a picture


@dataclass(frozen=True)
class Shot:
    """One picture: of which run, what of its page, after which script, how wide and in which colours."""

    name: str
    run: str  # a recording, "bars" and "more-bars" of several, or the kind of a page that is named
    what: str | None  # a selector; None: the top of the page
    script: str = ""
    width: int = 1100
    height: int = 780
    scheme: str = "light"


SHOTS = (
    Shot("report-top", "odd_vocabulary", None),
    Shot("report-top-dark", "odd_vocabulary", None, scheme="dark"),
    Shot(
        "report-source",
        "odd_vocabulary",
        "#targets .scroll",
        "{ const a = document.querySelectorAll('#targets td a.n')[3]; a.blur(); a.focus(); }",
        height=480,
    ),
    Shot("report-roofline", "item_each", "#roofline", width=900),
    Shot("report-bars", "bars", "main", width=700, height=1250),
    Shot("report-bars-more", "more-bars", "main", width=700, height=1250),
    Shot("report-flame", "cpu", "#flame-graph"),
    Shot("report-timeline", "item_each", "#timeline"),
    Shot("report-memory", "memory", "#memory-over-time", width=900),
    Shot("report-phone", "odd_vocabulary", None, width=360, height=720, scheme="dark"),
    Shot("night", "night", None, height=760),
    Shot("sweep-top", "sweep", None, height=640),
    Shot("site-overview", "overview", None, width=1280, height=760),
    Shot("site-workload", "overview", "#gated-mlp", width=1280, height=760),
    Shot("pull-request", "pull-request", "article", width=900, height=700),
)


# What a step looks like that is near its limits, waits for its host, moves too much, or computes in a slow type.
BARS = (
    "fp32_training", "odd_vocabulary", "adam_each", "item_each", "jax_steps", "palette", "graph_heat", "plasma_push",
    "storyteller", "few_blocks",
)  # fmt: skip


def recorded_pages(folder: Path) -> dict[str, Path]:
    """The pages of the recordings that are shown, and two with the bars of five each."""
    truths = truth_set(gpu=True)
    shown = {name: recorded_document(truths, name, RECORDINGS / name) for name in BARS}
    wanted = {shot.run for shot in SHOTS} & set(shown)
    views = {name: run.view(shown[name]) for name in wanted}
    sections = []
    for name, document in shown.items():
        section = account_section(document)
        assert section is not None
        sections.append(replace(section, title=name, anchor=f"of-{name}"))
    half = len(sections) // 2
    views["bars"], views["more-bars"] = (
        View("Five steps", tuple(sections[:half])),
        View("Five more", tuple(sections[half:])),
    )
    pages = {name: folder / f"{name}.html" for name in views}
    for name, view in views.items():
        pages[name].write_text(render(view, inline=name.endswith("bars")), encoding="utf-8")
    return pages


def take(browser: Any, shot: Shot, page_of: dict[str, Path]) -> Path | None:
    """Take one picture; None where this run's page has no such part."""
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme=shot.scheme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(page_of[shot.run].as_uri())
    target = FOLDER / f"{shot.name}.png"
    if shot.what is not None and page.locator(shot.what).count() == 0:
        return None
    if shot.what is not None:
        page.locator(shot.what).first.scroll_into_view_if_needed()
    if shot.script:
        page.evaluate(shot.script)
        page.wait_for_timeout(50)
    if shot.what is None:
        page.screenshot(path=target)
    else:
        box = page.locator(shot.what).first.bounding_box()
        assert box is not None
        page.set_viewport_size({"width": shot.width, "height": min(shot.height, int(box["height"]) + 60)})
        page.wait_for_timeout(100)  # the page hears of its new size, and hides what hovers
        page.evaluate("what => document.querySelector(what).scrollIntoView()", shot.what)
        if shot.script:
            page.evaluate(shot.script)
            page.wait_for_timeout(50)
        page.screenshot(path=target)
    context.close()
    return target


def main() -> None:
    """Take all of them; exit 1 where one is too large."""
    page_of = {kind: Path(page).resolve() for kind, _, page in (word.partition("=") for word in sys.argv[1:])}
    if not all(page.is_file() for page in page_of.values()):
        sys.exit(__doc__)
    reason = why_not()
    if reason is not None:
        sys.exit(reason)
    FOLDER.mkdir(exist_ok=True)
    too_large = False
    with TemporaryDirectory() as folder, started() as browser:
        page_of = page_of or recorded_pages(Path(folder))
        for shot in (one for one in SHOTS if one.run in page_of):
            target = take(browser, shot, page_of)
            if target is None:
                print(f"{shot.name}: the page of this {shot.run} run has no {shot.what}")
                continue
            size = target.stat().st_size
            too_large |= size > MAX_BYTES
            print(f"{target.relative_to(ROOT)}: {size / 1000:.0f} kB")
    sys.exit(1 if too_large else 0)


if __name__ == "__main__":
    main()
