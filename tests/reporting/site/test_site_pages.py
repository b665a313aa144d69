"""The pages of a history, as somebody reads them: light and dark, small and large, without a script too."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from profkit.core.types import HistorySummary
from tests.reporting.site.conftest import Open, workload_page, write
from tests.reporting.site.histories import HOSTILE, UNICODE, commit_of, day

SHOWN_HOSTILE = HOSTILE.replace("\u2028", "\ufffd")
PAGES = ("index.html", "gated_mlp", "script", "gr-")


def texts(page: Any, selector: str) -> list[str]:
    return [re.sub(r"\s+", " ", text).strip() for text in page.locator(selector).all_inner_texts()]


def path_of(site: Path, name: str) -> str:
    return name if name.endswith(".html") else workload_page(site, name)


# ---------------------------------------------------------------- the overview


def test_what_changed_lately_begins_with_the_newest_and_says_size_day_commit_workload_and_metric(
    open_page: Open,
) -> None:
    page = open_page("index.html").page
    events = texts(page, "#what-changed-lately li")
    assert re.match(rf"▲ [45]\.\d % worse gated_mlp time\.median on cuda {day(168)} ", events[0])
    assert f"Commit {commit_of(168)[:10]}, after {commit_of(167)[:10]}" in events[0]
    assert "The night's outcome: regressed" in events[0]  # it was decided two nights later
    assert "4 more metrics changed with it: instructions" in events[0]
    days = [re.findall(r"\d{4}-\d\d-\d\d", text)[0] for text in events]
    assert days == sorted(days, reverse=True)
    assert len(days) == 5  # changes of one night are one event


def test_each_workload_has_its_level_and_what_became_of_it_in_30_days(open_page: Open) -> None:
    page = open_page("index.html").page
    rows = texts(page, "#workloads tbody tr")
    mlp = next(text for text in rows if text.startswith("gated_mlp time.median"))
    assert re.search(r"3\.9\d ms \+[45]\.\d % worse regressed$", mlp)
    assert "no value" in next(text for text in rows if text.startswith("failed"))
    page.get_by_role("link", name=UNICODE).first.click()
    assert texts(page, "h1") == [UNICODE]
    page.get_by_role("link", name="All workloads").click()
    assert page.url.endswith("/index.html")


def test_all_can_be_read_without_a_script(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    assert page.locator("#what-changed-lately li").count() == 5
    page.goto((site / workload_page(site, "gated_mlp")).as_uri())
    assert page.locator("svg.chart").count() == 9
    context.close()


def test_an_empty_history_says_how_to_fill_it(open_page: Open, tmp_path: Path) -> None:
    page = open_page("index.html", write(tmp_path / "empty", HistorySummary())).page
    assert (
        "No run is stored yet: profkit history add reports/*/ adds runs." in page.locator("main").inner_text()
    )


# ---------------------------------------------------------------- one workload


def test_a_series_has_its_level_its_changes_and_its_segments(open_page: Open, site: Path) -> None:
    page = open_page(workload_page(site, "gated_mlp")).page
    (first,) = texts(page, "#time-median-on-cuda")
    assert re.search(
        r"3\.9\d ms now; over 30 days \+[45]\.\d % worse; a change counts from \d\.\d % on", first
    )
    assert "a new segment begins: another machine" in first
    assert re.search(rf"▲ {day(168)}: .* worse .*commit {commit_of(168)[:12]}", first)
    attention = open_page(workload_page(site, "attention")).page
    assert "accepted by Ada: the new softmax <b>" in attention.locator("main").inner_text()


def test_of_very_many_series_the_first_are_drawn_and_all_are_listed(
    open_page: Open, summary: HistorySummary, tmp_path: Path
) -> None:
    one = next(s for s in summary.series if s.trend.series.key.metric == "cache.l2_hit_rate")
    many = []
    for number in range(150):
        key = replace(one.trend.series.key, metric=f"made.up.{number:03}")
        many.append(replace(one, trend=replace(one.trend, series=replace(one.trend.series, key=key))))
    folder = write(tmp_path / "many", replace(summary, series=tuple(many)))
    page = open_page("workload/gated_mlp.html", folder).page
    assert page.locator("svg.chart").count() == 12
    assert page.locator("#all-series tbody tr").count() == 150
    assert "The first 12 are drawn above." in page.locator("#all-series").inner_text()


def test_one_night_and_none_are_shown(open_page: Open, site: Path) -> None:
    assert texts(open_page(workload_page(site, "one-night")).page, "p.time") == [
        f"1 run, {day(179)} to {day(179)}, 1 series"
    ]
    page = open_page("workload/failed.html").page
    assert "No value is stored of this workload." in page.locator("main").inner_text()


def test_runs_say_their_outcome_and_why_one_decides_nothing(open_page: Open, site: Path) -> None:
    page = open_page(workload_page(site, "gated_mlp")).page
    page.locator("#runs summary").click()
    rows = texts(page, "#runs tbody tr")
    assert len(rows) == 100
    assert re.match(rf"{day(179)} \d\d:\d\d regressed {commit_of(179)[:10]} abcdef012345", rows[0])
    assert any("not valid: the clock was throttled" in row for row in rows)
    assert "80 older runs: profkit history list" in page.locator("#runs").inner_text()


def test_a_commit_is_linked_to_where_it_is_looked_at_whatever_it_is_called(
    open_page: Open, site: Path
) -> None:
    page = open_page(workload_page(site, "script")).page
    address = page.locator("#runs a").first.get_attribute("href")
    assert address == "https://example.org/code/commit/" + quote(HOSTILE, safe="")


def test_a_run_is_linked_where_its_report_lies(
    open_page: Open, summary: HistorySummary, tmp_path: Path
) -> None:
    run = tmp_path / "reports" / "20261027 a%b?-gated"
    run.mkdir(parents=True)
    (run / "report.html").write_text("<title>the run</title>")
    ours = [e for e in summary.entries if e.workload == "gated_mlp"]
    paths = {ours[-1].id: str(run), ours[-2].id: str(tmp_path / "gone")}
    entries = tuple(replace(e, path=paths.get(e.id)) for e in summary.entries)
    folder = write(tmp_path / "pages", replace(summary, entries=entries))
    page = open_page("workload/gated_mlp.html", folder).page
    page.locator("#runs summary").click()
    (href,) = [one.get_attribute("href") for one in page.get_by_role("link", name="report", exact=True).all()]
    assert (folder / "workload" / unquote(href)).resolve() == run / "report.html"


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_hard_to_see_hear_or_reach(open_page: Open, site: Path, name: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(path_of(site, name), color_scheme=scheme).page
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    found = Axe().run(page, options={"preload": False, "resultTypes": ["violations"]}).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []


@pytest.mark.parametrize("name", PAGES)
def test_it_fits_the_width_of_any_screen(open_page: Open, site: Path, name: str) -> None:
    page = open_page(path_of(site, name)).page
    for width in (320, 768, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", PAGES)
def test_a_name_that_is_markup_is_text_everywhere(open_page: Open, site: Path, name: str) -> None:
    page = open_page(path_of(site, name)).page
    assert page.evaluate("window.hurt") is None
    assert page.locator("main b", has_text=re.compile("^bold$")).count() == 0
    if name in ("index.html", "script"):
        assert SHOWN_HOSTILE in page.locator("main").inner_text()
