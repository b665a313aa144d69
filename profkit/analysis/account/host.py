"""The account on the processor: of one entry of a marked region, else of the run. Its places by their samples.

A line that calls torch is divided by what a window of torch's own profiler saw of its operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from profkit.analysis.account.rows import with_rest
from profkit.analysis.summaries.host import is_disturbed, scope_of
from profkit.analysis.summaries.readings import find_reading
from profkit.core.types import (
    Account,
    AccountRow,
    AccountUnit,
    Bound,
    HotSpot,
    Hotspot,
    Peaks,
    Place,
    RunDocument,
)

FULL = 100.0  # %: a share of a peak above it says that an input is wrong
# Metrics in % of the machine's measured peaks, and which unit that is.
_SHARES: tuple[tuple[str, Bound], ...] = (("flops.share", "fp32"), ("bandwidth.dram.share", "dram"))
_WHOLE = 0.9  # of the time: a place with so much does what was counted of the region
_PART = 0.02  # of a line's time: smaller operations are part of what is left of it


def host_account(document: RunDocument) -> Account | None:
    """The account of one entry of the only region that is marked, else of the whole run; None without samples.

    Where other programs had the processors, no row is held against what the machine can do.
    """
    if not document.hot_spots:
        return None
    if is_disturbed(document):
        document = replace(document, peaks=None)
    timings = [one for one in document.timings if one.kind != "process"]
    if len(timings) != 1:
        return _run_account(document)
    scope = scope_of(timings[0])
    median = find_reading(document, "time.median", "timing")
    if median.value is None or median.scope != scope:
        return _run_account(document)
    rows = list(_rows(document, median.value))
    counted = _counted(document, median.value)
    if len(rows) == 1 and rows[0].limit is None and counted is not None:
        rows[0] = _with_limit(rows[0], *counted)
    repeats = sum(len(one.seconds) for one in timings[0].processes)
    unit: AccountUnit = "call" if timings[0].kind == "benchmark" else "region"
    return Account(unit, median.value, with_rest(rows, median.value), repeats)


def _run_account(document: RunDocument) -> Account | None:
    """The account of the whole run: all of its places, imports too."""
    first = next((spot for spot in document.hot_spots if spot.kind != "rest" and spot.share > 0), None)
    if first is None or first.kind == "gpu":
        return None
    wall = first.seconds / first.share
    return Account("run", wall, with_rest(_rows(document, wall), wall), 1)


def _rows(document: RunDocument, seconds: float) -> Iterator[AccountRow]:
    """The places with their shares of so many seconds, those that call torch by operation."""
    for spot in document.hot_spots:
        if spot.kind == "rest":
            continue
        under = spot.under.name if spot.under is not None else ""
        row = AccountRow("host", spot.share * seconds, spot.where, under, estimated=True, does=spot.kind)
        yield from _by_operation(document, spot, row)


def _counted(document: RunDocument, median: float) -> tuple[Bound, float] | None:
    """What is nearest to its peak (0..1) of all that was counted in the region, where one place takes nearly all."""
    scope = scope_of(document.timings[0])
    shares = {bound: find_reading(document, name) for name, bound in _SHARES}
    known = {
        bound: one.value / 100
        for bound, one in shares.items()
        if one.value is not None and one.doubt is None and one.scope == scope and 0 < one.value <= FULL
    }
    most = max((spot.share for spot in document.hot_spots if spot.kind != "rest"), default=0.0)
    if not known or most < _WHOLE or median <= 0:
        return None
    return max(known.items(), key=lambda one: one[1])


def _with_limit(row: AccountRow, bound: Bound, busy: float) -> AccountRow:
    return replace(row, limit=bound, busy=busy, least=busy * row.seconds)


# ------------------------------------------------------------ operations of torch


def _by_operation(document: RunDocument, spot: HotSpot, row: AccountRow) -> Iterator[AccountRow]:
    """The row of a line as one for each operation that the line calls, and what is left of it."""
    profile = next((one for one in document.profiles if one.kind == "line-operators"), None)
    here = [
        one
        for one in (profile.hotspots if profile is not None else ())
        if spot.kind in ("python", "library")
        and (one.file, one.line) == (spot.where.file, spot.where.line)
        and one.file is not None
    ]
    whole = sum(one.own for one in here if one.total is not None)
    parts = [one for one in here if one.total is None and one.own >= _PART * whole]
    if whole <= 0 or not parts:
        yield row
        return
    left = row.seconds
    for one in parts:
        part = min(left, row.seconds * one.own / whole)
        left -= part
        yield _operation_row(one, spot.where, part, document.peaks)
    if left > 0:
        yield replace(row, seconds=left)


def _operation_row(one: Hotspot, where: Place, seconds: float, peaks: Peaks | None) -> AccountRow:
    """`matmul [8,4,512] x [512,1376] fp32`, held against the peaks that were measured on this machine."""
    what = f"{one.function} {one.shapes}" if one.shapes else one.function
    row = AccountRow("host", seconds, where, what, library="torch", estimated=True, does="library")
    known = {
        bound: share for bound, share in _shares_of_peaks(one.counters, one.own, peaks) if 0 < share <= 1
    }
    if not known:
        return row
    bound = max(known, key=known.__getitem__)
    return _with_limit(row, bound, known[bound])


def _shares_of_peaks(
    counters: Mapping[str, float], seconds: float, peaks: Peaks | None
) -> Iterator[tuple[Bound, float]]:
    """How near (0..1) to each peak an operation was; above 1 where its data came from a cache."""
    if peaks is None or seconds <= 0:
        return
    if (flop := counters.get("flop_fp32")) and peaks.flops_f32_all:
        yield "fp32", flop / seconds / peaks.flops_f32_all
    if (moved := counters.get("needed_bytes")) and peaks.bandwidth_all:
        yield "dram", moved / seconds / peaks.bandwidth_all
