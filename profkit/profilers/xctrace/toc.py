"""What a file or folder of xctrace's is told by, the table of contents of a recording, and what XML is refused."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from pyexpat import ExpatError, ParserCreate, errors
from xml.etree.ElementTree import Element, ParseError, fromstring

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.profilers.files import HEAD_BYTES, reading
from profkit.profilers.xctrace.cells import EXPORT_AGAIN, Process

_CUT = (errors.XML_ERROR_NO_ELEMENTS, errors.XML_ERROR_UNCLOSED_TOKEN, errors.XML_ERROR_PARTIAL_CHAR)


def check_prolog(head: bytes, root: str) -> None:
    """Raise UnreadableReport unless an export begins with the element `root`, and has no DOCTYPE before it.

    `head` are its first HEAD_BYTES. An export has no DOCTYPE, and entities are what bombs are made of.
    """
    parser = ParserCreate()
    begun: list[str] = []
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = lambda tag, _: begun.append(tag)
    with suppress(ExpatError):  # whoever reads the whole meets it, too
        parser.Parse(head, False)
    if begun and begun[0] != root:
        raise UnreadableReport(f"not an export of xctrace with <{root}>: it begins with <{begun[0][:40]}>")
    if not begun and len(head) >= HEAD_BYTES:
        raise UnreadableReport("not an export of xctrace: no element is in its first 64 KiB")


def _refuse_doctype(*_: object) -> None:
    raise UnreadableReport("hostile or no export of xctrace: it has a DOCTYPE, which exports never have")


def damage_error(error: ParseError, *, at_end: bool) -> UnreadableReport:
    """What an error of the parser means."""
    text = errors.messages.get(error.code, "not well-formed")
    if at_end and text in _CUT:
        return UnreadableReport("cut off: the export ends in its middle")
    return UnreadableReport(f"no well-formed XML at line {error.position[0]}: {text}")


MOST_BYTES = 64 << 20  # a table of contents has some 10 kB, one of a thousand runs 10 MB


@dataclass(frozen=True)
class TraceRun:
    """One run of a recording. None and empty: not told.

    `device` has model, name, os-version, platform; `process` name, pid, arguments, return-exit-status; `summary`
    template-name, instruments-version, duration. `settings` are those of the instruments ("Counter Set"); `tables` are
    the attributes of each table in order, its "schema" among them.
    """

    number: int
    device: Mapping[str, str] = field(default_factory=dict)
    process: Mapping[str, str] = field(default_factory=dict)
    summary: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[Mapping[str, str], ...] = ()

    @property
    def target(self) -> Process | None:
        """The process that was launched; None where none is named."""
        name, pid = self.process.get("name", ""), self.process.get("pid", "")
        if not (name or pid):
            return None
        number = int(pid) if pid.isascii() and pid.isdigit() and len(pid) < 12 else None
        return Process(name or f"process {pid}", number)

    def table(self, schema: str, position: int | None = None) -> Mapping[str, str]:
        """The attributes of the table at `position` (from 1), else of the only one of that schema; else empty."""
        if position is not None and 0 < position <= len(self.tables):
            entry = self.tables[position - 1]
            if entry.get("schema") == schema:
                return entry
        entries = [entry for entry in self.tables if entry.get("schema") == schema]
        return entries[0] if len(entries) == 1 else {}

    @property
    def length(self) -> int | None:
        """How long was recorded, in ns; None where that is not known."""
        try:
            seconds = float(self.summary.get("duration", ""))
        except ValueError:
            return None
        return int(seconds * 1e9) if 0 < seconds < 1e9 else None

    def has(self, schema: str) -> bool:
        """Whether the recording has a table of this schema, with rows or without."""
        return any(table.get("schema") == schema for table in self.tables)


def read_toc(path: Path) -> tuple[TraceRun, ...]:
    """The runs of a table of contents. Raises UnreadableReport where it is none, cut off, damaged or hostile."""
    with reading(path, EXPORT_AGAIN, named=False):
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UnreadableReport(f"no table of contents of xctrace has more than {MOST_BYTES >> 20} MB")
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
        tuple(dict(table.attrib) for table in element.findall("data/table")),
    )


def _attributes(element: Element | None) -> dict[str, str]:
    return dict(element.attrib) if element is not None else {}


def _settings(element: Element | None) -> dict[str, str]:
    """Of lines like `Counter Set: (null)`, the first of a name."""
    settings: dict[str, str] = {}
    for line in element.iter("value") if element is not None else ():
        name, colon, value = (line.text or "").partition(":")
        if colon:
            settings.setdefault(name.strip(), value.strip())
    return settings


TIME_LIMIT = "time limit reached"  # why a recording ended, in lower case


def exit_status(run: TraceRun) -> int | None:
    """The program's exit status as a shell says it (128 + n for a signal); None where it is not known.

    `return-exit-status` and `termination-reason` ("exit(4)", "SIGKILL") stand there for a program that xctrace launched
    and that ended before the recording did.
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
    r"\s*(?:<\?xml[^>]{0,200}\?>)?(?:\s|<!--.*?-->)*(?:<!DOCTYPE.*?)?<(trace-query-result|trace-toc)[\s/>]",
    re.DOTALL,
)
_DETAIL = re.compile(rb"""<node xpath=["'][^<>]{0,400}/tracks\[""")
_RUN = re.compile(r"Trace\d+\.run")
_DOCUMENT = {"form.template", "corespace", "instrument_data", "open.creq", "shared_data"}


def looks_like_table(head: bytes) -> bool:
    """True for the XML of `xctrace export --xpath`: tables, or none where nothing matched."""
    return _root(head) == "trace-query-result"


def looks_like_toc(head: bytes) -> bool:
    """True for the XML of `xctrace export --toc`."""
    return _root(head) == "trace-toc"


def is_detail(head: bytes) -> bool:
    """True for an export of what a track of Instruments lists (Leaks, Allocations): rows of attributes, no table."""
    return _DETAIL.search(head[:8192]) is not None


def is_document(path: Path) -> bool:
    """True for a folder that is a document of Instruments (`.trace`), finished or not."""
    with suppress(OSError):
        names = {entry.name for entry in path.iterdir()}
        return any(_RUN.fullmatch(name) for name in names) or len(names & _DOCUMENT) >= 2
    return False


def has_exports(path: Path) -> bool:
    """True for a folder in which some file is an export of xctrace."""
    with suppress(OSError):
        return any(_root(head_of(entry)) is not None for entry in path.iterdir() if entry.is_file())
    return False


def head_of(path: Path) -> bytes:
    """The first 64 KiB; nothing where it cannot be read."""
    with suppress(OSError), open_regular(path) as file:
        return file.read(HEAD_BYTES)
    return b""


def _root(head: bytes) -> str | None:
    match = _ROOT.match(head[:8192].decode("utf-8-sig", "replace"))
    return match[1] if match is not None else None
