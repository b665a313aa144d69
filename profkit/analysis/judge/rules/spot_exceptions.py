"""Insights on exceptions: a function that raises and catches so often that this takes its time."""

from __future__ import annotations

from dataclasses import replace

from profkit.analysis.function_names import place_name
from profkit.analysis.judge.rules.counted import last_name, profile_of
from profkit.analysis.judge.rules.spots import count_text, say
from profkit.core.types import CodeSpot, Hotspot, Insight, RunDocument

RAISING, RAISING_BELOW = 0.05, 0.15  # of a place's time, in its own function, and in one that it calls
EACH_RAISE = 0.4e-6  # seconds, to raise and to catch: 0.3 to 1 of CPython 3.11 on servers


def exceptions(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a function that raises and catches so often that this is what takes its time."""
    here = _raises_at(document, spot)
    if not here or spot.kind not in ("python", "library"):
        return None
    rate = sum(row.own for row in here) / (here[0].calls or 1)
    is_below = here[0].function != spot.where.function
    calls = _counted_calls(document, here[0]) if is_below else spot.calls
    count = rate * (calls or here[0].calls or 0)
    # A program that waits for a free processor takes longer, but its exceptions do not.
    split = document.time_split
    running = split.cpu / split.wall if split is not None and split.cpu and split.wall > 0 else 1.0
    share = spot.share * min(1.0, count * EACH_RAISE / max(spot.seconds * min(1.0, running), 1e-9))
    if share < (RAISING_BELOW if is_below else RAISING) * spot.share:
        return None
    first = here[0]
    place = replace(spot.where, function=first.function, line=first.line)
    kind = first.callee.function if first.callee is not None else "exceptions"
    return say(
        spot,
        "exceptions",
        f"{place_name(place)} raises {kind} about {count_text(int(count))} times",
        f"{100 * rate:.0f} exceptions in 100 calls, of the first {count_text(first.calls or 0, 'call')}; to raise "
        "one and to catch it costs about as much as ten tests",
        share,
        place,
    )


def _raises_at(document: RunDocument, spot: CodeSpot) -> list[Hotspot]:
    """Return the exceptions that the function of a place raised, or else a function that it calls there.

    A short function has few samples of its own: they are at the line that calls it, by way of `map` or `sorted`, too.
    """
    raised = profile_of(document, "raises")
    rows = [row for row in (raised.hotspots if raised is not None else ()) if row.calls and row.callee]
    file, function = spot.where.file, spot.where.function
    if own := [row for row in rows if (row.function, row.file) == (function, file)]:
        return own
    calls = profile_of(document, "program-calls")
    edges = [edge for edge in (calls.hotspots if calls is not None else ()) if edge.callee is not None]
    # By way of built-in functions, which have no file: `sum(map(parse, lines))`.
    here = (file, None)
    reached, left = set[str](), [last_name(function or "")]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += [
                edge.callee.function
                for edge in edges
                if edge.function == name and edge.file in here and edge.callee and edge.callee.file in here
            ]
    below = [row for row in rows if row.file == file and last_name(row.function) in reached]
    same = [row for row in below if row.function == below[0].function]
    places = [
        hot for hot in document.hot_spots if hot.kind in ("python", "library") and hot.where.file == file
    ]
    inside = sum(hot.seconds for hot in places if below and hot.where.function == below[0].function)
    is_largest = spot is max(places, key=lambda hot: hot.share, default=None)
    return same if is_largest and inside < spot.seconds else []


def _counted_calls(document: RunDocument, row: Hotspot) -> int | None:
    """Return how often cProfile counted a function that raises."""
    profile = profile_of(document, "own-time")
    same = (row.file, last_name(row.function))
    counted = (each for each in (profile.hotspots if profile is not None else ()))
    return max((each.calls or 0 for each in counted if (each.file, each.function) == same), default=None)
