"""What xctrace has to know of a program that it launches, and what it leaves of one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

# The file without which Instruments does not open a document ("Document Missing Template Error"): written last.
_LAST = "form.template"


def absolute(command: Sequence[str], folder: str | Path) -> tuple[str, ...]:
    """The command with its program as a whole path, since what launches it may know neither PATH nor `folder`.

    Links are left as they are: the `python` of a virtual environment knows by its own path that it is one.
    """
    first = command[0]
    if os.sep in first:
        return (os.path.normpath(os.path.join(folder, first)), *command[1:])
    found = shutil.which(first)
    return (os.path.join(folder, found) if found is not None else first, *command[1:])


def is_finished(document: Path) -> bool:
    """Whether a document is whole, and not what a recording left that was killed before it had saved."""
    return document.is_dir() and (document / _LAST).is_file()
