"""What an element of an export means: told by its tag, which is the engineering type of its column."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar
from xml.etree.ElementTree import Element

from profkit.core.errors import UnreadableReport

MOST_DEPTH = 64  # elements in one another; a frame of a stack in a narrative of a row lies at 9


@dataclass(frozen=True, slots=True)
class Process:
    """A process by name; `pid` is None where the export does not tell it."""

    name: str
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread: its name ("Main Thread", "" where it has none), the kernel's number of it, and whose it is."""

    name: str
    tid: int | None = None
    process: Process | None = None


@dataclass(frozen=True, slots=True)
class Binary:
    """A program or a library as it lay in memory."""

    name: str
    path: str | None = None
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One function of a stack. Of one without symbols `name` is its address as text ("0x1050a4f40")."""

    name: str
    address: int | None = None
    binary: Binary | None = None
    file: str | None = None
    line: int | None = None
    inlined: bool = False


@dataclass(frozen=True, slots=True)
class Backtrace:
    """A stack, innermost frame first, as xctrace writes it. A raw one (`kperf-bt`) has addresses for names."""

    frames: tuple[StackFrame, ...]
    process: Process | None = None  # of a raw one


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Where a frame lies in the source."""

    file: str | None
    line: int | None


# What a cell holds: numbers for times (ns), ids, sizes (bytes) and counts, text elsewhere; None for no value.
Value: TypeAlias = (
    int
    | float
    | str
    | Process
    | Thread
    | Binary
    | StackFrame
    | Backtrace
    | SourceLine
    | tuple[int, ...]
    | None
)

# Tags whose text is a whole number: times and durations in ns, sizes in bytes, addresses, ids, counts, enumerations
# (of those the name is in `fmt`). Gathered from exports of Instruments 14 to 27; an unknown tag stays text.
INTEGERS = frozenset((
    "address", "boolean", "cfrunloop-result", "connection-uuid64", "containment-level", "core", "cycle-weight",
    "displayed-surface-swap", "duration", "eight-byte-array", "event-count", "event-time", "fd",
    "gpu-driver-surface", "gpu-frame-number", "int32", "int64", "kdebug-arg", "kdebug-class", "kdebug-code",
    "kdebug-func", "kdebug-subclass", "layout-id", "mach-absolute-time", "mach-continuous-time", "mach-port",
    "metal-command-buffer-id", "metal-encoder-id", "metal-nesting-level", "metal-workload-priority",
    "network-size-in-bytes", "packed-identifier", "pid", "pmc-event", "pointer", "register-content",
    "render-buffer-depth", "sample-time", "signed-duration", "size-in-bytes", "start-time", "swift-actor-id",
    "swift-task-id", "syscall-arg", "syscall-return", "text-address", "thread-id", "tid", "time-sample-kind",
    "time-since-epoch", "uint16", "uint32", "uint64", "uint8", "vnode", "weight",
))  # fmt: skip
DECIMALS = frozenset(("fixed-decimal", "percent", "double", "float", "decimal"))
LISTS = frozenset(("pmc-events", "text-addresses"))  # whole numbers with blanks between them

_NOTHING = frozenset(("", "n/a", "nan", "-nan", "inf", "-inf", "+inf", "infinity", "-infinity", "(null)"))
_INTEGER = re.compile(r"-?[0-9]{1,20}")
_DECIMAL = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?")
_PROCESS = re.compile(r"(.*) \((\d{1,20})\)\s*", re.DOTALL)
# "Main Thread 0x1cbb9a (host, pid: 17804)"; Xcode 27 writes "Main Thread (0x1e9000) (TestApp, pid: 1001)".
_THREAD = re.compile(r"(.*?)\s*\(?0x[0-9a-fA-F]+\)?\s*\((.*), pid: (-?\d{1,20})\)\s*", re.DOTALL)
_UNNUMBERED = re.compile(r"(.*?)\s*\((.*), pid: (-?\d{1,20})\)\s*", re.DOTALL)


def is_same_process(first: Process, second: Process) -> bool:
    """Whether two are one process: by their pids where both are known, else by their names."""
    if first.pid is not None and second.pid is not None:
        return first.pid == second.pid
    return first.name == second.name


def process_label(process: Process | None) -> str:
    """`python (4242)`, or the name alone."""
    if process is None:
        return "a process that is not named"
    return process.name if process.pid is None else f"{process.name} ({process.pid})"


def parse_integer(text: str, tag: str) -> int | None:
    """A whole number; None where there is none. Raises UnreadableReport for what is none, or has over 20 digits."""
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    number = parse_decimal(text, tag)
    if number is not None and number == int(number):
        return int(number)
    if number is None:
        return None
    raise UnreadableReport(f"not an export of xctrace: {text[:40]!r} as <{tag}>, which holds whole numbers")


def parse_decimal(text: str, tag: str) -> float | None:
    """A number; None for none, NaN and infinity. Raises UnreadableReport for what is no number."""
    text = text.strip()
    if _DECIMAL.fullmatch(text):
        return float(text)
    if text.lower() in _NOTHING:
        return None
    raise UnreadableReport(f"not an export of xctrace: {text[:40]!r} as <{tag}>, which holds numbers")


T = TypeVar("T")
Parts: TypeAlias = "Sequence[tuple[str, Value]]"  # tag and value of each element in an element


