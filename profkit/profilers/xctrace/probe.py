"""What xctrace can do here: its version, and the templates and instruments that its Xcode brings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.profilers.programs import ask_tool, last_line
from profkit.profilers.xctrace.faults import explain
from profkit.profilers.xctrace.find import INSTALL_FIX, locate_xctrace

_SECONDS = 120.0  # the first call after an update of Xcode takes long
_VERSION = re.compile(r"xctrace version (\d+(?:\.\d+)*(?: \(\w+\))?)")


@dataclass(frozen=True)
class XctraceAbility:
    """What xctrace can do on this machine. Where `works` is False, `reason` says why, `fix` what to do.

    `version` is that of Instruments with its build, "16.0 (17F42)". `templates` and `instruments` are names as xctrace
    lists them; empty where it did not list any.
    """

    path: Path | None
    version: str | None
    works: bool
    reason: str | None = None
    fix: str | None = None
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
    found = locate_xctrace()
    if found.path is None:
        fault = found.fault
        reason, fix = (fault.reason, fault.fix) if fault is not None else ("xctrace is not here", INSTALL_FIX)
        return XctraceAbility(None, None, False, reason, fix)
    return _asked(found.path)


@lru_cache(maxsize=8)
def _asked(path: Path) -> XctraceAbility:
    returncode, text = ask_tool((str(path), "version"), _SECONDS)
    matched = _VERSION.search(text)
    if matched is None:
        known = explain(text, returncode)
        reason = known.reason if known else f"{path} does not say its version, but: {last_line(text)}"
        return XctraceAbility(path, None, False, reason, (known.fix if known else None) or INSTALL_FIX)
    return XctraceAbility(
        path,
        matched[1],
        True,
        templates=_listed(path, "templates"),
        instruments=_listed(path, "instruments"),
    )


def _listed(path: Path, what: str) -> tuple[str, ...]:
    returncode, text = ask_tool((str(path), "list", what), _SECONDS)
    return names(text) if returncode == 0 else ()


def names(text: str) -> tuple[str, ...]:
    """The names in what `xctrace list` prints: one a line, below headings like `== Standard Templates ==`."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and not line.startswith("==")))


def recording_options(template: str) -> str:
    """What can be set for a recording by `template`, as xctrace prints it: a JSON document (Xcode 16 and later).

    The text of a refusal where xctrace is older, "" where there is none. Nothing is recorded.
    """
    ability = probe_xctrace()
    if not ability.works:
        return ""
    argv = (str(ability.path), "record", "--template", template, "--show-recording-options")
    return ask_tool(argv, _SECONDS)[1]
