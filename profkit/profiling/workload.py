"""The command as the user typed it: can it be started, what is it called, which Python runs it."""

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
    """The workload that `command` is. Raises UsageError where it cannot be started at all, or would find no program."""
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
            f"the workload {program!r} is not there: no such command on PATH and no such file",
            _as_words(command),
        )
    try:
        folder = os.getcwd()
    except OSError as error:
        raise UsageError("the folder you are in is gone", "cd to one that exists") from error
    if reads_program_from_input(command):
        raise UsageError(
            "the workload reads its program from standard input, and only a file of it can be profiled",
            "name its file",
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
    """Return what a command is called: `x` of `python -O bench/x.py`, `mod` of `python -m pkg.mod`.

    A launcher gives no name, or all programs of a history would be one: `uv run one.py` is `one`.
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


# Not of a path: a clone is called profkit, too.
_MARKS = re.compile(r"\b(?:import|from)\b[^\n;]*\b(?:profkit|harness)\b")


def seems_marked(workload: Workload) -> bool:
    """Whether a script of the command imports profkit: a guess for a plan that is only printed."""
    return first_mention(workload, _MARKS) is not None


# What blocks for as long as a server runs; a method of an event loop counts, a mention in a longer name does not.
_SERVES = re.compile(
    r"\b(?:serve_forever|run_forever|run_app|uvicorn\.run|hypercorn\.run|waitress\.serve|app\.run)\s*\("
)
_SERVERS = ("uvicorn", "gunicorn", "hypercorn", "waitress", "waitress-serve", "daphne", "http.server")


def seems_server(workload: Workload) -> bool:
    """Whether the command starts a server of Python's, by the text of its script or by its program: a guess."""
    words = [Path(word).name for word in workload.command]
    named = (
        any(word in _SERVERS for word in words[:3])
        or "runserver" in words[1:4]
        or words[:2] == ["flask", "run"]
    )
    return workload.python is not None and (named or first_mention(workload, _SERVES) is not None)


# ------------------------------------------------------------ its commit, as git tells it

# For all questions together: a repository of a million files on a network disk is not waited for
SECONDS = 3.0


def read_revision(workload: Workload, seconds: float = SECONDS) -> Revision:
    """The commit and state of the repository that the workload's script lies in, else its working folder.

    `reason` says why there is none. Takes `seconds` at most; what is not known by then is None. Never raises.
    """
    until, said = time.monotonic() + seconds, ""
    for folder in _script_folders(workload):
        head, said = _ask_git(until, folder, "rev-parse", "HEAD")
        if head is not None:
            changed, _ = _ask_git(until, folder, *CHANGES)
            dirty = bool(changed) if changed is not None else None
            return Revision(head, dirty)
    return Revision(reason=_no_commit(said))


def _no_commit(said: str) -> Fact:
    """Why there is no commit, by what git said, in English (LC_ALL=C)."""
    if "not a git repository" in said:
        return Fact("no-repository")
    if "ambiguous argument 'HEAD'" in said:
        return Fact("no-commit-yet")
    return Fact.of("no-commit-here", said=said.removeprefix("fatal: ")[:200] or "no answer")


def _script_folders(workload: Workload) -> list[Path]:
    """Where the script lies, where the command names one that is there; then where it runs."""
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
    printed, said = ask_git(folder, *words, seconds=max(0.01, until - time.monotonic()))
    return printed.decode("utf-8", "replace").strip() if printed is not None else None, said
