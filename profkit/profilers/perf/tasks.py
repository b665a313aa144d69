"""Reads perf's records of processes: which programs a run started, how often, and how long each ran on a processor.

Samples of a clock miss processes that run for less than a millisecond or two; the kernel's records of forks, programs
and switches miss none. The text is that of `command.switches_argv`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from profkit.core.files.regular import open_regular
from profkit.core.types import StartedProgram
from profkit.profilers.files import reading

_RECORD = re.compile(
    rb"\s*(?P<pid>\d+)/(?P<tid>\d+)\s+(?P<at>\d{1,12}\.\d{6,9}):\s+(?:"
    rb"PERF_RECORD_SWITCH (?P<switch>IN|OUT)"
    rb"|PERF_RECORD_FORK\((?P<child>\d+):\d+\):\((?P<parent>\d+):\d+\)"
    rb"|PERF_RECORD_COMM exec: (?P<name>.{0,64}):\d+/\d+"
    rb"|PERF_RECORD_EXIT\(\d+:(?P<ended>\d+)\))"
)
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
SHORT = 0.01  # s of a processor, on average: no work of its own


@dataclass
class _Process:
    name: str = ""  # of the program that it runs; empty for a copy of the process that started it
    ran: float = 0.0
    before: float = 0.0  # of these, before it ran its program


@dataclass(frozen=True)
class Tasks:
    """Programs that were started, and processor seconds of all processes."""

    programs: tuple[StartedProgram, ...] = ()
    seconds: float = 0.0


def read_tasks(path: Path, program: str) -> Tasks:
    """Return what a run of `program` started. Raises UnreadableReport where the file cannot be read.

    Copies of a shell are a row of their own where they are short: what other programs fork works for them.
    """
    processes: dict[bytes, _Process] = {}
    started: set[bytes] = set()
    since: dict[bytes, float] = {}  # when a thread got its processor
    with reading(path), open_regular(path) as file:
        for line in file:
            match = _RECORD.match(line) if b"PERF_RECORD" in line else None
            if match is None:
                continue
            pid, now = match["pid"], float(match["at"])
            process = processes.setdefault(pid, _Process())
            if match["switch"] == b"IN":
                since[match["tid"]] = now
            elif match["switch"] or match["ended"]:
                process.ran += now - since.pop(match["ended"] or match["tid"], now)
            elif match["child"]:
                if match["child"] != match["parent"]:
                    started.add(match["child"])
            elif match["name"] is not None:
                process.name = match["name"].decode("utf-8", "replace")
                process.before = process.ran + now - since.get(match["tid"], now)
    alike: dict[str, list[_Process]] = {}
    for pid in started & processes.keys():
        alike.setdefault(processes[pid].name, []).append(processes[pid])
    copies = alike.pop("", [])
    programs = [
        StartedProgram(
            name,
            name,
            len(same),
            sum(process.ran for process in same),
            sum(process.before for process in same),
        )
        for name, same in alike.items()
    ]
    copying = sum(process.ran for process in copies)
    if program in SHELLS and copies and copying <= SHORT * len(copies):
        programs.append(StartedProgram(f"copies of {program}", "", len(copies), copying, copying))
    return Tasks(
        tuple(sorted(programs, key=lambda program: (-program.seconds, program.name))),
        sum(process.ran for process in processes.values()),
    )
