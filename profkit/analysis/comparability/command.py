"""A workload's command line in two parts: the program, of which there may be two versions, and its input.

Two versions of one program lie in two folders, and often under two names. So the program is told by its last name,
and a path below the working folder or the program's own counts from there.
"""

from __future__ import annotations

import os
import re
import shlex

from profkit.core.types import Workload

# Options of the interpreter that take the next word as their value.
_WITH_VALUE = ("-W", "-X")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*(?:\.exe)?")


def program_of(workload: Workload) -> str | None:
    """`python bench.py`, `python -m pkg.mod`, `python -c 'a()'`, `prog`: without folders. None of a bare report."""
    program, _ = _parts(workload)
    return shlex.join(_last(word) for word in program) or None


def arguments_of(workload: Workload) -> str | None:
    """The words behind the program, with paths below its folder or the working folder told from there.

    `"none"` where there are none; None where the command is not known.
    """
    program, arguments = _parts(workload)
    if not program:
        return None
    script = program[-1] if os.sep in program[-1] else ""
    folders = [folder for folder in (workload.folder, os.path.dirname(script)) if os.path.isabs(folder)]
    return shlex.join(_inside(word, folders) for word in arguments) or "none"


def _parts(workload: Workload) -> tuple[tuple[str, ...], tuple[str, ...]]:
    words = workload.command
    if not words or not (workload.python or _PYTHON.fullmatch(_last(words[0]))):
        return words[:1], words[1:]
    at = 1
    while at < len(words):
        word = words[at]
        if word in ("-m", "-c"):
            return (words[0], word, *words[at + 1 : at + 2]), words[at + 2 :]
        if not word.startswith("-"):
            return (words[0], word), words[at + 1 :]
        at += 2 if word in _WITH_VALUE else 1
    return words[:1], words[1:]


def _last(word: str) -> str:
    """A path's last name; code of `-c` and names of modules as they are."""
    return os.path.basename(word) if re.fullmatch(r"[^\s]*/[^\s/]+", word) else word


def _inside(word: str, folders: list[str]) -> str:
    name, equals, path = word.rpartition("=")
    for folder in folders:
        if path.startswith(folder.rstrip(os.sep) + os.sep):
            return f"{name}{equals}{os.path.relpath(path, folder)}"
    return word
