"""Insights on calls with the same arguments each time: a file that is read again, a matrix that is factorised again.

The source proves that the arguments stay the same, and a count tells how often the calls ran.
"""

from __future__ import annotations

import re

from profkit.analysis.judge.rules.counted import calls_from, last_name, profile_of, with_slashes
from profkit.analysis.judge.rules.spots import (
    MIN_CALLS,
    SEVERAL,
    Find,
    called_names,
    calls_text,
    count_text,
    say,
    say_together,
)
from profkit.analysis.judge.words import words
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import CodeSpot, Construct, Insight, RunDocument

# Seconds each time: in less, the file or the matrix is not what takes the time.
READING, FACTORISING = 50e-6, 100e-6
MOSTLY = 0.5  # of a place's time
PASSES = 3  # over the items of a dataset
THIN = 0.1  # of the matrix' elements: solving for more columns takes as long as factorising
_FORMS = ("inv", "pinv", "cholesky", "qr", "eig", "eigh", "det", "expm", "lu_factor", "splu", "factorized")


def read_again(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a file that is read again for each item although it stays the same."""
    for construct in spot.code.find("reads-again") if spot.code is not None else ():
        times = _times(spot, construct) or _times_of_one_object(document, spot, construct)
        if times < SEVERAL or spot.seconds < READING * times or spot.kind == "sleep":
            continue
        least = "at least " if spot.partial else ""
        each = format_quantity(spot.seconds / times, "s")
        return say(
            spot,
            "repeated-work",
            f"The same file is read again {least}{count_text(times, 'time')}: {construct.name}",
            f"{construct.name} is the same each time, and no function of the program writes it; {each} here each time",
            spot.share * (1 - 1 / times),
            change=words("repeated-work.file", "host"),
        )
    return None


# The functions that read a member of an archive or a store, as `file:function`, and how the source reads it.
_MEMBERS = (
    (re.compile(r"/numpy/lib/_?npyio(_impl)?\.py:NpzFile\.__getitem__$"), ("key",), "archive"),
    (re.compile(r"/zipfile(/__init__)?\.py:Zip(File\.(read|open)|ExtFile\.\w+)$"), ("call",), "archive"),
    (re.compile(r"/tarfile\.py:(TarFile\.(extractfile|getmember)|_FileInFile\.\w+)$"), ("call",), "archive"),
    (re.compile(r"/pandas/io/pytables\.py:HDFStore\.(__getitem__|get|select)$"), ("key", "call"), "store"),
    (re.compile(r"/shelve\.py:Shelf\.(__getitem__|get)$"), ("key", "call"), "store"),
    (re.compile(r"/h5py/_hl/dataset\.py:Dataset\.__getitem__$"), ("whole",), "dataset"),
    (re.compile(r"/zarr/core(/array)?\.py:Array\.(__getitem__|get_basic_selection)$"), ("whole",), "dataset"),
)
_IN_C = ("netCDF4.Dataset", "netCDF4.Variable")  # whose functions have no frames


def member_again(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a member of an archive or a store that is read and decoded again although it stays the same."""
    found = _member(spot)
    if found is None:
        return None
    construct, kind = found
    times = _times(spot, construct)
    if spot.seconds < READING * times or spot.kind not in ("python", "library"):
        return None
    same = [
        (other, also)
        for other in document.hot_spots
        if other.where.file == spot.where.file
        and (also := _member(other)) is not None
        and _base(also[0].name) == _base(construct.name)
    ]
    if not same or same[0][0] is not spot:
        return None  # it is reported once, at the line with most time
    least = "at least " if spot.partial else ""
    lines = [
        f"{also.name} in line {other.where.line} ({percent_text(100 * other.share)})"
        for other, (also, _) in same[1:]
    ]
    return say(
        spot,
        "repeated-work",
        f"{construct.name} reads the same again {least}{count_text(times, 'time')}: keep what it gives",
        f"each access reads all of it again{', and decompresses what is compressed' if kind == 'archive' else ''}: "
        f"{format_quantity(spot.seconds / times, 's')} each time"
        + (f"; so does {', '.join(lines)}" if lines else ""),
        sum(other.share for other, _ in same) * (1 - 1 / times),
        change=words(f"repeated-work.of-{kind}", "host").format(name=construct.name),
    )


def _member(spot: CodeSpot) -> tuple[Construct, str] | None:
    """Return the member that takes most of a line's time to read again, and the archive, store or dataset it is in."""
    below = [f"{with_slashes(frame.file)}:{frame.function}" for frame in spot.below if frame.value >= MOSTLY]
    for construct in spot.code.find("same-member") if spot.code is not None else ():
        how = construct.how.split()[0]
        if _times(spot, construct) < SEVERAL or not _is_of_one_object(spot, construct):
            continue
        for read, asked, kind in _MEMBERS:
            if how in asked and any(map(read.search, below)):
                return construct, kind
        held = spot.variables.get(_base(construct.name).partition(".variables")[0])
        if how == "whole" and held is not None and held.type in _IN_C:
            return construct, "dataset"
    return None


def reads_member(spot: CodeSpot) -> bool:
    """Return whether a line reads a member again that its source names."""
    return _member(spot) is not None


def _is_of_one_object(spot: CodeSpot, construct: Construct) -> bool:
    """Return whether the member is not an attribute of the method's own object, or that object is always the same."""
    if not construct.name.startswith("self.") or construct.how.endswith("loop"):
        return True
    function = last_name((spot.where.function or "").partition(".<locals>")[0])
    return spot.caller_code is not None and any(
        each.name == function for each in spot.caller_code.find("asks")
    )


def _base(name: str) -> str:
    """Return `self.data` of `self.data['t2m']` and of `self.data.read('t2m')`."""
    return re.sub(r"(\.\w+\(|\[).*", "", name)


def factorised_again(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return an unchanged matrix that is factorised again for each product or solution with it."""
    for construct in spot.code.find("same-matrix") if spot.code is not None else ():
        name, *_ = construct.how.split()
        function, times = last_name(name), _times(spot, construct)
        if times < SEVERAL or spot.seconds < FACTORISING * times or not _takes_it(spot, function):
            continue
        held = spot.variables.get(construct.name)
        others = [
            each.length or 0
            for other, each in spot.variables.items()
            if other != construct.name and each.type.startswith("numpy.ndarray")
        ]
        size = (held.length or 0) if held is not None else 0
        if size > 0 and max(others, default=0) > THIN * size and function not in _FORMS:
            continue
        key = "matrix" if function in _FORMS else "sparse" if "sparse" in name else "solve"
        return say(
            spot,
            "repeated-work",
            f"{construct.name} is factorised again {count_text(times, 'time')}, and stays the same",
            f"{name} gets the same matrix each time; {calls_text(spot)}",
            spot.share * (1 - 1 / times),
            change=words(f"repeated-work.{key}", "host").format(name=construct.name, function=name),
        )
    return None


def fitted_again(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a model of scikit-learn that is fitted to the same data again for each item."""
    for construct in spot.code.find("same-fit") if spot.code is not None else ():
        times = _times(spot, construct)
        fits = any("/sklearn/" in with_slashes(frame.file) and frame.value >= MOSTLY for frame in spot.below)
        if times < SEVERAL or not fits or spot.seconds < FACTORISING * times:
            continue
        return say(
            spot,
            "repeated-work",
            f"{construct.name} is fitted to the same data {count_text(times, 'time')}",
            f"neither the data nor the parameters change; {format_quantity(spot.seconds / times, 's')} each time",
            spot.share * (1 - 1 / times),
            change=words("repeated-work.fit", "host"),
        )
    return None


def called_again(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a function without effect that gets the same arguments in each iteration of a loop."""
    found = [_call_again(document, spot, each) for each in (spot.code.find("same-call") if spot.code else ())]
    return max(
        (insight for insight in found if insight is not None),
        key=lambda insight: insight.gain.at_most if insight.gain is not None else 0.0,
        default=None,
    )


def _call_again(document: RunDocument, spot: CodeSpot, construct: Construct) -> Insight | None:
    again, every, text = construct.how.split(maxsplit=2)
    part = int(again) / int(every)
    whole = profile_of(document, "own-time")
    edges = [
        edge
        for edge in calls_from(document, spot)
        if edge.callee is not None and edge.callee.function == construct.name
    ]
    own = [edge for edge in edges if edge.callee is not None and edge.callee.file == spot.where.file]
    if spot.kind == "calls":
        times = int(part * sum(edge.calls or 0 for edge in own))
        taken = sum(edge.total or edge.own for edge in own)
        share = min(spot.share, taken / whole.total if whole is not None and whole.total > 0 else 0.0) * part
    else:
        if own or not _takes_it(spot, construct.name):
            return None
        under = (
            spot.under.calls if spot.under is not None and last_name(spot.under.name) == construct.name else 0
        )
        times = int(part * max(spot.executions or 0, under or 0, sum(edge.calls or 0 for edge in edges)))
        share = spot.share * part
    if times < MIN_CALLS:
        return None
    return say(
        spot,
        "repeated-work",
        f"{text} is computed again in each pass of the loop, {count_text(times, 'time')}, from what stays the same",
        f"nothing in the loop changes what {construct.name} gets; {calls_text(spot)}".rstrip("; "),
        share * (1 - 1 / times),
        change=words("repeated-work.call", "host").format(name=text),
    )


def _times(spot: CodeSpot, construct: Construct) -> int:
    """Return how often a line did the same work, as far as it was counted; 0 if its caller may pass something else."""
    places = [word for word in construct.how.split() if word.isdigit()]
    looped = spot.code is not None and spot.code.loop is not None
    if places and not looped:
        given = spot.caller_code.find("gives") if spot.caller_code is not None else ()
        function = last_name(spot.where.function or "")
        if not any(each.name == function and set(places) <= set(each.how.split()) for each in given):
            return 0
    under = spot.under
    called = {last_name(name) for name in called_names(spot)}
    below = (under.calls or 0) if under is not None and last_name(under.name) in called else 0
    return max(spot.executions or 0, below, 0 if looped else spot.calls or 0)


FEWER_OBJECTS = 10  # calls for each object that was made


def _times_of_one_object(document: RunDocument, spot: CodeSpot, construct: Construct) -> int:
    """Return how often a method's call did the same work with what its object keeps; 0 where there are many objects."""
    places = {word for word in construct.how.split() if word.isdigit()}
    own = spot.caller_code.find("gives-own") if spot.caller_code is not None else ()
    function = last_name(spot.where.function or "")
    if not places or not any(call.name == function and places <= set(call.how.split()) for call in own):
        return 0
    profile = profile_of(document, "own-time")
    made = [
        row.calls or 0
        for row in (profile.hotspots if profile is not None else ())
        if row.function == "__init__" and row.file == spot.where.file
    ]
    times = spot.calls or 0
    return times if made and times >= FEWER_OBJECTS * max(made) else 0


def _takes_it(spot: CodeSpot, function: str) -> bool:
    """Return whether a function takes a line's time: samples saw it there, or the line calls nothing else."""
    under = last_name(spot.under.name) if spot.under is not None and spot.under.name else ""
    below = any(last_name(frame.function) == function and frame.value >= MOSTLY for frame in spot.below)
    called = {last_name(name) for name in called_names(spot)}
    return below or under == function or (not under.strip("_") and called == {function})


def item_again(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return items of a dataset that are made again in each pass over it: there were more calls than items."""
    made = spot.code.find("item-of") if spot.code is not None and not spot.partial else ()
    lists = [spot.variables[one.name] for one in made if one.name in spot.variables]
    items = max((held.length or 0 for held in lists if held.type in ("list", "tuple")), default=0)
    if not items or (spot.calls or 0) < PASSES * items:
        return None
    function = (spot.where.file, spot.where.function)
    together = [
        other for other in document.hot_spots if (other.where.file, other.where.function) == function
    ] or [spot]
    if spot is not max(together, key=lambda other: other.share, default=spot):
        return None
    times = (spot.calls or 0) / items
    return say_together(
        together,
        "repeated-work",
        "Each item is made again in each pass over the data, and comes out the same",
        f"{count_text(spot.calls or 0, 'call')} for {items:,} items, about {times:.0f} times each; what it does "
        f"depends on the number {made[0].how} alone",
        sum(other.share for other in together) * (1 - 1 / times),
        words("repeated-work.items", "host"),
    )


PATTERNS: tuple[Find, ...] = (
    item_again,
    read_again,
    member_again,
    factorised_again,
    fitted_again,
    called_again,
)
OF_CALLS: tuple[Find, ...] = (called_again, read_again)
