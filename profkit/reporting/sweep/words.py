"""What all views of a sweep say alike: titles, letters, numbers, what is missing, and how it was measured."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from profkit.analysis.ranking.ranking import BAD as BAD
from profkit.analysis.ranking.ranking import ComparisonGroup, ImplementationRanking, efficiency
from profkit.core.formatting import (
    format_figures,
    format_percent,
    format_quantity,
    format_utc_time,
    plural,
    shorten,
)
from profkit.core.types import CaseResult, CaseState, SweepDocument
from profkit.reporting.plain_text import without_control_characters

CLOCKS = {"cuda-events": "the device's own clock", "wall": "the wall clock"}
ALIKE, NOTHING = "=", "."
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True)
class Missing:
    """Cases of one implementation that have no time for one reason, whatever numbers stand in it: that of the first."""

    state: CaseState
    implementation: str
    reason: str
    fix: str | None
    cases: int
    panels: int
    first: str  # the name of the first point

    @property
    def told(self) -> str:
        """`GELU forward float32 16x256x8 and 111 more of 5 panels`."""
        more = f" and {self.cases - 1} more" if self.cases > 1 else ""
        return self.first + more + (f" of {self.panels} panels" if self.panels > 1 else "")


def short_titles(document: SweepDocument) -> dict[str, str]:
    """Of each panel's title what is not the same in all of them: `LayerNorm` where all are forward float32."""
    points = [result.point for result in document.results]
    directions, dtypes = {p.direction for p in points}, {p.dtype for p in points}
    found = {}
    for p in points:
        words = [p.operation]
        words += [p.direction] if len(directions) > 1 else []
        words += [p.dtype] if len(dtypes) > 1 else []
        found[f"{p.operation} {p.direction} {p.dtype}"] = " ".join(words)
    return found


def head_line(document: SweepDocument) -> str:
    """`2240 of 2240 cases measured in 3.8 min`; what is left of a sweep that was interrupted."""
    measured = sum(1 for result in document.results if result.state == "measured")
    left = document.planned - len(document.results)
    told = f"{measured} of {plural(max(document.planned, len(document.results)), 'case')}"
    told += f" measured in {lasted(document.seconds)}"
    return told + (f"; interrupted, {left} left" if left > 0 else "")


def how(document: SweepDocument) -> tuple[tuple[str, str], ...]:
    """How it was measured, as (what, words)."""
    timed = [result for result in document.results if result.median]
    facts = [("Started", format_utc_time(document.started))]
    roofs = document.roofs
    if roofs.bandwidth and roofs.flops:
        reached = f"{format_quantity(roofs.bandwidth, 'B/s')} and {format_quantity(roofs.flops, 'FLOP/s')} in float32"
        facts.append(("Roofline", f"{reached}, measured: {without_control_characters(roofs.method)}"))
    else:
        facts.append(("Roofline", "not measured, so no share is shown"))
    if timed:
        clocks = " and ".join(sorted({CLOCKS[r.clock] for r in timed if r.clock})) or "an unknown clock"
        caches = " and ".join(sorted({f"{r.cache} cache" for r in timed if r.cache}))
        several = sorted({r.calls for r in timed})
        what = "single calls" if several == [1] else f"means of {' or '.join(map(str, several))} calls"
        facts.append(("Times", f"medians of {what} by {clocks}" + (f", {caches}" if caches else "")))
        facts.append(("Precision", _precision(timed)))
    speeds = sorted(clock for result in timed for clock in result.clocks)
    if speeds:
        low, high = format_quantity(speeds[0], "Hz"), format_quantity(speeds[-1], "Hz")
        facts.append(("Clock", f"{low}" if low == high else f"{low} to {high}"))
    devices = {result.device for result in timed if result.device is not None}
    if len(devices) > 1:
        facts.append(("Devices", f"{len(devices)} shared the cases"))
    for word, count in tallied(r.throttled for r in timed).items():
        facts.append(("Held down", f"in {plural(count, 'case')}: {without_control_characters(word)}"))
    for word, count in tallied(r.remarks for r in timed).items():
        facts.append(("Mind", f"in {plural(count, 'case')}: {without_control_characters(word)}"))
    errors = [result.error for result in timed if result.error is not None]
    if errors:
        facts.append(
            ("Correctness", f"against float64; largest error {max(errors):.2f} of what rounding explains")
        )
    if document.overhead is not None:
        facts.append(
            (
                "Overhead",
                f"in {format_percent(100 * document.overhead)} % of the time nothing was compiled, checked or timed",
            )
        )
    if document.versions:
        told = ", ".join(f"{name} {version}" for name, version in document.versions.items())
        facts.append(("Versions", without_control_characters(told)))
    return tuple(facts)


