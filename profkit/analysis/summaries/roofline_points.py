"""Where kernels, operations and functions stand below the roofs: FLOP per byte of DRAM, and FLOP per second.

Only those of which both are known: counted, or by the shapes of an operation's arguments, which give the least that it
needs. Roofs are those of the clock that the counters ran at, or of the machine as it was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from profkit.analysis.account.device import runs_on_tensor_cores
from profkit.analysis.summaries.host import is_disturbed
from profkit.analysis.summaries.kernels import KernelRow, kernel_rows
from profkit.analysis.summaries.readings import find_reading
from profkit.analysis.summaries.roofline import RooflinePlace, place_kernel, work_of
from profkit.analysis.timeline.products import operand_type, tensor_peak
from profkit.core.types import NOWHERE, GpuOperation, Place, RunDocument, Scope

_TITLES = {"f32": "FP32", "f64": "FP64", "f16": "FP16"}


@dataclass(frozen=True)
class RooflinePoint:
    """One kernel, operation or function: FLOP per byte, FLOP per second, and the roof of its arithmetic.

    `share` (0..1) is of the time that all have, those that are not drawn too.
    """

    name: str
    share: float
    seconds: float
    intensity: float
    rate: float
    roof: str  # a key of the model's `arithmetic`
    counted: bool  # else it is the least that its shapes need
    where: Place = NOWHERE


@dataclass(frozen=True)
class RooflineModel:
    """The roofs, in bytes/s and FLOP/s by kind of arithmetic, and what stands below them, most time first."""

    bandwidth: float
    arithmetic: Mapping[str, float]
    points: tuple[RooflinePoint, ...]
    of: str  # whose time the shares are of
    clock: float | None = None  # Hz of the multiprocessors, where roofs are lower than the data sheet's by it

    def attainable(self, point: RooflinePoint) -> float:
        """Return the FLOP/s that its roofs allow at this number of FLOP per byte."""
        return min(self.arithmetic[point.roof], self.bandwidth * point.intensity)

    @property
    def drawn(self) -> float:
        """Return the share (0..1) of the time that its points have."""
        return min(1.0, sum(point.share for point in self.points))


def roofline_model(document: RunDocument) -> RooflineModel | None:
    """Return the roofs and points of a run; None if no roof is known, or no timed work can be placed below it."""
    if document.metal is not None:
        return None
    if document.trace is not None:
        return _of_device(document)
    return _of_processor(document)


# ---------------------------------------------------------------- a GPU


def _of_device(document: RunDocument) -> RooflineModel | None:
    rows = [row for row in kernel_rows(document) if row.time is not None and row.share]
    placed = [(row, place, _roof_of(row, place)) for row in rows if (place := place_kernel(row)) is not None]
    bandwidths = [row.value("bandwidth.dram.peak") or 0.0 for row, *_ in placed]
    gpu = document.gpus[0] if document.gpus else None
    bandwidth = median(bandwidths) if bandwidths else gpu.bandwidth if gpu is not None else None
    if not rows or not bandwidth:
        return None
    peaks: dict[str, list[float]] = {}
    for _, place, roof in placed:
        peaks.setdefault(roof, []).append(place.peak)
    arithmetic = {kind: median(own) for kind, own in peaks.items()}
    points = []
    for row, place, roof in placed:
        moved = row.value("bandwidth.dram")
        assert row.time is not None
        if moved:
            where = _place_of(row)
            points.append(
                RooflinePoint(
                    row.label,
                    row.share or 0.0,
                    row.time.total,
                    place.rate / moved,
                    place.rate,
                    roof,
                    True,
                    where,
                )
            )
    clock = document.account.clock if document.account is not None else None
    slower = clock.seen / clock.highest if clock is not None and clock.highest else 1.0
    counted = {row.scope.name for row, *_ in placed}
    for point, peak in _by_shapes(document, rows, counted, min(1.0, slower)):
        arithmetic.setdefault(point.roof, peak)
        points.append(point)
    seen = clock.seen if clock is not None and slower < 1 else None
    return RooflineModel(bandwidth, arithmetic, _by_time(points), "the GPU time", seen)


def _roof_of(row: KernelRow, place: RooflinePlace) -> str:
    if place.kind == "tensor":
        return _tensor_title(operand_type(row.scope.name or ""))
    return _TITLES[place.kind]


def _tensor_title(operands: str) -> str:
    return f"tensor cores, {operands}"


def _by_shapes(
    document: RunDocument, rows: list[KernelRow], counted: set[str | None], slower: float
) -> Iterator[tuple[RooflinePoint, float]]:
    """Yield products on tensor cores whose arithmetic was not counted: the least for their shapes, and its roof.

    The peak is the data sheet's at the clock that was seen: `slower` is that clock over the highest.
    """
    assert document.trace is not None
    gpu = document.gpus[0] if document.gpus else None
    total = sum(row.time.total for row in rows if row.time is not None)
    recorded = sum(operation.seconds for operation in document.trace.work)
    for operation in document.trace.work:
        known = (
            operation.flop and operation.bytes and operation.seconds > 0 and operation.kernel not in counted
        )
        if not known or not runs_on_tensor_cores(operation) or not total:
            continue
        kind = operand_type(operation.kernel)
        peak = tensor_peak(gpu, kind)
        if peak is None:
            continue
        share = operation.seconds / max(total, recorded)
        yield _point_by_shapes(operation, share, _tensor_title(kind)), peak * slower


def _point_by_shapes(operation: GpuOperation, share: float, roof: str) -> RooflinePoint:
    assert operation.flop is not None
    assert operation.bytes is not None
    where = Place(function=operation.function, file=operation.file, line=operation.line)
    name = operation.operation.removeprefix("aten::")
    rate = operation.flop * operation.calls / operation.seconds
    return RooflinePoint(
        name, share, operation.seconds, operation.flop / operation.bytes, rate, roof, False, where
    )


def _place_of(row: KernelRow) -> Place:
    time = row.time
    return Place(function=time.function, file=time.file, line=time.line) if time is not None else Place()


def _by_time(points: list[RooflinePoint]) -> tuple[RooflinePoint, ...]:
    """Return those that stand on a chart of logarithms, most time first."""
    return tuple(
        sorted(
            (point for point in points if point.intensity > 0 and point.rate > 0),
            key=lambda point: -point.share,
        )
    )


# ---------------------------------------------------------------- a processor


def _of_processor(document: RunDocument) -> RooflineModel | None:
    if is_disturbed(document):  # its rates are those of the others, too
        return None
    work, limit = work_of(document)
    bandwidth, flops = limit.bandwidth.value, limit.flops.value
    if not bandwidth or not flops:
        return None
    points = [*_native_functions(document), *_operators(document)]
    if not points:
        points = list(_whole_region(document, work.scope))
    return RooflineModel(bandwidth, {"FP32": flops}, _by_time(points), "the sampled time")


def _native_functions(document: RunDocument) -> Iterator[RooflinePoint]:
    """Yield functions whose FLOP and bytes were counted in a whole run, and whose time was sampled in one.

    Counts of a marked region are of one iteration, and samples of the whole run: those are not compared.
    """
    sampled = next(
        (profile for profile in document.profiles if profile.kind == "functions" and profile.unit == "s"),
        None,
    )
    if sampled is None or sampled.total <= 0 or any(timing.kind != "process" for timing in document.timings):
        return
    counts: dict[str, dict[str, float]] = {}
    for reading in document.readings:
        if reading.scope.kind == "function" and reading.value and reading.metric in ("flops", "dram.bytes"):
            counts.setdefault(reading.scope.name or "", {})[reading.metric] = reading.value
    for spot in sampled.hotspots:
        known = counts.get(spot.function, {})
        flop, moved = known.get("flops"), known.get("dram.bytes")
        if flop and moved and spot.own > 0:
            where = Place(function=spot.function, file=spot.file, line=spot.line)
            share = spot.own / sampled.total
            rate = flop / spot.own
            yield RooflinePoint(spot.function, share, spot.own, flop / moved, rate, "FP32", True, where)


def _operators(document: RunDocument) -> Iterator[RooflinePoint]:
    """Yield operations of torch whose shapes give the float32 FLOP and the bytes that they need."""
    profile = next((profile for profile in document.profiles if profile.kind == "line-operators"), None)
    whole = (
        sum(hotspot.own for hotspot in profile.hotspots if hotspot.total is not None)
        if profile is not None
        else 0.0
    )
    for hotspot in profile.hotspots if profile is not None and whole > 0 else ():
        flop, moved = hotspot.counters.get("flop_fp32"), hotspot.counters.get("needed_bytes")
        if hotspot.total is None and flop and moved and hotspot.own > 0:
            name = f"{hotspot.function} {hotspot.shapes}" if hotspot.shapes else hotspot.function
            where = Place(file=hotspot.file, line=hotspot.line)
            yield RooflinePoint(
                name, hotspot.own / whole, hotspot.own, flop / moved, flop / hotspot.own, "FP32", False, where
            )


def _whole_region(document: RunDocument, scope: Scope) -> Iterator[RooflinePoint]:
    """Yield the region that was timed as one point, where its FLOP and bytes were counted."""
    intensity = find_reading(document, "arithmetic_intensity").value
    readings = [reading for summary in document.summaries for reading in summary.readings]
    rate = next(
        (reading.value for reading in readings if reading.metric == "flops.rate" and reading.value), None
    )
    seconds = find_reading(document, "time.median", "timing").value
    if intensity and rate and seconds:
        yield RooflinePoint(scope.name or document.name, 1.0, seconds, intensity, rate, "FP32", True)
