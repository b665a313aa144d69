"""Which exports belong together, told by their content, and what lies beside them in their folder."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import copy_regular, open_regular, open_regular_text, read_bounded_text
from profkit.core.formatting import plural
from profkit.profilers.files import read_head
from profkit.profilers.xctrace.cpu_report import GUIDED
from profkit.profilers.xctrace.metal.counters import COUNTERS
from profkit.profilers.xctrace.metal.tables import INTERVALS, STATES
from profkit.profilers.xctrace.profiler import (
    head_of,
    is_detail,
    is_pointer,
    looks_like_table,
    looks_like_toc,
)
from profkit.profilers.xctrace.tables import ExportTable, read_tables
from profkit.profilers.xctrace.toc import DamagedExport, TraceRun, read_toc
from profkit.runtime.region.record import MOST_BYTES, RegionRecord, decode_record

UNEXPORTED = "left-out.json"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class UnexportedTable:
    """A table that the document lists and that was not exported."""

    schema: str
    reason: str
    fix: str | None = None


def write_unexported(folder: Path, left_out: Sequence[UnexportedTable]) -> None:
    """Note what an export into `folder` left out; nothing where all tables are there."""
    if left_out:
        text = json.dumps([asdict(table) for table in left_out], indent=1) + "\n"
        (folder / UNEXPORTED).write_text(text, encoding="utf-8")


def read_unexported(folder: Path) -> tuple[UnexportedTable, ...]:
    """What an export into `folder` left out; nothing where there is no such note, or none that can be read."""
    try:
        with open_regular_text(folder / UNEXPORTED, encoding="utf-8") as file:
            content = json.loads(file.read(_MOST_BYTES))
        return tuple(
            UnexportedTable(
                str(entry["schema"]), str(entry["reason"]), str(entry["fix"]) if entry.get("fix") else None
            )
            for entry in content
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return ()


NOTE_FILES = "region.*.json"


def copy_notes(scratch: Path, folder: Path) -> None:
    """Put what the processes of a recording noted to its exports."""
    for note in sorted(scratch.glob(NOTE_FILES)):
        copy_regular(note, folder / note.name)


def read_notes(folder: Path) -> tuple[RegionRecord, ...]:
    """Of each process that entered a region, what it noted. Raises UnreadableReport where a note is damaged."""
    records = []
    for path in sorted(folder.glob(NOTE_FILES)):
        try:
            record = decode_record(read_bounded_text(path, MOST_BYTES), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableReport(f"{path} cannot be read: {error}") from error
        if record.regions or record.benchmarks:
            records.append(record)
    return tuple(records)


# How busy the GPU was is made of these two: without one that was recorded, what is left would say something else.
NEEDED = frozenset((INTERVALS, STATES))
# One of these at least is what a recording was made for.
MAIN = NEEDED | {
    COUNTERS,
    GUIDED,
    "time-profile",
    "time-sample",
    "cpu-profile",
    "counters-profile",
}
_SCHEMA = re.compile(rb"""<schema\s+name=["']([\w.-]{1,100})["']""")


@dataclass(frozen=True)
class DamagedTable:
    """A file that is not read, with the table in it."""

    path: Path
    schema: str
    error: DamagedExport

    def describe(self) -> str:
        """One sentence."""
        return f"{self.path.name} ({self.schema}) is damaged and not read: {self.error.reason}"


def is_complete_without(schemas: Collection[str], left: Collection[str]) -> bool:
    """Whether a report without the tables `schemas`, of those that are `left`, still says what it would have said."""
    return not NEEDED.intersection(schemas) and bool(MAIN.intersection(left))


def _find_schema(path: Path, head: bytes) -> str | None:
    """The table in a file that breaks off before its first row: by what it says, else by its name."""
    match = _SCHEMA.search(head)
    if match is not None:
        return match[1].decode("ascii", "replace")
    return path.stem if re.fullmatch(r"[\w.-]{1,100}", path.stem) else None


MOST_FILES = 10_000
_NAMED = 5  # of a kind, in a sentence
NOTHING_FIX = "xctrace export --input X.trace --toc   (lists the tables that there are)"
_CONTENTS_ALONE = "a table of contents alone: it tells how it was recorded, and no table is beside it"
_TABLE_ALONE = "one table alone: the folder of all exports of its recording, toc.xml among them, tells more"
APART_FIX = "put the exports of each recording into a folder of its own"


@dataclass(frozen=True)
class TableFile:
    """One table in one file."""

    path: Path
    schema: str
    run: int | None
    position: int | None


@dataclass(frozen=True)
class RecordingExports:
    """The exports of one recording. `run` is the run that is read (None: not known), the last of several.

    `broken` are files of it that are damaged, and are not read.
    """

    runs: tuple[TraceRun, ...]
    entries: tuple[TableFile, ...]
    run: int | None
    notes: tuple[str, ...]
    broken: tuple[DamagedTable, ...] = ()
    alone: bool = False  # one file, and not the folder of all of them

    def without_file(self, error: DamagedExport) -> RecordingExports:
        """The same without the file of `error`. Raises that where the rest would not say what the whole did."""
        lost = [entry for entry in self.entries if entry.path == error.path]
        rest = replace(self, entries=tuple(entry for entry in self.entries if entry.path != error.path))
        broken = tuple(DamagedTable(entry.path, entry.schema, error) for entry in lost)
        if not broken or not is_complete_without({table.schema for table in broken}, rest.schemas):
            raise error
        return replace(rest, broken=(*self.broken, *broken))

    @property
    def schemas(self) -> frozenset[str]:
        """The tables of that run."""
        return frozenset(entry.schema for entry in self.entries if entry.run in (None, self.run))

    def tables(self, schemas: Sequence[str]) -> Iterator[ExportTable]:
        """The tables of these schemas, in this order; of a file with several all that fit, when its turn comes."""
        fitting = (entry for schema in schemas for entry in self.entries if entry.schema == schema)
        for path in dict.fromkeys(entry.path for entry in fitting):
            with closing(read_tables(path, self.runs)) as tables:
                for table in tables:
                    if table.schema in schemas and table.run in (None, self.run):
                        yield table


def find_exports(path: Path, wanted: Collection[str] = ()) -> RecordingExports:
    """What is at `path`: one XML, or a folder. Raises UnreadableReport where there is nothing of xctrace's to read.

    Of several runs of a recording that one counts which has most of the tables that are `wanted`.
    """
    try:
        return _read_folder(path, wanted) if path.is_dir() else _read_file(path, wanted)
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error


def _read_file(path: Path, wanted: Collection[str]) -> RecordingExports:
    head = read_head(path)
    if is_detail(head):
        raise UnreadableReport(
            f"{path} is what a track of Instruments lists, not a table: profkit reads tables", NOTHING_FIX
        )
    if looks_like_toc(head):
        runs = read_toc(path)
        return RecordingExports(runs, (), runs[-1].number if runs else None, (_CONTENTS_ALONE,), alone=True)
    entries = tuple(_list_tables(path))
    if not entries:
        raise UnreadableReport(
            f"{path} is an export without a table: nothing in the recording matched what was asked for",
            NOTHING_FIX,
        )
    return replace(_select_run((), list(entries), [_TABLE_ALONE], wanted), alone=True)


def _read_folder(folder: Path, wanted: Collection[str]) -> RecordingExports:
    names = sorted(entry for entry in folder.iterdir() if entry.is_file())
    if len(names) > MOST_FILES:
        raise UnreadableReport(f"{folder} has more than {MOST_FILES} files: no folder of exports", APART_FIX)
    contents: dict[str, Path] = {}
    entries: list[TableFile] = []
    tableless: list[str] = []  # nothing matched what was asked for, or it is what a track lists
    pointers: list[str] = []
    broken: list[DamagedTable] = []
    for file in names:
        head = head_of(file)
        if looks_like_toc(head):
            contents.setdefault(_digest(file), file)
        elif is_pointer(head):
            pointers.append(file.name)
        elif looks_like_table(head):
            try:
                tables = [] if is_detail(head) else list(_list_tables(file))
            except DamagedExport as error:
                if (schema := _find_schema(file, head)) is None:
                    raise
                broken.append(DamagedTable(file, schema, error))
                continue
            entries += tables
            if not tables:
                tableless.append(file.name)
    if len(contents) > 1:
        named = _name_some([file.name for file in contents.values()])
        raise UnreadableReport(f"{folder} has exports of {len(contents)} recordings: {named}", APART_FIX)
    if broken and not is_complete_without(
        {table.schema for table in broken}, {entry.schema for entry in entries}
    ):
        raise broken[0].error
    runs = tuple(run for file in contents.values() for run in read_toc(file))
    if not entries and not runs:
        if not tableless:
            raise UnreadableReport(f"{folder} has no export of xctrace that is all there", NOTHING_FIX)
        many = plural(len(tableless), "export")
        reason = f"{many} in {folder}, none with a table: nothing in the recording matched what was asked for"
        raise UnreadableReport(reason, NOTHING_FIX)
    notes = [] if entries else [_CONTENTS_ALONE]
    if tableless:
        notes.append(f"{plural(len(tableless), 'export')} without a table: {_name_some(tableless)}")
    if pointers:
        many = plural(len(pointers), "file")
        notes.append(f"{many} not there, only pointers of Git LFS: {_name_some(pointers)}")
    return replace(_select_run(runs, entries, notes, wanted), broken=tuple(broken))


def _select_run(
    runs: tuple[TraceRun, ...], entries: list[TableFile], notes: list[str], wanted: Collection[str]
) -> RecordingExports:
    """One run, each of its tables once. Raises UnreadableReport where one is there twice, and not the same."""
    tables_of = Counter(entry.run for entry in entries if entry.run is not None)
    wanted_of = Counter(entry.run for entry in entries if entry.schema in wanted)
    number = runs[-1].number if runs else None
    if tables_of:
        number = max(tables_of, key=lambda run: (wanted_of[run], tables_of[run], run))
    if len(tables_of) > 1:
        notes.append(
            f"of the runs {', '.join(map(str, sorted(tables_of)))} of this recording, {number} is read: the last of"
            " those with most tables that profkit reads"
        )
    first: dict[tuple[str, int | None, int | None], TableFile] = {}
    selected: list[TableFile] = []
    for entry in entries:
        before = first.setdefault((entry.schema, entry.run, entry.position), entry).path
        if before == entry.path:
            selected.append(entry)
        elif _digest(before) != _digest(entry.path):
            raise UnreadableReport(
                f"{before} and {entry.path.name} are both the table {entry.schema}, and differ: "
                "exports of several recordings",
                APART_FIX,
            )
    return RecordingExports(runs, tuple(selected), number, tuple(notes))


def _list_tables(path: Path) -> Iterator[TableFile]:
    """The tables of one file; of most files the first is all, and no further look is taken."""
    several = _has_several_nodes(path)
    with closing(read_tables(path)) as tables:
        for table in tables:
            yield TableFile(path, table.schema, table.run, table.position)
            if not several:
                return


def _has_several_nodes(path: Path) -> bool:
    """Whether `<node` comes twice: one scan of the bytes, much faster than reading."""
    nodes, tail = 0, b""
    with open_regular(path) as file:
        while chunk := file.read(1 << 22):
            nodes += (tail + chunk).count(b"<node")
            if nodes > 1:
                return True
            tail = chunk[-4:]
    return False


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _name_some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
