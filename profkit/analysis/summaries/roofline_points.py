"""The roofline as plain data: the roofs of this machine or device, and what stands under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.analysis.summaries.kernel_roofline import PRECISIONS, Place, hidden_tensor, place
from profkit.analysis.summaries.kernels import BOUNDS, KernelRow
from profkit.analysis.summaries.pick import best, main_scopes
from profkit.analysis.summaries.work import work_of
from profkit.core.formatting import percent, quantity
from profkit.core.types import RUN, Reading, RunDocument, Source

MOST = 12  # points that are told apart on a screen; kernels are in the order of their time


@dataclass(frozen=True)
class Roof:
    """One limit: bytes/s of a memory (a slope), or FLOP/s of a kind of arithmetic (a level)."""

    name: str
    peak: float
    kind: str  # "memory" or "compute"
    estimated: bool = False
    main: bool = (
        True  # False: of other threads than the workload uses, or of arithmetic that nothing here does
    )
    reading: Reading | None = None  # what it comes from


@dataclass(frozen=True)
class Spot:
    """Something that does arithmetic: `intensity` in FLOP/B, `rate` in FLOP/s, `share` of the time (0..1) or None.

    `quality` is None where all of it was measured; `bound` says what limits it, `told` everything in one sentence.
    """

    label: str
    intensity: float
    rate: float
    share: float | None
    under: str  # the kind of arithmetic that it does most of
    quality: str | None
    bound: str | None
    told: str
    reading: Reading | None = None  # what it comes from


@dataclass(frozen=True)
class LeftOut:
    """Kernels that have no place for one reason: how many, their share of the time (0..1), the one with most first."""

    reason: str
    count: int
    share: float
    first: str


@dataclass(frozen=True)
class Roofline:
    """Roofs and spots; `left_out` are the kernels whose place is not known, by the reason."""

    roofs: tuple[Roof, ...]
    spots: tuple[Spot, ...]
    left_out: tuple[LeftOut, ...] = ()
    further: int = 0  # spots known and not listed


def roofline_of(document: RunDocument, rows: Sequence[KernelRow]) -> Roofline | None:
    """What can be drawn of a document and its kernels; None where there is no point with a roof above it."""
    found = _of_device(rows) if document.backend == "cuda" else _of_processor(document)
    return found if found is not None and found.spots else None


def _of_device(rows: Sequence[KernelRow]) -> Roofline:
    placed = [(row, here) for row in rows if (here := place(row)) is not None]
    known = [(row, here) for row, here in placed if here.intensity and here.rate > 0]
    there = {row.scope for row, _ in known}
    return Roofline(
        _device_roofs(rows, [here for _, here in known]),
        tuple(_kernel(row, here) for row, here in known[:MOST]),
        left_out([row for row in rows if row.scope not in there]),
        max(0, len(known) - MOST),
    )


def left_out(rows: Sequence[KernelRow]) -> tuple[LeftOut, ...]:
    """Why kernels have no place, the reason that costs most time first."""
    found: dict[str, list[KernelRow]] = {}
    for row in rows:
        found.setdefault(_why_not(row), []).append(row)
    told = [
        LeftOut(reason, len(same), sum(row.share or 0.0 for row in same), same[0].label)
        for reason, same in found.items()
    ]
    return tuple(sorted(told, key=lambda one: -one.share))


def _why_not(row: KernelRow) -> str:
    if not row.readings:
        return "not counted"
    if row.value("bandwidth.dram") is None or not row.value("bandwidth.dram.peak"):
        return "its memory traffic is not counted"
    if hidden_tensor(row):
        return "what its tensor cores do is not counted"
    if place(row) is None:
        return "no arithmetic of it is counted"
    return "it does no arithmetic, or no memory traffic"


def _device_roofs(rows: Sequence[KernelRow], places: Sequence[Place]) -> tuple[Roof, ...]:
    """The highest that any kernel's own peak came to: they follow the clock, which moves a little."""
    used = {here.kind for here in places}
    found = []
    if (top := _highest(rows, "bandwidth.dram.peak")) is not None:
        found.append(Roof("DRAM", top.value or 0.0, "memory", reading=top))
    tensor = [here.peak for here in places if here.kind == "tensor"]
    if tensor:
        found.append(Roof("tensor", max(tensor), "compute", estimated=True))
    for key, name in PRECISIONS.items():
        top = _highest(rows, f"flops.peak.{key}")
        if top is not None and (name in used or key == "f32"):
            found.append(Roof(name, top.value or 0.0, "compute", main=name in used, reading=top))
    return tuple(found)


