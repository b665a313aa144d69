"""Describes the command that the user typed: whether it can be started, its name, and which Python runs it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from profkit.backends.passes import first_mention
from profkit.core.errors import UsageError
from profkit.core.git import CHANGES, ask_git
from profkit.core.types import Fact, Revision, Workload
from profkit.runtime.passes.command import find_interpreter, program_words, reads_program_from_input


def describe_workload(command: Sequence[str], name: str | None = None) -> Workload:
    """Return the workload of `command`. Raises UsageError where it cannot be started or profiled."""
    if not command:
        raise UsageError(
            "no workload: put its command after `--`", "profkit profile -- python your_script.py"
        )
    program = command[0]
    if shutil.which(program) is None:
        if os.path.isdir(program):
            raise UsageError(f"the workload {program} is a folder, not a command")
        if os.path.exists(program):
            raise UsageError(f"the workload {program} is not executable", f"chmod +x {shlex.quote(program)}")
        raise UsageError(
            f"the workload {program!r} was not found: no such command on PATH and no such file",
            _as_words(command),
        )
    try:
        folder = os.getcwd()
    except OSError as error:
        raise UsageError("the current folder no longer exists", "cd to one that exists") from error
    if reads_program_from_input(command):
        raise UsageError(
            "the workload reads its program from standard input, but only a program in a file can be profiled",
            "give its file as an argument",
        )
    return Workload(tuple(command), name or default_name(command), folder, find_interpreter(command))


def _as_words(command: Sequence[str]) -> str | None:
    """Return the line that starts a command that was given as one string; None where it is none."""
    try:
        words = shlex.split(command[0])
    except ValueError:
        return None
    return (
        f"profkit profile -- {shlex.join([*words, *command[1:]])}"
        if words[1:] and shutil.which(words[0])
        else None
    )


def default_name(command: Sequence[str]) -> str:
    """Return the name of a command: `x` of `python -O bench/x.py`, `mod` of `python -m pkg.mod`.

    The name of a launcher is skipped: it would be the same for all programs of a history. `uv run one.py` is `one`.
    """
    words = program_words(command)
    if words[0] == "-m" and len(words) > 1:
        return words[1].rpartition(".")[2]
    if words[0] == "-c":
        return "python-c"
    path = Path(words[0])
    return path.stem if path.suffix in (*_SCRIPTS, *_OTHER_SCRIPTS) else path.name


_SCRIPTS = (".py", ".pyz", ".ipynb", ".sh")
_OTHER_SCRIPTS = (".jl", ".R", ".js", ".mjs", ".ts", ".jar", ".pl", ".rb")


# Not in a path: the folder of a clone is called profkit, too.
_MARKS = re.compile(r"\b(?:import|from)\b[^\n;]*\b(?:profkit|harness)\b")


def seems_marked(workload: Workload) -> bool:
    """Return whether a script of the command imports profkit: a guess for a plan that is only printed."""
    return first_mention(workload, _MARKS) is not None


# Calls that block for as long as a server runs. Methods of an event loop count; parts of longer names do not.
_SERVES = re.compile(
    r"\b(?:serve_forever|run_forever|run_app|uvicorn\.run|hypercorn\.run|waitress\.serve|app\.run)\s*\("
)
_SERVERS = ("uvicorn", "gunicorn", "hypercorn", "waitress", "waitress-serve", "daphne", "http.server")


def seems_server(workload: Workload) -> bool:
    """Return whether the command starts a Python server, by its script's text or its program: a guess."""
    words = [Path(word).name for word in workload.command]
    named = (
        any(word in _SERVERS for word in words[:3])
        or "runserver" in words[1:4]
        or words[:2] == ["flask", "run"]
    )
    return workload.python is not None and (named or first_mention(workload, _SERVES) is not None)


# ------------------------------------------------------------ its commit, by git

# For all questions together: a repository of a million files on a network disk is not waited for
SECONDS = 3.0


def read_revision(workload: Workload, seconds: float = SECONDS) -> Revision:
    """Return the commit and state of the repository of the workload's script, or of its working folder.

    `reason` says why there is none. Takes `seconds` at most; what is not known by then is None. Never raises.
    """
    until, message = time.monotonic() + seconds, ""
    for folder in _script_folders(workload):
        head, message = _ask_git(until, folder, "rev-parse", "HEAD")
        if head is not None:
            changed, _ = _ask_git(until, folder, *CHANGES)
            dirty = bool(changed) if changed is not None else None
            return Revision(head, dirty)
    return Revision(reason=_no_commit(message))


def _no_commit(message: str) -> Fact:
    """Return why there is no commit, by git's message in English (LC_ALL=C)."""
    if "not a git repository" in message:
        return Fact("no-repository")
    if "ambiguous argument 'HEAD'" in message:
        return Fact("no-commit-yet")
    return Fact.of("no-commit-here", said=message.removeprefix("fatal: ")[:200] or "no answer")


def _script_folders(workload: Workload) -> list[Path]:
    """Return the folder of the script, if the command names an existing one, and the working folder."""
    working = Path(workload.folder)
    folders = []
    for word in workload.command[:8]:  # the interpreter, its options, the script
        try:
            path = (working / word).resolve()
            if (path.suffix in _SCRIPTS or word in program_words(workload.command)[:1]) and path.is_file():
                folders.append(path.parent)
        except (OSError, ValueError, RuntimeError):
            continue
    return list(dict.fromkeys([*folders[:1], working]))


def _ask_git(until: float, folder: Path, *words: str) -> tuple[str | None, str]:
    printed, message = ask_git(folder, *words, seconds=max(0.01, until - time.monotonic()))
    return printed.decode("utf-8", "replace").strip() if printed is not None else None, message