class CellDecoder:
    """Makes values of elements. Equal structures (a process, a frame) become one object.

    `look` gives the value of an id, for the tag of the element that refers to it; `keep` gets every id within a
    structure.
    """

    def __init__(self, look: Callable[[str, str], Value], keep: Callable[[str, Value], None]) -> None:
        self._look, self._keep = look, keep
        self._known: dict[object, object] = {}
        self._structures: Mapping[str, Callable[[Element, Parts], Value]] = {
            "process": self._process,
            "thread": self._thread,
            "binary": self._binary,
            "frame": self._frame,
            "backtrace": _backtrace,
            "text-backtrace": _backtrace,
            "kperf-bt": self._raw_backtrace,
            "source": _source,
        }

    def value(self, element: Element, depth: int = 0) -> Value:
        """What an element says. Raises UnreadableReport where it does not hold what its tag says."""
        structure = self._structures.get(element.tag)
        if structure is None:
            return scalar_value(element)
        if depth > MOST_DEPTH:
            raise UnreadableReport(
                f"not an export of xctrace: more than {MOST_DEPTH} elements in one another"
            )
        return structure(element, [(part.tag, self.part(part, depth + 1)) for part in element])

    def part(self, part: Element, depth: int = 0) -> Value:
        """What an element says, or what it refers to; None for a sentinel."""
        if (reference := part.get("ref")) is not None:
            return self._look(reference, part.tag)
        if part.tag == "sentinel":
            return None
        value = self.value(part, depth)
        if (number := part.get("id")) is not None:
            self._keep(number, value)
        return value

    def _shared(self, value: T) -> T:
        """The object that stands for all equal ones."""
        shared: object = self._known.setdefault(value, value)
        return shared  # type: ignore[return-value]

    def _process(self, element: Element, parts: Parts) -> Process:
        shown = element.get("fmt", "")
        match = _PROCESS.fullmatch(shown)
        pid = _first_value(parts, "pid")
        if not isinstance(pid, int):
            pid = int(match[2]) if match else None
        return self._shared(Process(match[1] if match else shown, pid))

    def _thread(self, element: Element, parts: Parts) -> Thread:
        shown = element.get("fmt", "")
        match = _THREAD.fullmatch(shown) or _UNNUMBERED.fullmatch(shown)
        tid, process = _first_value(parts, "tid"), _first_value(parts, "process")
        if not isinstance(process, Process):
            process = self._shared(Process(match[2], int(match[3]))) if match else None
        name = match[1] if match else shown
        return self._shared(Thread(name, tid if isinstance(tid, int) else None, process))

    def _binary(self, element: Element, _: Parts) -> Binary:
        get = element.get
        return self._shared(Binary(get("name", ""), get("path"), get("UUID")))

    def _frame(self, element: Element, parts: Parts) -> StackFrame:
        name, address = element.get("name"), _address(element.get("addr"))
        if name is None:
            name = hex(address) if address is not None else "(unknown)"
        binary, source = _first_value(parts, "binary"), _first_value(parts, "source")
        file, line = (source.file, source.line) if isinstance(source, SourceLine) else (None, None)
        inlined = element.get("inlined", "").lower() in ("1", "true", "yes")
        return self._shared(
            StackFrame(name, address, binary if isinstance(binary, Binary) else None, file, line, inlined)
        )

    def _raw_backtrace(self, _: Element, parts: Parts) -> Backtrace:
        first, rest, process = (
            _first_value(parts, tag) for tag in ("text-address", "text-addresses", "process")
        )
        addresses = (
            [address for address in rest if isinstance(address, int)] if isinstance(rest, tuple) else []
        )
        if isinstance(first, int) and first not in addresses[:1]:
            addresses.insert(0, first)
        frames = tuple(
            self._shared(StackFrame(hex(address), address)) for address in addresses if address > 0
        )
        return Backtrace(frames, process if isinstance(process, Process) else None)


def _backtrace(_: Element, parts: Parts) -> Backtrace:
    return Backtrace(tuple(value for _, value in parts if isinstance(value, StackFrame)))


def _source(element: Element, parts: Parts) -> SourceLine:
    path, line = _first_value(parts, "path"), parse_integer(element.get("line", ""), "source")
    return SourceLine(
        path if isinstance(path, str) else None, line if line is not None and line > 0 else None
    )


def scalar_value(element: Element) -> Value:
    """The value of an element that has no structure of its own. Raises UnreadableReport for a number that is none."""
    tag, text, shown = element.tag, element.text or "", element.get("fmt")
    if tag in INTEGERS and text.isdecimal() and text.isascii() and len(text) < 21:
        return int(text)  # nearly all
    if len(element):
        text = shown if shown is not None else text + "".join(part.tail or "" for part in element)
    if tag in INTEGERS:
        return parse_integer(text, tag)
    if tag in DECIMALS:
        return parse_decimal(text, tag)
    if tag in LISTS:
        return tuple(n for word in text.split() if (n := parse_integer(word, tag)) is not None)
    return text if shown is None or text.strip() else shown


def _first_value(parts: Parts, wanted: str) -> Value:
    return next((value for tag, value in parts if tag == wanted), None)


def _address(text: str | None) -> int | None:
    try:
        return int(text, 16) if text and len(text) <= 18 else None
    except ValueError:
        return None
