"""Reads Chrome traces of torch.profiler, plain or gzip, event by event and as far as they go."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profkit.analysis.necessary_work.calls import recorded_call
from profkit.analysis.timeline.records import Collected, Range, TransferKind
from profkit.core.types import Fact, Gpu, Kernel, MemoryKind, Report
from profkit.profilers.chrome.reading import (
    DIRECTIONS,
    ChromeTrace,
    to_nanoseconds,
    unpacked_head,
    whole_number,
)
from profkit.profilers.chrome.torch_operators import INSTANT, MAX_EVENTS, OPERATOR, TorchOperators

LONGEST_NAME = 65536
MAX_RANGES = 1 << 20
STEP = "ProfilerStep"
_ENGINE = "autograd::engine::"
_STEP = re.compile(r"ProfilerStep#\d+$")
# Kineto's categories, since torch 1.12.
_KERNEL, _COPY, _FILL, _RANGE = "kernel", "gpu_memcpy", "gpu_memset", "user_annotation"
_CALL = frozenset({"cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver", "mtia_runtime"})
_TIMED = _CALL | {_KERNEL, _COPY, _FILL, _RANGE}
_ON_DEVICE = frozenset({_KERNEL, _COPY, _FILL})
# What these were called by torch 1.8 to 1.11, and by devices that name them after themselves.
_SAME = {
    "Kernel": _KERNEL,
    "Memcpy": _COPY,
    "Memset": _FILL,
    "Runtime": "cuda_runtime",
    "Operator": OPERATOR,
    "mtia_ccp_events": _KERNEL,
}
AMD = "an AMD GPU (HIP)"
# Whose device it is, by the categories of its events and the names of its calls and of itself.
_MAKERS = {"xpu": "an Intel GPU (XPU)", "mtia": "MTIA, an accelerator of Meta's"}
_TASK, _ASCEND = "Task Type", "an Ascend NPU"  # its events have no category
_NAMED_AFTER = {
    re.compile(r"\b(?:AMD|Radeon|gfx\d)"): AMD,
    re.compile(r"\bIntel\b"): _MAKERS["xpu"],
}
_MEMORY: dict[str, MemoryKind] = {"Pageable": "pageable", "Pinned": "pinned"}


@dataclass
class TorchEvents:
    """Collects the events of one trace. `steps` are those of a profiler with a schedule, in ns."""

    collected: Collected = field(default_factory=Collected)
    ranges: list[Range] = field(default_factory=list)
    steps: list[tuple[int, int | None]] = field(default_factory=list)
    operators: int = 0  # of the CPU
    operations: list[Range] = field(default_factory=list)  # the same, by what they may have launched
    on_cpu: TorchOperators = field(default_factory=TorchOperators)  # of a trace without a device
    of_device: bool = False  # a device had a part in it: the table of operators is not made then
    cut: bool = False  # there were more operations or ranges than are looked at
    device: str | None = None  # whose it is, where it is none of NVIDIA's
    odd: int = 0
    lost: int = 0  # of those, what a device did
    unread: int = 0  # what a device did in a form of its own

    def take(self, event: object) -> None:
        """Add an event of any kind; one that no report needs is skipped."""
        if not isinstance(event, dict) or event.get("ph") not in ("X", "i"):
            return
        category = event.get("cat")
        kind = self._kind(event, category) if isinstance(category, str) else ""
        if not kind and isinstance(args := event.get("args"), dict) and _TASK in args:
            self.device, self.unread = _ASCEND, self.unread + 1
            return
        if event["ph"] == "i":
            at = to_nanoseconds(event.get("ts")) if kind == INSTANT else None
            if at is not None and not self.of_device:
                self.on_cpu.allocation(event, at)
            return
        self.operators += kind == OPERATOR
        if kind in (OPERATOR, _RANGE):
            start, length = to_nanoseconds(event.get("ts")), to_nanoseconds(event.get("dur"))
            if start is not None and length is not None and length >= 0:
                if not self.of_device:
                    self.on_cpu.call(event, start, length)
                if kind == OPERATOR:
                    self._operation(event, start, start + length)
            else:
                self.odd += kind == OPERATOR
        if kind in _TIMED:
            start, length = to_nanoseconds(event.get("ts")), to_nanoseconds(event.get("dur"))
            # a device whose times were lost has zeros, and no trace begins with one that takes no time
            lost = start == 0 and length == 0 and kind not in _CALL
            if start is None or length is None or length < 0 or lost:
                self.odd += 1
                self.lost += kind in _ON_DEVICE
                return
            args = event.get("args")
            self._sort_in(kind, event, start, start + length, args if isinstance(args, dict) else {})

    def _kind(self, event: Mapping[str, Any], category: str) -> str:
        """Return the category as torch has called it since 1.12; steps of older versions are operators."""
        maker, _, _ = category.partition("_")
        if maker in _MAKERS:
            self.device = _MAKERS[maker]
        kind = _SAME.get(category, category)
        if kind == OPERATOR != category and _STEP.match(str(event.get("name"))[:LONGEST_NAME]):
            return _RANGE
        return kind

    def _sort_in(
        self, kind: str, event: Mapping[str, Any], start: int, end: int, args: Mapping[str, Any]
    ) -> None:
        name = str(event.get("name"))[:LONGEST_NAME]
        key, device = whole_number(args.get("correlation"), -1), whole_number(args.get("device"), 0)
        stream = whole_number(args.get("stream", args.get("sycl queue")), -1)
        if kind == _RANGE:
            self._range(name, event, start, end, args.get("domain"))
            return
        if not self.of_device:
            self.of_device, self.on_cpu = True, TorchOperators()
        if kind in _CALL:
            if name.startswith("hip"):  # its calls have CUDA's categories
                self.device = AMD
            self.collected.call(name, start, end, key=key, thread=self._thread(event))
        elif kind == _KERNEL:
            kernel = _launch_configuration(name, args)
            self.collected.kernel(kernel, start, end, key=key, device=device, stream=stream)
        else:
            direction = next((words for sign, words in DIRECTIONS.items() if sign in name), "copy")
            direction_word = "memset" if kind == _FILL else direction
            # `Memcpy HtoD (Pageable -> Device)`
            memory = next((kind for sign, kind in _MEMORY.items() if sign in name), None)
            size = max(whole_number(args.get("bytes"), 0), 0)
            kind_of = TransferKind(direction_word, memory)
            self.collected.transfer(kind_of, start, end, size, key=key, device=device, stream=stream)

    def _operation(self, event: Mapping[str, Any], start: int, end: int) -> None:
        """Add an operation as `emit_nvtx` would write it, without those of autograd's engine around a node."""
        name, args = str(event.get("name"))[:LONGEST_NAME], event.get("args")
        if not isinstance(args, dict) or name.startswith(_ENGINE):
            return
        if len(self.operations) >= MAX_RANGES:
            self.cut = True
            return
        call = recorded_call(name, args)
        sizes = f", sizes = {args['Input Dims']}"[:LONGEST_NAME] if call is not None else ""
        sequence = whole_number(args.get("Sequence number"), -1)
        self.operations.append(
            Range(
                name + sizes,
                None,
                start,
                end,
                0,
                self._thread(event),
                sequence if sequence >= 0 else None,
                call,
            )
        )

    def _range(self, name: str, event: Mapping[str, Any], start: int, end: int, domain: object) -> None:
        if _STEP.match(name):
            self.steps.append((start, end))
            name = STEP
        if len(self.ranges) >= MAX_RANGES:
            self.cut = True
            return
        # Only profkit's own annotations tell a domain. Those, and steps, are the whole process': the backward pass of a
        # step is launched by a thread of its own.
        if isinstance(domain, str):
            self.ranges.append(Range(name, domain, start, end, 0, None))
        elif name == STEP:
            self.ranges.append(Range(name, None, start, end, 0, None))
        else:
            self.ranges.append(Range(name, None, start, end, 0, self._thread(event)))

    def _thread(self, event: Mapping[str, Any]) -> int:
        return self.collected.thread(str(event.get("pid")), str(event.get("tid")))