def _precision(timed: Sequence[CaseResult]) -> str:
    widths = sorted(result.half_width for result in timed if result.half_width is not None)
    if not widths:
        return "no interval is known"
    vague = sum(not result.precise for result in timed)
    middle = format_percent(100 * widths[(len(widths) - 1) // 2])
    told = f"half of the medians are known to ± {middle} % or better (95 % intervals)"
    return told + (f"; {plural(vague, 'median')} less well than was asked" if vague else "")


def missing(document: SweepDocument) -> tuple[Missing, ...]:
    """Cases without a time by reason: what is wrong first, then what does not fit or cannot be had."""
    cases: dict[tuple[CaseState, str, str], list[CaseResult]] = defaultdict(list)
    for r in document.results:
        if r.state != "measured":
            cases[r.state, r.implementation, _NUMBERS.sub("#", r.reason or "")].append(r)
    found = []
    for (state, name, _), group in cases.items():
        kinds = {(r.point.operation, r.point.direction, r.point.dtype) for r in group}
        first = group[0]
        found.append(
            Missing(state, name, first.reason or "", first.fix, len(group), len(kinds), first.point.name)
        )
    return tuple(sorted(found, key=lambda one: one.state not in BAD))


def profiled(document: SweepDocument) -> tuple[CaseResult, ...]:
    """Cases that have a run of their own, which says why they take as long as they do."""
    return tuple(result for result in document.results if result.profile)


def case_line(result: CaseResult, document: SweepDocument) -> str:
    """`Triton, GELU forward float32 16x256x8: 5.11 µs, 12 % of its roofline`."""
    share = efficiency(result, document.roofs)
    told = f"{called(result.implementation)}, {result.point.name}: {format_quantity(result.median, 's')}"
    return told + (f", {told_share(share)} of its roofline" if share is not None else "")


def counted(document: SweepDocument, states: Sequence[CaseState]) -> str:
    """`61 wrong, 2 crashed`."""
    numbers = {state: sum(r.state == state for r in document.results) for state in states}
    return ", ".join(f"{number} {state}" for state, number in numbers.items() if number)


def tallied(words: Iterable[Sequence[str]]) -> dict[str, int]:
    """How many cases have each word: why the device held its clock down, or what is to be minded."""
    found: dict[str, int] = defaultdict(int)
    for told in words:
        for word in told:
            found[word] += 1
    return dict(found)


def gaps(standing: ImplementationRanking) -> str:
    """Why some of its cases have no time."""
    without = standing.cases - standing.measured
    return f"{without} of {standing.cases} not measured, mostly {without_control_characters(standing.why_not or '')}"


def letters(document: SweepDocument) -> Mapping[str, str]:
    """One letter for each implementation, the same in all panels.

    Its first one where nobody else has it; those that begin with a capital choose first.
    """
    names = tuple(dict.fromkeys(result.implementation for result in document.results))
    found: dict[str, str] = {}
    for name in sorted(names, key=lambda name: not name[:1].isupper()):
        spare = f"{name}ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        signs = (sign.upper() for sign in spare if sign.isascii() and sign.isalnum())
        found[name] = next((sign for sign in signs if sign not in found.values()), "?")
    return {name: found[name] for name in names}


def legend(panel: ComparisonGroup, signs: Mapping[str, str]) -> str:
    """`P PyTorch, O torch.compile`."""
    return ", ".join(f"{signs[name]} {called(name)}" for name in panel.implementations)


def ratio(value: float | None) -> str:
    """A speed-up: `1.62 x`, `44.4 x`."""
    if value is None:
        return "-"
    if value < 0.1:
        return f"{format_figures(value, 2)} x"
    return (
        f"{value:.2f} x"
        if value < 10
        else f"{value:.1f} x"
        if value < 1000
        else f"{format_quantity(value)} x"
    )


def span(least: float | None, most: float | None) -> str:
    """From the least speed-up to the largest: `0.72-44.4`."""
    if least is None or most is None:
        return ""
    return f"{ratio(least)[:-2]}-{ratio(most)[:-2]}"


def told_share(share: float | None) -> str:
    """A share of the roofline: `8.2 %`, `91 %`."""
    if share is None:
        return "-"
    if share < 0.1:
        return f"{format_percent(100 * share)} %"
    return f"{100 * share:.0f} %" if share < 10 else f"{format_quantity(100 * share)} %"


def lasted(seconds: float) -> str:
    """`48 s`, `3.8 min`, `2.1 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def called(name: str) -> str:
    """What an implementation is called, in a sentence."""
    return shorten(without_control_characters(name), 40)
