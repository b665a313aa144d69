"""A real browser for the tests of pages: the chromium or chrome that is here, driven by playwright, never fetched."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
NAMES += ("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",)


def executable() -> str | None:
    """The browser: that of PROFKIT_BROWSER, else the first of PATH."""
    wanted = os.environ.get("PROFKIT_BROWSER")
    return shutil.which(wanted) if wanted else next(filter(None, map(shutil.which, NAMES)), None)


def why_not() -> str | None:
    """Why no page can be looked at here; None where one can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed (./setup.sh --dev)"
    if executable() is None:
        return f"no browser is here: none of {', '.join(NAMES)}"
    driver = subprocess.run(
        [sys.executable, "-m", "playwright", "--version"], capture_output=True, text=True, check=False
    )
    return (
        None
        if driver.returncode == 0
        else f"the browser's driver does not start: {_last_line(driver.stderr)}"
    )


def _last_line(text: str) -> str:
    """Without the folder of a program: `node: error while loading shared libraries: libatomic.so.1`."""
    lines = text.strip().splitlines() or ["it said nothing"]
    return re.sub(r"^\S*/", "", lines[-1])


@contextlib.contextmanager
def started() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


SIZE = {"width": 1280, "height": 720}  # of a page for which nothing else is said: playwright's


@dataclass
class Visit:
    """One page that is open, and what it did beside being shown."""

    page: Any
    path: Path
    requests: list[str] = field(default_factory=list)  # but for the page itself
    said: list[str] = field(default_factory=list)  # in the console, errors among it, and dialogs

    def is_quiet(self) -> None:
        """Nothing was asked of anybody, and nothing went wrong."""
        assert self.requests == []
        assert self.said == []


# One open page for each kind of context: a new context costs the browser more than the page that is shown in it.
_pages: dict[tuple[Any, str], Any] = {}


@contextlib.contextmanager
def visit(browser: Any, path: Path, *, within: Path | None = None, **context: Any) -> Iterator[Visit]:
    """The page at `path`, in a browser that has kept nothing of other pages; at the end it must have been quiet.

    It may ask for files of the folder `within`, and for nothing else.
    """
    key = (browser, repr(sorted(context.items())))
    page = _pages.pop(key, None) or browser.new_context(**context).new_page()
    page.set_default_timeout(20_000)  # a machine of two cores that is busy
    made = Visit(page, path)
    own = path.as_uri()
    allowed = f"{within.as_uri()}/" if within is not None else f"{own}#"

    def refuse(dialog: Any) -> None:
        made.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def asked(request: Any) -> None:
        if request.url.split("#")[0] != own and not request.url.startswith(allowed):
            made.requests.append(request.url)

    def stopped(request: Any) -> None:
        if request.failure == "csp" and request.url in made.requests:
            made.requests.remove(request.url)

    listeners = {
        "request": asked,
        # What the policy stopped was told to playwright, and never sent.
        "requestfailed": stopped,
        "console": lambda line: made.said.append(f"{line.type}: {line.text}"),
        "pageerror": lambda error: made.said.append(f"error: {error}"),
        "dialog": refuse,
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        page.goto(own)
        yield made
        made.is_quiet()
        page.evaluate("localStorage.clear()")
    except BaseException:
        page.context.close()
        raise
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    page.emulate_media(media="null", color_scheme=context.get("color_scheme", "light"))
    if page.viewport_size != (size := context.get("viewport", SIZE)):
        page.set_viewport_size(size)
    page.goto("about:blank")
    _pages[key] = page


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests; they are skipped, with the reason, where there is none."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with started() as made:
        yield made
