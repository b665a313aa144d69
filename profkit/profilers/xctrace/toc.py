"""Recognises files of xctrace, reads a recording's table of contents, and decodes elements."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from pyexpat import ExpatError, ParserCreate, errors
from typing import TypeAlias, TypeVar
from xml.etree.ElementTree import Element, ParseError, fromstring

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.profilers.files import HEAD_BYTES, reading

_CUT = (errors.XML_ERROR_NO_ELEMENTS, errors.XML_ERROR_UNCLOSED_TOKEN, errors.XML_ERROR_PARTIAL_CHAR)


def check_prolog(head: bytes, root: str) -> None:
    """Raise UnreadableReport unless an export begins with the element `root`, and has no DOCTYPE before it.

    `head` are its first HEAD_BYTES. An export has no DOCTYPE, and entities are what bombs are made of.
    """
    parser = ParserCreate()
    begun: list[str] = []
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = lambda tag, _: begun.append(tag)
    with suppress(ExpatError):  # the reader of the whole file reports it
        parser.Parse(head, False)
    if begun and begun[0] != root:
        raise UnreadableReport(f"not an export of xctrace with <{root}>: it begins with <{begun[0][:40]}>")
    if not begun and len(head) >= HEAD_BYTES:
        raise UnreadableReport("not an export of xctrace: no element is in its first 64 KiB")


def _refuse_doctype(*_: object) -> None:
    raise UnreadableReport("hostile or not an export of xctrace: it has a DOCTYPE, which exports never have")


def damage_error(error: ParseError, *, at_end: bool) -> UnreadableReport:
    """Return what an error of the parser means."""
    text = errors.messages.get(error.code, "not well-formed")
    if at_end and text in _CUT:
        return UnreadableReport("cut off: the export ends in the middle")
    return UnreadableReport(f"not well-formed XML at line {error.position[0]}: {text}")


MAX_BYTES = 64 << 20  # a table of contents has some 10 kB, one of a thousand runs 10 MB


@dataclass(frozen=True)
class TraceRun:
    """One run of a recording. None and empty: not known.

    `device` has model, name, os-version, platform; `process` name, pid, arguments, return-exit-status; `summary`
    template-name, instruments-version, duration. `settings` are those of the instruments ("Counter Set");
    `tables` the names of the schemas that there are.
    """

    number: int
    device: Mapping[str, str] = field(default_factory=dict)
    process: Mapping[str, str] = field(default_factory=dict)
    summary: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    tables: frozenset[str] = frozenset()

    @property
    def target(self) -> Process | None:
        """Return the process that was launched; None if none is named."""
        name, pid = self.process.get("name", ""), self.process.get("pid", "")
        if not (name or pid):
            return None
        number = int(pid) if pid.isascii() and pid.isdigit() and len(pid) < 12 else None
        return Process(name or f"process {pid}", number)

    @property
    def length(self) -> int | None:
        """Return how long was recorded, in ns; None where that is not known."""
        try:
            seconds = float(self.summary.get("duration", ""))
        except ValueError:
            return None
        return int(seconds * 1e9) if 0 < seconds < 1e9 else None

    def has(self, schema: str) -> bool:
        """Return whether the recording has a table of this schema, with rows or without."""
        return schema in self.tables


def read_toc(path: Path) -> tuple[TraceRun, ...]:
    """Read the runs of a table of contents.

    Raises UnreadableReport for what is none, cut off, damaged or hostile.
    """
    with reading(path, EXPORT_AGAIN, named=False):
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UnreadableReport(f"no table of contents of xctrace has more than {MAX_BYTES >> 20} MB")
        check_prolog(data[:HEAD_BYTES], "trace-toc")
        try:
            root = fromstring(data)
        except ParseError as error:
            raise damage_error(error, at_end=True) from error
        return tuple(_parse_run(element, n) for n, element in enumerate(root.findall("run"), 1))


def _parse_run(element: Element, place: int) -> TraceRun:
    number = element.get("number", "")
    settings = element.find("info/summary/intruments-recording-settings")  # spelt like this by xctrace
    return TraceRun(
        int(number) if number.isascii() and number.isdigit() and len(number) < 10 else place,
        _attributes(element.find("info/target/device")),
        _attributes(element.find("info/target/process")),
        {child.tag: (child.text or "").strip() for child in element.findall("info/summary/*")},
        _settings(settings),
        frozenset(table.get("schema", "") for table in element.findall("data/table")),
    )


def _attributes(element: Element | None) -> dict[str, str]:
    return dict(element.attrib) if element is not None else {}


def _settings(element: Element | None) -> dict[str, str]:
    """Parse lines like `Counter Set: (null)`; of a name that repeats, the first."""
    settings: dict[str, str] = {}
    for line in element.iter("value") if element is not None else ():
        name, colon, value = (line.text or "").partition(":")
        if colon:
            settings.setdefault(name.strip(), value.strip())
    return settings


TIME_LIMIT = "time limit reached"  # why a recording ended, in lower case


def exit_status(run: TraceRun) -> int | None:
    """Return the program's exit status as a shell has it (128 + n for a signal); None where it is not known.

    `return-exit-status` and `termination-reason` ("exit(4)", "SIGKILL") stand there for a program that xctrace
    launched and that ended before the recording did.
    """
    reason = run.process.get("termination-reason", "").strip()
    status = run.process.get("return-exit-status", "").strip()
    if reason in signal.Signals.__members__:
        return 128 + signal.Signals[reason]
    if reason.startswith("exit(") and reason.endswith(")"):
        status = reason[5:-1].strip()
    if not (status.isascii() and status.isdigit() and len(status) < 4) or int(status) > 255:
        return None
    return int(status)


# Its root, a document type before it or not: its reader says what is wrong with that.
_ROOT = re.compile(
    r"(?:<\?xml[^>]{0,200}\?>)?(?:\s|<!--(?:(?!-->).)*-->)*(?:<!DOCTYPE.*?)?<(trace-query-result|trace-toc)[\s/>]",
    re.DOTALL,
)
_RUN = re.compile(r"Trace\d+\.run")
_DOCUMENT = {"form.template", "corespace", "instrument_data", "open.creq", "shared_data"}


def looks_like_table(head: bytes) -> bool:
    """Return whether the file is XML of `xctrace export --xpath`: tables, or none where nothing matched."""
    return _root(head) == "trace-query-result"


def looks_like_toc(head: bytes) -> bool:
    """Return whether the file is XML of `xctrace export --toc`."""
    return _root(head) == "trace-toc"


def is_document(path: Path) -> bool:
    """Return whether a folder is a document of Instruments (`.trace`), finished or not."""
    with suppress(OSError):
        names = {entry.name for entry in path.iterdir()}
        return any(_RUN.fullmatch(name) for name in names) or len(names & _DOCUMENT) >= 2
    return False


def has_exports(path: Path) -> bool:
    """Return whether some file in a folder is an export of xctrace."""
    with suppress(OSError):
        return any(_root(head_of(entry)) is not None for entry in path.iterdir() if entry.is_file())
    return False


def head_of(path: Path) -> bytes:
    """Return the first 64 KiB; nothing where the file cannot be read."""
    with suppress(OSError), open_regular(path) as file:
        return file.read(HEAD_BYTES)
    return b""


def _root(head: bytes) -> str | None:
    # Without the blanks at its beginning: a file of nothing else would take seconds.
    match = _ROOT.match(head[:8192].decode("utf-8-sig", "replace").lstrip())
    return match[1] if match is not None else None


EXPORT_AGAIN = "export it again from its .trace: xctrace export --input X.trace --xpath ... --output X.xml"


@dataclass(frozen=True, slots=True)
class Process:
    """A process by name; `pid` is None where the export does not have it."""

    name: str
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread: its name ("Main Thread", "" where it has none), the kernel's number of it, and its process."""

    name: str
    tid: int | None = None
    process: Process | None = None


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One function of a stack, in a binary by name or path. Without symbols `name` is its address ("0x105")."""

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
    """Return whether two are one process: by their pids where both are known, else by their names."""
    if first.pid is not None and second.pid is not None:
        return first.pid == second.pid
    return first.name == second.name


def process_label(process: Process | None) -> str:
    """Return `python (4242)`, or the name alone."""
    if process is None:
        return "a process that is not named"
    return process.name if process.pid is None else f"{process.name} ({process.pid})"


class CellDecoder:
    """Decodes elements into values; equal structures (a process, a frame) become one object.

    `values` are those of the ids so far; what stands within a structure is added to it.
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
        """Return the value of an element. Raises UnreadableReport where its content does not fit its tag."""
        structure = self._structures.get(element.tag)
        if structure is None:
            return scalar_value(element)
        used = PARTS.get(element.tag, ())
        return structure(element, [(part.tag, self._part(part)) for part in element if part.tag in used])

    def _part(self, part: Element) -> Value:
        """Return the value of an element, or what it refers to."""
        if (reference := part.get("ref")) is not None:
            if reference not in self._values:
                raise unknown_id(reference, part.tag)
            return self._values[reference]  # type: ignore[return-value]
        value = self.value(part)
        if (number := part.get("id")) is not None:
            self._values[number] = value
        return value

    def _shared(self, value: T) -> T:
        """Return the object that stands for all equal ones."""
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
    """Return the error for a reference to nothing."""
    return UnreadableReport(f"damaged: <{tag[:40]}> refers to id {number[:40]}, which no earlier element has")


