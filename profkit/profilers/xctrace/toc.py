"""The table of contents of a recording, and what is refused of any XML that should be an export."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from pyexpat import ExpatError, ParserCreate, errors
from xml.etree.ElementTree import Element, ParseError, fromstring

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.profilers.files import HEAD_BYTES
from profkit.profilers.xctrace.cells import EXPORT_AGAIN, DamagedExport, Process

_CUT = frozenset((errors.XML_ERROR_NO_ELEMENTS, errors.XML_ERROR_UNCLOSED_TOKEN, errors.XML_ERROR_PARTIAL_CHAR,
                  errors.XML_ERROR_UNCLOSED_CDATA_SECTION))  # fmt: skip


@contextmanager
def name_file(path: Path) -> Iterator[None]:
    """Puts the name of the file before what is wrong with it."""
    try:
        yield
    except DamagedExport as error:
        raise error if error.path else DamagedExport(error.reason, error.fix, path) from error
    except UnreadableReport as error:
        raise UnreadableReport(f"{path}: {error.message}", error.fix or EXPORT_AGAIN) from error
    except OSError as error:
        raise UnreadableReport(
            f"{path} cannot be read: {error.strerror}", f"ls -l {shlex.quote(str(path))}"
        ) from error


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


def damage_error(error: ParseError, rows: int, *, at_end: bool) -> DamagedExport:
    """What an error of the parser means, with how many rows were whole before it."""
    whole = f"after {rows:,} whole row{'' if rows == 1 else 's'}"
    text = errors.messages.get(error.code, "not well-formed")
    if at_end and text in _CUT:
        return DamagedExport(f"cut off {whole}: the export ends in its middle")
    return DamagedExport(f"no well-formed XML at line {error.position[0]} {whole}: {text}")


MOST_BYTES = 64 << 20  # a table of contents has some 10 kB, one of a thousand runs 10 MB


@dataclass(frozen=True)
class TraceRun:
    """One run of a recording. None and empty: not told.

    `settings` are the lines of the recording's settings by instrument ("GPU": "Counter Set: (null)"); `tables` are
    the attributes of each table in order, its "schema" among them.
    """

    number: int
    device: Mapping[str, str] = field(default_factory=dict)  # model, name, os-version, platform
    process: Mapping[str, str] = field(default_factory=dict)  # name, pid, arguments, type, return-exit-status
    summary: Mapping[str, str] = field(
        default_factory=dict
    )  # template-name, instruments-version, duration, ...
    settings: tuple[tuple[str, str], ...] = ()
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

    def setting(self, name: str) -> str | None:
        """The value of a setting that is written as `name: value` ("Counter Set"); None where there is none."""
        for _, line in self.settings:
            key, colon, value = line.partition(":")
            if colon and key.strip() == name:
                return value.strip()
        return None


def read_toc(path: Path) -> tuple[TraceRun, ...]:
    """The runs of a table of contents. Raises UnreadableReport where it is none, cut off, damaged or hostile."""
    with name_file(path):
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UnreadableReport(f"no table of contents of xctrace has more than {MOST_BYTES >> 20} MB")
        check_prolog(data[:HEAD_BYTES], "trace-toc")
        try:
            root = fromstring(data)
        except ParseError as error:
            raise damage_error(error, 0, at_end=True) from error
        return tuple(_parse_run(element, n) for n, element in enumerate(root.findall("run"), 1))


def _parse_run(element: Element, place: int) -> TraceRun:
    number = element.get("number", "")
    summary = element.find("info/summary")
    settings = element.find("info/summary/intruments-recording-settings")  # spelt like this by xctrace
    return TraceRun(
        int(number) if number.isascii() and number.isdigit() and len(number) < 10 else place,
        _attributes(element.find("info/target/device")),
        _attributes(element.find("info/target/process")),
        {child.tag: (child.text or "").strip() for child in summary if not len(child)}
        if summary is not None
        else {},
        tuple(_settings(settings)) if settings is not None else (),
        tuple(dict(table.attrib) for table in element.findall("data/table")),
    )


def _attributes(element: Element | None) -> dict[str, str]:
    return dict(element.attrib) if element is not None else {}


def _settings(settings: Element) -> list[tuple[str, str]]:
    lines = []
    for key in settings.iter("key"):
        name = key.get("name", "")
        values = [(value.text or "").strip() for value in key.iter("value")] or [(key.text or "").strip()]
        lines += [(name, value) for value in values if value]
    return lines


TIME_LIMIT = "time limit reached"


def reached_time_limit(run: TraceRun) -> bool:
    """Whether the time limit ended the recording, and with it the program."""
    return run.summary.get("end-reason", "").strip().lower() == TIME_LIMIT


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