def _launch_configuration(name: str, args: Mapping[str, Any]) -> Kernel:
    registers, shared = (
        whole_number(args.get("registers per thread"), -1),
        whole_number(args.get("shared memory"), -1),
    )
    return Kernel(
        name,
        _parse_triple(args.get("grid")),
        _parse_triple(args.get("block")),
        None,
        registers if registers >= 0 else None,
        shared if shared >= 0 else None,
    )


def _parse_triple(value: object) -> tuple[int, int, int]:
    """Parse a grid or block into three numbers; zeros where the trace has none."""
    if isinstance(value, list) and value:
        numbers = [min(max(whole_number(item, 0), 0), 1 << 31) for item in value[:3]]
        x, y, z = (*numbers, 1, 1)[:3]
        return x, y, z
    return 0, 0, 0


# A Kineto trace begins with its schema and its devices; a trace of autograd alone is a bare list of events.
_SIGNS = (
    re.compile(
        rb'^\s*\{.{0,4096}?"schemaVersion"\s*:\s*\d.*?"(?:deviceProperties|trace_id|traceEvents|record_shapes)"',
        re.S,
    ),
    re.compile(
        rb'^\s*(?:\{.*?"traceEvents"\s*:\s*)?\[.*?"cat"\s*:\s*"(?:cpu_op|user_annotation|gpu_mem(?:cpy|set)|'
        rb'cuda_(?:runtime|driver)|kernel)"',
        re.S,
    ),
)
FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
CPU_FIX = "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"


def looks_like_chrome_trace(head: bytes) -> bool:
    """Return whether the file begins as torch.profiler's export does."""
    head = unpacked_head(head)
    return head.lstrip()[:1] in (b"{", b"[") and any(sign.search(head) for sign in _SIGNS)


