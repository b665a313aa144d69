"""Where xctrace is, and what it can do here. It is a part of Xcode, which `xcrun` finds; /usr/bin/xctrace is a stub."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault
from profkit.core.tables import judge_rows
from profkit.core.types import Check
from profkit.profilers.programs import ToolAbility, ask_tool, ask_version, last_line, missing_fault
from profkit.profilers.xctrace.command import explain_fault

VARIABLE = "PROFKIT_XCTRACE"
INSTALL_FIX = (
    "install Xcode, open it once, then: sudo xcode-select -s /Applications/Xcode.app/Contents/Developer"
)
_ELSEWHERE = "record on a Mac, bring the folder of exported tables, then: profkit summarize FOLDER"
_SECONDS = 60.0  # the first call of xcrun after an update of Xcode fills its caches


def locate_xctrace() -> Path | Fault:
    """The xctrace that PROFKIT_XCTRACE names where it is set, else the one that `xcrun --find` tells; or why none is.

    The answer is kept for this process, as long as the environment says the same.
    """
    named = os.environ.get(VARIABLE)
    if named:
        path = shutil.which(named)
        return Path(path) if path else missing_fault("xctrace", VARIABLE, INSTALL_FIX)
    return _ask_xcrun(shutil.which("xcrun"), os.environ.get("DEVELOPER_DIR"))


@lru_cache(maxsize=8)
def _ask_xcrun(xcrun: str | None, developer: str | None) -> Path | Fault:  # noqa: ARG001 - xcrun reads DEVELOPER_DIR
    if xcrun is None:
        return Fault("xctrace is a part of Xcode and runs on macOS only: there is no xcrun here", _ELSEWHERE)
    returncode, text = ask_tool((xcrun, "--find", "xctrace"), _SECONDS)
    path = last_line(text)
    if returncode == 0 and os.access(path, os.X_OK) and Path(path).is_file():
        return Path(path)
    fault = explain_fault(text, returncode)
    reason = fault.reason if fault is not None else f"xcrun does not find xctrace: {path}"
    fix = fault.fix if fault is not None and fault.fix is not None else INSTALL_FIX
    return Fault(reason, fix)


_SECONDS_PROBE = 120.0  # the first call after an update of Xcode takes long
_VERSION = re.compile(r"xctrace version (\d+(?:\.\d+)*(?: \(\w+\))?)")


@dataclass(frozen=True)
class XctraceAbility(ToolAbility):
    """What xctrace can do on this machine. `version` is that of Instruments with its build, "16.0 (17F42)".

    `templates` and `instruments` are names as xctrace lists them; empty where it did not list any.
    """

    templates: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()

    def lacks(self, *, template: str | None = None, instrument: str | None = None) -> str | None:
        """Why a template or an instrument cannot be recorded with; None where it is listed, or nothing was listed."""
        if not self.works:
            return self.reason or "xctrace does not work here"
        if template is not None and self.templates and template not in self.templates:
            return f"this Xcode has no template called {template}"
        if instrument is not None and self.instruments and instrument not in self.instruments:
            return f"this Xcode has no instrument called {instrument}"
        return None


def probe_xctrace() -> XctraceAbility:
    """Ask xctrace for its version and what it can record with; the answer is kept for this process.

    Nothing is recorded: a recording takes from some seconds to a minute. What only a recording shows (developer mode,
    a busy kernel trace) is told by the pass that meets it, and tried by the doctor.
    """
    location = locate_xctrace()
    if isinstance(location, Fault):
        return XctraceAbility(None, None, False, location.reason, location.fix)
    return _probe_program(location)


@lru_cache(maxsize=8)
def _probe_program(path: Path) -> XctraceAbility:
    answer = ask_version(
        path, _VERSION, explain_fault, INSTALL_FIX, argument="version", seconds=_SECONDS_PROBE
    )
    if not answer.works:
        return XctraceAbility(**vars(answer))
    templates, instruments = _list_names(path, "templates"), _list_names(path, "instruments")
    return XctraceAbility(**vars(answer), templates=templates, instruments=instruments)


def _list_names(path: Path, what: str) -> tuple[str, ...]:
    returncode, text = ask_tool((str(path), "list", what), _SECONDS_PROBE)
    return parse_names(text) if returncode == 0 else ()


def parse_names(text: str) -> tuple[str, ...]:
    """The names in what `xctrace list` prints: one a line, below headings like `== Standard Templates ==`."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and not line.startswith("==")))


# What the backends record with (Instruments 12 and later have them), and what is missing without it.
TEMPLATES = {
    "Metal System Trace": "what the GPU did, and when",
    "Time Profiler": "where the CPU's time goes",
}


def judge_xctrace(xctrace: XctraceAbility | None = None) -> Iterator[Check]:
    """What a recording by Instruments needs on this Mac, check by check."""
    xctrace = xctrace or probe_xctrace()
    missing = [f"{name} ({what})" for name, what in TEMPLATES.items() if name not in xctrace.templates]
    listed = {"missing": ", ".join(missing), "all": ", ".join(TEMPLATES)}
    return judge_rows(Path(__file__).with_name("checks.yaml"), "xctrace", xctrace, listed)
