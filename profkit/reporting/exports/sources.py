"""Where in a run, or in a report, times and stacks are to be found: told by content, as everything that is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.run_folder import FILE_NAME
from profkit.profilers.profiler import Format
from profkit.profilers.registry import all_formats, recognise_format

_NAMES = (
    "trace.xctrace",
    "trace.sqlite",
    "trace.torch.*.json*",
    "stacks.jsonl",
    "trace.script.txt",
    "*.sqlite",
    "*.script.txt",
)


@dataclass(frozen=True)
class RecognisedReport:
    """A file or folder, and its format."""

    path: Path
    form: Format


@dataclass(frozen=True)
class Sources:
    """What there is. `name` is what the run or the report is called."""

    name: str
    time_line: RecognisedReport | None = None
    stacks: tuple[RecognisedReport, ...] = ()


def find_sources(path: Path) -> Sources:
    """The time line and the stacks in a run's folder, or the report at `path` itself; None for what is not there.

    Of several time lines in one run the first in the order of the profilers is taken.
    """
    folder = path.parent if path.name == FILE_NAME else path
    is_run = (folder / FILE_NAME).is_file()
    files = [path]
    if is_run:
        files = [file for name in _NAMES for file in sorted((folder / "artifacts").glob(name))]
    reports = [report for report in map(_recognised, dict.fromkeys(files)) if report is not None]
    order = [form.name for form in all_formats()]
    with_times = [report for report in reports if report.form.time_line is not None]
    first = min(with_times, key=lambda report: order.index(report.form.name), default=None)
    stacks = tuple({report.form.name: report for report in reports if report.form.has_stacks}.values())
    return Sources(folder.resolve().name if is_run else path.name, first, stacks)


def is_document(path: Path) -> bool:
    """Whether this is a folder that only its own tool can read: it has to be exported before anybody reads it."""
    report = _recognised(path) if path.is_dir() and not (path / FILE_NAME).is_file() else None
    return report is not None and report.form.conversion is not None


def _recognised(path: Path) -> RecognisedReport | None:
    try:
        return RecognisedReport(path, recognise_format(path))
    except UnreadableReport:  # an artifact that was cut short, or was removed, is none
        return None