def read_chrome_trace(path: Path) -> Report:
    """Read kernels, copies, calls and annotations of a trace. Raises UnreadableReport.

    Its "est. achieved occupancy %" is computed from the launch configuration and is not read: nobody measured it.
    """
    reader = _Reader()
    reader.read(path)
    return reader.report()


class _Reader:
    def __init__(self) -> None:
        self._events = TorchEvents()
        self._trace = ChromeTrace(self._events.take)
        self._overruns = 0

    def read(self, path: Path) -> None:
        self._trace.read(path, "torch.profiler")

    def report(self) -> Report:
        from profkit.analysis.timeline.records import Recording
        from profkit.analysis.timeline.trace import build_trace

        events, collected = self._events, self._events.collected
        if self._only_cpu():
            operators = events.on_cpu.profile()
            return Report(
                "torch_profiler",
                "torch-chrome-trace",
                facts=dict(self._facts()),
                profiles=(operators,) if operators is not None else (),
                warnings=tuple(self._warnings()),
            )
        self._overruns = collected.clip_overruns()
        trace, notes = build_trace(
            Recording(
                "torch_profiler",
                collected.activities(),
                collected.calls(),
                collected.tables,
                tuple(events.ranges),
                tuple(events.steps),
                operations=tuple(events.operations),
            )
        )
        return Report(
            "torch_profiler",
            "torch-chrome-trace",
            facts=dict(self._facts()),
            trace=trace,
            gpus=tuple(self._gpus()),
            warnings=(*notes, *self._warnings()) if collected.kernels else tuple(self._warnings()),
        )

    def _only_cpu(self) -> bool:
        """Return whether no device had a part in it: no call of one, no copy, no kernel."""
        events, collected = self._events, self._events.collected
        return events.operators > 0 and not (
            events.lost or collected.kernels or collected.devices or any(map(len, collected.calls()))
        )

    def _warnings(self) -> Iterator[Fact]:
        events = self._events
        if self._trace.cut_short:
            yield Fact("trace-cut-short")
        if events.on_cpu.cut:
            yield Fact.of("operators-cut", count=MAX_EVENTS)
        if events.cut and events.of_device:
            yield Fact.of("first-operations", count=MAX_RANGES)
        if self._trace.repairs:
            yield Fact("trace-repaired")
        if self._trace.more_behind:
            yield Fact("more-behind-the-trace")
        if events.lost and not events.collected.kernels:
            yield Fact.of("no-kernel-has-a-time", count=events.lost)
        elif events.unread and not events.collected.kernels:
            yield Fact.of("device-not-read", device=str(events.device), count=events.unread)
        elif self._trace.seen and not events.collected.kernels:
            only = self._only_cpu()
            yield Fact.of(
                "trace-of-the-cpu" if only else "trace-of-no-kernel", count=events.operators, fix=CPU_FIX
            )
        elif (device := self._device()) is not None:
            yield Fact.of("trace-of-another-device", device=device)
        if self._overruns:
            yield Fact.of("kernels-overrun", count=self._overruns)
        if events.odd:
            yield Fact.of("timeless-events", count=events.odd)

    def _device(self) -> str | None:
        """Return the kind of the device if it is not NVIDIA's, by its events or its name."""
        described = self._trace.top.get("deviceProperties")
        listed = described if isinstance(described, list) else []
        devices = [properties for properties in listed if isinstance(properties, dict)]
        names = " ".join(str(properties.get("name"))[:256] for properties in devices[:64])
        by_name = (device for pattern, device in _NAMED_AFTER.items() if pattern.search(names))
        return self._events.device or next(by_name, None)

    def _facts(self) -> Iterator[tuple[str, str]]:
        if (device := self._device()) is not None and not self._only_cpu():
            yield "device", device
        driver = self._trace.top.get("cuda_driver_version")
        if isinstance(driver, int) and driver > 0:
            yield "CUDA", f"{driver // 1000}.{driver % 1000 // 10}"
        schema = self._trace.top.get("schemaVersion")
        if isinstance(schema, int):
            yield "schema", str(schema)
        extras = [flag for flag in FLAGS if self._trace.top.get(flag)]
        if extras:
            yield "recorded with", ", ".join(extras)  # each of them slows the host down

    def _gpus(self) -> Iterator[Gpu]:
        described = self._trace.top.get("deviceProperties")
        for device in described if isinstance(described, list) else ():
            if not isinstance(device, dict) or not isinstance(device.get("id"), int):
                continue
            if self._events.collected.devices and device["id"] not in self._events.collected.devices:
                continue
            major, minor = device.get("computeMajor"), device.get("computeMinor")
            yield Gpu(
                str(device.get("name", "GPU"))[:256],
                device["id"],
                f"{major}.{minor}"
                if isinstance(major, int) and isinstance(minor, int) and self._device() is None
                else None,  # AMD's gfx90a says 9.0, and is no Hopper
                multiprocessors=_positive_count(device.get("numSms")),
                memory_bytes=_positive_count(device.get("totalGlobalMem")),
            )


def _positive_count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
