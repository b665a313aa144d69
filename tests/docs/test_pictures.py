"""The pictures of the docs are those that one command makes; a page shows each, and none names a machine."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests import screenshots
from tests.browser import visit
from tests.conftest import ROOT
from tests.pictured.pages import BARS, MAKERS

NAMES = {shot.name for shot in screenshots.SHOTS}
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


def test_each_picture_is_made_by_the_command_and_it_makes_no_other() -> None:
    assert {path.stem for path in screenshots.FOLDER.iterdir()} == NAMES
    assert len(NAMES) == len(screenshots.SHOTS)
    assert {shot.run for shot in screenshots.SHOTS} == MAKERS.keys()


def test_each_picture_is_shown_by_a_page_and_small_enough_for_it() -> None:
    shown = {name for page in PAGES for name in re.findall(r"images/([\w-]+)\.png", page.read_text())}
    assert shown <= NAMES
    # The dark one and the telephone's are looked at beside the light one, and stand on no page.
    assert NAMES - shown <= {"report-top-dark", "report-phone"}
    assert all(path.stat().st_size <= screenshots.MOST for path in screenshots.FOLDER.iterdir())


def test_no_bar_is_of_a_recording_that_was_cut_while_its_program_began() -> None:
    """XLA compiles and tunes between the first kernels: what was kept of such a run is no step of it."""
    assert not [name for name in BARS if name.startswith("jax")]


@pytest.mark.thorough
def test_a_name_of_this_machine_is_seen_in_the_window_and_not_below_it(browser: Any, tmp_path: Path) -> None:
    host = socket.gethostname()
    page = tmp_path / "page.html"
    text = "<!doctype html><meta charset=utf-8><title>x</title><p>{}</p><div style='height:3000px'></div><p>{}</p>"
    for above, below, named in ((f"on {host}.", "", [host]), ("", f"on {host}.", []), (f"x{host}x", "", [])):
        page.write_text(text.format(above, below))
        with visit(browser, page) as opened:
            assert screenshots.names_shown(opened.page) == named


def test_the_release_of_a_kernel_is_not_shown(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><title>x</title><p>a virtual machine, Linux 6.18.44-ours-7.x86_64, 2 cores</p>"
    )
    with visit(browser, page) as opened:
        opened.page.evaluate(screenshots.HIDE)
        assert opened.page.inner_text("p") == "a virtual machine, Linux 6.18, 2 cores"


def test_a_picture_that_shows_a_name_is_not_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(screenshots, "FOLDER", tmp_path)
    monkeypatch.setattr(screenshots, "names_shown", lambda _: ["ours"])
    browser, shot = Mock(), screenshots.Shot("night", "night", None)
    browser.new_context.return_value.new_page.return_value.frames = []
    with pytest.raises(ValueError, match="ours"):
        screenshots.take(browser, shot, "file:///night.html")
    assert list(tmp_path.iterdir()) == []
    browser.new_context.return_value.new_page.return_value.screenshot.assert_not_called()
