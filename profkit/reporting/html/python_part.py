"""Where Python's time goes, on the page of a run: its functions, own time within the time of all they call."""

from __future__ import annotations

from collections.abc import Callable

from profkit.analysis.summaries.python import CUMULATIVE, OWN
from profkit.analysis.summaries.readings import function_place
from profkit.core.formatting import percent, plural, quantity
from profkit.core.types import Hotspot, Profile, RunDocument
from profkit.reporting.charts.bars import Bar, bar_chart
from profkit.reporting.html.chart_figures import figures, sentence, summary_of
from profkit.reporting.html.part import Extras, Part

MOST = 12  # functions
LEAST = 0.001  # of the whole: less is no hot spot
LEGEND = "Solid: its own time. Light: with all that it calls."


def part(document: RunDocument, extras: Extras) -> Part | None:
    """Two charts, by own time and by that of all they call; why there are none where a run was to have them."""
    summary = summary_of(document, "python")
    profiles = {profile.title: profile for profile in document.profiles}
    chosen = ((OWN, "by own time", _own), (CUMULATIVE, "with what they call", _all))
    charts = [
        _chart(profiles[title], f"Python functions {words}", by)
        for title, words, by in chosen
        if title in profiles and profiles[title].hotspots
    ]
    headline = summary.headline if summary is not None else None
    if charts:
        return Part(
            "python", "Python", figures(charts, "; ".join(summary.notes) if summary else ""), headline
        )
    if summary is None or document.plan is None:
        return None
    fix = next((reading.fix for reading in summary.readings if reading.fix), None)
    return Part("python", "Python", sentence("", fix) if fix else "", headline)


def _own(spot: Hotspot) -> float:
    return spot.own


def _all(spot: Hotspot) -> float:
    return spot.total if spot.total is not None else spot.own


def _chart(profile: Profile, title: str, by: Callable[[Hotspot], float]) -> str:
    whole = profile.total
    spots = [spot for spot in sorted(profile.hotspots, key=by, reverse=True) if by(spot) > LEAST * whole]
    bars = [_bar(spot, profile, by(spot)) for spot in spots[:MOST]]
    told = ". ".join(bar.told for bar in bars[:6])
    more = len(spots) - len(bars)
    rest = f" {plural(more, 'further function')} not drawn." if more > 0 else ""
    heading = f"{title} ({quantity(whole, profile.unit)} in all)"
    return bar_chart("python", heading, f"{told}.", bars, whole if whole > 0 else None, LEGEND + rest)


def _bar(spot: Hotspot, profile: Profile, value: float) -> Bar:
    share = f", {percent(100 * value / profile.total)} %" if profile.total > 0 else ""
    total = f", with callees {quantity(spot.total, profile.unit)}" if spot.total is not None else ""
    calls = f", {plural(spot.calls, 'call')}" if spot.calls is not None else ""
    told = f"{function_place(spot)}: own {quantity(spot.own, profile.unit)}{total}{calls}"
    return Bar(function_place(spot), spot.own, f"{quantity(value, profile.unit)}{share}", told, spot.total)
