"""Which instruction of XLA each kernel of a trace is, by the launch order and the schedule of its program.

XLA runs a program as a CUDA graph, so that a trace gives one instruction for all kernels, and the name of a
product of cuBLAS gives none. Kernels of fusions have the name of one that computes the same: they are the
anchors. What a library launches lies between two of them, in order. Where the order or the number differs, a
kernel only gets what all instructions that it may be have in common. Of what is outside a graph (collectives most
often, on a stream of their own) JAX's trace names the instruction itself, and nothing has to be concluded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.analysis.timeline.work_sums import MAX_OPERATIONS
from profkit.core.types import GpuLine, GpuOperation, GpuTrace, KernelTime, WorkUnit

MAX_UNROLLED = 20_000  # instructions of a program whose loops are unrolled
MAX_ALTERNATIVES = 64  # programs of one name
# Of the launches of a configuration: where fewer have an instruction, the order says nothing of it.
_PLACED = 0.9
_MODULE = re.compile(r"hlo_module=([^,#]+)")
_REDUCES = re.compile(r"splitK_?reduce", re.IGNORECASE)
_LIBRARIES = {"cublas": "cublas", "cutlass": "cublas", "nccl": "nccl"}
_XLA, _UNKNOWN = "xla", "?"


@dataclass(frozen=True)
class ScheduledKernel:
    """One instruction of a program of XLA that launches something.

    `runs`: "xla" (a kernel of the name `kernel`), "cublas", "nccl", or "?": which and how many is not known. Of the
    same `group` are all that compute the same, of whose kernels a trace has one name. `operation`: JAX's name, and
    shapes.
    """

    kernel: str
    runs: str
    group: int = 0
    operation: str = ""
    backward: bool = False
    type: str | None = None
    unit: WorkUnit | None = None
    flop: float | None = None
    bytes: float | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None
    instruction: str = ""  # XLA's own name of it, in its program

    @property
    def name(self) -> str:
        """Return the operation without its shapes."""
        return self.operation.partition(" [")[0]

    @cached_property
    def reported(self) -> ScheduledKernel:
        """Return what is reported of the instruction; those that are equal in it are not distinguished."""
        return replace(self, kernel="", group=0, instruction="")

    @cached_property
    def plain(self) -> ScheduledKernel:
        """Return what holds whatever the shapes are: the line, and the operation's name."""
        return replace(self.reported, operation=self.name, type=None, unit=None, flop=None, bytes=None)


@dataclass(frozen=True)
class ProgramSchedule:
    """A program of XLA: what it launches, in order, with its loops unrolled.

    `loose`: what is launched by loops with an unknown number of turns; `kernels` has "?" in their place.
    """

    module: str
    kernels: tuple[ScheduledKernel, ...]
    loose: tuple[ScheduledKernel, ...] = ()


def unrolled(module: str, rows: Iterable[tuple[ScheduledKernel, int, int]]) -> ProgramSchedule | None:
    """Return the schedule of instructions, each with its loop (0: none) and how often that turns (0: not known).

    None where they are too many.
    """
    kernels: list[ScheduledKernel] = []
    loose: list[ScheduledKernel] = []
    for (loop, times), of_loop in groupby(rows, key=lambda row: row[1:]):
        body = [row[0] for row in of_loop]
        if loop and not times:
            loose += body
            body = [ScheduledKernel("", _UNKNOWN)]
        if len(kernels) + len(body) * max(1, times if loop else 1) > MAX_UNROLLED:
            return None
        kernels += body * max(1, times if loop else 1)
    return ProgramSchedule(module, tuple(kernels), tuple(loose))


# ------------------------------------------------------------ one program and its launches

_Launch = tuple[int, float]  # the number of its kernel in the trace, and seconds


