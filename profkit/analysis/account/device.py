"""The account of a step on a device: kernels by operation and line, copies, and idle time by what the host does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd
from typing import NamedTuple

from profkit.analysis.account.rows import with_rest
from profkit.analysis.account.step_places import compiling_line, dispatching_lines, holding_line, step_places
from profkit.analysis.evidence import evidence_of, launching_lines, main_operation
from profkit.analysis.kernel_names.forms import bare_name
from profkit.analysis.kernel_names.owner import kernel_owner, owner_title
from profkit.analysis.summaries.kernels import KernelRow, kernel_rows
from profkit.analysis.timeline.host_calls import keeps_host
from profkit.analysis.timeline.products import operand_type, tensor_peak
from profkit.analysis.timeline.range_names import plain_operation
from profkit.analysis.timeline.records import COMPILATION
from profkit.core.types import (
    NOWHERE,
    Account,
    AccountRow,
    AccountUnit,
    Bound,
    Gpu,
    GpuLine,
    GpuOperation,
    GpuTrace,
    KernelTime,
    Place,
    RunDocument,
)


def device_account(document: RunDocument, trace: GpuTrace) -> Account | None:
    """Return the account of one step of what was traced; None where its length is not in the trace."""
    if trace.span is None or trace.busy is None or trace.span <= 0:
        return None
    unit, repeats = _unit(trace)
    copying = min(trace.copying or 0.0, trace.busy)
    rows = [
        *_kernel_rows(document, trace.busy - copying),
        *_copy_rows(trace, copying),
        *_idle_rows(document, trace, max(0.0, trace.span - trace.busy)),
    ]
    scaled = [_scaled(row, 1 / repeats) for row in rows if row.seconds > 0]
    return Account(unit, trace.span / repeats, with_rest(scaled, trace.span / repeats), repeats)


def _unit(trace: GpuTrace) -> tuple[AccountUnit, int]:
    """Return what is counted once, and how often it was seen."""
    if trace.marked:
        regions = [range_.entries for range_ in trace.ranges if range_.domain == "profkit" and range_.entries]
        if len(regions) != 1:
            return "trace", 1
        # A region that was entered once may hold many equal calls, as `profkit.benchmark` makes them.
        calls = gcd(*(kernel.launches for kernel in trace.kernels)) if regions == [1] else 0
        return ("call", calls) if calls > 1 else ("region", regions[0])
    return ("step", trace.repeats) if trace.repeats else ("trace", 1)


def _scaled(row: AccountRow, factor: float) -> AccountRow:
    least = row.least * factor if row.least is not None else None
    launches = row.launches * factor if row.launches is not None else None
    return replace(row, seconds=row.seconds * factor, least=least, launches=launches)


# ------------------------------------------------------------ kernels


class _Part(NamedTuple):
    """What one operation at one line is of a kernel's time."""

    place: Place
    operation: str | None
    backward: bool  # it is a part of a backward pass
    seconds: float
    launches: float


@dataclass
class _Group:
    """Kernels of one operation at one line. `counted`: seconds of those whose units were counted."""

    where: Place
    total: float = 0.0
    launches: float = 0.0
    counted: float = 0.0
    least: float = 0.0
    largest: float = 0.0
    named: KernelRow | None = None  # the kernel with most time
    bound: tuple[float, KernelRow] | None = None  # the one with most time whose units were counted
    operations: dict[str, float] = field(default_factory=dict)
    sized: bool = True  # the shapes of all its operations are known

    def add(self, row: KernelRow, part: _Part) -> None:
        """Add this part of a kernel's time."""
        seconds, operation = part.seconds, part.operation
        self.total += seconds
        self.launches += part.launches
        if self.named is None or seconds > self.largest:
            self.named, self.largest = row, seconds
        if operation is not None:
            self.operations[operation] = self.operations.get(operation, 0.0) + seconds
            self.sized = self.sized and " [" in operation
        if row.bound is not None and row.bound.nearest is not None:
            self.counted += seconds
            self.least += seconds * min(1.0, row.bound.nearest / 100)
            if self.bound is None or seconds > self.bound[0]:
                self.bound = seconds, row

    def row(self, factor: float, needed: tuple[float, Bound] | None) -> AccountRow:
        """Return the row, of which `factor` of the kernels' time was no other's at the same moment.

        `needed`: the share (0..1) of its time that its operations need at the device's peaks, and the unit.
        """
        assert self.named is not None
        what = max(
            self.operations, key=self.operations.__getitem__, default=bare_name(self.named.scope.name or "?")
        )
        owner = kernel_owner(self.named.scope.name or "")
        found = self.bound[1].bound if self.bound is not None else None
        covered = 0 < self.counted >= _COVERED * self.total
        counted = self.least / self.counted if covered else None
        bounded = found is not None and (found.busiest or found.bound) == "tensor"
        # Tensor cores were counted at the clock that they had, which may be far below that of the data sheet.
        share = counted
        if needed is not None and (counted is None or (not bounded and needed[0] < counted)):
            share = needed[0]
        return AccountRow(
            "kernel",
            factor * self.total,
            self.where,
            what,
            self.launches,
            owner_title(owner) if owner != "user" else None,
            found.busiest or found.bound if found is not None and covered else None,
            counted,
            factor * share * self.total if share is not None else None,
            needed[1] if needed is not None and share == needed[0] else None,
        )


