"""Insights on whole arrays that a loop reads for each item: to find a single value, or for each window of values.

The source shows what the line does and what stays the same in its loop, samples show what its names hold, and counts
show how often it runs.
"""

from __future__ import annotations

from profkit.analysis.judge.rules.counted import counted_function, last_name
from profkit.analysis.judge.rules.spot_values import stays_in_calls
from profkit.analysis.judge.rules.spots import LOOKS, MIN_CALLS, Find, calls_text, count_text, say
from profkit.analysis.judge.words import words
from profkit.analysis.stacks.line_counts import count_of
from profkit.core.types import CodeSpot, Insight, RunDocument

MIN_ELEMENTS = 1000  # elements
MANY_ITEMS = 32  # in one loop: for fewer items, one pass that sorts the elements by item takes as long
SECONDS_PER_ELEMENT = 5e-9  # seconds that NumPy takes for a number of an array, at most
MANY_WINDOWS, MAX_WINDOW_SECONDS = (
    1000,
    100e-6,
)  # windows; seconds of each: a longer window is work on many numbers
_ARRAY = "numpy.ndarray"
_METHODS = tuple(
    f"/numpy/{core}/{file}.py" for core in ("core", "_core") for file in ("_methods", "fromnumeric")
)
_SERIES = ("numpy.ndarray", "pandas.Series")


def compares_all(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return an array all of whose elements are compared with each item."""
    for construct in spot.code.find("compares-all") if spot.code is not None else ():
        held, frames = spot.variables.get(construct.name), construct.how == "polars"
        if held is None or not held.type.startswith("polars." if frames else _ARRAY):
            continue
        if not frames and (held.length or 0) < MIN_ELEMENTS:
            continue
        # Long enough for MIN_CALLS comparisons with all elements, even if each is as slow as it can be.
        often = not frames and spot.seconds >= MIN_CALLS * (held.length or 0) * SECONDS_PER_ELEMENT
        looped = spot.code is not None and spot.code.loop is not None and (often or spot.looks >= LOOKS)
        if not (looped or (spot.calls or 0) >= MIN_CALLS) or spot.kind not in (
            "python",
            "library",
            "waiting",
        ):
            continue
        if not stays_in_calls(spot, construct.name, held, SECONDS_PER_ELEMENT):
            continue
        libraries = (None, "polars" if frames else "numpy", "built-in")
        if spot.under is not None and spot.under.library not in libraries:
            continue
        aim = "find the nearest one" if construct.how == "nearest" else "find the equal ones"
        return say(
            spot,
            "mask-for-each",
            f"All of {construct.name} is compared again for each item, to {aim}",
            f"{construct.name} is an array of {count_text(held.length or 0)}; {calls_text(spot)}".rstrip(
                "; "
            ),
            change=words(f"compares-all.{construct.how}", "host").format(name=construct.name),
        )
    return None


def masks_by_name(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return arrays that are scanned in full once for each item, by a comparison or by indexing with its mask.

    It is said once, at the line of a mask or an index that takes most, with the time of all.
    """
    for construct in spot.code.find("kept-mask") if spot.code is not None else ():
        held = spot.variables.get(construct.name)
        line, _, item = construct.how.partition(" ")
        made = count_of(document, spot.where.file, int(line))
        items = (made.executions if made is not None else 0) / max(1, spot.calls or 1)
        if (
            held is None
            or not held.type.startswith(_ARRAY)
            or (held.length or 0) < MIN_ELEMENTS
            or items < MANY_ITEMS
        ):
            continue
        places = [other for other in document.hot_spots if _has_mask(other, spot, construct.how)]
        if spot.where != max(places, key=lambda place: place.share, default=spot).where:
            return None
        others = sorted(other.where.line or 0 for other in places if other.where != spot.where)
        lines = f"; so do lines {', '.join(map(str, others))}" if others else ""
        return say(
            spot,
            "mask-for-each",
            f"Whole arrays are gone through again for each {item}",
            f"{construct.name} is an array of {count_text(held.length or 0)}; line {line} compares all elements with "
            f"{item}, {count_text(round(items), 'time')}, and this line goes through all again{lines}",
            (sum(place.share for place in places) or spot.share) * (1 - 1 / items),
            change=words("mask-for-each", "host"),
        )
    return None


def _has_mask(other: CodeSpot, spot: CodeSpot, how: str) -> bool:
    """Return whether a place of the same function makes the same mask, or indexes by it."""
    same = (other.where.file, other.where.function) == (spot.where.file, spot.where.function)
    masks = other.code.find("kept-mask") if same and other.code is not None else ()
    return any(construct.how == how for construct in masks)


def moving_windows(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a sum, a mean or the like that is computed by a separate call for each window of an array."""
    for construct in spot.code.find("window") if spot.code is not None else ():
        held = spot.variables.get(construct.name)
        under = spot.under
        counted = (
            counted_function(document, last_name(under.name), _METHODS) if under and under.name else None
        )
        below = counted.calls if counted is not None else under.calls if under is not None else 0
        times = max(spot.executions or 0, below or 0)
        if held is None or not held.type.startswith(_SERIES) or 0 <= (held.length or 0) < MIN_ELEMENTS:
            continue
        if times < MANY_WINDOWS or spot.seconds > MAX_WINDOW_SECONDS * times:
            continue
        if under is not None and under.name and last_name(under.name).strip("_") not in (construct.how, ""):
            continue
        return say(
            spot,
            "running-sum",
            f"The {construct.how} of each window of {construct.name} is computed by a call of its own",
            f"{count_text(times, 'window')}; {calls_text(spot)}".rstrip("; "),
            change=words("window", "host").format(name=construct.name, how=construct.how),
        )
    return None


PATTERNS: tuple[Find, ...] = (compares_all, masks_by_name, moving_windows)