@dataclass
class _Placed:
    """The instructions that launches of one configuration are, with launches, calls and seconds of each.

    `other` counts launches whose instruction is not known.
    """

    launches: Counter[ScheduledKernel] = field(default_factory=Counter)
    calls: Counter[ScheduledKernel] = field(default_factory=Counter)
    seconds: dict[ScheduledKernel, float] = field(default_factory=dict)
    other: int = 0

    def add(self, instruction: ScheduledKernel, seconds: float, *, launches: int = 1, calls: int = 1) -> None:
        """Add launches of one instruction, and the number of calls that they are."""
        self.launches[instruction] += launches
        self.calls[instruction] += calls
        self.seconds[instruction] = self.seconds.get(instruction, 0.0) + seconds

    def join(self, other: _Placed) -> None:
        """Add what launches by another program are."""
        for instruction, launches in other.launches.items():
            self.add(
                instruction, other.seconds[instruction], launches=launches, calls=other.calls[instruction]
            )
        self.other += other.other

    @property
    def is_placed(self) -> bool:
        """Return whether enough launches (_PLACED) have an instruction to speak of all of them."""
        placed = self.launches.total()
        return placed > 0 and placed >= _PLACED * (placed + self.other)


class _Alignment:
    """Matches the launches of one program with its schedule."""

    def __init__(
        self,
        program: ProgramSchedule,
        launches: Sequence[_Launch],
        names: Sequence[str],
        named: Mapping[int, str],
    ) -> None:
        self._named, self._given = named.keys(), set(named.values())
        self.placed: dict[int, _Placed] = {}
        self.executions = 0
        self._launches, self._names = launches, names
        groups = {
            kernel.kernel: kernel.group
            for kernel in (*program.kernels, *program.loose)
            if kernel.runs == _XLA
        }
        seen = {group for number, _ in launches if (group := groups.get(names[number])) is not None}
        loose = {kernel.group for kernel in program.loose if kernel.runs == _XLA}
        # A fusion that is never seen launches no kernel: a copy, or a fill.
        self._schedule = [
            replace(kernel, runs=_UNKNOWN) if kernel.runs == _XLA and kernel.group in loose else kernel
            for kernel in program.kernels
            if kernel.runs != _XLA or kernel.group in seen
        ]
        self._anchors = [at for at, kernel in enumerate(self._schedule) if kernel.runs == _XLA]
        signs = {self._schedule[at].group: chr(number) for number, at in enumerate(self._anchors, 1)}
        self._known = groups.keys()
        # of each kernel's name the sign that stands for its group
        self._signs = {name: signs[group] for name, group in groups.items() if group in signs}
        if self._anchors:
            self._align(signs)

    @property
    def strange(self) -> set[int]:
        """Return the kernels that XLA named, but that are not in this program."""
        return {
            number
            for number in {number for number, _ in self._launches}
            if self._names[number] not in self._known and kernel_owner(self._names[number]) == "xla"
        }

    def _align(self, signs: Mapping[int, str]) -> None:
        """Find each execution whose anchors are in the order of the schedule, and place what is in it."""
        met = [at for at, (number, _) in enumerate(self._launches) if self._names[number] in self._signs]
        observed = "".join(self._signs[self._names[self._launches[at][0]]] for at in met)
        expected = "".join(signs[self._schedule[at].group] for at in self._anchors)
        # If a schedule repeats itself, the begin of an execution is not known: only what all turns agree on counts.
        turn = (expected + expected).find(expected, 1)
        begin, before = observed.find(expected), -1
        while begin >= 0:
            self.executions += 1
            self._place_gap(before, met[begin], turn)
            last = begin + len(expected)
            for place, at in enumerate(met[begin:last]):
                self._place(at, self._alike(place, turn))
                if place:
                    self._place_between(met[begin + place - 1], at, place, turn)
            before = met[last - 1]
            begin = observed.find(expected, last)
            if begin != last:  # what follows is no whole execution, or the end
                end = met[last] if last < len(met) else len(self._launches)
                self._place_tail(before, end, turn, whole=last == len(met))
                before = -2

    def _alike(self, place: int, turn: int) -> list[ScheduledKernel]:
        """Return what the anchor at this place may be."""
        return [self._schedule[at] for at in self._anchors[place % turn :: turn]]

    def _place(self, at: int, candidates: Sequence[ScheduledKernel], *, call: bool = True) -> None:
        number, seconds = self._launches[at]
        placed = self.placed.setdefault(number, _Placed())
        if len({kernel.reported for kernel in candidates}) == 1:
            placed.add(candidates[0].reported, seconds, calls=int(call))
        else:
            placed.other += 1

    def _place_between(self, first: int, second: int, place: int, turn: int) -> None:
        """Place what was launched between two anchors of one execution."""
        between = [
            self._schedule[self._anchors[at - 1] + 1 : self._anchors[at]]
            for at in range(place % turn or turn, len(self._anchors), turn)
        ]
        if place % turn == 0:  # it may as well be where one execution ends and the next one begins
            between.append([*self._trailing, *self._leading])
        self._match(range(first + 1, second), between)

    def _place_gap(self, before: int, first: int, turn: int) -> None:
        """Place what was launched before an execution's first anchor, and after the last one of the one before."""
        if turn < len(self._anchors):
            self._match(range(max(before, -1) + 1, first), [])
        elif before >= 0:
            self._match(range(before + 1, first), [[*self._trailing, *self._leading]])
        elif before == -1:
            earlier = any(self._names[number] in self._signs for number, _ in self._launches[:first])
            self._match(range(0 if not earlier else first, first), [self._leading])

    def _place_tail(self, last: int, end: int, turn: int, *, whole: bool) -> None:
        if whole and turn == len(self._anchors):
            self._match(range(last + 1, end), [self._trailing])

    @property
    def _leading(self) -> list[ScheduledKernel]:
        return self._schedule[: self._anchors[0]]

    @property
    def _trailing(self) -> list[ScheduledKernel]:
        return self._schedule[self._anchors[-1] + 1 :]

    def _match(self, launches: range, candidates: Sequence[Sequence[ScheduledKernel]]) -> None:
        """Give each of these launches, none of them an anchor, its instruction.

        Several candidates have to agree on it.
        """
        kept: list[tuple[int, list[int]]] = []  # a launch, and what reduces its parts
        candidates = [
            [kernel for kernel in several if kernel.instruction not in self._given] for several in candidates
        ]
        for at in launches:
            if self._launches[at][0] in self._named:
                continue
            if kept and _REDUCES.search(self._names[self._launches[at][0]]):
                kept[-1][1].append(at)
            else:
                kept.append((at, []))
        runs = [_LIBRARIES.get(kernel_owner(self._names[self._launches[at][0]]), "") for at, _ in kept]
        fitting = bool(candidates) and all(
            [kernel.runs for kernel in several] == runs for several in candidates
        )
        for place, (at, parts) in enumerate(kept):
            may_be = [several[place] for several in candidates] if fitting else []
            self._place(at, may_be)
            for part in parts:
                self._place(part, may_be, call=False)


