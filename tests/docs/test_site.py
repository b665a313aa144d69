"""The site of docs/: it builds without a warning, has every page in its navigation, and asks nothing of other hosts."""

from __future__ import annotations

import fcntl
import inspect
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import profkit
from tests import schemas
from tests.conftest import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))
# What a browser fetches without being asked to; a link that waits for a click is none.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc\s*=\s*["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b[^>]*?\bhref\s*=\s*["']?(?:https?:)?//[^"'\s>]+""",
    re.IGNORECASE,
)
FETCHED_BY_STYLE = re.compile(r"""@import|url\(\s*["']?(?:https?:)?//[^)]+""", re.IGNORECASE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, one for all workers. Whatever mkdocs warns of (a dead link, a page left out) is an error."""
    if find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed (extra docs)")
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "site" / "index.html").is_file():
            _build(shared / "site")
    return shared / "site"


def _build(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_stands_in_the_navigation_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r": (\S+\.md)$", nav, re.MULTILINE)
    left_out = sorted({page.name for page in PAGES} - set(named))
    assert left_out == [], f"add these to nav: in mkdocs.yml, where a reader would look for them: {left_out}"
    assert sorted(named) == sorted(set(named))


@pytest.mark.thorough
def test_the_site_builds_and_every_page_is_in_it(site: Path) -> None:
    assert [page.stem for page in PAGES if not (site / f"{page.stem}.html").is_file()] == []


def test_the_site_publishes_the_schemas_of_the_documents(site: Path) -> None:
    published = {path.name: json.loads(path.read_text()) for path in (site / "schema").iterdir()}
    assert len(published) == len(schemas.ALL)
    for schema in schemas.ALL:
        assert published[f"{schema.__name__}.schema.json"] == schema()
        jsonschema.Draft202012Validator.check_schema(schema())


def test_the_page_of_the_api_has_all_that_profkit_offers(site: Path) -> None:
    """`load_ipython_extension` is called by IPython, and by nobody else."""
    text = re.sub(r"<[^>]+>", "", (site / "api.html").read_text(encoding="utf-8"))
    for name in sorted({*profkit._LAZY} - {"load_ipython_extension"}):
        assert f"profkit.{name}" in text, name
        docstring = inspect.getdoc(getattr(profkit, name)) or ""
        assert docstring.partition("\n")[0].partition("`")[0].strip() in text, name


def test_tables_and_code_are_what_they_are_in_the_repository(site: Path) -> None:
    """Markdown has dialects: what GitHub shows as a table or a block must be one here, too."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        tables = len(re.findall(r"^\|(?: ?:?-+:? ?\|)+$", text, re.MULTILINE))
        html = (site / f"{page.stem}.html").read_text(encoding="utf-8")
        body = html.partition("<article")[2].partition("</article>")[0]
        assert body.count("<table>") == tables, page.name
        assert not re.search(r"^(?:\||```)", re.sub(r"<[^>]+>", "", body), re.MULTILINE), page.name


def test_no_page_and_no_style_names_another_host_to_fetch_from(site: Path) -> None:
    found = [
        (path.name, match)
        for path in site.rglob("*")
        if path.suffix in (".html", ".css")
        for match in (FETCHED if path.suffix == ".html" else FETCHED_BY_STYLE).findall(
            path.read_text(encoding="utf-8")
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://unpkg.com/x"></script>',
        "<link rel=stylesheet href=//fonts.example/css>",
        "<img alt='' src='http://a.example/b.png'>",
    ],
)
def test_what_is_fetched_from_elsewhere_is_seen(text: str) -> None:
    assert FETCHED.search(text)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.thorough
def test_a_browser_asks_nobody_else_and_the_search_finds(browser: Any, address: str) -> None:
    asked: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.on("request", lambda request: asked.append(request.url))
    for name in ("index", "cuda", "metrics"):
        page.goto(f"{address}{name}.html")
    page.goto(f"{address}index.html")
    page.focus("input[name=query]")
    page.keyboard.type("ERR_NVGPUCTRPERM")
    page.wait_for_selector(".md-search-result__link[href*=troubleshooting]")
    context.close()
    assert [url for url in asked if not url.startswith((address, "data:", f"blob:{address}"))] == []


@pytest.mark.thorough
def test_names_in_tables_are_not_broken_within_a_word(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{address}metrics.html")
    broken = page.evaluate(
        "[...document.querySelectorAll('td:first-child code')].filter(one => one.getClientRects().length > 1).length"
    )
    page.close()
    assert broken == 0
