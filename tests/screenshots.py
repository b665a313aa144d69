"""The pictures of docs/: pages of recorded and of small real runs, as a browser shows them.

    python -m tests.screenshots [NAME...] [KIND=PAGE.html...]

Makes every picture of docs/images, or those of these names; in some minutes, since it profiles programs, lives through
two nights and compares two versions. With KIND=PAGE.html the pictures of that kind are taken of another page. What
is shown of a page, in which colours, stands in SHOTS; which page a kind is, in tests/pictured/pages.py. A picture is
below 150 kB, and shows no name of this machine. Exit code 1 where one cannot be made; it says why.
"""

from __future__ import annotations

import getpass
import re
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests import jupyter
from tests.browser import started, why_not
from tests.conftest import ROOT
from tests.pictured.pages import MAKERS, NotHere, Pages

FOLDER = ROOT / "docs" / "images"
MOST = 150_000  # bytes of a picture
# The texts whose first line of boxes meets the window; those of closed parts have none.
SHOWN = """() => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
    while (walk.nextNode()) {
        const range = document.createRange();
        range.selectNodeContents(walk.currentNode);
        const box = range.getBoundingClientRect();
        if (box.width && box.bottom > 0 && box.top < innerHeight) found.push(walk.currentNode.data);
    }
    return found.join(" ");
}"""
# The release of a kernel may say whose it is.
HIDE = r"""() => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode())
        walk.currentNode.data = walk.currentNode.data.replace(/\b(Linux \d+\.\d+)[\w.+-]*/g, "$1");
}"""


def ran(page: Any) -> None:
    """Run the cells of a notebook, and wait for the page below the last one."""
    jupyter.run_all(page)
    page.frame_locator("iframe[srcdoc]").locator("#to-do, main").first.wait_for(timeout=60_000)
    page.wait_for_timeout(1000)
    page.evaluate("document.querySelector('.Toastify')?.remove()")


@dataclass(frozen=True)
class Shot:
    """One picture: of which page, what of it, after which script, how wide and in which colours."""

    name: str
    run: str  # a kind of pages.MAKERS
    what: str | None  # a selector; None: the top of the page
    script: str = ""
    width: int = 1100
    height: int = 780
    scheme: str = "light"
    ready: Callable[[Any], None] | None = None  # what the page does before
    alone: bool = False  # that part as it stands in its window, and nothing beside it


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
    Shot("report-bars", "bars", "main", width=700, height=1330),
    Shot("report-bars-more", "more-bars", "main", width=700, height=1330),
    Shot("report-flame", "cpu", "#flame-graph"),
    Shot("report-timeline", "item_each", "#timeline"),
    Shot("report-memory", "memory", "#memory-over-time", width=900),
    Shot("report-phone", "odd_vocabulary", None, width=360, height=720, scheme="dark"),
    Shot("night", "night", None, height=760),
    Shot("sweep-top", "sweep", None, height=900),
    Shot("site-overview", "overview", None, width=1280, height=760),
    Shot("site-workload", "overview", "#gated-mlp", width=1280, height=760),
    Shot(
        "notebook", "notebook", ".jp-Notebook", width=1180, height=1130, scheme="null", ready=ran, alone=True
    ),
    Shot("pull-request", "pull-request", "article", width=900, height=700),
)


def take(browser: Any, shot: Shot, address: str) -> Path:
    """Take one picture. Raises LookupError where the page has no such part, ValueError where a name is to be seen."""
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme=shot.scheme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(address)
    if shot.ready is not None:
        shot.ready(page)
    for frame in page.frames:
        frame.evaluate(HIDE)
    if shot.what is not None and not shot.alone:
        _show(page, shot)
    elif shot.script:
        _run(page, shot.script)
    if named := names_shown(page):
        raise ValueError(f"shows {', '.join(named)}")
    target = FOLDER / f"{shot.name}.png"
    (page.locator(shot.what).first if shot.alone else page).screenshot(path=target)
    context.close()
    return target


def _show(page: Any, shot: Shot) -> None:
    """Bring a part to the top of a window that is as high as it is, within what the shot allows."""
    if page.locator(shot.what).count() == 0:
        raise LookupError(f"this page has no {shot.what}")
    page.locator(shot.what).first.scroll_into_view_if_needed()
    if shot.script:
        _run(page, shot.script)
    box = page.locator(shot.what).first.bounding_box()
    assert box is not None
    page.set_viewport_size({"width": shot.width, "height": min(shot.height, int(box["height"]) + 60)})
    page.wait_for_timeout(100)  # the page hears of its new size, and hides what hovers
    page.evaluate("what => document.querySelector(what).scrollIntoView()", shot.what)
    if shot.script:
        _run(page, shot.script)


def _run(page: Any, script: str) -> None:
    page.evaluate(script)
    page.wait_for_timeout(50)


def names_shown(page: Any) -> list[str]:
    """Return what of the window names this machine, its user or its folders, each once."""
    text = " ".join(frame.evaluate(SHOWN) for frame in page.frames)
    return [word for word in own_names() if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)]


def own_names() -> set[str]:
    """Return the names of this machine, of its user (root is nobody's) and the folders that are nobody's business."""
    names = {socket.gethostname(), getpass.getuser(), str(ROOT), str(Path.home()), sys.prefix}
    with TemporaryDirectory() as folder:
        names.add(str(Path(folder).parent))
    return names - {"root", "localhost", "/", ""}


def main() -> None:
    """Take all of them, or those that are named; exit 1 where one is missing or too large."""
    given = {kind: Path(page).resolve() for kind, mark, page in map(_parted, sys.argv[1:]) if mark}
    names = {word for word in sys.argv[1:] if "=" not in word}
    wrong = names - {shot.name for shot in SHOTS} or given.keys() - MAKERS.keys()
    if wrong or not all(page.is_file() for page in given.values()):
        sys.exit(__doc__)
    if (reason := why_not()) is not None:
        sys.exit(reason)
    FOLDER.mkdir(exist_ok=True)
    wanted = [
        shot for shot in SHOTS if (shot.run in given or not given) and (shot.name in names or not names)
    ]
    missing = 0
    with TemporaryDirectory() as folder, ExitStack() as stop, started() as browser:
        pages = Pages(Path(folder), stop)
        for shot in wanted:
            try:
                address = given[shot.run].as_uri() if given else pages.of(shot.run)
                target = take(browser, shot, address)
            except (NotHere, LookupError, ValueError) as error:
                print(f"{shot.name}: not made: {error}", flush=True)
                missing += 1
                continue
            size = target.stat().st_size
            missing += size > MOST
            large = f", more than {MOST / 1000:.0f} kB" if size > MOST else ""
            print(f"{target.relative_to(ROOT)}: {size / 1000:.0f} kB{large}", flush=True)
    sys.exit(1 if missing else 0)


def _parted(word: str) -> tuple[str, str, str]:
    return word.partition("=")


if __name__ == "__main__":
    main()