# ------------------------------------------------------------ all programs of a trace


def with_schedules(
    trace: GpuTrace | None, schedules: Sequence[ProgramSchedule], launches: Sequence[_Launch] = ()
) -> GpuTrace | None:
    """Return the trace with the operations and lines of XLA's programs, and each operation's least work.

    `launches` are those of one device, in order, with their seconds; without them the trace's own order is used.
    The trace is returned unchanged if it has operations already, or no schedule is known.
    """
    if trace is None or not schedules or trace.work or any(time.operation for time in trace.kernels):
        return trace
    order = list(launches) or [(number, 1.0) for number in trace.order]
    names = [time.kernel.name.partition("(")[0] for time in trace.kernels]
    placed: dict[int, _Placed] = {}
    sequences, lost = _by_module(trace, order)
    for number, count in lost.items():
        placed[number] = _Placed(other=count)
    for module, sequence in sequences.items():
        alternatives = [schedule for schedule in schedules if schedule.module == module][:MAX_ALTERNATIVES]
        found = _placed_in(alternatives, sequence, names, _instructions(trace, module))
        for number, count in Counter(number for number, _ in sequence).items():
            placed.setdefault(number, _Placed()).join(found.get(number, _Placed(other=count)))
    placed |= _placed_by_name(trace, schedules)
    known = {number: placing for number, placing in placed.items() if placing.is_placed}
    kernels = tuple(
        _with_parts(time, known[number]) if number in known else time
        for number, time in enumerate(trace.kernels)
    )
    return replace(trace, kernels=kernels, work=_work(kernels, known))


def _instructions(trace: GpuTrace, module: str) -> dict[int, str]:
    """Return the instructions of a module that are in the trace, by the number of their kernel."""
    named = {
        number: time.kernel.instruction.removeprefix(f"{module}/")
        for number, time in enumerate(trace.kernels)
        if time.kernel.instruction is not None
    }
    return {number: name for number, name in named.items() if "/" not in name}


