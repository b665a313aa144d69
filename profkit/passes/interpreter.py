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