def _highest(rows: Sequence[KernelRow], metric: str) -> Reading | None:
    """The reading with the largest value above zero."""
    known = [row.readings[metric] for row in rows if row.value(metric)]
    return max(known, key=lambda reading: reading.value or 0.0, default=None)


def _kernel(row: KernelRow, here: Place) -> Spot:
    bound = BOUNDS[row.bound.bound] if row.bound is not None and row.bound.bound != "unknown" else None
    told = _sentence(row.brief, here.intensity or 0.0, here.rate, here.attainable, here.kind, row.share)
    return Spot(
        row.label,
        here.intensity or 0.0,
        here.rate,
        row.share,
        here.kind,
        "estimated" if here.estimated else None,
        bound,
        f"{told}; limited by {bound}" if bound else told,
        row.readings.get("roofline.share") or _rate(row, here),
    )


def _rate(row: KernelRow, here: Place) -> Reading | None:
    key = next((key for key, word in PRECISIONS.items() if word == here.kind), None)
    return row.readings.get(f"flops.rate.{key}" if key is not None else "flops.tensor")


def _of_processor(document: RunDocument) -> Roofline | None:
    peaks = document.peaks
    if peaks is None:
        return None
    scopes = main_scopes(document)
    names = ("arithmetic_intensity", "flops.rate", "roofline.attainable")
    intensity, rate, attainable = (best(document.readings, name, scopes) for name in names)
    if not _above_zero(intensity) or not _above_zero(rate):
        return None
    assert intensity is not None
    assert rate is not None
    _, limit = work_of(document)
    roofs = []
    for name, kind, one, every in (
        ("DRAM", "memory", peaks.bandwidth_one, peaks.bandwidth_all),
        ("float32", "compute", peaks.flops_f32_one, peaks.flops_f32_all),
    ):
        for threads, peak in ((1, one), (peaks.threads, every)):
            if peak and not (threads == 1 and peaks.threads == 1 and peak is every):
                words = f"{name}, {threads} thread{'s' if threads > 1 else ''}"
                unit = "B/s" if kind == "memory" else "FLOP/s"
                made = Source("profkit", formula=peaks.method)
                told = Reading(f"{words}, peak", peak, unit, "measured", RUN, made)
                roofs.append(Roof(words, peak, kind, main=threads == limit.threads, reading=told))
    label = scopes[0].name or document.name
    most = attainable.value if attainable is not None else None
    words = _sentence(label, intensity.value or 0.0, rate.value or 0.0, most, "float32", None)
    quality = rate.quality if rate.quality != "measured" else None
    spot = Spot(label, intensity.value or 0.0, rate.value or 0.0, 1.0, "float32", quality, None, words, rate)
    return Roofline(tuple(roofs), (spot,))


def _above_zero(reading: Reading | None) -> bool:
    return reading is not None and reading.value is not None and reading.value > 0


def _sentence(
    name: str, intensity: float, rate: float, attainable: float | None, kind: str, share: float | None
) -> str:
    part = f" ({percent(100 * share)} % of the time)" if share is not None else ""
    of_roof = f", {percent(100 * rate / attainable)} % of what its roof allows" if attainable else ""
    return f"{name}{part}: {quantity(rate, 'FLOP/s')} {kind} at {quantity(intensity, 'FLOP/B')}{of_roof}"
