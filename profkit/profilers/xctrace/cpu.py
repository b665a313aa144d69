"""Reads the CPU's part of an export: the samples of Time Profiler (`time-profile`) of the profiled process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from profkit.analysis.stacks.merge import KERNEL, UNKNOWN, FrameTable, StackMerger, python_functions
from profkit.core.formatting import plural
from profkit.core.types import Fact, Frame, Profile, Report, Stacks
from profkit.profilers.perf.samples import python_frame
from profkit.profilers.xctrace.alignment import TraceRecording
from profkit.profilers.xctrace.tables import ExportTable
from profkit.profilers.xctrace.toc import Backtrace, Process, Thread, is_same_process, process_label

SAMPLES = "time-profile"
RUNNING = "Running"
TITLE = "CPU time"
# A share of n samples is known to about sqrt(p * (1 - p) / n): with fewer than these, 10 % may be 4 or 16.
ENOUGH_SAMPLES = 100
_OWNER = ("time", "thread", "process", "thread-state")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
# The kernel's own image ("kernel", "kernel.release.t8103") and its extensions, as Instruments names binaries.
_KERNEL_IMAGE = re.compile(r"kernel(\.(release|development|kasan)\S*)?|mach_kernel")


def frame_of(name: str, binary: str | None) -> Frame:
    """Return the frame of one function of a backtrace; `binary` is its image, by name or path.

    A function that Instruments could not name is called by its address there. That differs from run to run and
    would only keep equal things apart, so it is `[unknown]` here, with its library where that is known.
    """
    unnamed = not name or _HEX.fullmatch(name)
    return python_frame(name) or Frame(UNKNOWN if unnamed else name, library_of(binary))


def library_of(binary: str | None) -> str | None:
    """Return the library's name without its folder; None where Instruments does not know the image."""
    name = (binary or "").rstrip("/").rpartition("/")[2]
    if not name or _HEX.fullmatch(name):
        return None
    if _KERNEL_IMAGE.fullmatch(name):
        return KERNEL
    return f"[{name.removesuffix('.kext')}]" if name.endswith(".kext") else name


class SampledTable:
    """The samples of one table: of running threads of the profiled process, in the part that counts."""

    def __init__(self, table: ExportTable, recording: TraceRecording, frames: FrameTable) -> None:
        self.schema = table.schema
        self._recording, self._target, self._frames = recording, recording.target, frames
        self._running = StackMerger(frames)
        self._others = self._waiting = self._without_stack = 0
        # Of a stack that comes again the table gives the same object: what is in the value keeps it alive.
        self._stacks: dict[int, tuple[Backtrace, tuple[int, ...]]] = {}
        for row in table.rows((*_OWNER, "weight", "stack")):
            self._add(*row)

    @property
    def samples(self) -> int:
        """Return the number of samples of running threads."""
        return self._running.samples

    def _add(
        self, time: object, thread: object, process: object, state: object, weight: object, stack: object
    ) -> None:
        owner = thread.process if isinstance(thread, Thread) else process
        owner = owner if isinstance(owner, Process) else None
        if not self._counts(owner) or not self._recording.includes(time if isinstance(time, int) else None):
            return
        if state is not None and state != RUNNING:
            self._waiting += 1
            return
        amount = max(weight, 0) if isinstance(weight, int) else 0
        ids = self._numbers(stack) if isinstance(stack, Backtrace) else ()
        self._without_stack += not ids
        self._running.add(ids, amount)

    def _numbers(self, stack: Backtrace) -> tuple[int, ...]:
        stored = self._stacks.get(id(stack))
        if stored is None:
            frames = (frame_of(frame.name, frame.binary) for frame in stack.frames)
            stored = self._stacks[id(stack)] = stack, self._frames.stack(frames)
        return stored[1]

    def _counts(self, process: Process | None) -> bool:
        """Return whether samples of a process count.

        Those of an unknown process do, and all where the recording names no process.
        """
        if process is None or self._target is None or is_same_process(process, self._target):
            return True
        self._others += 1
        return False

    def stacks(self) -> tuple[Stacks, ...]:
        """Return the stacks of running threads."""
        return (self._running.stacks(TITLE, "s", 1e9),) if self._running.samples else ()

    def profiles(self) -> tuple[Profile, ...]:
        """Return tables by function and library, and by Python function if there are any."""
        profiles: list[Profile] = []
        if self._running.samples:
            profiles += self._running.profiles(TITLE, "s", 1e9)
            python = python_functions(self._running.stacks(TITLE, "s", 1e9))
            profiles += [python] if python is not None else []
        return tuple(profiles)

    def warnings(self) -> Iterator[Fact]:
        """Yield what does not count, and what is not known."""
        samples = self._running.samples
        if self._others:
            yield Fact.of("other-processes", count=self._others)
        elif self._target is None:
            yield Fact("all-processes")
        if not samples:
            marked, name = self._recording.windows is not None, process_label(self._target)
            yield Fact.of("no-sample-in-region" if marked else "no-sample-of", name=name)
        if self._waiting:
            yield Fact.of("waiting-threads", count=self._waiting)
        if samples and self._without_stack:
            count = self._without_stack
            yield Fact.of("without-stack", count=count, share=count / samples)
        if 0 < samples < ENOUGH_SAMPLES:
            yield Fact.of("few-samples", count=samples)


class CpuTableReader:
    """Reads the CPU's tables of a recording one by one, and adds their samples to a report.

    Only samples of the process that was profiled count, where the recording names it; else all do. Where a part
    of the recording counts, only samples within it do.
    """

    schemas = (SAMPLES,)

    def __init__(self, recording: TraceRecording) -> None:
        self._recording = recording
        self._tables: list[SampledTable] = []
        self._frames = FrameTable()

    def read(self, table: ExportTable) -> None:
        """Read all rows of one of the CPU's tables. Raises UnreadableReport as they do."""
        self._tables.append(SampledTable(table, self._recording, self._frames))

    def finish(self, report: Report) -> Report:
        """Return the report with the samples' profiles and stacks, and remarks on them.

        Of several tables of one kind the one with most samples counts: they hold the same.
        """
        selected = [max(self._tables, key=lambda table: table.samples)] if self._tables else []
        warnings = [
            Fact.of("of", warning, what=table.schema) for table in selected for warning in table.warnings()
        ]
        if self._frames.full:
            warnings.append(Fact("many-functions"))
        facts = dict(report.facts)
        if samples := max((table.samples for table in selected), default=0):
            facts["samples"] = str(samples)
        if selected and self._recording.windows is not None:
            entries = plural(self._recording.alignment.entries, "entry", "entries")
            facts["region"] = f"counted in {entries}"
        return replace(
            report,
            profiles=(*report.profiles, *(part for table in selected for part in table.profiles())),
            stacks=(*report.stacks, *(part for table in selected for part in table.stacks())),
            facts=facts,
            warnings=(*report.warnings, *dict.fromkeys(warnings)),
        )
