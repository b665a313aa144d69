"""The page of a history: as somebody reads it, and written into a folder of its own, never through a link."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import MachineError
from profkit.core.files import safe_folder
from profkit.core.types import Entry, Trend
from profkit.regression.history import open_history
from profkit.regression.trends import gating_metrics, trends_of
from profkit.reporting.site import prepare_folder, site_page, write_site
from tests.browser import visit
from tests.reporting.site_histories import HOSTILE, UNICODE, commit_of, day, write_history

SHOWN_HOSTILE = HOSTILE.replace("\u2028", "\ufffd")


Known = tuple[tuple[Trend, ...], tuple[Entry, ...]]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """Half a year of six workloads."""
    history = write_history(tmp_path_factory.mktemp("site history") / "history.sqlite")
    with open_history(history, read_only=True) as store:
        return trends_of(store, ("*:*",)), store.entries()


def write(folder: Path, known: Known) -> Path:
    """The site of a history, as the command writes it."""
    made = prepare_folder(folder)
    write_site(made, site_page(*known, gating_metrics()))
    return folder


@pytest.fixture(scope="module")
def site(known: Known, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, in a folder whose name has a space."""
    return write(tmp_path_factory.mktemp("site") / "all pages", known)


def texts(page: Any, selector: str) -> list[str]:
    return [re.sub(r"\s+", " ", text).strip() for text in page.locator(selector).all_inner_texts()]


# ---------------------------------------------------------------- as somebody reads them


@pytest.mark.thorough
def test_the_first_page_has_the_newest_changes_first_and_each_workload(browser: Any, site: Path) -> None:
    with visit(browser, site / "index.html", within=site) as opened:
        page = opened.page
        changes = texts(page, "#what-changed-lately li")
        title = "gated_mlp time.median (region gated_mlp) on cuda"
        assert any(
            row.startswith(title) and f"{day(168)}: " in row and "worse" in row and commit_of(168)[:12] in row
            for row in changes
        )
        days = [match[0] for row in changes if (match := re.search(r"2026-\d\d-\d\d", row))]
        assert days == sorted(days, reverse=True)
        rows = texts(page, "#workloads tbody tr")
        assert re.search(r" regressed$", next(text for text in rows if text.startswith("gated_mlp ")))
        assert "exit code 1" in next(text for text in rows if text.startswith("failed"))
        assert SHOWN_HOSTILE in page.locator("main").inner_text()
        assert UNICODE in texts(page, "h2")
        (first,) = texts(page, "#gated-mlp")
        assert "a new segment begins: another machine" in first
        assert re.search(rf"▲ {day(168)}: .* worse .*commit {commit_of(168)[:12]}", first)
        assert page.locator("main b", has_text=re.compile("^bold$")).count() == 0
        assert page.evaluate("window.hurt") is None
        for width in (320, 1400):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_empty_history_says_how_to_fill_it(tmp_path: Path) -> None:
    text = (write(tmp_path / "empty", ((), ())) / "index.html").read_text()
    assert "No run is stored yet: " in text
    assert "profkit history add reports/*/" in text


# ---------------------------------------------------------------- written


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_site_is_replaced_and_what_is_not_ours_stays(known: Known, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "CNAME").write_text("example.org")  # a checkout for publishing counts as empty
    folder = write(tmp_path / "site", known)
    (folder / "Notes of mine.txt").write_text("mine")
    before = files_of(folder)
    write(folder, known)
    assert files_of(folder) == before
    write(folder, ((), ()))
    assert "No run is stored yet" in (folder / "index.html").read_text()
    assert (folder / "CNAME").read_text() == "example.org"
    assert (folder / "Notes of mine.txt").read_text() == "mine"


def test_a_link_in_place_of_a_page_is_replaced_and_not_followed(known: Known, tmp_path: Path) -> None:
    folder, other = write(tmp_path / "site", known), tmp_path / "secret"
    other.write_text("not yours")
    (folder / "index.html").unlink()
    (folder / "index.html").symlink_to(other)
    write(folder, known)
    assert other.read_text() == "not yours"
    assert not (folder / "index.html").is_symlink()


def test_a_folder_that_is_exchanged_for_a_link_is_not_written_into(known: Known, tmp_path: Path) -> None:
    folder, other = write(tmp_path / "site", known), tmp_path / "other"
    other.mkdir()
    made = prepare_folder(folder)
    folder.rename(tmp_path / "moved")
    folder.symlink_to(other)
    with pytest.raises(MachineError, match="a link has taken its place"):
        write_site(made, site_page(*known, ()))
    assert files_of(other) == {}
    safe_folder._made.pop(str(made))
