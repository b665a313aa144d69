"""Pages of real and of made-up runs in a real browser."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import RunDocument
from profkit.profiling.summarize import summarize_report
from profkit.reporting.views.run_about import Extras
from tests.answers.gpu.recordings import RECORDINGS
from tests.answers.trial import recorded_document, truth_set
from tests.browser import Visit, visit
from tests.conftest import ROOT
from tests.reporting.shown import run_page as render

GPU_REPORT = ROOT / "tests" / "data" / "cuda" / "ncu" / "truths.full.ncu-rep"
Show = Callable[..., Visit]


@pytest.fixture(scope="session")
def gpu_document() -> RunDocument:
    """Twelve kernels that were counted on an H200."""
    return summarize_report(GPU_REPORT)


@pytest.fixture(scope="session")
def gpu_answer() -> RunDocument:
    """A recorded run on a GPU with an account, findings and targets."""
    return recorded_document(truth_set(gpu=True), "odd_vocabulary", RECORDINGS / "odd_vocabulary")


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Show]:
    """Opens the page of a document; at the test's end it must have asked nothing and complained of nothing."""
    with contextlib.ExitStack() as opened:

        def one(document: RunDocument, extras: Extras | None = None, **context: Any) -> Visit:
            path = tmp_path / "report.html"
            path.write_text(render(document, extras), encoding="utf-8")
            return opened.enter_context(visit(browser, path, **context))

        yield one
