"""What an element of an export means: told by its tag, which is the engineering type of its column."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar
from xml.etree.ElementTree import Element

from profkit.core.errors import UnreadableReport

EXPORT_AGAIN = "export it again from its .trace: xctrace export --input X.trace --xpath ... --output X.xml"


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
class StackFrame:
    """One function of a stack, in a binary by name or path. Of one without symbols `name` is its address ("0x105")."""

    name: str
    binary: str | None = None


@dataclass(frozen=True, slots=True)
class Backtrace:
    """A stack, innermost frame first, as xctrace writes it."""

    frames: tuple[StackFrame, ...]


# What a cell holds: numbers for times (ns), ids, sizes (bytes) and counts, text elsewhere; None for no value.
Value: TypeAlias = "int | float | str | Process | Thread | StackFrame | Backtrace | None"

# Tags whose text is a whole number, of the columns that are read: times and durations in ns, ids, counts, flags.
INTEGERS = frozenset((
    "boolean", "duration", "event-count", "event-time", "int32", "int64", "kdebug-arg", "mach-absolute-time",
    "metal-command-buffer-id", "metal-encoder-id", "pid", "sample-time", "signed-duration", "start-time", "thread-id",
    "tid", "uint16", "uint32", "uint64", "uint8", "weight",
))  # fmt: skip
DECIMALS = frozenset(("fixed-decimal", "percent", "double", "float", "decimal"))
# What is said in an element of a tag, and may be referred to from another.
PARTS = {
    "thread": ("tid", "process"),
    "process": ("pid",),
    "backtrace": ("frame",),
    "frame": ("binary",),
}

_NOTHING = frozenset(("", "n/a", "nan", "-nan", "inf", "-inf", "+inf", "infinity", "-infinity", "(null)"))
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?")
_PROCESS = re.compile(r"(.*) \((\d{1,20})\)\s*", re.DOTALL)
# "Main Thread 0x1cbb9a (host, pid: 17804)"; Xcode 27 writes "Main Thread (0x1e9000) (TestApp, pid: 1001)".
_THREAD = re.compile(r"(.*?)\s*\(?0x[0-9a-fA-F]+\)?\s*\((.*), pid: (-?\d{1,20})\)\s*", re.DOTALL)

T = TypeVar("T")
Parts: TypeAlias = "Sequence[tuple[str, Value]]"  # tag and value of each element in an element


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


class CellDecoder:
    """Makes values of elements; equal structures (a process, a frame) become one object.

    `values` are those of the ids that were said so far; what stands within a structure is put there.
    """

    def __init__(self, values: dict[str | None, object]) -> None:
        self._values = values
        self._known: dict[object, object] = {}
        self._structures: Mapping[str, Callable[[Element, Parts], Value]] = {
            "process": self._process,
            "thread": self._thread,
            "binary": lambda element, _: element.get("name") or element.get("path"),
            "frame": self._frame,
            "backtrace": _backtrace,
        }

    def value(self, element: Element) -> Value:
        """What an element says. Raises UnreadableReport where it does not hold what its tag says."""
        structure = self._structures.get(element.tag)
        if structure is None:
            return scalar_value(element)
        used = PARTS.get(element.tag, ())
        return structure(element, [(part.tag, self._part(part)) for part in element if part.tag in used])

    def _part(self, part: Element) -> Value:
        """What an element says, or what it refers to."""
        if (reference := part.get("ref")) is not None:
            if reference not in self._values:
                raise unknown_id(reference, part.tag)
            return self._values[reference]  # type: ignore[return-value]
        value = self.value(part)
        if (number := part.get("id")) is not None:
            self._values[number] = value
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
        match = _THREAD.fullmatch(shown)
        tid, process = _first_value(parts, "tid"), _first_value(parts, "process")
        if not isinstance(process, Process):
            process = self._shared(Process(match[2], int(match[3]))) if match else None
        name = match[1] if match else shown
        return self._shared(Thread(name, tid if isinstance(tid, int) else None, process))

    def _frame(self, element: Element, parts: Parts) -> StackFrame:
        binary = _first_value(parts, "binary")
        name = element.get("name") or element.get("addr") or "(unknown)"
        return self._shared(StackFrame(name, binary if isinstance(binary, str) else None))


def unknown_id(number: str, tag: str) -> UnreadableReport:
    """The error of a reference to nothing."""
    return UnreadableReport(f"damaged: <{tag[:40]}> refers to id {number[:40]}, which was not said before")


def _backtrace(_: Element, parts: Parts) -> Backtrace:
    return Backtrace(tuple(value for _, value in parts if isinstance(value, StackFrame)))


def scalar_value(element: Element) -> Value:
    """The value of an element that has no structure of its own. Raises UnreadableReport for a number that is none."""
    tag, text, shown = element.tag, element.text or "", element.get("fmt")
    if tag in INTEGERS and text.isdecimal() and text.isascii() and len(text) < 21:
        return int(text)  # nearly all
    if len(element):
        text = shown if shown is not None else text + "".join(part.tail or "" for part in element)
    if tag in INTEGERS or tag in DECIMALS:
        return _parse_number(text.strip(), tag)
    return text if shown is None or text.strip() else shown


def _parse_number(text: str, tag: str) -> float | None:
    """A number, whole where the tag says so; None for none, NaN and infinity. Raises UnreadableReport for text."""
    match = _NUMBER.fullmatch(text)
    if match is None and text.lower() in _NOTHING:
        return None
    if match is None or (tag in INTEGERS and float(text) % 1):
        what = "whole numbers" if tag in INTEGERS else "numbers"
        raise UnreadableReport(f"not an export of xctrace: {text[:40]!r} as <{tag}>, which holds {what}")
    if tag in DECIMALS:
        return float(text)
    return int(float(text)) if match[1] or match[2] else int(text)


def _first_value(parts: Parts, wanted: str) -> Value:
    return next((value for tag, value in parts if tag == wanted), None)
