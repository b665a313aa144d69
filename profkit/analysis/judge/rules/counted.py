"""Reads what several rules need: the samples below a place, and how often a function ran according to cProfile."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import CodeSpot, Hotspot, Profile, ProfileKind, RunDocument


def profile_of(document: RunDocument, kind: ProfileKind) -> Profile | None:
    """Return the profile of a kind; None if there is none."""
    return next((profile for profile in document.profiles if profile.kind == kind), None)


def with_slashes(file: str | None) -> str:
    """Return a path as it is written on Linux; empty if none is known."""
    return (file or "").replace("\\", "/")


def last_name(function: str) -> str:
    """Return `execute_sql` of `SQLCompiler.execute_sql`."""
    return function.rpartition(".")[2]


def share_below(spot: CodeSpot, function: str, files: tuple[str, ...]) -> float:
    """Return the share (0..1) of a place's time in a library's function anywhere below it."""
    return max(
        (
            frame.value
            for frame in spot.below
            if last_name(frame.function) == function and with_slashes(frame.file).endswith(files)
        ),
        default=0.0,
    )


def counted_function(document: RunDocument, function: str, files: tuple[str, ...]) -> Hotspot | None:
    """Return a library's function as cProfile counted it in the whole run."""
    profile = profile_of(document, "own-time")
    same = (
        row
        for row in (profile.hotspots if profile is not None else ())
        if row.function == function and with_slashes(row.file).endswith(files)
    )
    return max(same, key=lambda row: row.calls or 0, default=None)


def calls_from(document: RunDocument, spot: CodeSpot, caller: str | None = None) -> Iterator[Hotspot]:
    """Yield the calls that the function of a place makes, or another function of its file, by cProfile's counts."""
    profile = profile_of(document, "program-calls")
    name = last_name(caller if caller is not None else spot.where.function or "")
    for row in profile.hotspots if profile is not None else ():
        if row.callee is not None and (row.function, row.file) == (name, spot.where.file):
            yield row
