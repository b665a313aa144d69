"""The account on the processor: of one entry of a marked region, else of one iteration of the loop that a program
repeats, else of the run. Its places by their samples.

A line that calls torch is divided by what a window of torch's own profiler saw of its operations. One that calls known
operations of NumPy is compared with what these need, by how often it ran and the shapes that its names had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from profkit.analysis.account.iteration import growth_of, repetitions, share_inside, step_of
from profkit.analysis.account.rows import with_rest
from profkit.analysis.function_names import called_name
from profkit.analysis.hot_spots.rows import waits_for_xla
from profkit.analysis.necessary_work.numpy_lines import NumpyOperation, forms_of, numpy_operations
from profkit.analysis.stacks.line_counts import count_of
from profkit.analysis.summaries.host import is_disturbed, scope_of
from profkit.analysis.summaries.readings import find_reading
from profkit.core.types import (
    CALLS_PER_UNIT,
    Account,
    AccountRow,
    AccountUnit,
    Bound,
    CodeSpot,
    Hotspot,
    Machine,
    Peaks,
    Place,
    Profile,
    RunDocument,
)

FULL = 100.0  # %: a share of a peak above it says that an input is wrong
# Metrics in % of the machine's measured peaks, and which unit that is.
_SHARES: tuple[tuple[str, Bound], ...] = (("flops.share", "fp32"), ("bandwidth.dram.share", "dram"))
_WHOLE = 0.9  # of the time: a place with so much does what was counted of the region
_OTHER_XLA = "other operations of XLA"
_PART = 0.02  # of a line's time: smaller operations are part of what is left of it


def host_account(document: RunDocument) -> Account | None:
    """Return the account of one entry of the only region that is marked, else of the whole run; None without samples.

    Where other programs had the processors, no row is compared with what the machine can do.
    """
    if not document.hot_spots:
        return None
    if is_disturbed(document):
        document = replace(document, peaks=None)
    timings = [timing for timing in document.timings if timing.kind != "process"]
    if len(timings) != 1:
        return _run_account(document)
    scope = scope_of(timings[0])
    median = find_reading(document, "time.median", "timing")
    if median.value is None or median.scope != scope:
        return _run_account(document)
    rows = list(_rows(document, median.value, _iterations(document), marked=True))
    counted = _counted(document, median.value)
    if len(rows) == 1 and rows[0].limit is None and counted is not None:
        rows[0] = _with_limit(rows[0], *counted)
    repeats = sum(len(timing.seconds) for timing in timings[0].processes)
    unit: AccountUnit = "call" if timings[0].kind == "benchmark" else "region"
    return Account(unit, median.value, with_rest(rows, median.value), repeats)


def _run_account(document: RunDocument) -> Account | None:
    """Return the account of the whole run: all of its places, including imports."""
    first = next((spot for spot in document.hot_spots if spot.kind != "rest" and spot.share > 0), None)
    if first is None or first.kind == "gpu":
        return None
    wall = first.seconds / first.share
    found = repetitions(document, wall)
    step, growth = step_of(document, found), growth_of(found)
    if step is None:
        return Account("run", wall, with_rest(_rows(document, wall), wall), 1, growth=growth)
    count = step.count.executions
    each = step.seconds / count
    rows = list(
        _rows(document, wall, float(count), lambda spot: share_inside(document, step.loop, spot) / count)
    )
    most = sum(row.seconds for row in rows)
    if most > each:  # what a function takes was in part seen at the line that calls it, outside of the loop
        rows = [replace(row, seconds=row.seconds * each / most) for row in rows]
    outside = max(0.0, wall - step.seconds)
    return Account(
        "iteration", each, with_rest(rows, each), count, loop=step.place, outside=outside, growth=growth
    )


def _iterations(document: RunDocument) -> float | None:
    """Return how many iterations the only region had where lines were counted; None if it is not known."""
    known = {count.entries for count in document.line_counts}
    return float(known.pop() or 0) or None if len(known) == 1 else None


def _rows(
    document: RunDocument,
    seconds: float,
    units: float | None = 1.0,
    part: Callable[[CodeSpot], float] = lambda _: 1.0,
    *,
    marked: bool = False,
) -> Iterator[AccountRow]:
    """Yield the places with their shares of so many seconds, of each so much; those that call torch by operation.

    `units`: in how many of what the account is of lines were counted; None where that is not known.
    `marked`: the seconds are those of one entry of the marked region, or of one call of the benchmark.
    """
    xla = next((profile for profile in document.profiles if profile.kind == "xla-operations"), None)
    in_xla = 0.0
    for spot in document.hot_spots:
        if spot.kind == "rest":
            continue
        under = called_name(spot.under) if spot.under is not None else ""
        time = spot.share * seconds * part(spot)
        row = AccountRow("host", time, spot.where, under, estimated=True, does=spot.kind)
        if xla is not None and (part_of_xla := _waited_for_xla(document, spot, xla)):
            in_xla += time * part_of_xla
            row = replace(row, seconds=time * (1 - part_of_xla))
        if units and spot.executions:
            row = replace(row, launches=spot.executions / units)
            row = _with_numpy(document, spot, row)
        yield from _by_operation(document, spot, row, marked)
    if xla is not None and in_xla:
        yield from _xla_rows(xla, in_xla)


def _counted(document: RunDocument, median: float) -> tuple[Bound, float] | None:
    """Return what is nearest to its peak (0..1) of all that was counted in the region, if one place dominates it."""
    scope = scope_of(document.timings[0])
    shares = {bound: find_reading(document, name) for name, bound in _SHARES}
    known = {
        bound: reading.value / 100
        for bound, reading in shares.items()
        if reading.value is not None
        and reading.doubt is None
        and reading.scope == scope
        and 0 < reading.value <= FULL
    }
    most = max((spot.share for spot in document.hot_spots if spot.kind != "rest"), default=0.0)
    if not known or most < _WHOLE or median <= 0:
        return None
    return max(known.items(), key=lambda item: item[1])


def _with_limit(row: AccountRow, bound: Bound, busy: float) -> AccountRow:
    return replace(row, limit=bound, busy=busy, least=busy * row.seconds)


# ------------------------------------------------------------ operations of NumPy


def _with_numpy(document: RunDocument, spot: CodeSpot, row: AccountRow) -> AccountRow:
    """Return the row of a line that calls known operations of NumPy: what these are, and the least that they need.

    Nothing of a line that other threads run too, and no limit where its shapes change.
    """
    counted = count_of(document, spot.where.file, spot.where.line)
    alone = not spot.threads and not spot.processes and spot.kind in ("python", "library")
    if counted is None or spot.code is None or not spot.code.statement or not alone:
        return row
    small, large = (forms_of(counted, pick) for pick in (min, max))
    first = numpy_operations(spot.code.statement, small)
    last = numpy_operations(spot.code.statement, large) if small != large else first
    if (
        not first
        or not last
        or [operation.name for operation in first] != [operation.name for operation in last]
    ):
        return row
    row = replace(row, what=_title(first, last), library="numpy")
    if small != large or document.peaks is None or not row.launches:
        return row
    needs = [_least(operation, document.machine, document.peaks) for operation in first]
    least = row.launches * sum(seconds for _, seconds in needs)
    bound = max(needs, key=lambda need: need[1])[0]
    if not 0 < least <= row.seconds:
        return row
    return replace(row, limit=bound, busy=least / row.seconds, least=least)


def _least(operation: NumpyOperation, machine: Machine | None, peaks: Peaks) -> tuple[Bound, float]:
    """Return what an operation takes at least, and on what: arithmetic of products, and what no cache can hold.

    Half as many numbers of 64 bits as of 32 go into a vector register, so that their peak is half of it.
    """
    last = max((cache.size for cache in machine.caches), default=0) if machine is not None else 0
    moved = (
        max(0.0, (operation.work.bytes or 0.0) - last) / peaks.bandwidth_all
        if last and peaks.bandwidth_all
        else 0.0
    )
    flop: float = 0.0
    if operation.work.unit == "tensor" and operation.work.type in ("fp32", "fp64") and peaks.flops_f32_all:
        flop = operation.work.flop / peaks.flops_f32_all * (2 if operation.work.type == "fp64" else 1)
    if flop >= moved:
        return ("fp64" if operation.work.type == "fp64" else "fp32"), flop
    return "dram", moved


def _title(first: Sequence[NumpyOperation], last: Sequence[NumpyOperation]) -> str:
    """Return `matmul [256,512] x [512,1024] fp32`, with others behind it; a dimension that changes as `8..64`."""
    main = max(range(len(first)), key=lambda n: (last[n].work.flop, last[n].work.bytes or 0.0))
    texts = []
    for small, large in zip(first[main].inputs, last[main].inputs, strict=True):
        sizes = [
            str(low) if low == high else f"{min(low, high)}..{max(low, high)}"
            for low, high in zip(small.shape, large.shape, strict=True)
        ]
        texts.append(f"[{','.join(sizes)}]")
    more = [operation.name for n, operation in enumerate(first) if n != main]
    others = f" + {', '.join(dict.fromkeys(more))}" if more else ""
    type_ = first[main].inputs[0].type
    return f"{first[main].name} {' x '.join(texts)} {type_}{others}"


# ------------------------------------------------------------ operations of XLA


def _waited_for_xla(document: RunDocument, spot: CodeSpot, xla: Profile) -> float:
    """Return which part (0..1) of a place's time the main thread waited while XLA's threads ran instructions.

    That is as much of its waiting below JAX as XLA was at work in the window: compilations are outside of it.
    """
    if spot.kind != "library" or not waits_for_xla(document, spot.under, spot.code):
        return 0.0
    lines = [
        line
        for sampled in document.sampled
        for line in sampled.lines
        if (line.file, line.line) == (spot.where.file, spot.where.line)
    ]
    wall = sum(line.main_wall for line in lines)
    waits = sum(line.waits.get("lock", 0.0) for line in lines)
    busy = sum(hotspot.own for hotspot in xla.hotspots) / xla.total
    return min(1.0, waits / wall) * min(1.0, busy) if wall > 0 else 0.0


def _xla_rows(xla: Profile, seconds: float) -> Iterator[AccountRow]:
    """Yield rows of the given seconds by what XLA ran, each at the line where it is written, if that is known."""
    whole = sum(hotspot.own for hotspot in xla.hotspots)
    left = seconds
    for hotspot in xla.hotspots:
        part = seconds * hotspot.own / whole
        if hotspot.own < _PART * whole or hotspot.file is None:
            continue
        left -= part
        where = Place(
            function=hotspot.lines[0].function if hotspot.lines else None,
            file=hotspot.file,
            line=hotspot.line,
        )
        yield AccountRow("host", part, where, hotspot.function, library="jax", estimated=True, does="library")
    if left > 0:
        yield AccountRow("host", left, Place(), _OTHER_XLA, library="jax", estimated=True, does="library")


# ------------------------------------------------------------ operations of torch


def _by_operation(
    document: RunDocument, spot: CodeSpot, row: AccountRow, marked: bool
) -> Iterator[AccountRow]:
    """Yield the row of a line as one for each operation that the line calls, and what is left of it."""
    profile = next((profile for profile in document.profiles if profile.kind == "line-operators"), None)
    here = [
        hotspot
        for hotspot in (profile.hotspots if profile is not None else ())
        if spot.kind in ("python", "library")
        and (hotspot.file, hotspot.line) == (spot.where.file, spot.where.line)
        and hotspot.file is not None
    ]
    whole = sum(hotspot.own for hotspot in here if hotspot.total is not None)
    parts = [hotspot for hotspot in here if hotspot.total is None and hotspot.own >= _PART * whole]
    if whole <= 0 or not parts:
        yield row
        return
    left = row.seconds
    for hotspot in parts:
        part = min(left, row.seconds * hotspot.own / whole)
        left -= part
        yield _operation_row(hotspot, spot.where, part, document.peaks, marked)
    if left > 0:
        yield replace(row, seconds=left)


def _operation_row(
    operation: Hotspot, where: Place, seconds: float, peaks: Peaks | None, marked: bool
) -> AccountRow:
    """Return `matmul [8,4,512] x [512,1376] fp32`, compared with the peaks that were measured on this machine."""
    what = f"{operation.function} {operation.shapes}" if operation.shapes else operation.function
    row = AccountRow("host", seconds, where, what, library="torch", estimated=True, does="library")
    spent = _seconds_of_calls(operation, seconds, marked)
    if spent is None:
        return row
    known = {
        bound: share for bound, share in _shares_of_peaks(operation.counters, spent, peaks) if 0 < share <= 1
    }
    if not known:
        return row
    bound = max(known, key=known.__getitem__)
    return _with_limit(row, bound, known[bound])


def _seconds_of_calls(operation: Hotspot, seconds: float, marked: bool) -> float | None:
    """Return what all calls that torch's profiler saw take in steady steps; None if they were none of such steps.

    The profiler slows short calls, and a busy moment all of them. So where it is known how often a step of `seconds`
    makes the call, the step's time counts, not the profiler's.
    """
    each = operation.counters.get(CALLS_PER_UNIT) if marked else None
    if each and operation.calls:
        return operation.calls * seconds / each
    return None if _is_warm_up(operation, seconds) else operation.own


# A call cannot take longer than what a step spends in all of them; by chance one of them may.
LONGER_THAN_STEP = 2.0


def _is_warm_up(operation: Hotspot, seconds: float) -> bool:
    """Return whether the calls that torch's profiler saw are none of the steady steps, which spend `seconds` in them.

    A short window may hold the first call alone, which starts threads: a layer of 0.5 ms was reported at 2 % of the
    peak, by one call of 10 ms.
    """
    return bool(operation.calls) and operation.own / (operation.calls or 1) > LONGER_THAN_STEP * seconds


def _shares_of_peaks(
    counters: Mapping[str, float], seconds: float, peaks: Peaks | None
) -> Iterator[tuple[Bound, float]]:
    """Yield how near (0..1) to each peak an operation was; above 1 where its data came from a cache."""
    if peaks is None or seconds <= 0:
        return
    if (flop := counters.get("flop_fp32")) and peaks.flops_f32_all:
        yield "fp32", flop / seconds / peaks.flops_f32_all
    if (moved := counters.get("needed_bytes")) and peaks.bandwidth_all:
        yield "dram", moved / seconds / peaks.bandwidth_all
