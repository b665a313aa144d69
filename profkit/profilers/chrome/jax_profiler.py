"""Reads Chrome traces of jax.profiler (XLA's own tracing by CUPTI), which lie next to each `.xplane.pb`.

An event of a device names the module of XLA and the instruction that launched it; an event of the host with
the same correlation number is the call that launched it. What XLA launches to choose between kernels is in
modules of its own, or in none while JAX compiles. On a processor the threads of XLA name each instruction
that they run, but no line of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from profkit.analysis.kernel_names.owner import is_tuning_kernel
from profkit.analysis.timeline.records import COMPILATION, Collected, Range, Recording, TransferKind
from profkit.analysis.timeline.time_windows import merge_intervals
from profkit.analysis.timeline.trace import build_ordered_trace
from profkit.core.types import Fact, Kernel, MemoryKind, Report
from profkit.profilers.chrome.reading import (
    DIRECTIONS,
    ChromeTrace,
    to_nanoseconds,
    unpacked_head,
    whole_number,
)
from profkit.profilers.chrome.torch_operators import TorchOperators

LONGEST_NAME = 65536
MAX_RANGES = 1 << 20
MAX_PROCESSES = 1 << 16
MAX_LOOSE = 1 << 21  # events that are held until the end
_DEVICE = re.compile(r"/device:GPU:(\d{1,4})$")
_PROCESS = re.compile(r"/(?:device|host):")
_PROGRAM = re.compile(r"(?:jit|pjit|pmap|xmap)_")  # how JAX begins the name of a module
_EXECUTION = re.compile(r"(.+):XLA GPU module$")  # of the host: a module launches its kernels
_COMPILATION = re.compile(r"backend_compile(?:_and_load)?$")  # of the host, in JAX
_COMPILED = re.compile(r"::CompileAndLoad\((.+)\)$")
_GRAPH = "command_buffer"  # how XLA names what it launches as a CUDA graph
_CALLBACK = re.compile(r"((?:pure|io|debug)_callback)(?:[._]\d+)*$")
_DRIVER_CALL = re.compile(r"cu[A-Z]\w+")
_DETAIL = re.compile(r"(\w+):([\w,]+)")
CALLBACK = "JAX calls the program:"
REGION = "profkit:"
MODULE = "XlaModule:#hlo_module="
# Each execution is some 27 events of the host. In a loop on an H200 they made a step of 4 kernels 79 us instead of 59:
# as much as seven operations of torch that are written as ranges.
OPERATIONS = 7
STEP_NUMBER = "step_num"  # the argument of a StepTraceAnnotation
# It begins with the names of its processes.
_SIGN = re.compile(
    rb'^\s*\{.{0,4096}?"traceEvents"\s*:\s*\[\s*\{[^{}]*"process_name"[^{}]*\{\s*"name"\s*:\s*"/(?:device|host):',
    re.S,
)


def looks_like_jax_trace(head: bytes) -> bool:
    """Return whether the file begins as jax.profiler's traces do."""
    return _SIGN.search(unpacked_head(head)) is not None


def read_jax_trace(path: Path) -> Report:
    """Read the kernels, copies, launches, executions of modules and steps of a trace.

    Raises UnreadableReport.
    """
    events = JaxEvents()
    trace = ChromeTrace(events.take)
    trace.read(path, "jax.profiler")
    return events.report(cut_short=trace.cut_short)