_ROUNDED = 0.001  # of a kernel's time: what is left of a sum of its parts
_COVERED = 0.9  # of a row's time: where less was counted, its limit is not known


def _kernel_rows(document: RunDocument, seconds: float) -> Iterator[AccountRow]:
    """Yield the rows of the kernels, `seconds` in all: kernels that ran at the same time share it."""
    groups: dict[tuple[object, ...], _Group] = {}
    for row in kernel_rows(document):
        time = row.time
        if time is None or not time.launches:
            continue
        for part in _parts(document, row, time):
            key, where = _group(row, part)
            groups.setdefault(key, _Group(where)).add(row, part)
    total = sum(group.total for group in groups.values())
    factor = min(1.0, seconds / total) if total else 0.0
    needs, types, below = _needs(document), _types(document.trace), _lines_below(document.trace)
    for key, group in groups.items():
        called = key[:4]
        made = group.row(factor, needs.get(called) if group.sized else None)
        yield replace(made, type=types.get(called), below=below.get(called, NOWHERE))


def _parts(document: RunDocument, row: KernelRow, time: KernelTime) -> Iterator[_Part]:
    """Yield the parts of a kernel's time, by line, and by operation where each line is known to have its own."""
    if time.lines and all(line.operation is not None for line in time.lines):
        for line in time.lines:
            place = Place(function=line.function, file=line.file, line=line.line)
            yield _Part(place, line.operation, line.backward, line.kernel_seconds, line.launches)
        rest = time.total - sum(line.kernel_seconds for line in time.lines)
        if rest > _ROUNDED * time.total:
            yield _Part(NOWHERE, None, False, rest, time.launches * rest / time.total)
        return
    operation, backward = main_operation(time), time.backward_of is not None
    lines = launching_lines([time]) or {_source_line(document, row): time.total}
    for place, seconds in lines.items():
        launches = time.launches * seconds / time.total if time.total else 0.0
        yield _Part(place, operation, backward, seconds, launches)


def _needs(document: RunDocument) -> dict[tuple[object, ...], tuple[float, Bound]]:
    """Return the share (0..1) of their time that operations need at the peaks, and the unit of most of it, by file,
    line, name and direction.
    """
    gpu = document.gpus[0] if document.gpus else None
    sums: dict[tuple[object, ...], list[float]] = {}
    for operation in document.trace.work if document.trace is not None else ():
        name = plain_operation(operation.operation)
        known = sums.setdefault(
            (operation.file, operation.line, name, operation.backward_of is not None), [0.0, 0.0, 0.0, 0.0]
        )
        least, unit = _least_of_call(operation, gpu) or (None, "dram")
        known[0] += operation.seconds
        if least is not None:
            needed = min(operation.seconds, operation.calls * least)
            known[1] += operation.seconds
            known[2] += needed
            known[3] += needed if unit == "tensor" else 0.0
    return {
        key: (least / own, "tensor" if of_tensor > least / 2 else "dram")
        for key, (total, own, least, of_tensor) in sums.items()
        if 0 < own >= _COVERED * total
    }


