"""What a cell of an export means: told by its tag, which is the engineering type of its column."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace.values import Backtrace, Binary, Frame, Process, Thread, Value

# Tags whose text is a whole number: times and durations in ns, sizes in bytes, addresses, ids, counts, enumerations
# (of those the name is in `fmt`). Gathered from exports of Instruments 14 to 27; an unknown tag stays text.
INTEGERS = frozenset(
    (
        "address",
        "boolean",
        "cfrunloop-result",
        "connection-uuid64",
        "containment-level",
        "core",
        "cycle-weight",
        "displayed-surface-swap",
        "duration",
        "eight-byte-array",
        "event-count",
        "event-time",
        "fd",
        "gpu-driver-surface",
        "gpu-frame-number",
        "int32",
        "int64",
        "kdebug-arg",
        "kdebug-class",
        "kdebug-code",
        "kdebug-func",
        "kdebug-subclass",
        "layout-id",
        "mach-absolute-time",
        "mach-continuous-time",
        "mach-port",
        "metal-command-buffer-id",
        "metal-encoder-id",
        "metal-nesting-level",
        "metal-workload-priority",
        "network-size-in-bytes",
        "packed-identifier",
        "pid",
        "pmc-event",
        "pointer",
        "register-content",
        "render-buffer-depth",
        "sample-time",
        "signed-duration",
        "size-in-bytes",
        "start-time",
        "swift-actor-id",
        "swift-task-id",
        "syscall-arg",
        "syscall-return",
        "text-address",
        "thread-id",
        "tid",
        "time-sample-kind",
        "time-since-epoch",
        "uint16",
        "uint32",
        "uint64",
        "uint8",
        "vnode",
        "weight",
    )
)
DECIMALS = frozenset(("fixed-decimal", "percent", "double", "float", "decimal"))
LISTS = frozenset(("pmc-events", "text-addresses"))  # whole numbers with blanks between them
# Tags whose value has parts of its own.
STRUCTURES = frozenset(
    ("process", "thread", "binary", "frame", "backtrace", "text-backtrace", "kperf-bt", "source")
)

_NOTHING = frozenset(("", "n/a", "nan", "-nan", "inf", "-inf", "+inf", "infinity", "-infinity", "(null)"))
_INTEGER = re.compile(r"-?[0-9]{1,20}")
_DECIMAL = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?")
_PROCESS = re.compile(r"(.*) \((\d{1,20})\)\s*", re.DOTALL)
# "Main Thread 0x1cbb9a (host, pid: 17804)"; Xcode 27 writes "Main Thread (0x1e9000) (TestApp, pid: 1001)".
_THREAD = re.compile(r"(.*?)\s*\(?0x[0-9a-fA-F]+\)?\s*\((.*), pid: (-?\d{1,20})\)\s*", re.DOTALL)
_UNNUMBERED = re.compile(r"(.*?)\s*\((.*), pid: (-?\d{1,20})\)\s*", re.DOTALL)


@dataclass(slots=True)
class Cell:
    """One element of an export with its value; `fmt` is what Instruments shows for it, None where there is none."""

    tag: str
    value: Value
    fmt: str | None = None
    parts: tuple[Cell | None, ...] = ()  # the elements in it, None for a sentinel


def integer(text: str, tag: str) -> int | None:
    """A whole number; None where there is none. Raises UnreadableReport for what is none, or has over 20 digits."""
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    number = decimal(text, tag)
    if number is not None and number == int(number):
        return int(number)
    if number is None:
        return None
    raise UnreadableReport(f"not an export of xctrace: {text[:40]!r} as <{tag}>, which holds whole numbers")


def decimal(text: str, tag: str) -> float | None:
    """A number; None for none, NaN and infinity. Raises UnreadableReport for what is no number."""
    text = text.strip()
    if _DECIMAL.fullmatch(text):
        return float(text)
    if text.lower() in _NOTHING:
        return None
    raise UnreadableReport(f"not an export of xctrace: {text[:40]!r} as <{tag}>, which holds numbers")


T = TypeVar("T")


class Decoder:
    """Makes cells of elements. Equal structures (a process, a frame) become one object."""

    def __init__(self) -> None:
        self._known: dict[object, object] = {}
        self._structures: Mapping[str, Callable[[str, Mapping[str, str], Sequence[Cell | None]], Value]] = {
            "process": self._process,
            "thread": self._thread,
            "binary": self._binary,
            "frame": self._frame,
            "backtrace": self._backtrace,
            "text-backtrace": self._backtrace,
            "kperf-bt": self._raw_backtrace,
            "source": self._source,
        }

    def cell(
        self, tag: str, attributes: Mapping[str, str], text: str, parts: Sequence[Cell | None] = ()
    ) -> Cell:
        """The cell that an element is. Raises UnreadableReport where it does not hold what its tag says."""
        fmt = attributes.get("fmt")
        return Cell(tag, self._value(tag, attributes, text, fmt, parts), fmt, tuple(parts))

    def _value(
        self,
        tag: str,
        attributes: Mapping[str, str],
        text: str,
        fmt: str | None,
        parts: Sequence[Cell | None],
    ) -> Value:
        if (structure := self._structures.get(tag)) is not None:
            return structure(fmt or "", attributes, parts)
        return scalar(tag, fmt if parts and fmt is not None else text, fmt)

    def one(self, value: T) -> T:
        """The object that stands for all equal ones."""
        found: object = self._known.setdefault(value, value)
        return found  # type: ignore[return-value]

    def _process(self, fmt: str, _: Mapping[str, str], parts: Sequence[Cell | None]) -> Process:
        told = _PROCESS.fullmatch(fmt)
        pid = _part(parts, "pid")
        if not isinstance(pid, int):
            pid = int(told[2]) if told else None
        return self.one(Process(told[1] if told else fmt, pid))

    def _thread(self, fmt: str, _: Mapping[str, str], parts: Sequence[Cell | None]) -> Thread:
        told = _THREAD.fullmatch(fmt) or _UNNUMBERED.fullmatch(fmt)
        name = told[1] if told else fmt
        tid, process = _part(parts, "tid"), _part(parts, "process")
        if not isinstance(process, Process):
            process = self.one(Process(told[2], int(told[3]))) if told else None
        return self.one(Thread(name, tid if isinstance(tid, int) else None, process))

    def _binary(self, _: str, attributes: Mapping[str, str], __: Sequence[Cell | None]) -> Binary:
        get = attributes.get
        address = _address(get("load-addr"))
        return self.one(Binary(get("name", ""), get("path"), get("UUID"), get("arch"), address))

    def _frame(self, _: str, attributes: Mapping[str, str], parts: Sequence[Cell | None]) -> Frame:
        name, address = attributes.get("name"), _address(attributes.get("addr"))
        if name is None:
            name = hex(address) if address is not None else "(unknown)"
        binary, file, line = _part(parts, "binary"), None, None
        for part in parts:
            if part is not None and part.tag == "source":
                path = _part(part.parts, "path")
                file = path if isinstance(path, str) else None
                line = part.value if isinstance(part.value, int) and part.value > 0 else None
        inlined = attributes.get("inlined", "").lower() in ("1", "true", "yes")
        return self.one(
            Frame(name, address, binary if isinstance(binary, Binary) else None, file, line, inlined)
        )

    def _source(self, _: str, attributes: Mapping[str, str], __: Sequence[Cell | None]) -> int | None:
        return integer(attributes.get("line", ""), "source")

    def _backtrace(self, _: str, __: Mapping[str, str], parts: Sequence[Cell | None]) -> Backtrace:
        return Backtrace(tuple(p.value for p in parts if p is not None and isinstance(p.value, Frame)))

    def _raw_backtrace(self, _: str, __: Mapping[str, str], parts: Sequence[Cell | None]) -> Backtrace:
        pc, more, process = (
            _part(parts, "text-address"),
            _part(parts, "text-addresses"),
            _part(parts, "process"),
        )
        addresses = list(more) if isinstance(more, tuple) else []
        if isinstance(pc, int) and pc not in addresses[:1]:
            addresses.insert(0, pc)
        frames = tuple(self.one(Frame(hex(address), address)) for address in addresses if address > 0)
        return Backtrace(frames, process if isinstance(process, Process) else None)


def scalar(tag: str, text: str, fmt: str | None) -> Value:
    """The value of an element that has no structure of its own. Raises UnreadableReport for a number that is none."""
    if tag in INTEGERS:
        return integer(text, tag)
    if tag in DECIMALS:
        return decimal(text, tag)
    if tag in LISTS:
        return tuple(n for word in text.split() if (n := integer(word, tag)) is not None)
    return text if text.strip() or fmt is None else fmt


def _part(parts: Sequence[Cell | None], tag: str) -> Value:
    return next((part.value for part in parts if part is not None and part.tag == tag), None)


def _address(text: str | None) -> int | None:
    try:
        return int(text, 16) if text and len(text) <= 18 else None
    except ValueError:
        return None
