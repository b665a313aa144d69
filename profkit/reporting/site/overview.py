"""The first page: what changed lately, then each workload with the metrics that gate. It is whole without a script."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from urllib.parse import quote

from profkit.core.formatting import format_figures, format_percent, format_quantity, plural
from profkit.core.types import ChangePoint, Entry, SeriesSummary
from profkit.core.types.history import SUMMARY_DAYS
from profkit.reporting.html.escape import Html, element, text, together
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.site.data import series_name, short_unit
from profkit.reporting.site.lately import Event, SeriesChange
from profkit.reporting.site.runs import WorkloadRuns

MOST_EVENTS = 30  # that stand open; older ones are folded
ALL_EVENTS = 300  # on this page; the pages of workloads have all of them
MOST_ROWS = 4  # metrics of one workload: of a sweep each of a thousand cases gates
MOST_MORE = 40  # further metrics that are named with an event
SPARK_WIDTH, SPARK_HEIGHT, SPARK_STEPS = 132, 30, 66


@dataclass(frozen=True)
class WorkloadPage:
    """A workload with the name of its page; `series` as they stand there."""

    name: str
    id: str
    page: str  # relative to the overview
    series: tuple[SeriesSummary, ...]
    runs: WorkloadRuns


CommitLink = Callable[[str], "str | None"]


def commit_link(template: str | None) -> CommitLink:
    """Where a commit is looked at; the template holds `{commit}`."""
    return lambda commit: template.replace("{commit}", quote(commit, safe="")) if template else None


def commit_html(commit: str | None, link: CommitLink, *, dirty: bool | None = False) -> Html:
    """The begin of a commit's name, as a link where there is one to it."""
    if not commit:
        return Html("")
    short = element("code", without_control_characters(commit)[:10] + ("+" if dirty else ""))
    address = link(commit)
    return element("a", short, href=address, rel="noreferrer") if address else short


# ---------------------------------------------------------------- what changed lately


def lately(events: Sequence[Event], pages: dict[str, WorkloadPage], link: CommitLink) -> Html:
    """The section of the events, the newest first."""
    heading = element("h2", "What changed lately", id="lately-title")
    if not events:
        return _section("lately", heading, element("p", "No change was found in any series."))
    items = [_event(event, pages[event.workload], link) for event in events[:ALL_EVENTS]]
    body = element("ol", *items[:MOST_EVENTS], class_="events")
    older = items[MOST_EVENTS:]
    fold = ""
    if older:
        summary = element("summary", f"{len(older)} earlier ones")
        fold = element("details", summary, element("ol", *older, class_="events"), class_="fold")
    left = len(events) - len(items)
    note = (
        element("p", f"{left} that are older still stand on the pages of their workloads.", class_="note")
        if left
        else ""
    )
    return _section("lately", heading, body, fold, note)


def _section(name: str, *inside: str) -> Html:
    return element("section", *inside, id=name, aria_labelledby=f"{name}-title")


def _event(event: Event, page: WorkloadPage, link: CommitLink) -> Html:
    lead = event.changes[0] if event.changes else None
    tone = "fail" if event.worse else "pass" if lead and lead.worse is False else "na"
    word = "regressed" if lead is None else _word(lead)
    size = element("span", step_text(lead.point) if lead else "✗", class_="step")
    where = f"{page.page}#s{lead.number}" if lead else page.page
    parts = [page.name]
    parts += [f" {series_name(lead.series.trend.series.key)}"] if lead else []
    name = element("a", element("b", parts[0]), *parts[1:], href=where)
    when = element("time", event.entry.started[:10], datetime=event.entry.started[:10])
    told: list[str] = [_from_to(lead)] if lead else ["Decided that night; its series shows no step"]
    if lead and event.night is not None:
        told += ["; the night's outcome: ", element("b", "regressed", class_="fail")]
    commit = commit_html(event.entry.commit, link, dirty=event.entry.dirty)
    if commit:
        told += ["; commit ", commit]
        before = event.before.commit if event.before else None
        if before and before != event.entry.commit:
            told += [", after ", commit_html(before, link)]
    head = element("p", size, " ", element("span", word, class_="word"), " ", name, " ", when, class_="what")
    return element(
        "li",
        head,
        element("p", *told, class_="because"),
        _more(event, page),
        class_=tone,
        data_find=page.name,
    )


