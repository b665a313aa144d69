"""Where programs are, which of several is called, how one is tried and installed, what its error texts mean."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.core import process
from profkit.core.errors import Fault, MachineError, UsageError
from profkit.core.files.regular import copy_regular, read_bounded_text
from profkit.core.tables import load_yaml
from profkit.profilers.profiler import RecordRequest


@dataclass(frozen=True)
class CommandTrial:
    """A command that was tried: did it end well, what did it print, and in words how it ended."""

    ok: bool
    output: str
    ending: str
    returncode: int

    @property
    def first_line(self) -> str:
        """The first line that says something."""
        return next((line.strip() for line in self.output.splitlines() if line.strip()), "it printed nothing")

    @property
    def last_line(self) -> str:
        """The last line that says something: where a Python program tells its error."""
        lines = self.output.splitlines()[::-1]
        return next((line.strip() for line in lines if line.strip()), "it printed nothing")


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
    """The program that `variable` names where it is set; else the first on PATH, beside this interpreter, in `folders`.

    Else the newest of the first of `patterns` (of paths below `root`) that any is found by. None where there is none,
    also where what `variable` names is none.
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
    """Why `find_tool` found nothing: what `variable` names is no program, or there is none here (`mac`: on macOS)."""
    if mac is not None and sys.platform == "darwin":
        return Fault(mac)
    chosen = os.environ.get(variable)
    if chosen:
        return Fault(
            f"{variable}={chosen} is no program that can be started", f"unset {variable}, or name another one"
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
    """Ask a tool for its version: one that tells it works, as far as is known. `path` may be why there is none."""
    if isinstance(path, Fault):
        return ToolAbility(None, None, False, path.reason, path.fix)
    returncode, text = ask_tool((str(path), argument), seconds)
    if matched := pattern.search(text):
        return ToolAbility(path, matched[1], True)
    fault = explain(text, returncode) or Fault(f"{path} does not say its version, but: {last_line(text)}")
    return ToolAbility(path, None, False, fault.reason, fault.fix or install)


def version_key(path: Path) -> tuple[int, ...]:
    """For sorting: the numbers in it, so that 2025.10 is above 2025.9."""
    return tuple(int(part) for part in re.findall(r"\d+", str(path)))


def ask_tool(argv: Sequence[str], seconds: float) -> tuple[int, str]:
    """The exit code and what was printed; 127 and a sentence where it could not be started."""
    trial = try_command(argv, seconds=seconds)
    return trial.returncode, trial.output


def last_line(text: str) -> str:
    """The last thing that was printed, cut to a sentence's length."""
    lines = text.split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "nothing at all")


@dataclass(frozen=True)
class KnownFault:
    """What a text that `pattern` finds means; {0}, {1} in `reason` are the pattern's groups that matched.

    `exits`: it holds for these exit codes only; empty for any.
    """

    pattern: re.Pattern[str]
    reason: str
    fix: str | None = None
    consequence: bool = False
    code: str | None = None
    exits: Collection[int] = ()


@lru_cache(maxsize=16)
def load_faults(path: Path, **texts: str) -> tuple[KnownFault, ...]:
    """The rows of a `faults.yaml`; a pattern may be a list of alternatives, {name} in a fix is one of `texts`."""
    rows = []
    for row in load_yaml(path):
        pattern = row.pop("pattern", "")
        fix = row.pop("fix", None)
        either = re.compile(pattern if isinstance(pattern, str) else "|".join(pattern), re.IGNORECASE)
        rows.append(KnownFault(either, fix=None if fix is None else fix.format(**texts), **row))
    return tuple(rows)


def first_known(table: Iterable[KnownFault], text: str, returncode: int = 0) -> Fault | None:
    """The fault of the first row that fits `text` and the exit code; None where there is none."""
    for row in table:
        match = row.pattern.search(text) if not row.exits or returncode in row.exits else None
        if match is not None:
            groups = [group for group in match.groups() if group]
            return Fault(row.reason.format(*(groups or [""])), row.fix, row.consequence, row.code)
    return None


def collect_file(
    request: RecordRequest,
    left: Path,
    tool: str,
    explain: Callable[[str, int], Fault | None],
    remark: str = "",
) -> tuple[str, ...]:
    """Copy the file that `tool` left to the report; there are no remarks on it.

    Where it left none, its log (and `remark`) is explained: raises MachineError with that reason. Where the text is not
    known nothing happens, and the caller sees that there is no report.
    """
    if left.is_file():
        copy_regular(left, request.report)
        return ()
    log = request.scratch / "logs" / "record.log"
    text = read_bounded_text(log, errors="replace") if log.is_file() else ""
    if (fault := explain(f"{text}\n{remark}", 0)) is not None:
        raise MachineError(f"{tool}: {fault.reason}", fault.fix)
    return ()
