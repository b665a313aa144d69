"""Xcode as the doctor tells it: is it a whole one, may it be used, what can its Instruments record, and do they.

Both the mps backend and the cpu backend on macOS record through it. Developer mode, a session away from the screen, a
program that macOS protects: none of them shows before a recording, so half a second of a Python program is recorded
under Time Profiler. Metal System Trace is not tried, whose document takes up to a minute to be saved.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.errors import ProfkitError
from profkit.core.types import Check
from profkit.hardware.system import ProgramAnswer, ask_program, superuser_command
from profkit.profilers.programs import try_command
from profkit.profilers.xctrace.command import CUT, TIME_PROFILER, explain_fault, record_argv, table_argv

if TYPE_CHECKING:
    from profkit.profilers.xctrace.find import XctraceAbility


NAME = "xctrace recording"
_BUSY = "import time; end = time.perf_counter() + 0.5\nwhile time.perf_counter() < end: sum(range(1000))"
_LIMIT = 10.0  # for a program of half a second
_SECONDS = 120.0  # until it is saved
_TABLES = (
    "time-profile",
    "time-sample",
)  # the second is what Instruments 26 leaves where the first is not exported


def recording_check(xctrace: str) -> Check:
    """Record with the xctrace at this path, some ten seconds, and read what it left."""
    with tempfile.TemporaryDirectory(prefix="profkit-") as name:
        return _record_and_count(xctrace, Path(name), sys.executable)


def _record_and_count(xctrace: str, folder: Path, python: str) -> Check:
    document, start = folder / "doctor.trace", time.monotonic()
    argv = record_argv((python, "-c", _BUSY), document, template=TIME_PROFILER, limit=_LIMIT, xctrace=xctrace)
    trial = try_command(argv, seconds=_SECONDS)
    fault = explain_fault(trial.output, 0 if trial.returncode == CUT else trial.returncode)
    if not document.exists() or not (trial.ok or trial.returncode == CUT):
        reason = fault.reason if fault is not None else f"{trial.ending}: {trial.last_line[:160]}"
        return Check(NAME, "refused", reason, fault.fix if fault is not None else None, xctrace)
    rows = 0
    for schema in _TABLES:
        exported = folder / f"{schema}.xml"
        export = try_command(table_argv(document, schema, exported, xctrace=xctrace), seconds=_SECONDS)
        rows = _count_rows(exported)
        if rows:
            break
        fault = explain_fault(export.output, export.returncode) or fault
    took = time.monotonic() - start
    if not rows:
        reason = (
            fault.reason if fault is not None else "it recorded and exported, but no sample is in its tables"
        )
        return Check(NAME, "limited", reason, fault.fix if fault is not None else None, xctrace)
    return Check(
        NAME,
        "ok",
        f"{rows} samples of half a second of Python, in {took:.0f} s with the export",
        path=xctrace,
    )


def _count_rows(exported: Path) -> int:
    """How many rows the tables of an export have; 0 for one that is not there, or cannot be read."""
    from profkit.profilers.xctrace.tables import read_tables

    try:
        return sum(
            1 for table in read_tables(exported) for _ in table.rows([c.mnemonic for c in table.columns[:1]])
        )
    except (ProfkitError, OSError):
        return 0


# What the backends record with (Instruments 12 and later have them), and what is missing without it.
TEMPLATES = {
    "Metal System Trace": "what the GPU did, and when",
    "Time Profiler": "where the CPU's time goes",
    "CPU Counters": "cycles, instructions and cache misses",
}
GPU_COUNTERS = "Metal GPU Counters"
_BARE = "CommandLineTools"
_VERSION = re.compile(r"^Xcode (\d+(?:\.\d+)*)", re.MULTILINE)
_ANSWER_SECONDS = 60.0  # the first call after an update of Xcode


@dataclass(frozen=True)
class Xcode:
    """What the system says of its developer tools. None: the program is not there, or did not answer."""

    selected: ProgramAnswer | None  # xcode-select -p
    version: ProgramAnswer | None  # xcodebuild -version
    developer_mode: ProgramAnswer | None  # DevToolsSecurity -status


def probe_xcode() -> Xcode:
    """Ask the three programs; a second or so, and longer right after an update of Xcode."""
    return Xcode(
        ask_program("xcode-select", "-p"),
        ask_program("xcodebuild", "-version", seconds=_ANSWER_SECONDS),
        ask_program("DevToolsSecurity", "-status"),
    )


def instruments_checks() -> Iterator[Check]:
    """Everything that a recording by Instruments needs on this Mac."""
    from profkit.profilers.xctrace.find import probe_xctrace

    xctrace = probe_xctrace()
    yield from judge_xcode(probe_xcode(), xctrace)
    if xctrace.works and xctrace.lacks(template="Time Profiler") is None:
        yield recording_check(str(xctrace.path))


def judge_xcode(xcode: Xcode, xctrace: XctraceAbility) -> Iterator[Check]:
    """What those answers mean, check by check."""
    yield _selection_check(xcode, xctrace)
    yield _xctrace_check(xctrace)
    if xctrace.works:
        yield _template_check(xctrace)
    yield _developer_mode(xcode.developer_mode)


def _selection_check(xcode: Xcode, xctrace: XctraceAbility) -> Check:
    fix = xctrace.fix if xctrace.path is None and xctrace.fix else _install_fix()
    path = xcode.selected.output.decode("utf-8", "replace").strip() if xcode.selected is not None else ""
    if xcode.selected is None or xcode.selected.status != 0 or not path:
        return Check(
            "Xcode", "missing", "no developer tools are selected: there is no Xcode, so no xctrace", fix
        )
    if _BARE in path:
        detail = f"only the command line tools are selected ({path}): xctrace is a part of Xcode itself"
        return Check("Xcode", "missing", detail, fix, path)
    answer = xcode.version
    match = _VERSION.search(answer.text) if answer is not None else None
    if match is None:
        said = answer.text.splitlines()[-1][:160] if answer is not None and answer.text else "nothing"
        return Check("Xcode", "limited", f"xcodebuild -version says: {said}", _first_launch(), path)
    return Check("Xcode", "ok", "a whole Xcode is selected", path=path, version=match[1])


def _xctrace_check(ability: XctraceAbility) -> Check:
    path = None if ability.path is None else str(ability.path)
    if path is None:
        reason = ability.reason or "not here"
        return Check("xctrace", "missing", f"{reason}: no trace, no counters", ability.fix)
    if not ability.works:
        return Check(
            "xctrace", "refused", ability.reason or "it does not answer", ability.fix, path, ability.version
        )
    return Check("xctrace", "ok", "answers", path=path, version=ability.version)


def _template_check(ability: XctraceAbility) -> Check:
    if not ability.templates:
        return Check("templates", "limited", "xctrace listed none", "xcrun xctrace list templates")
    missing = [f"{name} ({what})" for name, what in TEMPLATES.items() if name not in ability.templates]
    if missing:
        detail = f"this Xcode lacks {', '.join(missing)}"
        return Check("templates", "limited", detail, "install a newer Xcode: the App Store has the latest")
    return Check("templates", "ok", ", ".join(TEMPLATES))


def _developer_mode(answer: ProgramAnswer | None) -> Check:
    name, fix = "developer mode", superuser_command("DevToolsSecurity -enable")
    text = "" if answer is None else answer.text
    if "enabled" in text:
        return Check(name, "ok", "on: xctrace may look into other programs without asking")
    if "disabled" in text:
        detail = "off: xctrace asks for a password at the screen before it looks into a program, or fails"
        return Check(name, "refused", detail, fix)
    said = f": {text.splitlines()[0][:120]}" if text else ""
    return Check(name, "limited", f"DevToolsSecurity does not tell it{said}", "DevToolsSecurity -status")


def _install_fix() -> str:
    from profkit.profilers.xctrace.find import INSTALL_FIX

    return INSTALL_FIX


def _first_launch() -> str:
    return superuser_command("xcodebuild -runFirstLaunch")