def _word(change: SeriesChange) -> str:
    return {True: "worse", False: "better", None: "changed"}[change.worse]


def _more(event: Event, page: WorkloadPage) -> Html:
    others = event.changes[1:]
    if not others:
        return Html("")
    rows = [
        element(
            "li",
            step_text(change.point),
            " ",
            element("span", _word(change), class_=_tone(change.worse)),
            " ",
            element("a", series_name(change.series.trend.series.key), href=f"{page.page}#s{change.number}"),
            ": ",
            _from_to(change),
        )
        for change in others[:MOST_MORE]
    ]
    if len(others) > MOST_MORE:
        rows.append(element("li", f"and {len(others) - MOST_MORE} more"))
    summary = element("summary", f"{plural(len(others), 'more metric')} changed with it")
    return element("details", summary, element("ul", *rows, class_="notes"))


def _tone(worse: bool | None) -> str:
    return {True: "fail", False: "pass", None: "soft"}[worse]


def _from_to(change: SeriesChange) -> str:
    unit = change.series.trend.series.unit
    return f"{quantity(change.point.before, unit)} → {quantity(change.point.after, unit)}"


def step_text(change: ChangePoint) -> str:
    """`▲ 5.2 %`, `▼ 31.0 %`, `▲ × 12.4`; without a number where the ratio has no meaning."""
    sign = "▲" if change.after > change.before else "▼"
    if change.ratio is None or change.before < 0 or change.ratio < 0:
        return sign
    return f"{sign} {_share(change.ratio)}"


def quantity(value: float | None, unit: str) -> str:
    """A value with its unit, however long that is called."""
    return format_quantity(value, short_unit(unit))


def _share(ratio: float) -> str:
    by = 100 * abs(ratio - 1)
    return f"{format_percent(by)} %" if by < 1000 else f"× {format_figures(ratio)}"


# ---------------------------------------------------------------- workloads


def workloads(pages: Sequence[WorkloadPage]) -> Html:
    """The table of all workloads: of each what gates, with its course, its level, and how that changed."""
    heading = element("h2", "Workloads", id="workloads-title")
    days = f"over {SUMMARY_DAYS} days"
    heads = [
        element("th", title, scope="col", class_=kind)
        for title, kind in (
            ("workload", None), ("metric", None), ("course", None), ("level now", "num"), (days, "num"),
            ("last night", None),
        )
    ]  # fmt: skip
    bodies = [element("tbody", *_rows(page), data_find=page.name) for page in pages]
    table = element("table", element("thead", element("tr", *heads)), *bodies, class_="workloads")
    nothing = element("p", "No workload has such a name.", class_="note", id="nothing-found", hidden="")
    return _section("workloads", heading, table, nothing)


def _rows(page: WorkloadPage) -> Iterator[Html]:
    shown = shown_series(page.series)
    last = page.runs.entries[-1] if page.runs.entries else None
    for number, place in enumerate(shown):
        one = page.series[place]
        cells: list[str] = []
        if number == 0:
            more = len(page.series) - len(shown)
            under = element("span", f"and {plural(more, 'more series', 'more series')}", class_="soft more")
            name = element("a", page.name, href=page.page)
            cells.append(
                element(
                    "th",
                    name,
                    under if more else "",
                    scope="rowgroup",
                    rowspan=str(len(shown)),
                    class_="name",
                )
            )
        label = element("a", series_name(one.trend.series.key), href=f"{page.page}#s{place}")
        cells += [
            element("td", label, class_="metric"),
            element("td", sparkline(one), class_="course"),
            element("td", quantity(one.level, one.trend.series.unit), class_="num", data_is="now"),
            element("td", change_html(one), class_="num", data_is=f"{SUMMARY_DAYS} days"),
        ]
        if number == 0:
            cells.append(element("td", _outcome(last), rowspan=str(len(shown)), class_="night"))
        yield element("tr", *cells)
    if not shown:
        name = element("th", element("a", page.name, href=page.page), scope="row", class_="name")
        night = element("td", _outcome(last), class_="night")
        yield element("tr", name, element("td", "no value", colspan="4", class_="soft"), night)


