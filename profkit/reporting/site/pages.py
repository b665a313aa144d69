"""All files of the site, in an order in which a site that is cut off half-way can still be used."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from profkit.core.codec import valid_text, without_collector
from profkit.core.errors import UsageError
from profkit.core.formatting import plural
from profkit.core.types import HistorySummary, Json, SeriesSummary
from profkit.reporting.html import page as report_page
from profkit.reporting.html.escape import Html, element, together
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.site.data import (
    RunLink,
    Shared,
    call,
    hashed_name,
    series_name,
    workload_data,
)
from profkit.reporting.site.lately import events_of
from profkit.reporting.site.overview import WorkloadPage, commit_link, lately, workloads
from profkit.reporting.site.runs import runs_of

FOLDER = Path(__file__).parent
DATA, PAGES = "data", "workload"  # folders of the site
PACK = 100_000  # bytes of a file with the data of several workloads
SCRIPTS = ("base", "chart", "workload", "compare", "overview")
# A page that is a file has no origin of its own, so `file:` is named. No script or style within a page is run at all.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' file:",
        "style-src 'self' file:",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
)


@dataclass(frozen=True)
class SiteOptions:
    """`commit_url` holds `{commit}`; `run_link` says where the page of a run is, relative to `workload/`."""

    title: str = "Performance over time"
    commit_url: str | None = None
    run_link: RunLink = field(default=lambda _: None)


def check_commit_url(url: str | None) -> None:
    """Raise UsageError for what is no address of a web page with `{commit}` in it."""
    if url is not None and not (re.match(r"https?://[^/\s]", url) and "{commit}" in url):
        raise UsageError(
            f"--commit-url {url} is no address with {{commit}} in it",
            "--commit-url 'https://example.org/code/commit/{commit}'",
        )


def site_files(summary: HistorySummary, options: SiteOptions) -> Iterator[tuple[str, str]]:
    """Path (relative to the site) and content of every file. `index.html` is the last one.

    Data, scripts and styles have names that change with their content. So pages that are there already go on with the
    files that they were made with, until each is replaced.
    """
    with without_collector():  # a year of 400 workloads has a hundred thousand runs
        runs = runs_of(summary)
        series = _by_workload(summary, runs.by_workload)
    ids = page_ids(list(series))
    pages = [
        WorkloadPage(name, ids[name], f"{PAGES}/{ids[name]}.html", series[name], runs.by_workload[name])
        for name in series
    ]
    shared = Shared(runs.moments)
    data_names: dict[str, str] = {}
    for pack in _packed(pages, shared, options):
        content = "".join(data for _, data in pack)
        stem = pack[0][0].id if len(pack) == 1 else "workloads"
        name = f"{DATA}/{hashed_name(stem, content, 'js')}"
        data_names |= {page.name: name for page, _ in pack}
        yield name, content
    content = call("share", shared.data(_clean(options.title), options.commit_url, _index(pages, data_names)))
    common = f"{DATA}/{hashed_name('site-data', content, 'js')}"
    yield common, content
    assets = _assets()
    yield from assets.values()
    frame = _Frame(
        _clean(options.title), assets["style"][0], assets["first"][0], (assets["script"][0], common)
    )
    for each in pages:
        main = _workload_main(each)
        own = (*frame.scripts, data_names[each.name])
        yield each.page, frame.render("workload", each.name, main, "../", own, each.id)
    yield "compare.html", frame.render("compare", "Compare", _compare_main(), "")
    yield "index.html", frame.render("overview", "", _overview_main(summary, pages, options), "")


def _packed(
    pages: Sequence[WorkloadPage], shared: Shared, options: SiteOptions
) -> Iterator[list[tuple[WorkloadPage, str]]]:
    """The data of all pages, each as a call; small ones are together in a file."""
    pack: list[tuple[WorkloadPage, str]] = []
    for page in pages:
        data = call(
            "workload", workload_data(page.name, page.id, page.series, page.runs, shared, options.run_link)
        )
        if pack and sum(len(one) for _, one in pack) + len(data) > PACK:
            yield pack
            pack = []
        pack.append((page, data))
    if pack:
        yield pack


def page_ids(names: Sequence[str]) -> dict[str, str]:
    """Of each workload the name of its page: letters, digits and dashes, the same at every writing.

    >>> page_ids(["gated mlp", "GATED mlp", "<b>"])
    {'gated mlp': 'gated-mlp-3d78b4bc', 'GATED mlp': 'gated-mlp-6fe3fae4', '<b>': 'b-f83bb6f9'}
    """
    made = {}
    for name in names:
        plain = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:60].strip("-")
        # Where the page is not called as the workload is, another workload's may be called the same.
        mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
        made[name] = plain if plain == name and plain else f"{plain}-{mark}".lstrip("-")
    return made


def _by_workload(summary: HistorySummary, names: Iterable[str]) -> dict[str, tuple[SeriesSummary, ...]]:
    """The series of each workload in the order of its page."""
    series: dict[str, list[SeriesSummary]] = {name: [] for name in names}
    for one in summary.series:
        series[one.trend.series.key.workload].append(one)
    return {
        name: tuple(sorted(series[name], key=_place))
        for name in sorted(series, key=lambda name: (name.lower(), name))
    }


def _place(one: SeriesSummary) -> tuple[bool, bool, bool, str, str, str]:
    """What gates first, kernels and functions last; within each the times first."""
    key = one.trend.series.key
    part = key.scope.kind in ("kernel", "function")
    return (
        not one.gates,
        part,
        not key.metric.startswith("time."),
        key.metric,
        key.scope.name or "",
        key.backend,
    )


def _index(pages: Sequence[WorkloadPage], data_names: Mapping[str, str]) -> list[Json]:
    """What is searched, and what the comparison loads."""
    rows: list[Json] = []
    for each in pages:
        keys = [one.trend.series.key for one in each.series]
        several = len({key.backend for key in keys}) > 1
        names: list[Json] = [series_name(key, several=several) for key in keys]
        rows.append([_clean(each.name), each.id, data_names[each.name], names])
    return rows


def _clean(text: str) -> str:
    return without_control_characters(text)


# ---------------------------------------------------------------- what stands in them


@dataclass(frozen=True)
class _Frame:
    """What all pages have around their content."""

    title: str
    style: str
    first: str
    scripts: tuple[str, ...]

    def render(
        self, kind: str, name: str, main: Html, up: str,
        scripts: tuple[str, ...] | None = None, workload: str = "",
    ) -> str:  # fmt: skip
        title = f"{_clean(name)} - {self.title}" if name else self.title
        return valid_text(
            _template().render(
                policy=POLICY, title=title, up=up, style=self.style, first=self.first, kind=kind, main=main,
                scripts=scripts or self.scripts, workload=workload,
            )
        )  # fmt: skip


@lru_cache(maxsize=1)
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here: only a page needs it

    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("site.html.j2")


@lru_cache(maxsize=1)
def _assets() -> dict[str, tuple[str, str]]:
    """Name and content of the style and of both scripts; what reports look like, these pages do too."""
    own = FOLDER / "assets"
    style = [report_page.asset("style.css"), report_page.asset("charts.css")]
    style.append((own / "site.css").read_text(encoding="utf-8"))
    script = [(own / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    contents = {
        "style": ("style", "\n".join(style), "css"),
        "first": ("theme", report_page.asset(report_page.FIRST_SCRIPT), "js"),
        "script": ("site", "\n".join([report_page.asset("page.js"), *script]), "js"),
    }
    return {
        name: (f"{DATA}/{hashed_name(stem, content, suffix)}", content)
        for name, (stem, content, suffix) in contents.items()
    }


_NO_SCRIPT = Html(
    "<noscript><p class='state unknown'>This page is drawn by a script of its own.</p></noscript>"
)


def _overview_main(summary: HistorySummary, pages: Sequence[WorkloadPage], options: SiteOptions) -> Html:
    header = element("h1", element("bdi", _clean(options.title)))
    if not summary.entries:
        empty = element(
            "p", "No run is stored yet. ", element("code", "profkit history add reports/*/"), " adds runs."
        )
        return together((element("header", header, class_="top"), empty))
    first, last = summary.entries[0].started[:10], summary.entries[-1].started[:10]
    machines = len({entry.machine for entry in summary.entries})
    told = (
        f"{plural(len(summary.entries), 'run')} of {plural(len(pages), 'workload')} with"
        f" {plural(len(summary.series), 'series', 'series')}, {first} to {last}, on {plural(machines, 'machine')}"
    )
    events = events_of({p.name: p.series for p in pages}, {p.name: p.runs for p in pages})
    return together(
        (
            element("header", header, element("p", told, class_="soft"), class_="top"),
            lately(events, {p.name: p for p in pages}, commit_link(options.commit_url)),
            workloads(pages),
        )
    )


def _workload_main(each: WorkloadPage) -> Html:
    entries = each.runs.entries
    first, last = (entries[0], entries[-1]) if entries else (None, None)
    dates = f", {first.started[:10]} to {last.started[:10]}" if first and last else ""
    told = f"{plural(len(entries), 'run')}{dates}, {plural(len(each.series), 'series', 'series')}"
    header = element(
        "header", element("h1", element("bdi", _clean(each.name))), element("p", told, class_="soft")
    )
    return together((header, element("div", _NO_SCRIPT, id="trends")))


def _compare_main() -> Html:
    header = element("header", element("h1", "Compare"))
    about = element(
        "p",
        "Each metric at two points in time. What is smaller than the change that counts is grey.",
        class_="soft",
    )
    return together((header, about, element("div", _NO_SCRIPT, id="compare")))
