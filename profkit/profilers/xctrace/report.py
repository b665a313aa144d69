"""Exports of one recording (a table, a table of contents, or a folder of them) as one report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from profkit.core.formatting import plural
from profkit.core.types import Report
from profkit.profilers.xctrace import alignment
from profkit.profilers.xctrace.alignment import Alignment, TraceRecording
from profkit.profilers.xctrace.cells import DamagedExport
from profkit.profilers.xctrace.command import export_line
from profkit.profilers.xctrace.cpu import CpuTableReader
from profkit.profilers.xctrace.folder import RecordingExports, find_exports, read_notes, read_unexported
from profkit.profilers.xctrace.metal.report import MetalTableReader
from profkit.profilers.xctrace.toc import TraceRun
from profkit.runtime.region.record import RegionRecord

# What a region is found by: a clock, or signposts.
REGION_TABLES = (alignment.CLOCK_TABLE, alignment.SIGNPOST_TABLE, alignment.RAW_SIGNPOST_TABLE)
_FACTS = (
    ("instruments-version", "Instruments"),
    ("template-name", "template"),
    ("start-date", "recorded"),
    ("end-reason", "ended"),
)
_SETTINGS = (
    ("Counter Set", "counter set"),
    ("Shader Timeline", "shader timeline"),
    ("Induced GPU Performance State", "induced performance state"),
)


def read_exports(path: Path, records: Iterable[RegionRecord] = ()) -> Report:
    """The report that the exports at `path` are: one XML of `xctrace export`, or a folder with those of one recording.

    `records` (else what lies beside the tables) are what processes noted of the region that counts: only what lies in
    it is counted, where the recording has the table `time-info` to find it by. A file of a folder that is cut off or
    damaged is named and not read, where the numbers are not made of it. Raises UnreadableReport for what is empty, cut
    off, damaged, hostile, of several recordings, or nothing of xctrace's.
    """
    exports = find_exports(path, wanted_schemas())
    records = tuple(records) or (read_notes(path) if path.is_dir() else ())
    while True:
        try:
            return _build_report(path, exports, records)
        except DamagedExport as error:  # once more without it: some of its rows were taken already
            exports = exports.without_file(error)


def _build_report(path: Path, exports: RecordingExports, records: tuple[RegionRecord, ...]) -> Report:
    number = exports.run
    run = next((run for run in exports.runs if run.number == number), None)
    recording = TraceRecording(
        run,
        None if run is None else run.target,
        find_alignment(exports, run, records),
        exports.schemas,
        {table.schema: table.reason for table in read_unexported(path)} if path.is_dir() else {},
        frozenset(record.pid for record in records),
        {table.schema: table.error.reason for table in exports.broken if table.error is not None},
    )
    version = run.summary.get("instruments-version") if run is not None else None
    report = Report("xctrace", "xctrace-export", version or None, _list_facts(run))
    for reader in (MetalTableReader(recording), CpuTableReader(recording)):
        for table in exports.tables(reader.schemas):
            reader.read(table)
        report = reader.finish(report)
    if exports.alone and report.metal is not None:
        report = replace(report, metal=replace(report.metal, alone=True))
    damaged = (
        f"{table.path.name} ({table.schema}) is damaged and not read: {table.error and table.error.reason}; "
        f"again: {export_line(table.schema, number)}"
        for table in exports.broken
    )
    notes = (*exports.notes, *recording.alignment.notes, *_note_unread(exports))
    return replace(report, warnings=(*damaged, *report.warnings, *notes))


def wanted_schemas() -> tuple[str, ...]:
    """Every table that a report is made of: what is worth exporting."""
    return (*MetalTableReader.schemas, *CpuTableReader.schemas, *REGION_TABLES)


def find_alignment(
    exports: RecordingExports, run: TraceRun | None, records: Iterable[RegionRecord]
) -> Alignment:
    """Which part of a run counts, by its clock or its signposts."""
    records = tuple(records)
    if not records:
        return Alignment()
    clock: alignment.TraceClock | alignment.NoClock | None = None
    signposts: list[alignment.Window] = []
    for table in exports.tables((alignment.CLOCK_TABLE,)):
        try:
            clock = alignment.read_clock(table.rows(alignment.CLOCK_COLUMNS))
        except alignment.NoClock as error:
            clock = error
    for table in exports.tables((alignment.SIGNPOST_TABLE,)):
        signposts += alignment.read_signposts(table.rows(alignment.SIGNPOST_COLUMNS))
    if not signposts:
        for table in exports.tables((alignment.RAW_SIGNPOST_TABLE,)):
            signposts += alignment.pair_signposts(table.rows(alignment.RAW_SIGNPOST_COLUMNS))
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
        if setting := run.setting(name):
            facts[title] = "none" if setting == "(null)" else setting
    if program := run.process.get("name"):
        facts["command"] = f"{shlex.quote(program)} {run.process.get('arguments', '')}".strip()
    return facts


def _note_unread(exports: RecordingExports) -> tuple[str, ...]:
    wanted = frozenset(wanted_schemas())
    unread = sorted(exports.schemas - wanted)
    if not unread:
        return ()
    return (f"{plural(len(unread), 'table')} that profkit makes nothing of: {', '.join(unread[:20])}",)