@dataclass
class JaxEvents:
    """Collects the events of one trace, one after the other, and makes a report of them."""

    collected: Collected = field(default_factory=Collected)
    ranges: list[Range] = field(default_factory=list)
    devices: dict[object, int] = field(default_factory=dict)  # by the number of their process
    compiling: list[tuple[int, int]] = field(default_factory=list)  # when the host compiled, ns
    compiled: Counter[str] = field(default_factory=Counter)  # modules
    tuning: int = 0  # what XLA launched to choose kernels
    on_cpu: TorchOperators = field(
        default_factory=TorchOperators
    )  # instructions that XLA ran on the processor
    instructions: int = 0
    odd: int = 0
    left_out: int = 0  # calls and ranges beyond those that are looked at
    # Whether these are the program's is known once all compilations are: what is of no module, and calls.
    _loose: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    _calls: list[tuple[int, Callable[[], None]]] = field(default_factory=list)

    def take(self, event: object) -> None:
        """Add an event of any kind; one that no report needs is skipped."""
        if not isinstance(event, dict):
            return
        phase, process = event.get("ph"), event.get("pid")
        if isinstance(process, float | list | dict):
            return
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        if phase == "M" and event.get("name") == "process_name":
            device = _DEVICE.match(str(args.get("name"))[:LONGEST_NAME])
            if device is not None and len(self.devices) < MAX_PROCESSES:
                self.devices[process] = int(device[1])
            return
        if phase != "X":
            return
        name = str(event.get("name"))[:LONGEST_NAME]
        whole = args.get("long_name")  # of an annotation of JAX 0.11 `name` is what stands behind the colon
        if isinstance(whole, str) and whole.startswith(REGION):
            name = whole[:LONGEST_NAME]
        on_device = process in self.devices
        if not (on_device or "correlation_id" in args or "hlo_op" in args or _is_wanted(name, args)):
            return
        start, length = to_nanoseconds(event.get("ts")), to_nanoseconds(event.get("dur"))
        if start is None or length is None or length < 0 or not name:
            self.odd += 1
        elif "hlo_op" in args and not on_device:
            self.instructions += 1
            label = f"{args['hlo_op']} of {args.get('hlo_module', 'no module')}"
            self.on_cpu.call({"pid": process, "tid": event.get("tid"), "name": label}, start, length)
        elif on_device:
            self._on_device(name, event, start, start + length, args)
        else:
            self._on_host(name, event, start, start + length, args)

    def _on_device(
        self, name: str, event: Mapping[str, Any], start: int, end: int, args: Mapping[str, Any]
    ) -> None:
        module = args.get("hlo_module")
        if is_tuning_kernel(name) or (isinstance(module, str) and _PROGRAM.match(module) is None):
            self.tuning += 1
            return
        where: dict[str, Any] = {
            "key": _number(args.get("correlation_id"), -1),
            "device": self.devices[event.get("pid")],
            "stream": whole_number(event.get("tid"), -1),
        }
        if name.startswith(("Memcpy", "Memset")):
            kind, size = _transfer(name, args)
            add = partial(self.collected.transfer, kind, start, end, size, **where)
        else:
            add = partial(self.collected.kernel, _configuration(name, args), start, end, **where)
        if module is None and len(self._loose) < MAX_LOOSE:
            self._loose.append((start, add))
        else:
            add()

    def _on_host(
        self, name: str, event: Mapping[str, Any], start: int, end: int, args: Mapping[str, Any]
    ) -> None:
        thread = self.collected.thread(str(event.get("pid")), str(event.get("tid")))
        execution = _EXECUTION.match(name)
        if execution is not None:
            if _PROGRAM.match(execution[1]):
                self._range(f"{MODULE}{execution[1]}#", start, end, thread)
        elif _COMPILATION.match(name):
            self.compiling.append((start, end))
        elif (compiled := _COMPILED.search(name)) is not None:
            self.compiled[compiled[1]] += 1
        elif STEP_NUMBER in args or name.startswith(REGION):
            self._range(name, start, end, None)
        else:
            callback, call = _CALLBACK.match(name), _DRIVER_CALL.match(name)
            if callback is not None:
                label = f"{CALLBACK} {callback[1]}"
            else:  # of a launch the trace tells the kernel's name, of all other calls their own
                label = call[0] if call is not None else name if name.startswith("Mem") else "cuLaunchKernel"
            key = _number(args.get("correlation_id"), -1)
            add = partial(self.collected.call, label, start, end, key=key, thread=thread)
            if len(self._calls) < MAX_LOOSE:
                self._calls.append((start, add))
            else:
                self.left_out += 1

    def _range(self, name: str, start: int, end: int, thread: int | None) -> None:
        if len(self.ranges) < MAX_RANGES:
            self.ranges.append(Range(name, None, start, end, 0, thread))
        else:
            self.left_out += 1

    def report(self, *, cut_short: bool) -> Report:
        """Return the report of all events that were taken."""
        compiling = merge_intervals(self.compiling)
        for start, add in self._loose:
            if _is_within(compiling, start):
                self.tuning += 1
            else:
                add()
        for start, add in self._calls:
            if not _is_within(compiling, start):
                add()
        for begin, end in compiling:
            self.collected.call(COMPILATION, begin, end)
        collected = self.collected
        trace, notes, launches = build_ordered_trace(
            Recording(
                "jax_profiler",
                collected.activities(),
                collected.calls(),
                collected.tables,
                tuple(self.ranges),
                compiling=compiling,
            )
        )
        executions = sum(range_.entries for range_ in trace.ranges if range_.name.startswith(MODULE))
        trace = replace(trace, operations=OPERATIONS * executions)
        warnings = tuple(self._warnings(cut_short=cut_short))
        if self.instructions and not self.collected.kernels:  # of the processor alone
            on_cpu = self.on_cpu.profile()
            profiles = (on_cpu,) if on_cpu is not None else ()
            return Report("jax_profiler", "jax-chrome-trace", profiles=profiles, warnings=warnings)
        return Report(
            "jax_profiler",
            "jax-chrome-trace",
            trace=trace,
            warnings=(*notes, *warnings) if collected.kernels else warnings,
            launches=launches,
        )

    def _warnings(self, *, cut_short: bool) -> Iterator[Fact]:
        if cut_short:
            yield Fact("trace-cut-short")
        if self.instructions and not self.collected.kernels:
            yield Fact.of("trace-of-xla-on-cpu", count=self.instructions)
        elif not self.collected.kernels:
            yield Fact("trace-of-no-kernel-of-jax")
        if self.tuning:
            yield Fact.of("xla-tuning-left-out", count=self.tuning)
        if self.compiling:
            spent = sum(end - begin for begin, end in merge_intervals(self.compiling))
            names = ", ".join(
                f"{name} {count} times" for name, count in self.compiled.most_common(3) if count > 1
            )
            count = max(len(self.compiled), self.compiled.total())
            yield Fact.of("compiled-in-trace", count=count, seconds=spent / 1e9, names=names)
        if self.left_out:
            yield Fact.of("late-calls-left-out", count=self.left_out)
        if self.odd:
            yield Fact.of("timeless-events", count=self.odd)


