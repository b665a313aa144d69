"""The table of contents of a recording: on what, of which process, when, with which settings, and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pyexpat import ExpatError
from xml.etree.ElementTree import Element, fromstring

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace.parsing import damage, name_file, new_parser

MOST_BYTES = 64 << 20  # a table of contents has some 10 kB, one of a thousand runs 10 MB


@dataclass(frozen=True)
class Run:
    """One run of a recording. None and empty: not told.

    `settings` are the lines of the recording's settings by instrument ("GPU": "Counter Set: (null)"); `tables` are
    the attributes of each table in order, its "schema" among them; `processes` name and pid.
    """

    number: int
    device: Mapping[str, str] = field(default_factory=dict)  # model, name, os-version, platform
    process: Mapping[str, str] = field(default_factory=dict)  # name, pid, arguments, type, return-exit-status
    summary: Mapping[str, str] = field(
        default_factory=dict
    )  # template-name, instruments-version, duration, ...
    settings: tuple[tuple[str, str], ...] = ()
    tables: tuple[Mapping[str, str], ...] = ()
    processes: tuple[tuple[str, int | None], ...] = ()

    def table(self, schema: str, position: int | None = None) -> Mapping[str, str]:
        """The attributes of the table at `position` (from 1), else of the only one of that schema; else empty."""
        if position is not None and 0 < position <= len(self.tables):
            entry = self.tables[position - 1]
            if entry.get("schema") == schema:
                return entry
        found = [entry for entry in self.tables if entry.get("schema") == schema]
        return found[0] if len(found) == 1 else {}

    @property
    def length(self) -> int | None:
        """How long was recorded, in ns; None where that is not told."""
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


def read_toc(path: Path) -> tuple[Run, ...]:
    """The runs of a table of contents. Raises UnreadableReport where it is none, cut off, damaged or hostile."""
    with name_file(path):
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UnreadableReport(f"no table of contents of xctrace has more than {MOST_BYTES >> 20} MB")
        try:
            new_parser().Parse(data, True)  # refuses what must not be there before anything is built of it
        except ExpatError as error:
            raise damage(error, 0, at_end=True) from error
        root = fromstring(data)
        if root.tag != "trace-toc":
            raise UnreadableReport(f"not a table of contents of xctrace: it begins with <{root.tag[:40]}>")
        return tuple(_run(element, n) for n, element in enumerate(root.findall("run"), 1))


def _run(element: Element, place: int) -> Run:
    number = element.get("number", "")
    summary = element.find("info/summary")
    settings = element.find("info/summary/intruments-recording-settings")  # spelt like this by xctrace
    return Run(
        int(number) if number.isascii() and number.isdigit() and len(number) < 10 else place,
        _attributes(element.find("info/target/device")),
        _attributes(element.find("info/target/process")),
        {child.tag: (child.text or "").strip() for child in summary if not len(child)}
        if summary is not None
        else {},
        tuple(_settings(settings)) if settings is not None else (),
        tuple(dict(table.attrib) for table in element.findall("data/table")),
        tuple((p.get("name", ""), _number(p.get("pid"))) for p in element.findall("processes/process")),
    )


def _attributes(element: Element | None) -> dict[str, str]:
    return dict(element.attrib) if element is not None else {}


def _settings(settings: Element) -> list[tuple[str, str]]:
    found = []
    for key in settings.iter("key"):
        name = key.get("name", "")
        values = [(value.text or "").strip() for value in key.iter("value")] or [(key.text or "").strip()]
        found += [(name, value) for value in values if value]
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 20 else None