def _lines_below(trace: GpuTrace | None) -> dict[tuple[object, ...], Place]:
    """Return the library line with more than half of the time of operations, by file, line, name and direction."""
    seconds: dict[tuple[object, ...], dict[Place, float]] = {}
    for operation in trace.work if trace is not None else ():
        below = operation.below
        place = (
            Place(function=below.function, file=below.file, line=below.line) if below is not None else NOWHERE
        )
        key = (
            operation.file,
            operation.line,
            plain_operation(operation.operation),
            operation.backward_of is not None,
        )
        own = seconds.setdefault(key, {})
        own[place] = own.get(place, 0.0) + operation.seconds
    largest = {key: max(own, key=own.__getitem__) for key, own in seconds.items()}
    return {
        key: place for key, place in largest.items() if 2 * seconds[key][place] > sum(seconds[key].values())
    }


def _types(trace: GpuTrace | None) -> dict[tuple[object, ...], str]:
    """Return the type of the operands of operations, if there is only one, by file, line, name and direction.

    Where none were recorded, those of products are in the names of their kernels, and those of others may be any.
    """
    types: dict[tuple[object, ...], set[str | None]] = {}
    for operation in trace.work if trace is not None else ():
        has_type = operation.unit == "tensor" or operation.typed
        type_ = (
            "tf32"
            if operation.type == "fp32" and operation.unit == "tensor" and _TF32.search(operation.kernel)
            else operation.type
        )
        key = (
            operation.file,
            operation.line,
            plain_operation(operation.operation),
            operation.backward_of is not None,
        )
        types.setdefault(key, set()).add(type_ if has_type else None)
    return {
        key: type_
        for key, own in types.items()
        if len(own) == 1 and (type_ := next(iter(own))) is not None and not type_.startswith("bits")
    }


# Of its name: a product in FP32 whose operands were rounded for the tensor cores.
_TF32 = re.compile(r"tf32|tensorop_s|nvjet_(?:sm\d+_)?s(?!m\d)", re.IGNORECASE)


_PEAK_TYPES = {"tf32": "TF32", "fp8": "FP8"}  # where the operation has it, as the peaks are called


def _least_of_call(operation: GpuOperation, gpu: Gpu | None) -> tuple[float, Bound] | None:
    """Return the seconds of one call at the device's peaks, and the unit; None if its work, or a peak that may decide,
    is not known.
    """
    if gpu is None or not gpu.bandwidth or operation.bytes is None or gpu.mig or gpu.virtual is not None:
        return None
    seconds = operation.bytes / gpu.bandwidth
    if operation.unit != "tensor" or not operation.flop:
        return seconds, "dram"
    if not runs_on_tensor_cores(operation):
        return None  # that of the FMA pipes is in no data sheet's line for tensor cores
    peak = tensor_peak(gpu, _PEAK_TYPES.get(operation.type or "") or operand_type(operation.kernel))
    if peak is None:
        return None
    computing = operation.flop / peak
    return (computing, "tensor") if computing > seconds else (seconds, "dram")


def runs_on_tensor_cores(operation: GpuOperation) -> bool:
    """Return whether an operation is a product whose kernel uses tensor cores, by the type of its operands and its
    name.
    """
    return operation.unit == "tensor" and (
        operation.type not in ("fp32", "fp64", None) or _TF32.search(operation.kernel) is not None
    )


def _source_line(document: RunDocument, row: KernelRow) -> Place:
    """Return the line of the kernel's own source in which its warps waited most; nowhere if no counter shows it."""
    own = [
        instruction
        for instruction in document.instructions
        if instruction.kernel == row.scope and instruction.file is not None
    ]
    most = max(own, key=lambda instruction: instruction.samples, default=None)
    user = kernel_owner(row.scope.name or "") == "user"
    return (
        Place(function=bare_name(row.scope.name or "?"), file=most.file, line=most.line)
        if most is not None and user
        else NOWHERE
    )


def _group(row: KernelRow, part: _Part) -> tuple[tuple[object, ...], Place]:
    """Return which group a part of a kernel belongs to: that of its operation at its line; without either its own."""
    place, name = part.place, plain_operation(part.operation or "")
    if place.file is None and not name:
        return ("kernel", row.scope.name), Place(kernel=row.scope.name, function=None, label=row.brief)
    own = "" if name or place.file is None else row.scope.name
    return (place.file, place.line, name, part.backward, own), replace(place, operation=name or None)


# ------------------------------------------------------------ copies and idle time