def _is_wanted(name: str, args: Mapping[str, Any]) -> bool:
    signs = (_EXECUTION, _DRIVER_CALL, _COMPILATION, _CALLBACK)
    return (
        STEP_NUMBER in args
        or name.startswith(REGION)
        or any(sign.match(name) for sign in signs)
        or _COMPILED.search(name) is not None
    )


def _is_within(intervals: Sequence[tuple[int, int]], time: int) -> bool:
    at = bisect_right(intervals, time, key=lambda interval: interval[0]) - 1
    return at >= 0 and time <= intervals[at][1]


def _transfer(name: str, args: Mapping[str, Any]) -> tuple[TransferKind, int]:
    """Return what `MemcpyH2D` or `Memset 3` moves, and how many bytes."""
    details = _details(args.get("memcpy_details") or args.get("Memset_details"))
    signs = {f"Memcpy{sign.replace('to', '2')}": words for sign, words in DIRECTIONS.items()}
    direction = "memset" if name.startswith("Memset") else signs.get(name, "copy")
    side = details.get({"host to device": "kind_src", "device to host": "kind_dst"}.get(direction, ""))
    memory: MemoryKind | None = "pageable" if side == "pageable" else "pinned" if side == "pinned" else None
    return TransferKind(direction, memory), max(_number(details.get("size", details.get("num_bytes")), 0), 0)


def _configuration(name: str, args: Mapping[str, Any]) -> Kernel:
    """Parse the launch configuration that XLA writes as text.

    Such as `regs:168 static_shared:0 dynamic_shared:231424 grid:66,2,1 block:384,1,1 occ_pct:18.75`.
    """
    details = _details(args.get("kernel_details"))
    shared = [_number(details.get(f"{kind}_shared"), -1) for kind in ("static", "dynamic")]
    registers = _number(details.get("regs"), -1)
    return Kernel(
        name,
        _triple(details.get("grid")),
        _triple(details.get("block")),
        None,
        registers if registers >= 0 else None,
        sum(shared) if min(shared) >= 0 else None,
        _instruction(args),
    )


def _instruction(args: Mapping[str, Any]) -> str | None:
    """Return the instruction that launched a kernel, with its module; None for those of a CUDA graph.

    All kernels of a graph have the graph's own name.
    """
    module, name = args.get("hlo_module"), args.get("hlo_op")
    if not isinstance(module, str) or not isinstance(name, str) or name.startswith(_GRAPH):
        return None
    return f"{module}/{name}"[:LONGEST_NAME]


def _details(text: object) -> dict[str, str]:
    return dict(_DETAIL.findall(text[:4096])) if isinstance(text, str) else {}


def _triple(text: str | None) -> tuple[int, int, int]:
    """Parse a grid or block into three numbers; zeros where the trace has none."""
    numbers = [min(max(_number(part, 0), 0), 1 << 31) for part in (text or "").split(",")[:3]]
    x, y, z = (*numbers, 1, 1)[:3]
    return (x, y, z) if x else (0, 0, 0)


def _number(text: object, default: int) -> int:
    """Parse a whole number that the trace writes as text; `default` where it is none."""
    if isinstance(text, str) and len(text) < 20 and text.isdecimal():
        text = int(text)
    return whole_number(text, default)