def shown_series(series: Sequence[SeriesSummary]) -> list[int]:
    """Which series of a workload stand for it: those that gate, those with the newest changes first; else the first."""
    gates = [i for i, one in enumerate(series) if one.gates]
    newest = sorted(gates, key=lambda i: max((c.index for c in series[i].trend.change_points), default=-1))
    chosen = list(reversed(newest[-MOST_ROWS:])) if len(gates) > MOST_ROWS else gates
    return chosen or list(range(min(1, len(series))))


def change_html(one: SeriesSummary) -> Html:
    """How the level changed: coloured, with its direction in a word, where it is large enough to count."""
    if one.level is None or not one.before or one.before < 0 or one.level < 0:
        return element("span", "-", class_="soft")
    ratio = one.level / one.before
    by = f"{'+' if ratio >= 1 else '−'}{_share(ratio)}"
    better = one.trend.series.better
    if one.counts is None or abs(ratio - 1) < one.counts or better == "none":
        return element("span", by, class_="soft")
    worse = (ratio > 1) == (better == "lower")
    return element("span", by, " worse" if worse else " better", class_=_tone(worse))


def _outcome(entry: Entry | None) -> Html:
    if entry is None:
        return Html("")
    if not entry.valid:
        return element("span", "not valid", class_="unknown", title=entry.reason)
    if not entry.outcome:
        return element("span", entry.started[:10], class_="soft")
    tone = {"regressed": "fail", "missing": "fail", "invalid": "unknown", "ambiguous": "unknown"}
    return element("span", entry.outcome, class_=tone.get(entry.outcome, "soft"), title=entry.started[:10])


# ---------------------------------------------------------------- a small course


def sparkline(one: SeriesSummary) -> Html:
    """The course of a series as a line the size of a word, cut where segments are; each step is a median of nights."""
    trend = one.trend
    points = trend.series.points
    valid = [i for i, point in enumerate(points) if point.valid and isfinite(point.value)]
    if not valid:
        return element("span", "no valid value", class_="soft")
    pieces = [_medians(places, len(points), one) for places in _lines(valid, one)]
    levels = [value for piece in pieces for _, value in piece]
    low, high = min(levels), max(levels)
    room = (high - low) or abs(high) or 1.0
    wide, high_px = SPARK_WIDTH - 8, SPARK_HEIGHT - 8

    def place(at: float, value: float) -> str:
        x = 4 + wide * (at / max(1, len(points) - 1))
        y = 4 + (high_px / 2 if low == high else high_px * (high - value) / room)
        return f"{x:.0f} {y:.1f}".removesuffix(".0")

    path = "".join("M" + "L".join(place(at, value) for at, value in piece) for piece in pieces if piece)
    if all(len(piece) < 2 for piece in pieces):
        path += "h0"
    x, y = place(*max(piece[-1] for piece in pieces)).split()
    marks = [
        f'<path class="change" d="M{4 + wide * (c.index - 0.5) / max(1, len(points) - 1):.0f} 2v{SPARK_HEIGHT - 4}"/>'
        for c in trend.change_points
    ]
    label = f"{quantity(low, trend.series.unit)} to {quantity(high, trend.series.unit)}"
    label += f", {plural(len(trend.change_points), 'change')}"
    drawn = f'{together(map(Html, marks))}<path class="line" d="{path}"/><circle class="dot" cx="{x}" cy="{y}" r="2"/>'
    box = f'viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}"'
    return Html(f'<svg class="spark" {box} role="img" aria-label="{text(label)}">{drawn}</svg>')


def _lines(places: list[int], one: SeriesSummary) -> list[list[int]]:
    """Which of the points make a line: those of one segment and one machine."""
    points, firsts = one.trend.series.points, [segment.first for segment in one.trend.epochs]
    if len(firsts) < 2 and len({points[i].machine for i in places}) == 1:
        return [places]
    alike: dict[tuple[int, str], list[int]] = {}
    for i in places:
        alike.setdefault((bisect_right(firsts, i), points[i].machine), []).append(i)
    return [*alike.values()]


def _medians(places: Sequence[int], count: int, one: SeriesSummary) -> list[tuple[float, float]]:
    """Place and median of each few neighbours, so that a spike of one night does not flatten the others."""
    points = one.trend.series.points
    each = max(1, -(-count // SPARK_STEPS))
    found = []
    for start in range(0, len(places), each):
        group = places[start : start + each]
        values = sorted(points[i].value for i in group)
        found.append((sum(group) / len(group), values[len(values) // 2]))
    return found
