"""A run or a report for other viewers: a time line for Perfetto, and stacks for speedscope.app."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.analysis.stacks.files import write_speedscope
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.files.regular import open_regular_text
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.progress import Progress
from profkit.core.run_folder import FILE_NAME
from profkit.core.types import Frame, RunDocument, Stacks
from profkit.profilers.profiler import Format, TimeLine
from profkit.profilers.registry import all_formats, recognise_format
from profkit.reporting.views.run_text import place_option, stdin_option

EVERY = 1 << 17  # events after which it is said how far it has come
PIECE = 1 << 20  # characters
HINT = "profkit profile --backend cpu --passes stacks,trace -- COMMAND"
_RECORDS = "trace.region.*.json"
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
    records: tuple[
        Path, ...
    ] = ()  # of a run on a Mac: what processes noted of the region while it was recorded


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
    records = sorted(first.path.parent.glob(_RECORDS)) if first is not None and is_run else []
    return Sources(folder.resolve().name if is_run else path.name, first, stacks, tuple(records))


def is_document(path: Path) -> bool:
    """Whether this is a folder that only its own tool can read: it has to be exported before anybody reads it."""
    report = _recognised(path) if path.is_dir() and not (path / FILE_NAME).is_file() else None
    return report is not None and report.form.conversion is not None


def _recognised(path: Path) -> RecognisedReport | None:
    try:
        return RecognisedReport(path, recognise_format(path))
    except UnreadableReport:  # an artifact that was cut short, or was removed, is none
        return None


# ---------------------------------------------------------------- a time line


def time_line_pieces(
    sources: Sources, document: Callable[[], RunDocument], progress: Progress
) -> Iterator[str]:
    """The trace events that the profiler recorded, in pieces; memory does not grow with the trace.

    Raises UsageError where there are none; `document` is asked for then, for the line that makes some.
    """
    report = sources.time_line
    if report is not None and report.form.time_line is not None:
        return _of_report(report.path, report.form.time_line, sources.records, progress)
    raise UsageError(f"{sources.name} has no times to put on a line: it holds sums", _line_for(document()))


def _line_for(document: RunDocument) -> str:
    words = document.workload.command
    command = shlex.join(words) if words else "COMMAND"
    on = place_option(document) + stdin_option(document)
    return f"profkit profile {on}--backend {document.backend} --passes timing,trace -- {command}"


def _of_report(path: Path, time_line: TimeLine, records: Sequence[Path], progress: Progress) -> Iterator[str]:
    reached = 0

    def counted(events: int) -> None:
        nonlocal reached
        if events - reached >= EVERY:
            reached = events
            progress.note(f"{events:,} events")

    events = time_line(path, records, counted)  # may say that there are no times, before anything is written

    def pieces() -> Iterator[str]:
        progress.begin("time line", str(path))
        yield from events
        progress.end("written")

    return pieces()


# ---------------------------------------------------------------- stacks


def stack_pieces(sources: Sources, document: Callable[[], RunDocument], progress: Progress) -> Iterator[str]:
    """The file in pieces: whole stacks first (perf, Instruments), then GPU time by range and kernel, or by encoder.

    Raises UsageError where there is neither.
    """
    stacks = [*stacks_of(sources, progress), *_device_time(document())]
    if not stacks:
        raise UsageError(f"{sources.name} has no stacks and no kernels", HINT)
    return _written(stacks, sources.name)


def _written(stacks: list[Stacks], name: str) -> Iterator[str]:
    """By way of a file: the writer writes one, and a large profile is not held as a text."""
    with TemporaryFolder() as folder:
        path = Path(folder, "out.json")
        write_speedscope(stacks, path, name)
        with open_regular_text(path, encoding="ascii") as file:
            while piece := file.read(PIECE):
                yield piece


def stacks_of(sources: Sources, progress: Progress) -> tuple[Stacks, ...]:
    """The stacks that were sampled, read once more from what holds them; none where nothing was."""
    stacks: list[Stacks] = []
    for report in sources.stacks:
        progress.begin("stacks", str(report.path))
        stacks += report.form.read(report.path).stacks
        progress.end("read")
    return tuple(stacks)


def _device_time(document: RunDocument) -> list[Stacks]:
    weights: dict[tuple[Frame, ...], float] = {}
    for time in document.trace.kernels if document.trace is not None else ():
        kernel = Frame(time.kernel.name, time.kernel.id or None)
        operation = (Frame(time.operation, "operation"),) if time.operation is not None else ()
        stack = (*(Frame(name, "range") for name in time.ranges), *operation, kernel)
        weights[stack] = weights.get(stack, 0.0) + time.total
    title = f"GPU time by {'encoder' if document.metal is not None else 'range and kernel'}"
    return [Stacks(title, "s", weights)] if weights else []
