"""What the rules look at: the kernels of a document with their values, the device, and how long it worked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from profkit.analysis.kernel_names.forms import bare_name
from profkit.analysis.kernel_names.owner import KernelOwner, kernel_owner, launched_owner, runs_own_functions
from profkit.analysis.summaries.bottlenecks import filled_share
from profkit.analysis.summaries.kernels import KernelRow, kernel_rows
from profkit.analysis.summaries.readings import surest_readings
from profkit.core.formatting import percent_text
from profkit.core.types import (
    Bound,
    Gain,
    Gpu,
    GpuTrace,
    KernelInstruction,
    KernelTime,
    LineSamples,
    Place,
    Profile,
    ProfileKind,
    Reading,
    RunDocument,
)

# What a range of one operation with the shapes of its inputs costs the host (torch.autograd.profiler.emit_nvtx): a step
# of a GPT with 3,780 of them took the host 32.3 ms instead of 21.4 ms, beside an H100.
OPERATION_SECONDS = 2.9e-6
# Headers and modules of CUDA and Triton that are compiled into the program's own kernels.
_OF_TOOLKIT = re.compile(
    r"(device_\w+|sm_\d+_\w+|cuda_\w+|math_functions|cooperative_groups|standard)\.(hpp|h|py)"
)
MIN_STEPS = 10  # of a trace: in fewer a single large gap may be a part of them
MIN_SHARE = 0.02  # of the GPU time: a kernel with less is not worth a conclusion


@dataclass(frozen=True)
class KernelEvidence:
    """One launch configuration. `share` is of the time of all kernels (0..1); `values` are metric -> value.

    Readings that another one contradicts are not among the values.
    """

    row: KernelRow
    owner: KernelOwner
    share: float
    values: Mapping[str, float]
    counters: Mapping[str, float]
    gpu: Gpu | None
    instructions: tuple[KernelInstruction, ...] = ()  # the costliest, where they were counted

    @property
    def place(self) -> Place:
        """Return the kernel as a place, with the line of the program that launched it where that is known."""
        launched = launch_place(self.row.time) if self.row.time is not None else Place()
        if self.owner == "user" and launched.file is None:
            launched = replace(launched, function=bare_name(self.row.scope.name or "?"))
        return replace(launched, kernel=self.row.scope.name, label=self.row.brief, share=self.row.share)

    @property
    def language(self) -> Language:
        """Return what it was written in, by who wrote it, its name, and the file of its source."""
        if self.owner == "inductor" or self.owner == "xla":
            return self.owner
        name, time = self.row.scope.name or "", self.row.time
        if self.owner != "user":
            return "cuda"
        if "[abi:" in name or "::array(" in name.lower() or "Array<" in name:
            return "numba"
        file = (time.file if time is not None else None) or self.source_file or ""
        return "triton" if file.endswith(".py") and name.isidentifier() else "cuda"

    @property
    def source_file(self) -> str | None:
        """Return the file of its source, by the line table of its code."""
        return next(
            (instruction.file for instruction in self.instructions if instruction.file is not None), None
        )

    @property
    def operation(self) -> str | None:
        """Return the operation that launched it: the only one that is known to, or that of most launches."""
        return main_operation(self.row.time) if self.row.time is not None else None

    def place_of(self, instructions: Sequence[KernelInstruction]) -> Place:
        """Return the source line that most of these instructions belong to; the kernel where none is known."""
        own = (self.row.time.file if self.row.time is not None else None) or ""
        lines = [
            (instruction.file, instruction.line)
            for instruction in instructions
            if instruction.file is not None
            and (not own or file_name(instruction.file) == file_name(own))
            and not _OF_TOOLKIT.fullmatch(file_name(instruction.file))
        ]
        if not lines:
            return self.place
        file, line = max(lines, key=lines.count)
        return replace(self.place, file=file, line=line, function=bare_name(self.row.scope.name or "?"))

    @property
    def own_functions(self) -> bool:
        """Return whether it is made of functions of the program, whose source can be changed."""
        return runs_own_functions(self.row.scope.name or "", self.owner)

    @property
    def bound(self) -> Bound:
        """Return what limits it."""
        return self.row.bound.bound if self.row.bound is not None else "unknown"

    @property
    def busiest(self) -> float | None:
        """Return how near its busiest unit is to its peak, in %."""
        return self.row.bound.nearest if self.row.bound is not None else None

    @property
    def seconds(self) -> float | None:
        """Return the median time of one launch."""
        time = self.row.time
        median = time.median if time is not None else None
        return median if median is not None else self.values.get("time.kernel")

    def above(self, metric: str, least: float) -> bool:
        """Return whether the metric is known and at least that high."""
        return self.values.get(metric, float("-inf")) >= least

    def below(self, metric: str, most: float) -> bool:
        """Return whether the metric is known and at most that high."""
        return self.values.get(metric, float("inf")) <= most

    def readings(self, *metrics: str) -> tuple[Reading, ...]:
        """Return the readings behind a conclusion, those that there are."""
        return tuple(self.row.readings[name] for name in metrics if name in self.values)

    def stall_share(self, *reasons: str) -> float:
        """Share (0..1) of the time between two instructions of a warp that it waits for these; 0: none was counted.

        All stall reasons together, the issue itself included, are that time.
        """
        stalls = {name: value for name, value in self.values.items() if name.startswith("stall.")}
        total = sum(stalls.values())
        return sum(stalls.get(f"stall.{reason}", 0.0) for reason in reasons) / total if total > 0 else 0.0


def file_name(file: str) -> str:
    """Return the last part of a path."""
    return file.replace("\\", "/").rpartition("/")[2]


def kernels_at(run: RunEvidence, place: Place) -> list[KernelTime]:
    """Return the kernels that a line launched."""
    at = (place.file, place.line)
    return [time for time in run.times if at in ((line.file, line.line) for line in launching_lines([time]))]


def text_at(run: RunEvidence, place: Place) -> str:
    """Return the source of a line where it was sampled; empty where it holds several statements.

    Which of `loss.backward(); opt.step()` takes the time cannot be read from its text.
    """
    lines = (line for sampled in run.document.sampled for line in sampled.lines if line.code is not None)
    texts = (
        line.code.text for line in lines if line.code and (line.file, line.line) == (place.file, place.line)
    )
    text = next(texts, "")
    return "" if _holds_several_statements(text) else text


_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")


def _holds_several_statements(text: str) -> bool:
    """Return whether a semicolon stands between statements, and not in a string or a comment."""
    return ";" in _QUOTED.sub("", text).partition("#")[0].strip().rstrip(";")


def main_operation(time: KernelTime) -> str | None:
    """Return the operation that launched a kernel, where it is the only one that did, or launched most of it."""
    most = 2 * time.operation_launches > time.launches
    return time.operation if most or time.operations == 1 else None


def launch_place(time: KernelTime) -> Place:
    """Return the kernel, the operation that launched it, and the line of the program, as far as they are known."""
    return Place(
        kernel=time.kernel.name,
        operation=main_operation(time),
        function=time.function,
        file=time.file,
        line=time.line,
    )


def launching_lines(kernels: Iterable[KernelTime]) -> dict[Place, float]:
    """Return the lines that launched these kernels, and the seconds of each."""
    seconds: dict[Place, float] = {}
    for kernel in kernels:
        on_lines = sum(line.kernel_seconds for line in kernel.lines)  # else each launch counts the same
        shares = [
            line.kernel_seconds / max(on_lines, kernel.total) if on_lines else line.launches / kernel.launches
            for line in kernel.lines
        ]
        places = [(line.function, line.file, line.line) for line in kernel.lines]
        lines = list(zip(places, shares, strict=True))
        if not lines and kernel.file is not None:  # a report that has a single line
            lines = [((kernel.function, kernel.file, kernel.line or 0), 1.0)]
        for (function, file, number), share in lines:
            place = Place(function=function, file=file, line=number)
            seconds[place] = seconds.get(place, 0.0) + share * kernel.total
    return seconds


def main_line(kernels: Sequence[KernelTime]) -> Place:
    """Return the line that launched most of these kernels' time; where none is known the place of the largest."""
    by_line = launching_lines(kernels)
    return max(
        by_line, key=by_line.__getitem__, default=launch_place(max(kernels, key=lambda kernel: kernel.total))
    )


