"""The trace: which functions and libraries, native and Python, the samples fell on."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.summaries.python import TITLES
from profkit.analysis.summaries.tables import TOP, share, where
from profkit.core.formatting import percent, shortened
from profkit.core.types import Profile, Reading, Summary, Table

# A share of n samples is known to about sqrt(p * (1 - p) / n): with fewer than these, 10 % may be 4 or 16.
ENOUGH_SAMPLES = 100


def is_traced(profile: Profile) -> bool:
    """True for a profile that samples were added up to, by function, library or thread."""
    named = profile.title.endswith((" by function", " by library", " by thread", " by Python function"))
    counted = any("Ir" in spot.counters for spot in profile.hotspots) or profile.unit == "instructions"
    return named and not counted and profile.title not in TITLES


def summarize_trace(profiles: Sequence[Profile], missing: Reading | None = None) -> Summary | None:
    """Hottest functions and libraries; None where nothing was sampled and `missing` does not say why."""
    traced = [profile for profile in profiles if is_traced(profile)]
    if not traced:
        if missing is None:
            return None
        note = (f"To have it: {missing.fix}",) if missing.fix else ()
        return Summary(
            "trace", f"Where time goes in native code is not known: {missing.reason}.", (), (), note
        )
    functions = next((p for p in traced if p.title.endswith(" by function") and p.hotspots), None)
    libraries = next((p for p in traced if p.title.endswith(" by library") and p.hotspots), None)
    python = next((p for p in traced if p.title.endswith(" by Python function") and p.hotspots), None)
    tables = [_functions("Python functions by samples", python)] if python is not None else []
    if functions is not None:
        tables.append(_functions("Functions by samples", functions))
    if libraries is not None:
        tables.append(_libraries(libraries))
    return Summary(
        "trace", _headline(python or functions, libraries), (), tuple(tables), _notes(functions or traced[0])
    )


def _headline(functions: Profile | None, libraries: Profile | None) -> str:
    parts: list[str] = []
    if functions is not None:
        top = next((s for s in functions.hotspots if not s.function.startswith("[")), functions.hotspots[0])
        parts.append(f"{where(top)} takes {share(top.own, functions.total)} of the samples")
    if libraries is not None:
        top = libraries.hotspots[0]
        parts.append(f"{shortened(top.function, 40)} as a library {share(top.own, libraries.total)}")
    return f"{', '.join(parts)}." if parts else "The trace holds no sample."


def _functions(title: str, profile: Profile) -> Table:
    rows = tuple(
        (
            where(spot, 52),
            share(spot.own, profile.total),
            share(spot.total, profile.total) if spot.total is not None else "-",
        )
        for spot in profile.hotspots[:TOP]
        if spot.own > 0
    )
    return Table(title, ("function", "own", "with callees"), rows)


def _libraries(profile: Profile) -> Table:
    rows = tuple(
        (shortened(spot.function, 52), share(spot.own, profile.total))
        for spot in profile.hotspots[:TOP]
        if spot.own > 0
    )
    return Table("Libraries by samples", ("library", "own"), rows)


def _notes(profile: Profile) -> tuple[str, ...]:
    notes: list[str] = []
    if profile.unit == "samples" and profile.total < ENOUGH_SAMPLES:
        notes.append(f"Only {profile.total:.0f} samples: shares are rough. A longer region gives more.")
    unknown = sum(spot.own for spot in profile.hotspots if spot.function in ("[unknown]", ""))
    if profile.total > 0 and unknown > 0.1 * profile.total:
        part = percent(100 * unknown / profile.total)
        notes.append(
            f"{part} % of the samples have no symbol: their libraries are stripped of function names."
        )
    return tuple(notes)
