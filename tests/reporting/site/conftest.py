"""A site of a history that the store wrote, in a real browser."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import HistorySummary
from profkit.regression.history import open_history
from profkit.regression.trends import summarize_history
from profkit.reporting.site.folder import prepare_folder, run_links, write_site
from profkit.reporting.site.pages import SiteOptions, site_files
from tests.browser import Visit, visit
from tests.reporting.site.histories import write_history

COMMITS = "https://example.org/code/commit/{commit}"
Open = Callable[..., Visit]


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a year of six workloads."""
    return write_history(tmp_path_factory.mktemp("site history") / "history.sqlite")


@pytest.fixture(scope="session")
def summary(history: Path) -> HistorySummary:
    """What its pages are made of."""
    with open_history(history, read_only=True) as store:
        return summarize_history(store)


def write(folder: Path, summary: HistorySummary, title: str = "Kernels, night by night") -> Path:
    """The site of a summary, as the command writes it."""
    made = prepare_folder(folder)
    write_site(made, site_files(summary, SiteOptions(title, COMMITS, run_links(made))))
    return folder


@pytest.fixture(scope="session")
def site(summary: HistorySummary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, in a folder whose name has a space."""
    return write(tmp_path_factory.mktemp("site") / "all pages", summary)


@pytest.fixture
def open_page(browser: Any, site: Path) -> Iterator[Open]:
    """Opens a page; at the test's end it must have asked for its own files only, and complained of nothing."""
    with contextlib.ExitStack() as opened:

        def one(name: str, folder: Path = site, **context: Any) -> Visit:
            return opened.enter_context(visit(browser, folder / name, within=folder, **context))

        yield one


def workload_page(site: Path, begin: str) -> str:
    """The name of the page of the workload that is called so."""
    (found,) = (site / "workload").glob(f"{begin}*.html")
    return f"workload/{found.name}"
