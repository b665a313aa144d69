"""The page of metrics is what the catalogue says."""

from __future__ import annotations

from profkit.analysis.metrics import all_metrics
from tests import metrics_page


def test_the_page_is_what_the_catalogue_says() -> None:
    """When this fails, the catalogue or a formula changed: run `python -m tests.metrics_page`."""
    assert metrics_page.PAGE.read_text(encoding="utf-8") == metrics_page.text()


def test_every_metric_stands_on_the_page_once() -> None:
    page = metrics_page.text()
    assert [info.name for info in all_metrics() if page.count(f"`{info.name}`") != 1] == []
