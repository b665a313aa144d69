"""Where perf is. Distributions put a wrapper in its place, which finds none for a kernel it does not know."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.process import run
from profkit.profilers import programs
from profkit.profilers.perf.faults import explain

_VERSION = re.compile(r"perf version (\S+)")
# Where Debian and Ubuntu keep one perf for each kernel.
_PLACES = ("usr/lib/linux-tools-*/perf", "usr/lib/linux-tools/*/perf")
MAC_FIX = "--tool xctrace   (on macOS; profkit profile --backend cpu samples and counts by it)"
INSTALL_FIX = "apt-get install linux-perf   (Debian; Ubuntu: linux-tools-generic; Fedora: perf)"


@dataclass(frozen=True)
class Found:
    """A perf that starts: `path` and `version`; or None for both, the reason and the line that fixes it."""

    path: str | None
    version: str | None
    reason: str | None = None
    fix: str | None = None


def find_perf(root: Path = Path("/")) -> Found:
    """The perf of PATH, or the one beside this interpreter.

    Where neither is there or starts (a wrapper without a perf for this kernel), the newest one installed: a perf
    made for another kernel works, the system call between them is stable.
    """
    if sys.platform == "darwin":
        return Found(None, None, "perf exists only on Linux", MAC_FIX)
    named = [shutil.which("perf"), shutil.which("perf", path=str(programs.BESIDE_PYTHON))]
    installed = sorted(_installed(root), key=programs.version_key, reverse=True)
    reason = None
    for candidate in dict.fromkeys(path for path in (*named, *map(str, installed)) if path is not None):
        version, fault = _version(candidate)
        if version is not None:
            return Found(candidate, version)
        reason = reason or fault  # the first one is the one that the user knows
    return Found(None, None, reason or "perf is not installed", INSTALL_FIX)


def _installed(root: Path) -> list[Path]:
    return [path for pattern in _PLACES for path in root.glob(pattern)]


def _version(perf: str) -> tuple[str | None, str]:
    """What `perf --version` says, and otherwise why it does not."""
    try:
        outcome = run([perf, "--version"], timeout=10)
    except UsageError as error:
        return None, error.message
    if outcome.ok and (match := _VERSION.search(outcome.output_tail)) is not None:
        return match[1], ""
    fault = explain(outcome.output_tail, outcome.returncode)
    return None, fault.reason if fault is not None else f"{perf} --version {outcome.ending()}"
