"""Reads .ncu-rep files without NVIDIA's software.

Two passes: over the block headers (strings and session, which may stand behind the results that need them), then over
the results one by one. The file is mapped, not loaded.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import Fact, KernelInstruction, Report, Scope, ToolRule
from profkit.profilers.files import reading
from profkit.profilers.ncu.blocks import (
    NEWEST,
    MalformedMessage,
    ReportBlock,
    ReportMessage,
    TruncatedReport,
    layout_version,
    read_blocks,
    read_records,
)
from profkit.profilers.ncu.instructions import find_code, is_per_instruction, read_kernel_details
from profkit.profilers.ncu.launches import IDENTITY, LaunchResult, is_wanted
from profkit.profilers.ncu.report import ReportSession, read_header, report_of
from profkit.profilers.ncu.results import read_result

FORMAT = "ncu-rep"
_IDENTITY = frozenset(IDENTITY)
MAX_DETAILED = 20  # kernels of which single instructions are read, the largest first
_AGAIN = "record it again, or copy it again from where it was recorded"


def read_ncu_rep(path: Path) -> Report:
    """Read the .ncu-rep at `path`: counters and times by launch configuration, facts, devices.

    A file that was cut off is read as far as its blocks are whole, with a warning. Raises UnreadableReport where
    nothing is whole, and for files that are damaged or no report of Nsight Compute.
    """
    with open_report(path) as file:
        report = report_of(file.session, file.launches(is_wanted), FORMAT, file.warnings)
        return file.with_details(report)


@dataclass
class OpenReport:
    """An open report after its first pass."""

    path: Path
    data: mmap.mmap
    session: ReportSession = field(default_factory=ReportSession)
    strings: list[str] = field(default_factory=list)
    filled: list[ReportBlock] = field(default_factory=list)  # blocks with results
    sources: list[ReportBlock] = field(default_factory=list)  # blocks with code
    first_launches: dict[Scope, ReportMessage] = field(default_factory=dict)  # of each configuration
    warnings: list[Fact] = field(default_factory=list)

    def scan(self) -> None:
        """Make the first pass over all blocks, and note where the file is cut off.

        Raises UnreadableReport where that is before its first result.
        """
        count = together = 0
        try:
            version = layout_version(self.data)
            if version is not None and version > NEWEST:
                self.warnings.append(Fact.of("newer-layout", version=version, newest=NEWEST))
            for block in read_blocks(self.data):
                count += 1
                self.strings += read_header(self.data, block, self.session)
                if block.results:
                    self.filled.append(block)
                together += block.results - block.counts.get("kernel", 0)
                if block.counts.get("source"):
                    self.sources.append(block)
        except TruncatedReport as cut:
            if not self.filled:
                raise UnreadableReport(
                    f"{self.path} was cut off before its first result: {cut}", _AGAIN
                ) from cut
            self.warnings.append(Fact.of("file-cut-off", said=str(cut)))
        if together:
            self.warnings.append(Fact.of("results-together", count=together))
        if count == 0:
            raise UnreadableReport(f"{self.path} holds a header and nothing else: it was cut off", _AGAIN)

    def launches(self, wanted: Callable[[str], bool]) -> Iterator[LaunchResult]:
        """Make the second pass, and yield every launch with the metrics whose names are wanted."""
        names = {
            number: name for number, name in enumerate(self.strings) if name in _IDENTITY or wanted(name)
        }
        for block in self.filled:
            for part in read_records(self.data, block):
                if part.kind == "kernel":
                    launch = read_result(self.data, part, names)
                    self.first_launches.setdefault(launch.kernel.scope, part)
                    yield launch

    def with_details(self, report: Report) -> Report:
        """Add the instructions and rules of the report's largest kernels, from the first launch of each."""
        names = {number: name for number, name in enumerate(self.strings) if is_per_instruction(name)}
        sources = [
            part for block in self.sources for part in read_records(self.data, block) if part.kind == "source"
        ]
        kernels = report.trace.kernels if report.trace is not None else ()
        instructions: list[KernelInstruction] = []
        rules: list[ToolRule] = []
        debug: list[str] = []
        for time in kernels[:MAX_DETAILED]:
            part = self.first_launches.get(time.kernel.scope)
            if part is None:
                continue
            symbol = time.kernel.mangled or time.kernel.name
            costliest, concluded, is_debug = read_kernel_details(
                self.data, part, names, time.kernel.scope, partial(find_code, self.data, sources, symbol)
            )
            instructions += costliest
            rules += concluded
            debug += [time.kernel.name] if is_debug else []
        facts = {**report.facts, "debug build": "; ".join(dict.fromkeys(debug))} if debug else report.facts
        return replace(report, instructions=tuple(instructions), rules=tuple(rules), facts=facts)


@contextmanager
def open_report(path: Path) -> Iterator[OpenReport]:
    """Open the report at `path` and make the first pass. Raises UnreadableReport for a damaged file."""
    try:
        with reading(path), open_regular(path) as stream:
            if not stream.read(1):
                raise UnreadableReport(f"{path} is empty")
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                file = OpenReport(path, data)
                file.scan()
                yield file
    except MalformedMessage as fault:
        if fault.offset == 0:
            raise UnreadableReport(f"{path} is {fault}") from fault
        raise UnreadableReport(f"{path} is damaged: {fault}", _AGAIN) from fault
