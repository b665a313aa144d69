"""Code that a folder of results names: it runs where the user names it too, and not because somebody's folder does."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from profkit.core.errors import UsageError

FILE = "FILE.py"  # an argument, and no option
Code: TypeAlias = tuple[str, str]  # the option, and the path behind it


def require_named(wanted: Sequence[Code], named: Sequence[Code], line: str, *, needed: bool = True) -> None:
    """Raise UsageError where code of the folder was not named again, and for what is no code of it.

    `line` is what was typed so far; `needed`: something of it would run.
    """
    known = {(option, Path(path).resolve()): (option, path) for option, path in wanted}
    given = {(option, Path(path).resolve()): (option, path) for option, path in named}
    for key, (option, path) in given.items():
        if key not in known:
            what = path if option == FILE else f"{option} {path}"
            raise UsageError(f"{what} cannot be changed: its folder goes on by its own settings", line)
    missing = [code for key, code in known.items() if key not in given]
    if needed and missing:
        paths = ", ".join(path for _, path in missing)
        raise UsageError(
            f"the folder names code that would run here: {paths}; it runs where you name it, too",
            f"{line} {code_options(wanted)}",
        )


def code_options(codes: Sequence[Code]) -> str:
    """The words by which code is named, for a line to type."""
    return " ".join(
        shlex.quote(path) if option == FILE else f"{option} {shlex.quote(path)}" for option, path in codes
    )
