"""Where in a run, or in a report, times and stacks are to be found: told by content, as everything that is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.run_folder import FILE_NAME
from profkit.profilers.registry import recognise_format

# Of several in one run the first is taken: nsys' export is smaller than torch's trace, and has the driver's calls.
XCTRACE = ("xctrace-folder", "xctrace-table")
TIME_LINES = ("nsys-sqlite", *XCTRACE, "torch-chrome-trace")
STACKS = ("perf-script", *XCTRACE)
_RECORDS = "trace.region.*.json"
_NAMES = (
    "trace.xctrace",
    "trace.sqlite",
    "trace.torch.*.json*",
    "trace.script.txt",
    "*.sqlite",
    "*.script.txt",
)


@dataclass(frozen=True)
class SourceFile:
    """A file and the name of its format."""

    path: Path
    form: str


@dataclass(frozen=True)
class Sources:
    """What there is. `name` is what the run or the report is called."""

    name: str
    time_line: SourceFile | None = None
    stacks: SourceFile | None = None
    records: tuple[
        Path, ...
    ] = ()  # of a run on a Mac: what processes noted of the region while it was recorded


def find_sources(path: Path) -> Sources:
    """The time line and the stacks in a run's folder, or the report at `path` itself; None for what is not there."""
    folder = path.parent if path.name == FILE_NAME else path
    is_run = (folder / FILE_NAME).is_file()
    if is_run:
        files = [file for name in _NAMES for file in sorted((folder / "artifacts").glob(name))]
        sources = [source for source in map(_recognise, dict.fromkeys(files)) if source is not None]
        name = folder.resolve().name
    else:
        report = _recognise(path)
        sources, name = [report] if report is not None else [], path.name
    time_lines = [source for form in TIME_LINES for source in sources if source.form == form]
    stacks = [source for source in sources if source.form in STACKS]
    chosen = time_lines[0] if time_lines else None
    records = sorted(chosen.path.parent.glob(_RECORDS)) if chosen is not None else []
    return Sources(name, chosen, stacks[0] if stacks else None, tuple(records) if is_run else ())


def is_document(path: Path) -> bool:
    """Whether this is a document of Instruments, which has to be exported before anybody reads it."""
    source = _recognise(path) if path.is_dir() and not (path / FILE_NAME).is_file() else None
    return source is not None and source.form == "xctrace-document"


def _recognise(path: Path) -> SourceFile | None:
    try:
        return SourceFile(path, recognise_format(path).name)
    except UnreadableReport:  # an artifact that was cut short, or was removed, is none
        return None
