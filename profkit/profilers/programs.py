"""Finds programs, chooses among several, tries commands, and knows the line that installs a program."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core import process
from profkit.core.errors import Fault, UsageError


@dataclass(frozen=True)
class CommandTrial:
    """A command that was tried: whether it ended well, what it printed, and in words how it ended."""

    ok: bool
    output: str
    ending: str
    returncode: int


def try_command(
    argv: Sequence[str], env: Mapping[str, str] | None = None, seconds: float = 10.0
) -> CommandTrial:
    """Run `argv` for at most `seconds`, in plain English; never raises for a command that fails."""
    try:
        outcome = process.run(argv, env={"LC_ALL": "C", **(env or {})}, timeout=seconds)
    except UsageError as error:
        return CommandTrial(False, error.message, error.message, 127)
    return CommandTrial(outcome.ok, outcome.output_tail, outcome.ending(), outcome.returncode)


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
    """Return the program that `variable` names if set; else the first on PATH, next to Python, in `folders`.

    Else the newest of the first of `patterns` (of paths below `root`) that finds any. None if there is none,
    also where `variable` names no program.
    """
    chosen = os.environ.get(variable)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(BESIDE_PYTHON), *folders])
    program = shutil.which(chosen) if chosen else shutil.which(name, path=path)
    if chosen or program is not None:
        return None if program is None else Path(program)
    for pattern in patterns:
        for candidate in sorted(root.glob(pattern), key=version_key, reverse=True):
            if os.access(candidate, os.X_OK) and candidate.is_file():
                return candidate
    return None


def missing_fault(title: str, variable: str, install: str, mac: str | None = None) -> Fault:
    """Return why `find_tool` found nothing: `variable` names no program, or none is here (`mac`: on macOS)."""
    if mac is not None and sys.platform == "darwin":
        return Fault(mac)
    chosen = os.environ.get(variable)
    if chosen:
        return Fault(
            f"{variable}={chosen} is not a program that can be started",
            f"unset {variable}, or name another one",
        )
    return Fault(f"{title} is not installed", install)


@dataclass(frozen=True)
class ToolAbility:
    """What a tool can do on this machine. Where `works` is False, `reason` says why, `fix` what to do."""

    path: Path | None
    version: str | None
    works: bool
    reason: str | None = None
    fix: str | None = None


def ask_version(
    path: Path | Fault,
    pattern: re.Pattern[str],
    explain: Callable[[str, int], Fault | None],
    install: str,
    *,
    argument: str = "--version",
    seconds: float = 60.0,
) -> ToolAbility:
    """Ask a tool for its version: if it prints one, it works as far as is known.

    `path` may be a Fault that says why there is no program.
    """
    if isinstance(path, Fault):
        return ToolAbility(None, None, False, path.reason, path.fix)
    returncode, text = ask_tool((str(path), argument), seconds)
    if matched := pattern.search(text):
        return ToolAbility(path, matched[1], True)
    fault = explain(text, returncode) or Fault(f"{path} did not print its version, but: {last_line(text)}")
    return ToolAbility(path, None, False, fault.reason, fault.fix or install)


def version_key(path: Path) -> tuple[int, ...]:
    """Return the numbers in a path for sorting, so that 2025.10 is above 2025.9."""
    return tuple(int(part) for part in re.findall(r"\d+", str(path)))


def ask_tool(argv: Sequence[str], seconds: float) -> tuple[int, str]:
    """Return the exit code and what was printed; 127 and a sentence where it could not be started."""
    trial = try_command(argv, seconds=seconds)
    return trial.returncode, trial.output


def last_line(text: str) -> str:
    """Return the last line that was printed, cut to a sentence's length."""
    lines = text.split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "nothing at all")