def part_text(by_line: Mapping[Place, float], place: Place) -> str:
    """Return what one of the lines is of all, in %."""
    return percent_text(100 * by_line[place] / sum(by_line.values()))


DEEPEST = 6  # callers that are looked at


@dataclass(frozen=True)
class RunEvidence:
    """A judged document as rules see it; `kernels` are those worth a conclusion, the largest share first.

    `debug_kernels` are those of a build for debugging, of which nothing else is worth saying; `kernels` are all others.
    """

    document: RunDocument
    kernels: tuple[KernelEvidence, ...]
    debug_kernels: tuple[KernelEvidence, ...]
    values: Mapping[str, float]  # of the whole run: metric -> value
    busy: float | None  # share of the traced time in which a kernel ran, 0..1; None: no timeline

    @property
    def trace(self) -> GpuTrace | None:
        """Return the timeline that these rules speak of. Their advice is in words of CUDA: a recording of Metal has
        none.
        """
        return self.document.trace if self.document.metal is None else None

    def profile(self, kind: ProfileKind) -> Profile | None:
        """Return the first profile of that kind which is not empty."""
        profiles = self.document.profiles
        return next(
            (
                profile
                for profile in profiles
                if profile.kind == kind and profile.hotspots and profile.total > 0
            ),
            None,
        )

    @property
    def gpu_share(self) -> float:
        """Return what a share of the kernels' time is of the whole time that `time_name` names."""
        return self.busy if self.busy is not None else 1.0

    def gain(self, share: float, bound: str) -> Gain:
        """Return a gain of at most that share of the whole time."""
        return Gain(share, self.time_name, bound)

    @property
    def times(self) -> tuple[KernelTime, ...]:
        """Return the kernels of the timeline, most time first."""
        return self.trace.kernels if self.trace is not None else ()

    def share_of(self, kernels: Iterable[KernelTime]) -> float:
        """Return the share of the whole time that these kernels of the trace take."""
        total = sum(time.total for time in self.times)
        return sum(kernel.total for kernel in kernels) / total * self.gpu_share if total > 0 else 0.0

    @property
    def framework(self) -> str:
        """Return what the program's work for the device is written in: torch, jax or cuda; empty where that is not
        known.
        """
        times = self.document.trace.kernels if self.document.trace is not None else ()
        owners = {kernel_owner(time.kernel.name) for time in times} | {
            kernel.owner for kernel in self.kernels
        }
        if "xla" in owners or any(name.startswith("XlaModule") for time in times for name in time.ranges):
            return "jax"
        if owners & {"aten", "inductor"} or any(
            (time.operation or "").startswith("aten::") for time in times
        ):
            return "torch"
        workload = self.document.workload
        return "cuda" if workload.command and workload.python is None else ""

    @property
    def time_name(self) -> str:
        """Return what gains are shares of."""
        if self.busy is None:
            return "the GPU time"
        trace = self.trace
        if trace is not None and trace.repeats and not trace.marked:
            return "a step"
        return "the marked region" if trace is not None and trace.marked else "the traced time"