def _backtrace(_: Element, parts: Parts) -> Backtrace:
    return Backtrace(tuple(value for _, value in parts if isinstance(value, StackFrame)))


def scalar_value(element: Element) -> Value:
    """Return the value of an element without a structure. Raises UnreadableReport for an invalid number."""
    tag, text, shown = element.tag, element.text or "", element.get("fmt")
    if tag in INTEGERS and text.isdecimal() and text.isascii() and len(text) < 21:
        return int(text)  # nearly all
    if len(element):
        text = shown if shown is not None else text + "".join(part.tail or "" for part in element)
    if tag in INTEGERS or tag in DECIMALS:
        return _parse_number(text.strip(), tag)
    return text if shown is None or text.strip() else shown


def _parse_number(text: str, tag: str) -> float | None:
    """Parse a number, whole where the tag says so; None for NaN and infinity.

    Raises UnreadableReport for text.
    """
    match = _NUMBER.fullmatch(text)
    if match is None and text.lower() in _NOTHING:
        return None
    if match is None or (tag in INTEGERS and float(text) % 1):
        expected = "whole numbers" if tag in INTEGERS else "numbers"
        raise UnreadableReport(f"not an export of xctrace: {text[:40]!r} as <{tag}>, which holds {expected}")
    if tag in DECIMALS:
        return float(text)
    return int(float(text)) if match[1] or match[2] else int(text)


def _first_value(parts: Parts, wanted: str) -> Value:
    return next((value for tag, value in parts if tag == wanted), None)
