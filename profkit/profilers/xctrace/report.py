"""Finds the exports of xctrace that belong together, by their content, and reads them as one report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.safe_folder import copy_into
from profkit.core.types import Fact, Report
from profkit.profilers.files import read_head, reading
from profkit.profilers.xctrace import alignment
from profkit.profilers.xctrace.alignment import Alignment, TraceRecording
from profkit.profilers.xctrace.cpu import CpuTableReader
from profkit.profilers.xctrace.metal_report import MetalTableReader
from profkit.profilers.xctrace.tables import ExportTable, read_tables
from profkit.profilers.xctrace.toc import (
    TraceRun,
    head_of,
    looks_like_table,
    looks_like_toc,
    read_toc,
)
from profkit.runtime.passes.read import read_record
from profkit.runtime.region.record import RegionRecord

NOTE_FILES = "region.*.json"
MAX_FILES = 10_000
_NAMED = 5  # files in a sentence
NOTHING_FIX = "xctrace export --input X.trace --toc   (lists the tables that there are)"
APART_FIX = "put the exports of each recording into a folder of its own"


def copy_notes(scratch: Path, folder: Path) -> None:
    """Copy the notes of a recording's processes to its exports."""
    for note in sorted(scratch.glob(NOTE_FILES)):
        copy_into(note, folder / note.name)


def read_notes(folder: Path) -> tuple[RegionRecord, ...]:
    """Return the notes of each process that entered a region. Raises UnreadableReport for a damaged note."""
    records = [read_record(path) for path in sorted(folder.glob(NOTE_FILES))]
    return tuple(record for record in records if record.regions or record.benchmarks)


@dataclass(frozen=True)
class TableFile:
    """The table of one file; of a file with several it is the first, with all others of its schema."""

    path: Path
    schema: str
    run: int | None = None


@dataclass(frozen=True)
class RecordingExports:
    """The exports of one recording. `run` is the run that is read (None: not known), the last of several."""

    runs: tuple[TraceRun, ...]
    entries: tuple[TableFile, ...]
    run: int | None
    notes: tuple[Fact, ...]

    @property
    def schemas(self) -> frozenset[str]:
        """Return the schemas of that run's tables."""
        return frozenset(entry.schema for entry in self.entries if entry.run in (None, self.run))

    def tables(self, schemas: Sequence[str]) -> Iterator[ExportTable]:
        """Yield the tables of these schemas, in this order."""
        for schema in schemas:
            for entry in self.entries:
                if entry.schema != schema:
                    continue
                with closing(read_tables(entry.path)) as tables:
                    for table in tables:
                        if table.schema == schema and table.run in (None, self.run):
                            yield table


def find_exports(path: Path) -> RecordingExports:
    """Find the exports at `path`: one XML, or a folder. Raises UnreadableReport where there are none."""
    with reading(path):
        alone = not path.is_dir()
        files = [path] if alone else sorted(entry for entry in path.iterdir() if entry.is_file())
        if len(files) > MAX_FILES:
            raise UnreadableReport(
                f"{path} has more than {MAX_FILES} files: not a folder of exports", APART_FIX
            )
        heads = {file: read_head(file) if alone else head_of(file) for file in files}
        contents = [file for file, head in heads.items() if looks_like_toc(head)]
        if len(contents) > 1:
            named = ", ".join(file.name for file in contents[:_NAMED])
            raise UnreadableReport(f"{path} has exports of {len(contents)} recordings: {named}", APART_FIX)
        # an export in which nothing matched has no table
        entries = [
            entry for file, head in heads.items() if looks_like_table(head) for entry in _first_table(file)
        ]
        runs = tuple(run for file in contents for run in read_toc(file))
    if not entries and not runs:
        raise UnreadableReport(
            f"{path} has no table: nothing in the recording matched the query", NOTHING_FIX
        )
    places: dict[tuple[str, int | None], Path] = {}
    for entry in entries:
        before = places.setdefault((entry.schema, entry.run), entry.path)
        if before != entry.path:
            raise UnreadableReport(
                f"{before} and {entry.path.name} are both the table {entry.schema}: exports of several recordings",
                APART_FIX,
            )
    exported = {entry.run for entry in entries if entry.run is not None}
    number = max(exported, default=runs[-1].number if runs else None)
    notes = (Fact("contents-alone" if not entries else "table-alone"),) if alone or not entries else ()
    return RecordingExports(runs, tuple(entries), number, notes)