def looping_call(run: RunEvidence, place: Place) -> Place:
    """Return the last line in a loop on the way outwards from a place; it calls all the others."""
    found = place
    calling = [
        sampled_line
        for sampled in run.document.sampled
        if not sampled.native
        for sampled_line in sampled.outer
    ]
    for outer, here in outwards(run, place):
        there = (
            sampled_line
            for sampled_line in (*here, *calling)
            if (sampled_line.file, sampled_line.line) == (outer.file, outer.line)
        )
        if any(
            sampled_line.code is not None and sampled_line.code.loop is not None for sampled_line in there
        ):
            found = outer
    return found


def outwards(run: RunEvidence, place: Place) -> Iterator[tuple[Place, list[LineSamples]]]:
    """Yield a place, the line that calls its function most, the line that calls that one, and so on outwards.

    Each comes with the sampled lines of its function.
    """
    lines = [line for sampled in run.document.sampled if not sampled.native for line in sampled.lines]
    for _ in range(DEEPEST):
        here = [line for line in lines if (line.file, line.function) == (place.file, place.function)]
        yield place, here
        callers = [caller for line in here for caller in line.callers[:1]]
        if not callers:
            return
        outer = max(callers, key=lambda caller: caller.value)
        place = Place(function=outer.function, file=outer.file, line=outer.line)


