"""Reads a Chrome trace of torch.profiler, plain or gzip, event by event; a file that is cut short as far as it goes."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from profkit.core.errors import UnreadableReport
from profkit.core.types import Gpu, Report
from profkit.profilers.files import check_unpacked
from profkit.profilers.json_stream import CutShort, JsonStream

if TYPE_CHECKING:
    from profkit.profilers.torch_profiler.events import Events

_GZIP = b"\x1f\x8b"
# A Kineto trace begins with its schema and its devices; a trace of autograd alone is a bare list of events.
_SIGNS = (
    re.compile(
        rb'^\s*\{.{0,4096}?"schemaVersion"\s*:\s*\d.*?"(?:deviceProperties|trace_id|traceEvents|record_shapes)"',
        re.S,
    ),
    re.compile(
        rb'^\s*(?:\{.*?"traceEvents"\s*:\s*)?\[.*?"cat"\s*:\s*"(?:cpu_op|user_annotation|gpu_mem(?:cpy|set)|'
        rb'(?:cuda|xpu)_(?:runtime|driver)|kernel|Operator|Kernel|Runtime|Mem(?:cpy|set))"',
        re.S,
    ),
)
FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
CPU_FIX = "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"


def looks_like(head: bytes) -> bool:
    """True where the file begins as the profiler's export does."""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(31).decompress(head, 1 << 16)
        except zlib.error:
            return False
    head = head.removeprefix(b"\xef\xbb\xbf")
    return head.lstrip()[:1] in (b"{", b"[") and any(sign.search(head) for sign in _SIGNS)


def read_chrome_trace(path: Path) -> Report:
    """Kernels, copies, calls and annotations. Raises UnreadableReport.

    Its "est. achieved occupancy %" is computed from the launch configuration and is not read: nobody measured it.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            reader = _Reader(_Unpacked(raw) if packed else raw)
            reader.read()
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror or error}") from error
    except UnreadableReport as error:
        raise UnreadableReport(f"{path}: {error.message}", error.fix) from error
    except ValueError as error:  # an embedded null byte in the name
        raise UnreadableReport(f"{str(path)!r} is no file name: {error}") from error
    return reader.report()


class _Reader:
    def __init__(self, file: Any) -> None:
        from profkit.profilers.torch_profiler.events import Events

        self._stream, self._file = JsonStream(file), file
        self._events: Events = Events()
        self._top: dict[str, object] = {}
        self._cut_short = False
        self._seen = 0

    def read(self) -> None:
        try:
            if self._stream.at_array():
                self._take_events()
            else:
                for key in self._stream.items():
                    if key == "traceEvents":
                        self._take_events()
                    else:
                        self._top[key] = self._stream.value()
        except CutShort:
            self._cut_short = True
        if not self._seen:
            raise UnreadableReport(
                "it ends before the first event"
                if self._cut_short
                else "no trace of torch.profiler: no events"
            )

    def _take_events(self) -> None:
        for event in self._stream.elements():
            self._seen += 1
            self._events.take(event)

    def report(self) -> Report:
        from profkit.analysis.timeline.records import Recording
        from profkit.analysis.timeline.trace import build_trace

        events, collected = self._events, self._events.collected
        trace, notes = build_trace(
            Recording(
                "torch_profiler",
                collected.activities(),
                collected.calls(),
                collected.tables,
                tuple(events.ranges),
                tuple(events.steps),
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

    def _warnings(self) -> Iterator[str]:
        events = self._events
        if self._cut_short:
            yield "the trace is cut short, as of a process that was killed; what was read until there is kept"
        if self._seen and not events.collected.kernels:
            what = (
                f"{events.operators} operators of the CPU and no kernel" if events.operators else "no kernel"
            )
            yield f"the trace holds {what}: {self._why_no_kernel()}"
        elif events.other:
            yield (
                f"this is the trace of an {events.other}: its times are read, but counters by ncu, and advice that "
                "names CUDA, are for NVIDIA's"
            )
        if events.odd:
            yield f"{events.odd} events without a time were left out"

    def _why_no_kernel(self) -> str:
        events = self._events
        if events.counted:
            return (
                f"{events.counted} were replayed for counters of CUPTI's range profiler, which are not read (fix: "
                "record without CUPTI_PROFILER_METRICS, and count with ncu)"
            )
        if events.other:
            return f"it is of an {events.other}, whose activities are not told as kernels"
        return f"the device was not traced, or had nothing to do (fix: {CPU_FIX})"

    def _facts(self) -> Iterator[tuple[str, str]]:
        driver = self._top.get("cuda_driver_version")
        if isinstance(driver, int) and driver > 0:
            yield "CUDA", f"{driver // 1000}.{driver % 1000 // 10}"
        schema = self._top.get("schemaVersion")
        if isinstance(schema, int):
            yield "schema", str(schema)
        extras = [flag for flag in FLAGS if self._top.get(flag)]
        if extras:
            yield "recorded with", ", ".join(extras)  # each of them slows the host down

    def _gpus(self) -> Iterator[Gpu]:
        described = self._top.get("deviceProperties")
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
                if isinstance(major, int) and isinstance(minor, int) and not self._events.other
                else None,  # AMD's gfx90a says 9.0, and is no Hopper
                multiprocessors=_count(device.get("numSms")),
                memory_bytes=_count(device.get("totalGlobalMem")),
            )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


class _Unpacked:
    """A gzip file as bytes; one that is cut short or damaged ends where it is."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self._file = raw, gzip.GzipFile(fileobj=raw)
        self._over = False
        self._unpacked = 0

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; none at the end."""
        if self._over:
            return b""
        try:
            piece = self._file.read1(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self._over = True
            return b""
        self._unpacked += len(piece)
        check_unpacked(self._unpacked, self._raw)
        return piece
