"""The command as the user typed it: can it be started, what is it called, which Python runs it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from profkit.backends.passes import head_of
from profkit.core.errors import UsageError
from profkit.core.types import Workload
from profkit.profiling.standard_input import CALLER, check_input
from profkit.runtime.passes.command import find_interpreter, reads_program_from_input


def describe_workload(command: Sequence[str], name: str | None = None, stdin: str | None = None) -> Workload:
    """The workload that `command` is, with `stdin` (a file, or "-") as its standard input.

    Raises UsageError where it cannot be started at all, or would not find what it reads.
    """
    if not command:
        raise UsageError(
            "no workload: put its command after `--`", "profkit profile -- python your_script.py"
        )
    program = command[0]
    if not program.strip():
        raise UsageError(
            f"the workload's command is empty: {program!r}", "profkit profile -- python your_script.py"
        )
    if shutil.which(program) is None:
        try:
            mode = os.stat(program).st_mode
        except PermissionError as error:
            raise UsageError(f"the workload {program} cannot be reached: {error.strerror}") from error
        except (OSError, ValueError):
            mode = 0
        if stat.S_ISDIR(mode):
            raise UsageError(f"the workload {program} is a folder, not a command")
        if mode:
            raise UsageError(f"the workload {program} is not executable", f"chmod +x {shlex.quote(program)}")
        raise UsageError(f"the workload {program} is not there: no such command on PATH and no such file")
    try:
        folder = os.getcwd()
    except OSError as error:
        raise UsageError("the folder you are in is gone", "cd to one that exists") from error
    check_input(command, stdin)
    name = name or default_name(command, stdin)
    return Workload(tuple(command), name, folder, find_interpreter(command), stdin)


def default_name(command: Sequence[str], stdin: str | None = None) -> str:
    """`python -O bench/x.py --n 3` is called `x`, `python -m pkg.mod` `mod`, `./prog --fast` `prog`."""
    if stdin is not None and stdin != CALLER and reads_program_from_input(command):
        return Path(stdin).stem
    if find_interpreter(command) is not None:
        for position, word in enumerate(command[1:], start=1):
            if word == "-m" and position + 1 < len(command):
                return command[position + 1].rpartition(".")[2]
            if word == "-c":
                return "python-c"
            if word.endswith(".py"):
                return Path(word).stem
    return Path(command[0]).name


_IMPORT = re.compile(r"\b(?:import|from)\s+profkit\b")


def seems_marked(workload: Workload) -> bool:
    """Whether a script of the command names profkit: a guess for a plan that is only printed."""
    for word in (*workload.command, workload.stdin or ""):
        path = Path(workload.folder, word)
        if word.endswith(".py") and path.is_file():
            text = head_of(path).decode("utf-8", "replace")
            if "profkit" in text or "harness" in text:
                return True
    # In `python -c`, and not in a path: a clone is called profkit, too.
    return any(_IMPORT.search(word) is not None for word in workload.command)
