"""Where a tool is, which of several is called, and how a probe asks it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from profkit.core.errors import Fault
from profkit.profilers.trial import attempt

# setup.sh puts what it fetched without root into the environment's own folder; `.venv/bin/profkit` then finds it
# in a shell in which the environment is not active.
BESIDE_PYTHON = Path(sys.executable).parent


def find_tool(
    name: str,
    variable: str,
    *,
    folders: Sequence[str] = (),
    patterns: Sequence[str] = (),
    root: Path = Path("/"),
) -> Path | None:
    """The program that `variable` names where it is set; else the first on PATH, beside this interpreter, in `folders`.

    Else the newest of the first of `patterns` (of paths below `root`) that any is found by. None where there is none,
    also where what `variable` names is none.
    """
    chosen = os.environ.get(variable)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(BESIDE_PYTHON), *folders])
    found = shutil.which(chosen) if chosen else shutil.which(name, path=path)
    if chosen or found is not None:
        return None if found is None else Path(found)
    for pattern in patterns:
        for candidate in sorted(root.glob(pattern), key=version_key, reverse=True):
            if os.access(candidate, os.X_OK) and candidate.is_file():
                return candidate
    return None


def missing_fault(title: str, variable: str, install: str) -> Fault:
    """Why `find_tool` found nothing: what `variable` names is no program, or there is none here."""
    chosen = os.environ.get(variable)
    if chosen:
        return Fault(
            f"{variable}={chosen} is no program that can be started", f"unset {variable}, or name another one"
        )
    return Fault(f"{title} is not installed", install)


def version_key(path: Path) -> tuple[int, ...]:
    """For sorting: the numbers in it, so that 2025.10 is above 2025.9."""
    return tuple(int(part) for part in re.findall(r"\d+", str(path)))


def ask_tool(argv: Sequence[str], seconds: float) -> tuple[int, str]:
    """The exit code and what was printed; 127 and a sentence where it could not be started."""
    trial = attempt(argv, seconds=seconds)
    return trial.returncode, trial.output


def last_line(text: str) -> str:
    """The last thing that was printed, cut to a sentence's length."""
    lines = text.split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "nothing at all")