def _placed_by_name(trace: GpuTrace, schedules: Sequence[ProgramSchedule]) -> dict[int, _Placed]:
    """Return what the kernels are whose instruction is in the trace, by their number.

    Programs of one name that were compiled for other shapes may use a name for another instruction: it is not
    used then.
    """
    by_instruction: dict[str, set[ScheduledKernel]] = {}
    for program in schedules:
        for kernel in (*program.kernels, *program.loose):
            if kernel.instruction:
                by_instruction.setdefault(f"{program.module}/{kernel.instruction}", set()).add(
                    kernel.reported
                )
    placed: dict[int, _Placed] = {}
    for number, time in enumerate(trace.kernels):
        may_be = by_instruction.get(time.kernel.instruction or "", set())
        if len(may_be) == 1 and time.launches:
            # Where cuBLAS splits a product, its parts are summed by a second launch of the same instruction.
            calls = 0 if _REDUCES.search(time.kernel.name) else time.launches
            placed[number] = _Placed()
            placed[number].add(next(iter(may_be)), time.total, launches=time.launches, calls=calls)
    return placed


def runs_programs(trace: GpuTrace) -> bool:
    """Return whether the trace shows that XLA's programs launched kernels."""
    return any(_MODULE.search(name) for time in trace.kernels for name in time.ranges)


def _by_module(trace: GpuTrace, order: Iterable[_Launch]) -> tuple[dict[str, list[_Launch]], Counter[int]]:
    """Return the launches of each program, and of each kernel those that may be of several programs.

    A launch between two launches of one program belongs to that program.
    """
    modules = [
        {found[1] for name in time.ranges if (found := _MODULE.search(name)) is not None}
        for time in trace.kernels
    ]
    sequences: dict[str, list[_Launch]] = {}
    lost = Counter[int]()
    waiting: list[_Launch] = []
    last: str | None = None
    for number, seconds in order:
        of = modules[number]
        if len(of) != 1:
            waiting.append((number, seconds))
            continue
        module = next(iter(of))
        sequence = sequences.setdefault(module, [])
        for launch in waiting:
            if module == last and module in modules[launch[0]]:
                sequence.append(launch)
            else:
                lost[launch[0]] += 1
        sequence.append((number, seconds))
        waiting, last = [], module
    lost.update(launch[0] for launch in waiting)
    return sequences, lost


def _placed_in(
    alternatives: Sequence[ProgramSchedule],
    launches: Sequence[_Launch],
    names: Sequence[str],
    named: Mapping[int, str],
) -> dict[int, _Placed]:
    """Return what the launches of programs of one name are; of several that they fit only what all of these say.

    `named` has the instructions that are in the trace, by the number of the kernel.
    """
    aligned = [(program, _Alignment(program, launches, names, named)) for program in alternatives]
    fitting = [(program, alignment) for program, alignment in aligned if not alignment.strange]
    exact = [alignment for _, alignment in fitting if alignment.executions]
    found = dict(exact[0].placed) if len(exact) == 1 else {}
    for number in exact[0].placed if len(exact) > 1 else ():
        agreed = _agreed([alignment.placed.get(number, _Placed()) for alignment in exact])
        if agreed is not None:
            found[number] = agreed
    unanimous = _unanimous([program for program, _ in fitting], launches, names)
    return {
        **found,
        **{
            number: placing
            for number, placing in unanimous.items()
            if not found.get(number, _Placed()).is_placed
        },
    }


def _agreed(several: Sequence[_Placed]) -> _Placed | None:
    """Return what all of these say of a configuration, with the shapes, else without them; None where they differ."""
    if all(placing.launches == several[0].launches for placing in several):
        return several[0]
    plain = [{kernel.plain for kernel in placing.launches} for placing in several]
    if any(
        kernels != plain[0] or len(kernels) != 1 or not several[at].is_placed
        for at, kernels in enumerate(plain)
    ):
        return None
    agreed = _Placed()
    (kernel,) = plain[0]
    agreed.add(kernel, sum(several[0].seconds.values()), launches=several[0].launches.total())
    return agreed


def _unanimous(
    programs: Sequence[ProgramSchedule], launches: Sequence[_Launch], names: Sequence[str]
) -> dict[int, _Placed]:
    """Return what all instructions say that a kernel may be, whatever the order was."""
    found: dict[int, _Placed] = {}
    agreed_kernels: dict[int, ScheduledKernel | None] = {}
    for number, seconds in launches:
        if number not in agreed_kernels:
            may_be = {
                kernel.reported for program in programs for kernel in _candidates(program, names[number])
            }
            agreed = may_be if len(may_be) == 1 else {kernel.plain for kernel in may_be}
            agreed_kernels[number] = next(iter(agreed)) if len(agreed) == 1 else None
        kernel = agreed_kernels[number]
        if kernel is not None:
            found.setdefault(number, _Placed()).add(kernel, seconds)
    return found


