"""Python: which functions of the program its time goes to, and what importing cost apart from that."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.summaries.pick import unavailable
from profkit.analysis.summaries.tables import TOP, share, where
from profkit.core.formatting import percent, quantity
from profkit.core.types import RUN, Hotspot, Profile, Reading, Source, Summary, Table

# The titles that the cProfile reader gives its profiles; times in seconds.
OWN, CUMULATIVE, CALLS, IMPORTS = TITLES = (
    "own time by function",
    "cumulative time by function",
    "calls by function",
    "import time by module",
)
IMPORT_ROWS = 5  # modules worth a row: below the fifth the rest is small change
LEAST = 0.001  # share below which a function is not worth a row: a hundred of them are still a tenth


def summarize_python(profiles: Sequence[Profile], missing: Reading | None = None) -> Summary:
    """Top functions by own and by cumulative time, import time apart.

    `missing` says why there is no cProfile, where there is none. cProfile slows Python code and not native
    code: shares lean towards small Python functions, and the times are not those of the timing pass.
    """
    found = {profile.title: profile for profile in profiles if profile.title in TITLES}
    own, imports = found.get(OWN), found.get(IMPORTS)
    if own is None:
        reading = missing or unavailable("time.python", RUN, "there is no cProfile file")
        note = (f"To have it: {reading.fix}",) if reading.fix else ()
        return Summary(
            "python", f"Where Python's time goes is not known: {reading.reason}.", (reading,), (), note
        )
    imported = imports.total if imports is not None else 0.0
    readings = [
        _told("time.python", max(0.0, own.total - imported), "own time of all functions - import time")
    ]
    if imports is not None:
        readings.append(_told("time.import", imports.total, "cumulative time of the import system"))
    tables = [_by_own(own)]
    if CUMULATIVE in found:
        tables.append(_by_cumulative(found[CUMULATIVE]))
    if imports is not None and imports.hotspots:
        tables.append(_by_module(imports))
    return Summary("python", _headline(own, imports), tuple(readings), tuple(tables), _notes(own, imports))


def _told(name: str, seconds: float, formula: str) -> Reading:
    return Reading(name, seconds, "s", "measured", RUN, Source("cprofile", formula=formula))


def _headline(own: Profile, imports: Profile | None) -> str:
    apart = f", {quantity(imports.total, 's')} of it imports" if imports is not None else ""
    if not own.hotspots:
        return f"cProfile saw {quantity(own.total, 's')}{apart}."
    top = own.hotspots[0]
    return (
        f"{where(top)} has the most own time, {share(top.own, own.total)} of"
        f" {quantity(own.total, 's')} under cProfile{apart}."
    )


def _by_own(profile: Profile) -> Table:
    rows = tuple(
        (where(spot), quantity(spot.own, "s"), share(spot.own, profile.total), _calls(spot))
        for spot in profile.hotspots[:TOP]
        if spot.own > LEAST * profile.total
    )
    return Table("Python functions by own time", ("function", "own", "share", "calls"), rows)


def _by_cumulative(profile: Profile) -> Table:
    ordered = sorted(profile.hotspots, key=lambda spot: -(spot.total or 0.0))
    rows = tuple(
        (where(spot), quantity(spot.total, "s"), share(spot.total or 0.0, profile.total), _calls(spot))
        for spot in ordered[:TOP]
        if spot.total and spot.total > LEAST * profile.total
    )
    return Table("Python functions with all they call", ("function", "total", "share", "calls"), rows)


def _by_module(profile: Profile) -> Table:
    ordered = sorted(profile.hotspots, key=lambda spot: -(spot.total or 0.0))
    rows = tuple(
        (_module(spot), quantity(spot.total, "s"), share(spot.total or 0.0, profile.total))
        for spot in ordered[:IMPORT_ROWS]
    )
    return Table("Imports, each with what it imports in turn", ("module", "total", "share"), rows)


def _module(spot: Hotspot) -> str:
    """The module's file, short: `torch/__init__.py` is told by its last two parts."""
    parts = (spot.file or spot.function).replace("\\", "/").split("/")
    return "/".join(parts[-2:])


def _calls(spot: Hotspot) -> str:
    return quantity(float(spot.calls), "count") if spot.calls is not None else "-"


def _notes(own: Profile, imports: Profile | None) -> tuple[str, ...]:
    notes = [
        "cProfile slows Python code more than native code: compare shares, not seconds, with other passes."
    ]
    if imports is not None and own.total > 0 and imports.total > 0.5 * own.total:
        part = percent(100 * imports.total / own.total)
        notes.append(
            f"Imports are {part} % of what was profiled: mark the work with profkit.region to see past them."
        )
    return tuple(notes)
