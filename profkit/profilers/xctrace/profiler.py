"""xctrace, the command line of Apple's Instruments: traces of the CPU and the GPU of a Mac."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.files.regular import open_regular
from profkit.core.types import Check
from profkit.profilers.files import HEAD_BYTES
from profkit.profilers.profiler import Conversion, Format, Recorder, lazy_function

_ROOT = re.compile(r"<(trace-query-result|trace-toc)[\s/>]")
_LEAD = re.compile(r"\s*(?:<\?xml[^>]{0,200}\?>)?(?:\s|<!--.*?-->|<!DOCTYPE)*<", re.DOTALL)
_DETAIL = re.compile(rb"""<node xpath=["'][^<>]{0,400}/tracks\[""")
_RUN = re.compile(r"Trace\d+\.run")
_DOCUMENT = ("form.template", "corespace", "instrument_data", "open.creq", "shared_data")


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
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError:
        return False
    return any(_RUN.fullmatch(name) for name in names) or sum(name in names for name in _DOCUMENT) >= 2


def has_exports(path: Path) -> bool:
    """True for a folder in which some file is an export of xctrace."""
    try:
        return any(_root(head_of(entry)) is not None for entry in path.iterdir() if entry.is_file())
    except OSError:
        return False


def head_of(path: Path) -> bytes:
    """The first 64 KiB; nothing where it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def _root(head: bytes) -> str | None:
    """The root element that the text begins with, a document type or not: its reader says what is wrong with that."""
    text = head[:8192].decode("utf-8-sig", "replace")
    match = _ROOT.search(text) if _LEAD.match(text) is not None else None
    return match[1] if match is not None else None


# The tables that most of a report is made of: `report.wanted_schemas` has all.
TABLES = (
    "metal-gpu-intervals",
    "metal-gpu-state-intervals",
    "metal-application-encoders-list",
    "metal-command-buffer-completed",
    "gpu-performance-state-intervals",
    "device-thermal-state-intervals",
    "metal-shader-profiler-intervals",
    "metal-gpu-counter-intervals",
    "time-info",
    "time-profile",
)
_BY_HAND = (
    "mkdir exports; xctrace export --input {name} --toc --output exports/toc.xml; "
    f"for t in {' '.join(TABLES)}; do xctrace export --input {{name}} "
    "--xpath '/trace-toc/run[1]/data/table[@schema=\"'$t'\"]' --output exports/$t.xml; done"
)
_READ = lazy_function("profkit.profilers.xctrace.report.read_exports")


class Xctrace:
    """xctrace: tables and tables of contents as XML, folders of them, and documents, which only xctrace reads."""

    name = "xctrace"
    formats = (
        Format(
            "xctrace-table",
            name,
            "xctrace export",
            lazy_function("profkit.profilers.xctrace.profiler.looks_like_table"),
            _READ,
            has_stacks=True,
            facts_are_conditions=True,
        ),
        Format(
            "xctrace-toc",
            name,
            "xctrace export --toc",
            lazy_function("profkit.profilers.xctrace.profiler.looks_like_toc"),
            _READ,
            facts_are_conditions=True,
        ),
        Format(
            "xctrace-document",
            name,
            "document of Instruments (.trace)",
            None,
            _READ,
            as_text=_BY_HAND,
            is_folder=lazy_function("profkit.profilers.xctrace.profiler.is_document"),
            conversion=Conversion(
                lazy_function("profkit.profilers.xctrace.record.conversion_argv"), "exports", _BY_HAND
            ),
            facts_are_conditions=True,
        ),
        Format(
            "xctrace-folder",
            name,
            "folder of xctrace exports",
            None,
            _READ,
            is_folder=lazy_function("profkit.profilers.xctrace.profiler.has_exports"),
            has_stacks=True,
            facts_are_conditions=True,
        ),
    )
    recorder = Recorder(
        lazy_function("profkit.profilers.xctrace.record.recording_step"),
        lazy_function("profkit.profilers.xctrace.record.collect_report"),
        lazy_function("profkit.profilers.xctrace.record.find_finished_document"),
        lazy_function("profkit.profilers.xctrace.record.check_target"),
        follows_region=False,
    )

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What an error of xctrace or xcrun means."""
        from profkit.profilers.xctrace.command import explain_fault

        return explain_fault(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether Xcode is here and records."""
        from profkit.profilers.xctrace.checks import instruments_checks

        return instruments_checks()
