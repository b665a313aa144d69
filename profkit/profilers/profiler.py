"""Types of what profkit needs of a profiler: one object per tool, listed in `registry.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from profkit.core.errors import Fault
from profkit.core.types import Check, Machine, Report, Step


@dataclass(frozen=True)
class Conversion:
    """How the tool itself turns a binary report into something that `Format.read` takes.

    `argv` returns the command for a report and an output, and does not run it. The output is called `output`.
    `by_hand` is the line to type where the tool is; {name} in it is the file's name, {stem} the name without its
    suffix.
    """

    argv: Callable[[Path, Path], tuple[str, ...]]
    output: str
    by_hand: str


@dataclass(frozen=True)
class Format:
    """One kind of report, recognised by its content: a file by its first 64 KiB, a folder by its files.

    `looks_like` is None where a report is always a folder, `is_folder` where it is always a file. `read` raises
    UnreadableReport. `as_text` is the line that exports a binary report as text, which can be scrubbed; None
    where the report is text. {name} in it is the file's name, {stem} the name without its suffix.

    `has_stacks`: `read` returns the sampled stacks. `facts_are_conditions`: the report's facts say how it was
    measured; those of other reports are shown as notes. `any_content`: `looks_like` accepts every file of a kind
    that other tools write, too, such as any SQLite file; this format is compared after all others.
    """

    name: str
    tool: str
    title: str
    looks_like: Callable[[bytes], bool] | None
    read: Callable[[Path], Report]
    as_text: str | None = None
    is_folder: Callable[[Path], bool] | None = None
    conversion: Conversion | None = None
    has_stacks: bool = False
    facts_are_conditions: bool = False
    any_content: bool = False


RecordedKind: TypeAlias = Literal["samples", "counters", "cpu"]  # of xctrace samples are of the GPU


@dataclass(frozen=True)
class RecordRequest:
    """One report to record: of which workload, and where.

    `scratch` is an empty folder for whatever else the tool leaves. `marked`: the workload marks a region, and
    only that is to be recorded. `python`: the version of the interpreter that runs it. `kernel`: count only
    kernels of this name. `timeout`: wall seconds for the workload.
    """

    what: RecordedKind
    command: tuple[str, ...]
    report: Path
    scratch: Path
    machine: Machine
    marked: bool
    python: tuple[int, int] | None = None
    kernel: str | None = None
    timeout: float | None = None


@dataclass(frozen=True)
class Recorder:
    """How a tool records one report.

    `step` raises MachineError where the tool cannot do it here. `collect` brings what the step left to the
    report's path and returns remarks; None where the step writes it there itself. `check_target` raises
    UsageError for a path that must not be replaced; None where a report is a file. `picks_kernel`: it can count
    one kernel alone. `follows_region`: a marked region changes what is recorded. `device_ids`: the ids of the
    devices that it records, which nobody else should use meanwhile. `viewer`: the line with which the tool
    itself shows the report `{name}`. `report_names`: the files of a report of this name, where it may be a
    folder; `FileNames` says how.
    """

    step: Callable[[RecordRequest], Step]
    collect: Callable[[RecordRequest], tuple[str, ...]] | None = None
    check_target: Callable[[Path], None] | None = None
    report_names: Callable[[str], tuple[str, ...]] | None = None
    picks_kernel: bool = False
    follows_region: bool = True
    device_ids: Callable[[], tuple[str, ...]] = tuple
    viewer: str = ""


@dataclass(frozen=True)
class Profiler:
    """One tool that records: its reports that can be read, how it is run, and what its errors mean.

    `name` stands in documents (`Step.tool`, `Report.tool`) and on the command line. A file is compared with
    `formats` in their order. `recorder`: how `profkit record` makes one report; None where profkit does not start
    it. `explain`: what a printed text and an exit code mean, None for what it does not know; absent where it is
    no program of its own. `checks`: what the doctor says of it, after trying it.
    """

    name: str
    formats: tuple[Format, ...]
    recorder: Recorder | None = None
    explain: Callable[[str, int], Fault | None] | None = None
    checks: Callable[[], Iterable[Check]] = tuple


def begins_with(sign: bytes) -> Callable[[bytes], bool]:
    """Return the `looks_like` of a format whose reports all begin with `sign`."""
    return lambda head: head.startswith(sign)
