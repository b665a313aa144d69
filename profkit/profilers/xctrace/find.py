"""Where xctrace is: inside an Xcode, which `xcrun` knows. What lies at /usr/bin/xctrace is a stub of it."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault
from profkit.profilers.programs import ask_tool, last_line, missing_fault, version_key
from profkit.profilers.xctrace.faults import explain

VARIABLE = "PROFKIT_XCTRACE"
INSTALL_FIX = (
    "install Xcode, open it once, then: sudo xcode-select -s /Applications/Xcode.app/Contents/Developer"
)
_ELSEWHERE = "record on a Mac, bring the folder of exported tables, then: profkit summarize FOLDER"
_XCODES = ("Applications/Xcode*.app/Contents/Developer", "Users/*/Applications/Xcode*.app/Contents/Developer")
_SECONDS = 60.0  # the first call of xcrun after an update of Xcode fills its caches


@dataclass(frozen=True)
class Found:
    """The xctrace to call, or why there is none."""

    path: Path | None
    fault: Fault | None = None


def locate_xctrace(root: Path = Path("/")) -> Found:
    """The xctrace that PROFKIT_XCTRACE names where it is set, else the one that `xcrun --find` tells.

    `root` is where an Xcode is looked for that is here and not selected, so that the fix can name it. The answer is
    kept for this process, as long as the environment says the same.
    """
    named = os.environ.get(VARIABLE)
    if named:
        path = shutil.which(named)
        return Found(Path(path)) if path else Found(None, missing_fault("xctrace", VARIABLE, INSTALL_FIX))
    return _of_xcode(shutil.which("xcrun"), os.environ.get("DEVELOPER_DIR"), root)


@lru_cache(maxsize=8)
def _of_xcode(xcrun: str | None, developer: str | None, root: Path) -> Found:  # noqa: ARG001 - xcrun reads DEVELOPER_DIR
    if xcrun is None:
        return Found(
            None,
            Fault("xctrace is a part of Xcode and runs on macOS only: there is no xcrun here", _ELSEWHERE),
        )
    returncode, text = ask_tool((xcrun, "--find", "xctrace"), _SECONDS)
    path = last_line(text)
    if returncode == 0 and os.access(path, os.X_OK) and Path(path).is_file():
        return Found(Path(path))
    fault = explain(text, returncode)
    reason = fault.reason if fault is not None else f"xcrun does not find xctrace: {path}"
    fix = fault.fix if fault is not None and fault.fix is not None else INSTALL_FIX
    beside = _other_xcode(root)
    if beside is not None and "xcode-select" in fix:
        fix = f"sudo xcode-select -s {shlex.quote(str(beside))}"
    return Found(None, Fault(reason, fix))


def _other_xcode(root: Path) -> Path | None:
    """The newest Xcode here that has xctrace, selected or not."""
    for pattern in _XCODES:
        for developer in sorted(root.glob(pattern), key=version_key, reverse=True):
            if (developer / "usr" / "bin" / "xctrace").is_file():
                return developer
    return None
