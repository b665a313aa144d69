"""A command as a child process: it can be ended, and what it prints goes to a file."""

from __future__ import annotations

import sys
from pathlib import Path

# `python -m profkit` would look for modules in the present folder first, where there may be a `random.py`.
_START = "import sys; sys.path[0] = sys.argv.pop(1); from profkit.cli import main; main()"


def profkit_argv(*words: str) -> list[str]:
    """Return the command line of `profkit WORDS`."""
    return [sys.executable, "-c", _START, str(Path(__file__).parents[2]), *words]