def evidence_of(document: RunDocument) -> RunEvidence:
    """Return the kernels with at least 2 % of the GPU time (all of them where no time is known) and their values."""
    trace = document.trace
    busy = _kernel_time_share(trace)
    counters: dict[tuple[str | None, str | None], dict[str, float]] = {}
    for counter in document.counters:
        if counter.scope.kind == "kernel" and counter.value is not None:
            counters.setdefault((counter.scope.name, counter.scope.id), {})[counter.name] = counter.value
    rows = kernel_rows(document) if document.metal is None else ()
    known = any(row.share is not None for row in rows)
    gpu = document.gpus[0] if document.gpus else None
    kernels = []
    for row in rows:
        share = row.share if known else 1 / len(rows)
        if share is not None and share >= MIN_SHARE:
            values = {
                name: reading.value
                for name, reading in row.readings.items()
                if reading.value is not None and reading.doubt is None
            }
            if gpu is not None and gpu.multiprocessors:
                values.setdefault("launch.multiprocessors", float(gpu.multiprocessors))
            own = counters.get((row.scope.name, row.scope.id), {})
            instructions = tuple(
                instruction for instruction in document.instructions if instruction.kernel == row.scope
            )
            operation = main_operation(row.time) if row.time is not None else None
            owner = launched_owner(row.scope.name or "", operation)
            kernels.append(KernelEvidence(row, owner, share, values, own, gpu, instructions))
    debug = document.facts.get("debug build", "").split("; ")
    return RunEvidence(
        document,
        tuple(kernel for kernel in kernels if kernel.row.scope.name not in debug),
        tuple(kernel for kernel in kernels if kernel.row.scope.name in debug),
        {name: r.value for name, r in surest_readings(document).items() if r.value is not None},
        busy,
    )


def _kernel_time_share(trace: GpuTrace | None) -> float | None:
    if trace is None or not trace.span or not trace.busy:
        return None
    own = max(trace.busy, trace.span - instrument_seconds(trace) - _single_gap(trace))
    return min(1.0, max(0.0, trace.busy - (trace.copying or 0.0)) / own)


SIDE_BY_SIDE = 0.5  # of the time of the kernels of several streams


def runs_side_by_side(trace: GpuTrace | None) -> bool:
    """Return whether kernels of several streams mostly run at the same time: they fill the device together."""
    order = trace.streams if trace is not None else None
    return order is not None and order.overlap >= SIDE_BY_SIDE * order.seconds > 0


def idle_share(run: RunEvidence) -> float | None:
    """Return the share of the time in which a device has no work; None if it is not known."""
    trace = run.trace
    if trace is None or not trace.span or trace.busy is None:
        return None
    left_out = instrument_seconds(trace) + _single_gap(trace)
    return max(0.0, trace.span - trace.busy - left_out) / max(trace.busy, trace.span - left_out)


def _single_gap(trace: GpuTrace) -> float:
    """Return a gap that alone is most of the idle time of many steps: a first use, which belongs to none of them."""
    gap, idle = trace.largest_gap or 0.0, (trace.span or 0.0) - (trace.busy or 0.0)
    return gap if (trace.repeats or 0) >= MIN_STEPS and gap > 0.5 * idle and not trace.marked else 0.0


def instrument_seconds(trace: GpuTrace) -> float:
    """Return what writing each operation as a range cost the host of one device: so much of the idle time may be
    due to it.
    """
    return trace.operations * OPERATION_SECONDS / max(1, len(trace.device_busy))


def unit_utilization(kernel: KernelEvidence) -> dict[str, float]:
    """Return how busy each unit is over the whole device and time, in % of its peak, by what people call it."""
    filled = filled_share(kernel.values)
    of_device = {"DRAM": "bandwidth.dram.share", "L2": "bandwidth.l2.share"}
    of_multiprocessors = {
        "L1": "bandwidth.l1.share",
        "shared memory": "bandwidth.shared.share",
        "the load/store pipe": "pipe.lsu.utilization",
        "the tensor cores": "tensor.utilization",
        "the FP64 pipe": "pipe.fp64.utilization",
        "the FP32 pipe": "pipe.fp32.utilization",
        "the FP16 pipe": "pipe.fp16.utilization",
        "the integer pipe": "pipe.alu.utilization",
        "the special function pipe": "pipe.xu.utilization",
        "instruction issue": "issue.active",
    }
    busy = {title: kernel.values[name] for title, name in of_device.items() if name in kernel.values}
    for title, name in of_multiprocessors.items():
        if name in kernel.values:
            busy[title] = kernel.values[name] * filled
    return dict(sorted(busy.items(), key=lambda unit: -unit[1]))


Language = Literal["cuda", "triton", "numba", "inductor", "xla"]