def _first_table(path: Path) -> Iterator[TableFile]:
    with closing(read_tables(path)) as tables:
        for table in tables:
            yield TableFile(path, table.schema, table.run)
            return


# What a region is found by: a clock, or signposts.
REGION_TABLES = (alignment.CLOCK_TABLE, alignment.SIGNPOST_TABLE)
_FACTS = (
    ("instruments-version", "Instruments"),
    ("template-name", "template"),
    ("start-date", "recorded"),
    ("end-reason", "ended"),
)
_SETTINGS = (
    ("Counter Set", "counter set"),
    ("Induced GPU Performance State", "induced performance state"),
)


def read_exports(path: Path, records: Iterable[RegionRecord] = ()) -> Report:
    """Read the exports at `path`: one XML of `xctrace export`, or a folder with those of one recording.

    `records` (else the notes next to the tables) are what processes noted of the region that counts: only what
    lies in it is counted, where the recording has the table `time-info` to find it by. Raises UnreadableReport
    for what is empty, cut off, damaged, hostile, of several recordings, or nothing of xctrace's.
    """
    exports = find_exports(path)
    records = tuple(records) or (read_notes(path) if path.is_dir() else ())
    run = next((run for run in exports.runs if run.number == exports.run), None)
    recording = TraceRecording(
        run,
        None if run is None else run.target,
        find_alignment(exports, run, records),
        exports.schemas,
        frozenset(record.pid for record in records),
    )
    version = run.summary.get("instruments-version") if run is not None else None
    report = Report("xctrace", "xctrace-export", version or None, _list_facts(run))
    for reader in (MetalTableReader(recording), CpuTableReader(recording)):
        for table in exports.tables(reader.schemas):
            reader.read(table)
        report = reader.finish(report)
    notes = (*exports.notes, *recording.alignment.notes)
    return replace(report, warnings=(*report.warnings, *notes))


def wanted_schemas() -> tuple[str, ...]:
    """Return every table that a report is made of: what is worth exporting."""
    return (*MetalTableReader.schemas, *CpuTableReader.schemas, *REGION_TABLES)


def find_alignment(
    exports: RecordingExports, run: TraceRun | None, records: Iterable[RegionRecord]
) -> Alignment:
    """Return the part of a run that counts, by its clock or its signposts."""
    records = tuple(records)
    if not records:
        return Alignment()
    clock: alignment.TraceClock | Fact | None = None
    signposts: list[alignment.Window] = []
    for table in exports.tables((alignment.CLOCK_TABLE,)):
        clock = alignment.read_clock(table.rows(alignment.CLOCK_COLUMNS))
    for table in exports.tables((alignment.SIGNPOST_TABLE,)):
        signposts += alignment.read_signposts(table.rows(alignment.SIGNPOST_COLUMNS))
    return alignment.align_regions(records, clock, run.length if run is not None else None, sorted(signposts))


def _list_facts(run: TraceRun | None) -> dict[str, str]:
    if run is None:
        return {}
    facts = {title: run.summary[name] for name, title in _FACTS if run.summary.get(name)}
    if model := run.device.get("model"):
        facts["device model"] = model
    if system := run.device.get("os-version"):
        facts["system"] = f"{run.device.get('platform') or 'macOS'} {system}"
    for name, title in _SETTINGS:
        if setting := run.settings.get(name):
            facts[title] = "none" if setting == "(null)" else setting
    if program := run.process.get("name"):
        facts["command"] = f"{shlex.quote(program)} {run.process.get('arguments', '')}".strip()
    return facts
