"""Stacks as a file for speedscope.app: those that a profiler caught, and every profile by function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from profkit.analysis.stacks.files import write_speedscope
from profkit.core.errors import UsageError
from profkit.core.files.regular import open_regular_text
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.progress import Progress
from profkit.core.types import Frame, Profile, RunDocument, Stacks
from profkit.reporting.exports.sources import Sources

PIECE = 1 << 20  # characters
HINT = "profkit profile --backend cpu --passes stacks,trace -- COMMAND"


def pieces(sources: Sources, document: Callable[[], RunDocument], progress: Progress) -> Iterator[str]:
    """The file in pieces: whole stacks first (perf, Instruments), then GPU time, then each table of functions.

    GPU time is by range and kernel, of Metal by encoder. A table of functions knows no callers: its stacks are library
    and function, and its name says so. Raises UsageError where there is neither.
    """
    run = document()
    stacks = [*stacks_of(sources, progress), *_device_time(run), *filter(None, map(_table, run.profiles))]
    if not stacks:
        raise UsageError(f"{sources.name} has no stacks and no profile by function", HINT)
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


def _table(profile: Profile) -> Stacks | None:
    if profile.kind in ("program-calls", "counted-lines", "growing-lines"):
        return None  # what stands in others already, or is no time
    weights: dict[tuple[Frame, ...], float] = {}
    for spot in profile.hotspots:
        if spot.own > 0:
            frame = Frame(spot.function, spot.library, spot.file, spot.line)
            stack = (Frame(spot.library), frame) if spot.library else (frame,)
            weights[stack] = weights.get(stack, 0.0) + spot.own
    return Stacks(f"{profile.title} (no callers)", profile.unit, weights) if weights else None
