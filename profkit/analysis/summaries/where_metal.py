"""Where the time of an Apple GPU goes, as shares of a whole: of the process' window, and of its work by encoder."""

from __future__ import annotations

from profkit.analysis.summaries.metal_told import INTERVALS, STATES, SUBMITTED, TOOL
from profkit.analysis.summaries.where_time import MOST, Part, Whole
from profkit.core.formatting import percent, quantity
from profkit.core.types import RUN, MetalTrace, MetalWork, Reading, Source

HOST = "the host had submitted nothing"
WAITING = "submitted, and not begun"
OTHERS = "others had the GPU"


def where_metal_goes(trace: MetalTrace) -> tuple[Whole, ...]:
    """The process' time, by what it did or waited for, and its GPU time by encoder; empty where neither is told."""
    found = (_window(trace) or _span(trace), works("The process' GPU time, by encoder", trace.encoders))
    return tuple(whole for whole in found if whole is not None and whole.parts)


def _window(trace: MetalTrace) -> Whole | None:
    """From the first submission of the process to its last; None where it is not known what the gaps waited for."""
    whole, busy = trace.window, trace.process_busy
    if not whole or busy is None or trace.unsubmitted is None:
        return None
    rest = max(0.0, whole - busy - trace.unsubmitted - (trace.blocked or 0.0))
    told = (
        ("the process works on the GPU", busy, False, INTERVALS, "union of its intervals / window"),
        (HOST, trace.unsubmitted, True, SUBMITTED, "gaps in which nothing was submitted / window"),
        (OTHERS, trace.blocked or 0.0, True, INTERVALS, "gaps with work submitted, others on it / window"),
        (WAITING, rest, True, SUBMITTED, "the rest of the gaps / window"),
    )
    return _whole("From the process' first submission to its last", whole, told)


def _span(trace: MetalTrace) -> Whole | None:
    """All that was recorded, where no window is known: who had the GPU."""
    whole, busy = trace.span, trace.process_busy
    if not whole or busy is None:
        return None
    others = trace.others
    if others is None and trace.device_busy is not None:
        others = max(0.0, trace.device_busy - busy)
    told = [("the process works on the GPU", busy, False, INTERVALS, "union of its intervals / span")]
    if others is not None:
        told.append((OTHERS, others, True, STATES, "busy without the process / span"))
        told.append(
            ("nobody works on the GPU", max(0.0, whole - busy - others), True, STATES, "the rest / span")
        )
    else:
        told.append(("the process does not", max(0.0, whole - busy), True, INTERVALS, "the rest / span"))
    return _whole("The time that was recorded", whole, told)


def _whole(
    title: str,
    seconds: float,
    told: tuple[tuple[str, float, bool, str, str], ...] | list[tuple[str, float, bool, str, str]],
) -> Whole:
    parts = tuple(
        Part(
            name,
            min(1.0, part / seconds),
            f"{name}: {quantity(part, 's')}, {percent(100 * part / seconds)} %",
            idle,
            share_of("Share of the time", 100 * part / seconds, table, formula),
        )
        for name, part, idle, table, formula in told
        if part > 0
    )
    return Whole(title, seconds, parts)


def works(title: str, found: tuple[MetalWork, ...]) -> Whole | None:
    """GPU time by encoder, shader or channel: shares of their sum, since some may run side by side.

    None of one alone, and of no time.
    """
    total = sum(one.seconds for one in found)
    if total <= 0 or len(found) < 2:
        return None
    formula = "its time / the time of all of them"
    largest = sorted(found, key=lambda one: -one.seconds)
    parts = [
        Part(
            one.name,
            one.seconds / total,
            f"{one.name}: {quantity(one.seconds, 's')}, {percent(100 * one.seconds / total)} %",
            reading=share_of("GPU time, share", 100 * one.seconds / total, INTERVALS, formula),
        )
        for one in largest[:MOST]
    ]
    rest = sum(one.seconds for one in largest[MOST:])
    if rest > 0:
        parts.append(Part(f"{len(largest) - MOST} smaller ones", rest / total, "smaller ones"))
    return Whole(title, total, tuple(parts))


def share_of(name: str, value: float, table: str, formula: str) -> Reading:
    """A share in % as a reading: it leads to the table that it was computed from, and to how."""
    return Reading(name, value, "%", "measured", RUN, Source(TOOL, table, formula=formula))
