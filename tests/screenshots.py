"""The pictures of docs/: pages of real runs, as a browser shows them.

    python -m tests.screenshots GPU_RUN CPU_RUN [NIGHT]
    python -m tests.screenshots mac
    python -m tests.screenshots sweep SWEEP
    python -m tests.screenshots site
    python -m tests.screenshots pull-request FOLDER

Each run is a folder that `profkit profile` left, the night one that `profkit nightly` did, the sweep one that
`profkit sweep` did, FOLDER one of `profkit compare --output`, whose report.md is shown as a comment; `mac` takes those
of the recorded exports of an M1 alone, `site` those of a made-up history. What is shown of a page, in which colours,
stands in SHOTS. Pictures go to docs/images/, each below 150 kB; the runs themselves are not kept.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profkit.core.types import HistorySummary
from profkit.kernels.sweep.request import read_sweep
from profkit.profiling.summarize import summarize_report
from profkit.regression.history import open_history
from profkit.regression.trends import summarize_history
from profkit.reporting.extras import read_extras
from profkit.reporting.html import page
from profkit.reporting.site import prepare_folder, site_files, write_site
from profkit.reporting.views.kernels.sweep import view as sweep_view
from tests.browser import started, why_not
from tests.conftest import ROOT
from tests.reporting.shown import run_page as render
from tests.reporting.site_histories import write_history

FOLDER = ROOT / "docs" / "images"
MAC = ROOT / "tests" / "data" / "xctrace" / "m1"  # of the Mac there is a recording, and no run
MOST = 150_000  # bytes of a picture


@dataclass(frozen=True)
class Shot:
    """One picture: of which run, what of its page, after which script, how wide and in which colours."""

    name: str
    run: str  # "gpu", "cpu", "night", "mac", "sweep", "overview", "workload" or "pull-request"
    what: str | None  # a selector; None: the top of the page
    script: str = ""
    width: int = 1100
    height: int = 780
    scheme: str = "light"


SHOTS = (
    Shot("report-top", "gpu", None),
    Shot("report-top-dark", "gpu", None, scheme="dark"),
    Shot(
        "report-source",
        "gpu",
        "#verdicts .scroll",
        "{ const a = document.querySelectorAll('#verdicts td a.n')[0]; a.blur(); a.focus(); }",
        height=480,
    ),
    Shot("report-roofline", "gpu", "#roofline", height=900),
    Shot("report-flame", "cpu", "#flame-graph"),
    Shot("report-phone", "gpu", None, width=360, height=720, scheme="dark"),
    Shot("night", "night", None, height=760),
    Shot("sweep-top", "sweep", None, height=640),
    Shot(
        "sweep-map",
        "sweep",
        "#panel-0 .charts",
        height=740,
    ),
    Shot("site-overview", "overview", None, width=1280, height=760),
    Shot("site-workload", "workload", None, width=1280, height=760),
    Shot("pull-request", "pull-request", "article", width=900, height=700),
)


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
        page.evaluate("what => document.querySelector(what).scrollIntoView()", shot.what)
        if shot.script:
            page.evaluate(shot.script)
            page.wait_for_timeout(50)
        page.screenshot(path=target)
    context.close()
    return target


def site_pages(folder: Path) -> dict[str, Path]:
    """Two pages of the workloads of a made-up history whose names are usual ones."""
    with open_history(write_history(folder / "history.sqlite"), read_only=True) as history:
        found = summarize_history(history)
    names = ("gated_mlp", "attention forward", "layer norm")
    series = tuple(one for one in found.series if one.trend.series.key.workload in names)
    entries = tuple(entry for entry in found.entries if entry.workload in names)
    made = prepare_folder(folder / "site")
    write_site(made, site_files(HistorySummary(series, entries), made, "Kernels, night by night"))
    return {"overview": made / "index.html", "workload": made / "workload-gated_mlp.html"}


COMMENT_STYLE = """body{margin:20px;font:14px/1.5 sans-serif;color:#1f2328}
article{border:1px solid #d1d9e0;border-radius:6px;padding:0 16px 16px}
h2{font-size:1.5em;border-bottom:1px solid #d1d9e0;padding-bottom:.3em}h3{font-size:1.25em}
table{border-collapse:collapse}td,th{border:1px solid #d1d9e0;padding:6px 13px}"""


def comment_page(report: Path) -> str:
    """A comment much as a forge shows it."""
    import markdown  # mkdocs has it

    body = markdown.markdown(
        report.read_text(encoding="utf-8"), extensions=["tables", "md_in_html", "fenced_code"]
    )
    return f"<!doctype html><meta charset='utf-8'><style>{COMMENT_STYLE}</style><article>{body}</article>"


def main() -> None:
    """Take all of them; exit 1 where one is too large."""
    mac = sys.argv[1:] == ["mac"]
    of_sweep = sys.argv[1:2] == ["sweep"] and len(sys.argv) == 3
    site = sys.argv[1:] == ["site"]
    comment = sys.argv[1:2] == ["pull-request"] and len(sys.argv) == 3
    if len(sys.argv) not in (3, 4) and not mac and not site:
        sys.exit(__doc__)
    reason = why_not()
    if reason is not None:
        sys.exit(reason)
    FOLDER.mkdir(exist_ok=True)
    too_large = False
    with tempfile.TemporaryDirectory() as folder, started() as browser:
        page_of: dict[str, Path] = {}
        runs = (
            {}
            if site
            else {"mac": MAC}
            if mac
            else dict(zip(("gpu", "cpu"), map(Path, sys.argv[1:3]), strict=True))
        )
        if of_sweep:
            runs, page_of["sweep"] = {}, Path(folder, "sweep.html")
            page_of["sweep"].write_text(
                page.render(sweep_view(read_sweep(Path(sys.argv[2])))), encoding="utf-8"
            )
        if site:
            page_of = site_pages(Path(folder))
        if comment:
            runs, page_of["pull-request"] = {}, Path(folder, "comment.html")
            page_of["pull-request"].write_text(
                comment_page(Path(sys.argv[2]) / "report.md"), encoding="utf-8"
            )
        for kind, run in runs.items():
            document = summarize_report(run)
            page_of[kind] = Path(folder, f"{kind}.html")
            page_of[kind].write_text(render(document, read_extras(run)), encoding="utf-8")
        if len(sys.argv) == 4:
            page_of["night"] = Path(sys.argv[3]).resolve() / "report.html"
        for shot in (one for one in SHOTS if one.run in page_of):
            target = take(browser, shot, page_of)
            if target is None:
                print(f"{shot.name}: the page of this {shot.run} run has no {shot.what}")
                continue
            size = target.stat().st_size
            too_large |= size > MOST
            print(f"{target.relative_to(ROOT)}: {size / 1000:.0f} kB")
    sys.exit(1 if too_large else 0)


if __name__ == "__main__":
    main()