def _candidates(program: ProgramSchedule, name: str) -> Iterator[ScheduledKernel]:
    """Yield the instructions that a kernel of this name may be of; one that may be anything's is yielded as it is."""
    every = (*program.kernels, *program.loose)
    groups = {kernel.group for kernel in every if kernel.runs == _XLA and kernel.kernel == name}
    library = _LIBRARIES.get(kernel_owner(name))
    for kernel in every:
        if (kernel.runs == _XLA and kernel.group in groups) or (
            library and kernel.runs in (library, _UNKNOWN)
        ):
            yield kernel


# ------------------------------------------------------------ what is reported of a kernel, and of an operation


def _with_parts(time: KernelTime, placed: _Placed) -> KernelTime:
    """Return a kernel with the operation and the line of most of its launches, and with all of its lines."""
    main, most = placed.launches.most_common(1)[0]
    share = time.launches / placed.launches.total()
    parts: dict[tuple[object, ...], GpuLine] = {}
    for kernel, count in placed.launches.most_common():
        key = (kernel.file, kernel.line, kernel.function, kernel.operation, kernel.backward)
        if kernel.file is None:
            continue
        known = parts.get(key) or GpuLine(
            kernel.file,
            kernel.line or 0,
            kernel.function,
            operation=kernel.operation or None,
            backward=kernel.backward,
        )
        seconds = known.kernel_seconds + _seconds(time, placed, kernel)
        parts[key] = replace(known, launches=known.launches + round(share * count), kernel_seconds=seconds)
    flops = [
        (kernel.flop, count)
        for kernel, count in placed.calls.items()
        if kernel.unit == "tensor" and kernel.flop
    ]
    every = sum(count for _, count in flops) == placed.launches.total()
    return replace(
        time,
        operation=main.operation or None,
        operation_launches=round(share * most),
        operations=len({(kernel.operation, kernel.backward) for kernel in placed.launches}),
        backward_of=main.name if main.backward and main.name else None,
        file=main.file,
        line=main.line,
        function=main.function,
        flops=sum(flop * count for flop, count in flops) / placed.launches.total() if every else None,
        lines=tuple(parts.values()),
    )


def _seconds(time: KernelTime, placed: _Placed, kernel: ScheduledKernel) -> float:
    """Return the seconds of what is one instruction, of all launches of a kernel."""
    total = sum(placed.seconds.values())
    share = placed.seconds[kernel] / total if total else placed.launches[kernel] / placed.launches.total()
    return time.total * share


def _work(kernels: Sequence[KernelTime], known: Mapping[int, _Placed]) -> tuple[GpuOperation, ...]:
    """Return the operations with their shapes, as one line calls each, most time first."""
    sums: dict[ScheduledKernel, tuple[float, float, float, dict[str, float]]] = {}
    for number, placed in known.items():
        time = kernels[number]
        share = time.launches / placed.launches.total()
        for kernel, count in placed.launches.items():
            calls, launches, seconds, by_kernel = sums.get(kernel, (0.0, 0.0, 0.0, {}))
            spent = _seconds(time, placed, kernel)
            name = time.kernel.name
            by_kernel[name] = by_kernel.get(name, 0.0) + spent
            sums[kernel] = (
                calls + share * placed.calls[kernel],
                launches + share * count,
                seconds + spent,
                by_kernel,
            )
    ranked = sorted(sums.items(), key=lambda item: (-item[1][2], item[0].operation))
    return tuple(
        GpuOperation(
            kernel.operation,
            round(calls),
            round(launches),
            seconds,
            max(by_kernel, key=by_kernel.__getitem__),
            kernel.type,
            kernel.unit,
            kernel.flop if kernel.unit is not None else None,
            kernel.bytes,
            kernel.name if kernel.backward else None,
            kernel.file,
            kernel.line,
            kernel.function,
            typed=kernel.type is not None,
        )
        for kernel, (calls, launches, seconds, by_kernel) in ranked[:MAX_OPERATIONS]
        if kernel.operation
    )
