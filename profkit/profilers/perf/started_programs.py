"""Counts the processes of programs that a shell's script started, and how much of their time is their start.

Samples of a recording say by their frames which program a process runs: before `execve` it is still the shell's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from profkit.analysis.stacks.merge import KERNEL
from profkit.core.types import StartedProgram
from profkit.profilers.perf.script import parse_frame

# What the kernel does to begin and to end a process, and what loads its libraries.
_BEGINS = re.compile(
    r"(__x64_|__do_|__se_|__arm64_|do_)?(sys_)?(execve(at)?(_common)?|exit_group|exit|exit_mmap|mmput)(\.\w+)*"
    r"|bprm_execve|begin_new_exec|load_elf_binary|ret_from_fork(_asm)?|do_group_exit"
)
_LOADER = re.compile(r"ld(-linux[\w-]*|-musl[\w-]*|-\d[\d.]*)?\.so.*")


@dataclass
class _Started:
    processes: set[bytes] = field(default_factory=set)
    command: str = ""
    seconds: float = 0.0
    starting: float = 0.0


class StartedPrograms:
    """Adds up the samples of programs other than the one that was run."""

    def __init__(self) -> None:
        self._programs: dict[str, _Started] = {}
        self._others: dict[bytes, tuple[float, float]] = {}  # by process, of samples without a frame of a program
        self._begun: dict[str, set[bytes]] = {}  # processes by the name that the system has for them

    def add(self, program: str, command: str, process: bytes, seconds: float, frames: list[bytes]) -> None:
        """Count a sample of a program: `command` is the system's name for the process."""
        started = self._programs.setdefault(program, _Started())
        started.processes.add(process)
        started.command = command
        started.seconds += seconds
        if seconds and is_start(frames):
            started.starting += seconds

    def see(self, command: str, process: bytes) -> None:
        """Note a process, also one of which there is no sample with a frame of its own."""
        self._begun.setdefault(command, set()).add(process)

    def add_other(self, process: bytes, seconds: float, frames: list[bytes]) -> None:
        """Count a sample whose frames are in libraries or the kernel alone."""
        whole, starting = self._others.get(process, (0.0, 0.0))
        self._others[process] = whole + seconds, starting + (seconds if is_start(frames) else 0.0)

    def give_others(self) -> float:
        """Count the samples without a frame of a program to the program of their process; return their seconds."""
        given = 0.0
        for one in self._programs.values():
            for process in one.processes & self._others.keys():
                whole, starting = self._others.pop(process)
                one.seconds, one.starting, given = one.seconds + whole, one.starting + starting, given + whole
        return given

    def all(self) -> tuple[StartedProgram, ...]:
        """Return the programs, the one with the most time first."""
        found = [
            StartedProgram(
                name,
                one.command,
                len(one.processes | self._begun.get(one.command, set())),
                one.seconds,
                one.starting,
            )
            for name, one in self._programs.items()
        ]
        return tuple(sorted(found, key=lambda one: -one.seconds))


def is_start(frames: list[bytes]) -> bool:
    """Return whether a stack is of a process that begins or ends, or whose libraries are being loaded."""
    for line in frames:
        frame = parse_frame(line)
        if frame is not None and (
            (frame.library == KERNEL and _BEGINS.fullmatch(frame.function))
            or (frame.library is not None and _LOADER.fullmatch(frame.library.rpartition("/")[2]))
        ):
            return True
    return False
