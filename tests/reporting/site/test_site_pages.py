"""The pages of a history, as somebody reads them: by mouse, keyboard and ear, light and dark, small and large."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from profkit.core.types import ChangePoint, HistorySummary, Point, Trend
from tests.reporting.site.conftest import Open, workload_page, write
from tests.reporting.site.histories import HOSTILE, NIGHTS, UNICODE, commit_of, day

SHOWN_HOSTILE = HOSTILE.replace("\u2028", "\ufffd")
UNITS = {"ms": 1e-3, "µs": 1e-6, "s": 1.0, "GiB": 1024.0**3, "MiB": 1024.0**2, "G": 1e9}


def points_of(summary: HistorySummary, workload: str, metric: str) -> tuple[Point, ...]:
    return trend_of(summary, workload, metric).series.points


def shown_step(change: ChangePoint) -> str:
    assert change.ratio is not None
    return f"{'▲' if change.ratio > 1 else '▼'} {100 * abs(change.ratio - 1):.1f}\N{NO-BREAK SPACE}%"


def trend_of(summary: HistorySummary, workload: str, metric: str) -> Trend:
    return next(
        one.trend
        for one in summary.series
        if (one.trend.series.key.workload, one.trend.series.key.metric) == (workload, metric)
    )


def number(text: str) -> float:
    """The number that a quantity says, in its base unit."""
    value, _, unit = text.partition("\N{NO-BREAK SPACE}")
    return float(value) * UNITS.get(unit, 1.0)


def at(night: int) -> re.Pattern[str]:
    """How a night is called where one is chosen."""
    return re.compile(rf"^{day(night)} \d\d:\d\d · {commit_of(night)[:10]} · \d workloads?$")


def texts(page: Any, selector: str) -> list[str]:
    return [re.sub(r"\s+", " ", text).strip() for text in page.locator(selector).all_inner_texts()]


# ---------------------------------------------------------------- the overview


def test_what_changed_lately_begins_with_the_newest_and_says_size_day_commit_workload_and_metric(
    open_page: Open,
) -> None:
    page = open_page("index.html").page
    first, *_ = texts(page, ".events > li")
    assert re.match(rf"▲ [45]\.\d % worse gated_mlp time\.median {day(168)} ", first)
    assert commit_of(168)[:10] in first
    assert "the night's outcome: regressed" in first  # it was decided two nights later
    assert "4 more metrics changed with it" in first
    days = [re.search(r"\d{4}-\d\d-\d\d", text)[0] for text in texts(page, ".events > li")]
    assert days == sorted(days, reverse=True)
    assert len(days) == 5  # changes of one night are one event


def test_each_workload_has_its_level_and_what_became_of_it_in_30_days(open_page: Open) -> None:
    page = open_page("index.html").page
    rows = [text for text in texts(page, "table.workloads tbody tr") if "time.median" in text]
    mlp = next(text for text in rows if "gated_mlp" in text)
    assert re.search(r"3\.9\d ms \+[45]\.\d % worse regressed$", mlp)
    assert page.locator("table.workloads svg.spark").count() >= 6
    assert "no value" in next(text for text in texts(page, "tbody") if text.startswith("failed"))


def test_the_overview_can_be_read_without_a_script(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    assert page.locator(".events > li").count() == 5
    assert page.locator("svg.spark path.line").count() >= 6
    page.goto((site / "compare.html").as_uri())
    assert "This page is drawn by a script" in page.locator("main").inner_text()
    context.close()


def test_a_name_that_is_searched_for_filters_the_overview_and_is_reached_by_keyboard(open_page: Open) -> None:
    page = open_page("index.html").page
    page.keyboard.press("/")
    page.keyboard.type("median atten")
    assert texts(page, "#found li") == ["attention forward time.median of region attention"]
    assert page.locator("table.workloads tbody:visible").count() == 1
    assert texts(page, "#find-count") == ["1 match"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/attention-forward*#s*")
    assert page.evaluate("document.activeElement.querySelector('h3').innerText").startswith("time.median")


def test_what_nobody_is_called_is_said(open_page: Open) -> None:
    page = open_page("index.html").page
    page.locator("#find").fill("nobody")
    assert texts(page, "#found li") == ["Nothing has such a name."]
    assert page.locator("#nothing-found").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#found").is_visible()


# ---------------------------------------------------------------- one workload


def test_a_page_shows_each_stored_value_with_its_interval_commit_and_outcome(
    open_page: Open, site: Path, summary: HistorySummary
) -> None:
    page = open_page(workload_page(site, "gated_mlp")).page
    card = page.locator("figure.card").first
    assert card.locator("h3").inner_text().startswith("time.median")
    card.locator("details", has_text="as a table").locator("summary").click()
    rows = card.locator("tbody tr")
    points = points_of(summary, "gated_mlp", "time.median")
    page.wait_for_function(
        "document.querySelector('figure.card tbody').rows.length > 0"
    )  # filled once it is opened
    assert rows.count() == len(points) == NIGHTS
    shown = [row.split("\t") for row in card.locator("tbody").inner_text().split("\n")]
    for cells, point in zip(shown, reversed(points), strict=True):
        assert cells[0] == point.started[:16].replace("T", " ")
        assert number(cells[1]) == pytest.approx(point.value, rel=2e-4)
        low, high = cells[2].split(" to ")
        assert (number(low), number(high)) == pytest.approx((point.low, point.high), rel=4e-4)
        assert cells[3] == (point.commit or "")[:10]
        assert cells[4] == point.outcome
        assert ("decides nothing" in cells[5]) is not point.valid


def test_changes_segments_and_nights_that_do_not_count_are_marked(
    open_page: Open, site: Path, summary: HistorySummary
) -> None:
    page = open_page(workload_page(site, "gated_mlp")).page
    card = page.locator("figure.card").first
    steps = [shown_step(change) for change in trend_of(summary, "gated_mlp", "time.median").change_points]
    assert card.locator("text.change").all_text_contents() == steps
    assert len(steps) == 2
    assert card.locator("text.segment").all_text_contents() == ["◆ other machine"]
    assert card.locator("circle.hollow").count() == 2
    assert card.locator("path.outcome.fail").count() == NIGHTS - 170
    said = texts(card, "ul.notes li")
    assert said[0].startswith(steps[1].replace("\N{NO-BREAK SPACE}", " "))
    assert f"worse on {day(168)}" in said[0]
    assert commit_of(168)[:10] in said[0]
    assert commit_of(167)[:10] in said[0]


def test_an_accepted_change_begins_a_segment_with_its_words(open_page: Open, site: Path) -> None:
    page = open_page(workload_page(site, "attention")).page
    said = texts(page.locator("figure.card").first, "ul.notes li")
    assert any("accepted by Ada: the new softmax <b>" in line for line in said)


def test_a_line_is_cut_where_a_series_has_no_value(open_page: Open, site: Path) -> None:
    page = open_page(workload_page(site, "gated_mlp")).page
    card = page.locator("figure.card", has_text="my own metric")
    card.scroll_into_view_if_needed()
    card.locator("svg.plot").wait_for()
    assert card.locator("svg.plot path.line").count() == 3  # two segments, and a gap in the second
    assert "widgets/fortnight" in card.locator("p.level").inner_text()


def test_machines_that_take_turns_have_a_line_each_and_a_legend(open_page: Open, site: Path) -> None:
    page = open_page(workload_page(site, "gr-")).page
    assert page.locator("h1").inner_text() == UNICODE
    assert page.locator("svg.plot path.line.l1").count() == 1
    assert page.locator("svg.plot path.line.l2").count() == 1
    legend = page.locator("p.legend").inner_text()
    assert "pool-0-01234" in legend
    assert "pool-1-01234" in legend


def test_one_night_and_none_are_shown(open_page: Open, site: Path) -> None:
    page = open_page(workload_page(site, "one-night")).page
    assert page.locator("svg.plot circle.dot").count() == 1
    assert page.locator("#night").is_disabled()
    page = open_page("workload/failed.html").page
    assert "No value is stored of this workload." in page.locator("main").inner_text()


def test_one_slider_chooses_the_run_of_all_charts(open_page: Open, site: Path) -> None:
    page = open_page(workload_page(site, "gated_mlp")).page
    page.locator("#night").focus()
    page.keyboard.press("Home")
    for _ in range(33):
        page.keyboard.press("ArrowRight")
    assert page.locator("#night").get_attribute("aria-valuetext").startswith(day(33))
    assert "throttled" in page.locator(".night-facts").inner_text()
    for text in texts(page, "figure.card p.value"):
        assert text.startswith(f"{day(33)}: ")
        assert "decides nothing: the clock was throttled" in text
    page.locator("figure.card .plot-room").first.click()
    assert not page.locator("#night").get_attribute("aria-valuetext").startswith(day(33))


def test_metrics_are_filtered_by_name_and_by_change(open_page: Open, site: Path) -> None:
    page = open_page(workload_page(site, "gated_mlp")).page
    page.locator("#filter").fill("gpu kernel")
    assert page.locator("figure.card").count() == 2
    page.locator("#changed").check()
    assert page.locator("figure.card").count() == 1
    assert "1 of 9" in page.locator(".tools").inner_text()


def test_a_link_to_a_series_shows_it_even_if_it_is_one_of_hundreds(
    browser: Any, summary: HistorySummary, tmp_path: Path, open_page: Open
) -> None:
    one = next(s for s in summary.series if s.trend.series.key.metric == "cache.l2_hit_rate")
    many = []
    for number_of in range(150):
        key = replace(one.trend.series.key, metric=f"made.up.{number_of:03}")
        many.append(replace(one, trend=replace(one.trend, series=replace(one.trend.series, key=key))))
    folder = write(tmp_path / "many", replace(summary, series=tuple(many)))
    page = open_page("workload/gated_mlp.html", folder).page
    assert page.locator("figure.card").count() == 60
    page.evaluate("location.hash = '#s140'")
    page.locator("#s140").wait_for()
    assert "made.up.140" in page.locator("#s140 h3").inner_text()
    assert page.locator("#s140 svg.plot").count() == 1


# ---------------------------------------------------------------- two points in time


def test_two_points_are_chosen_and_the_ratios_are_those_of_the_stored_values(
    open_page: Open, summary: HistorySummary
) -> None:
    page = open_page("compare.html").page
    page.locator("table.compare").wait_for()
    for name, night in (("#from", 160), ("#to", 176)):
        wanted = page.locator(f"{name} option", has_text=at(night)).get_attribute("value")
        page.locator(name).select_option(wanted)
    rows = [
        row.split("\t") for row in page.locator("table.compare tbody").inner_text().split("\n") if "\t" in row
    ]
    assert rows[0][0].startswith("gated_mlp time.median")
    assert "worse" in rows[0][3]
    checked = 0
    for cells in rows:
        for metric in ("time.median", "instructions", "memory.device_peak"):
            if cells[0].removesuffix("gates").strip() == f"gated_mlp {metric}":
                points = {
                    point.started[:10]: point.value for point in points_of(summary, "gated_mlp", metric)
                }
                assert float(cells[4]) == pytest.approx(points[day(176)] / points[day(160)], abs=5e-4)
                checked += 1
    assert checked == 3
    address = page.evaluate("location.hash")
    page.reload()
    page.locator("table.compare").wait_for()
    assert page.evaluate("location.hash") == address


def assert_remarks_last(page: Any) -> None:
    remarked = [bool(text) for text in texts(page, "table.compare td.why")]
    assert remarked == sorted(remarked)
    assert set(remarked) == {True, False}


def test_what_may_not_be_compared_says_why_and_stands_last(open_page: Open) -> None:
    page = open_page("compare.html").page
    page.locator("table.compare").wait_for()
    for name, night in (("#from", 30), ("#to", 101)):
        wanted = page.locator(f"{name} option", has_text=at(night)).get_attribute("value")
        page.locator(name).select_option(wanted)
    assert_remarks_last(page)
    page.locator("#filter").fill("gated_mlp")
    assert page.locator("table.compare tr.quiet").count() == page.locator("table.compare tbody tr").count()
    assert all(
        "decides nothing: the clock was throttled" in text for text in texts(page, "table.compare td.why")
    )
    wanted = page.locator("#to option", has_text=at(102)).get_attribute("value")
    page.locator("#to").select_option(wanted)
    assert set(texts(page, "table.compare td.why")) == {"another machine"}
    page.locator("#filter").fill("")
    assert_remarks_last(page)
    assert "another segment: accepted" in texts(page, "table.compare td.why")
    page.locator("#filter").fill("gated_mlp")
    assert "0 worse and 0 better" in page.locator("p.headline").inner_text()


def test_a_change_links_to_the_comparison_around_it(open_page: Open, site: Path) -> None:
    page = open_page(workload_page(site, "gated_mlp")).page
    page.locator("figure.card").first.get_by_role("link", name="all metrics there").first.click()
    page.locator("table.compare").wait_for()
    assert "5 worse and 0 better" in page.locator("p.headline").inner_text()


def test_with_a_single_point_there_is_nothing_to_compare(
    open_page: Open, summary: HistorySummary, tmp_path: Path
) -> None:
    (alone,) = (s for s in summary.series if s.trend.series.key.workload == "one night")
    entry = next(e for e in summary.entries if e.workload == "one night")
    folder = write(tmp_path / "one", replace(summary, series=(alone,), entries=(entry,)))
    assert "Only one point in time" in open_page("compare.html", folder).page.locator("main").inner_text()


# ---------------------------------------------------------------- all of them


PAGES = ("index.html", "compare.html", "gated_mlp", "script", "gr-")


def path_of(site: Path, name: str) -> str:
    return name if name.endswith(".html") else workload_page(site, name)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_hard_to_see_hear_or_reach(open_page: Open, site: Path, name: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(path_of(site, name), color_scheme=scheme).page
    page.wait_for_timeout(100)
    # The table of values is alike in all cards, and of each half a year: opened in a few, it is looked at in seconds.
    page.evaluate(
        "for (const one of document.querySelectorAll('details'))"
        " one.open = !one.closest('.card:nth-child(n+3)') || !one.textContent.includes('as a table')"
    )
    page.locator("#find").fill("time")
    # `preload` would ask for the stylesheets again, which the policy forbids.
    found = Axe().run(page, options={"preload": False, "resultTypes": ["violations"]}).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []


@pytest.mark.parametrize("name", PAGES)
def test_it_fits_the_width_of_any_screen(open_page: Open, site: Path, name: str) -> None:
    page = open_page(path_of(site, name)).page
    page.wait_for_timeout(100)
    for width in (320, 768, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("innerWidth") == width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", PAGES)
def test_a_name_that_is_markup_is_text_everywhere(open_page: Open, site: Path, name: str) -> None:
    page = open_page(path_of(site, name)).page
    page.wait_for_timeout(100)
    page.locator("#find").fill("hurt")
    assert page.evaluate("window.hurt") is None
    assert page.locator("main b", has_text=re.compile("^bold$")).count() == 0
    assert SHOWN_HOSTILE in page.locator("#found").inner_text()


def test_a_commit_is_linked_to_where_it_is_looked_at_whatever_it_is_called(
    open_page: Open, site: Path
) -> None:
    page = open_page(workload_page(site, "script")).page
    link = page.locator(".night-facts a").first
    assert link.get_attribute("href") == "https://example.org/code/commit/" + quote(
        SHOWN_HOSTILE, safe="!'()*"
    )
    page = open_page(workload_page(site, "gated_mlp")).page
    assert page.locator(".night-facts a").first.get_attribute("href").endswith(f"/{commit_of(NIGHTS - 1)}")


def test_a_run_is_linked_where_its_report_lies(
    open_page: Open, summary: HistorySummary, tmp_path: Path
) -> None:
    run = tmp_path / "reports" / "20261027 a%b?-gated"
    run.mkdir(parents=True)
    (run / "report.html").write_text("<title>the run</title>")
    gone = str(tmp_path / "reports" / "gone")
    ours = [e for e in summary.entries if e.workload == "gated_mlp"]
    paths = {ours[-1].id: str(run), ours[-2].id: gone}
    entries = tuple(replace(e, path=paths.get(e.id)) for e in summary.entries)
    folder = write(tmp_path / "pages", replace(summary, entries=entries))
    page = open_page("workload/gated_mlp.html", folder).page
    href = page.get_by_role("link", name="the run's report").get_attribute("href")
    assert (
        (folder / "workload") / href.replace("%20", " ").replace("%25", "%").replace("%3F", "?")
    ).resolve() == (run / "report.html")
    page.get_by_role("button", name="One run earlier").click()
    assert page.get_by_role("link", name="the run's report").count() == 0


def test_an_empty_history_says_how_to_fill_it(open_page: Open, tmp_path: Path) -> None:
    folder = write(tmp_path / "empty", HistorySummary())
    page = open_page("index.html", folder).page
    assert (
        "No run is stored yet. profkit history add reports/*/ adds runs." in page.locator("main").inner_text()
    )
    assert "No run is stored yet." in open_page("compare.html", folder).page.locator("main").inner_text()


def test_pages_without_their_data_say_so(open_page: Open, summary: HistorySummary, tmp_path: Path) -> None:
    folder = write(tmp_path / "torn", summary)
    for file in (folder / "data").glob("workloads-*.js"):
        file.write_text("")
    page = open_page("workload/gated_mlp.html", folder).page
    assert "The data of this page is missing beside it" in page.get_by_role("alert").inner_text()