def _copy_rows(trace: GpuTrace, seconds: float) -> Iterator[AccountRow]:
    """Yield the rows of copies by their kind, `seconds` in all: copies count while no kernel ran."""
    total = sum(transfer.seconds for transfer in trace.transfers)
    for transfer in trace.transfers if total else ():
        where = _line_of_copies(trace.lines, transfer.kind)
        yield AccountRow(
            "copy", seconds * transfer.seconds / total, where, transfer.kind, float(transfer.count)
        )


def _line_of_copies(lines: Iterable[GpuLine], kind: str) -> Place:
    """Return the line with most copies of a kind; nowhere where none is known."""
    seconds: Mapping[Place, float] = {
        Place(function=line.function, file=line.file, line=line.line): sum(
            transfer.seconds for transfer in line.transfers if transfer.kind == kind
        )
        for line in lines
    }
    most = max(seconds, key=seconds.__getitem__, default=NOWHERE)
    return most if seconds.get(most) else NOWHERE


def _idle_rows(document: RunDocument, trace: GpuTrace, seconds: float) -> Iterator[AccountRow]:
    """Yield idle time by where the host was, as far as lines of the program are known; the rest has no place.

    Shares of a step are those of the run that recorded lines. First the lines that launch: their calls were timed in
    the steps alone. Places that compute were sampled in the whole run, and have what is left; then lines that wait; and
    what begins when a copy to the host ends, at the line of that copy.
    """
    assert trace.span
    left = seconds / trace.span
    calling, waiting = _calling_lines(document, trace)
    dispatching = _dispatching_places(document, left)
    for rows in (calling, _computing_places(document), waiting, _after_copies(trace), dispatching):
        total = sum(row.seconds for row in rows)
        scale = min(1.0, left / total) if total else 0.0
        for row in rows:
            yield replace(row, seconds=scale * row.seconds * trace.span)
        left = max(0.0, left - scale * total)
    yield AccountRow("idle", left * trace.span, least=0.0)


def _calling_lines(document: RunDocument, trace: GpuTrace) -> tuple[list[AccountRow], list[AccountRow]]:
    """Return the lines that launch, and those that call what keeps the host busy; `seconds` are shares of a step
    (0..1).

    Apart those that wait for the device as well: a part of their time is no work of the host, so they come last.
    """
    span = trace.line_span or trace.span or 1.0
    rows: tuple[list[AccountRow], list[AccountRow]] = ([], [])
    for line in trace.lines:
        keeps = keeps_host(line.call or "")
        if not keeps and not (line.launches and trace.line_span):
            continue
        row = AccountRow(
            "idle",
            line.seconds / span,
            Place(function=line.function, file=line.file, line=line.line),
            (line.call or "") if keeps else "",
            (line.calls if keeps else line.launches) * (trace.span or span) / span,
            least=0.0,
            estimated=trace.line_span is not None,
        )
        rows[1 if line.waits else 0].append(row)
    calls = [call for call in trace.api if keeps_host(call.name)] if not trace.lines else []
    held = holding_line(document, sum(call.seconds for call in calls) / span)
    for call in calls:
        where = compiling_line(document, call.calls) if call.name == COMPILATION else held
        rows[0].append(AccountRow("idle", call.seconds / span, where, call.name, call.calls, least=0.0))
    return rows


def _after_copies(trace: GpuTrace) -> list[AccountRow]:
    """Return what the host does with what it was given, where no line of it is known: that of the copy."""
    paused = trace.pauses.after_copies if trace.pauses is not None else 0.0
    where = _line_of_copies(trace.lines, "device to host")
    if not paused or where == NOWHERE or trace.lines_of:
        return []
    return [AccountRow("idle", paused / (trace.span or 1.0), where, least=0.0)]


def _dispatching_places(document: RunDocument, idle: float) -> list[AccountRow]:
    """Return the lines of JAX's loop that launch single operations, for the share (0..1) idle for want of launches."""
    starved = (document.trace.starved or 0.0) * idle if document.trace is not None else 0.0
    return [
        AccountRow("idle", starved * share, place, least=0.0, estimated=True)
        for place, share in dispatching_lines(document)
    ]


def _computing_places(document: RunDocument) -> list[AccountRow]:
    """Return places in a step at which the host computes, or waits for something other than a device."""
    return [
        AccountRow("idle", place.share, place.spot.where, least=0.0, estimated=True)
        for place in step_places(evidence_of(document))
    ]
