"""Asks an interpreter for its version. Runs it: for the recording side only."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

_ASK = "import sys; print('profkit', *sys.version_info[:3])"


def python_version(interpreter: str | Sequence[str], timeout: float = 20.0) -> tuple[int, int, int] | None:
    """Its version, (3, 11, 7); None where it does not start or is no Python.

    `interpreter` is a path or the words that start it.
    """
    words = [interpreter] if isinstance(interpreter, str) else list(interpreter)
    try:
        done = subprocess.run(
            [*words, "-I", "-S", "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
        word, major, minor, micro = done.stdout.split()[-4:]
        return (int(major), int(minor), int(micro)) if word == "profkit" else None
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def has_module(interpreter: str, name: str, folder: str, timeout: float = 20.0) -> bool:
    """Whether a program that this interpreter runs in `folder` could import the module `name`; imports it not."""
    ask = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    try:
        done = subprocess.run(
            [interpreter, "-c", ask, name],
            cwd=folder,
            capture_output=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
