"""Where nsys is, and whether it works here: by a report of a tiny program, not by looking for a file."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.core.types import Check
from profkit.profilers.nsys.command import SUFFIX, explain, nsys_argv
from profkit.profilers.programs import ask_tool, find_tool, last_line, missing_fault

# Where NVIDIA's packages put it. The one inside Nsight Compute comes last: it lacks libraries it needs for a report.
_PLACES = (
    "usr/local/cuda*/bin/nsys",
    "opt/nvidia/nsight-systems*/*/bin/nsys",
    "opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
    "usr/lib/nsight-systems/bin/nsys",
    "opt/nvidia/nsight-compute/*/host/target-linux-*/nsys",
)
INSTALL_FIX = (
    "apt-get install nsight-systems-cli   (from NVIDIA's repository; or developer.nvidia.com/nsight-systems)"
)


def find_nsys(root: Path = Path("/")) -> Path | None:
    """The nsys to call: `PROFKIT_NSYS` where set, else that of PATH, of this environment, or NVIDIA's newest here."""
    return find_tool("nsys", "PROFKIT_NSYS", patterns=_PLACES, root=root)


_SECONDS = 60.0  # a report of `true` takes a second or two; a busy machine may take many times that
_VERSION = re.compile(r"version (\d+(?:\.\d+)+)")
NO_TRACE = "torch's own profiler traces instead, where the workload uses torch"


@dataclass(frozen=True)
class NsysAbility:
    """What nsys can do on this machine. Where `works` is False, `reason` says why, `fix` what to do."""

    path: Path | None
    version: str | None
    works: bool
    reason: str | None = None
    fix: str | None = None


@lru_cache(maxsize=2)
def probe_nsys(*, trial: bool = True) -> NsysAbility:
    """Trace `true` once and see whether a report comes of it; the answer is kept for this process.

    That its version is told says little: the nsys inside Nsight Compute starts, records, and then lacks the importer
    that makes the report. Without `trial` it is taken at its word: for whoever can do without it, and would rather
    find out by the real trace than spend a second before each.
    """
    path = find_nsys()
    if path is None:
        if sys.platform == "darwin":
            return NsysAbility(None, None, False, "nsys records nothing on macOS: it has no CUDA", None)
        absent = missing_fault("nsys", "PROFKIT_NSYS", INSTALL_FIX)
        return NsysAbility(None, None, False, absent.reason, absent.fix)
    returncode, text = ask_tool((str(path), "--version"), _SECONDS)
    matched = _VERSION.search(text)
    if matched is None:
        fault = explain(text, returncode)
        reason = fault.reason if fault else f"{path} does not say its version, but: {last_line(text)}"
        return NsysAbility(path, None, False, reason, fault.fix if fault else INSTALL_FIX)
    if not trial:
        return NsysAbility(path, matched[1], True)
    with tempfile.TemporaryDirectory(prefix="profkit-probe-") as folder:
        report = Path(folder) / f"probe{SUFFIX}"
        true = shutil.which("true") or "/bin/true"
        returncode, text = ask_tool(nsys_argv((true,), report, marked=False, nsys=str(path)), _SECONDS)
        if report.is_file() and report.stat().st_size:
            return NsysAbility(path, matched[1], True)
    fault = explain(text, returncode)
    tail = " ".join(text.split())[-200:] or "it said nothing"
    reason = fault.reason if fault else f"nsys ended with {returncode} and left no report: {tail}"
    return NsysAbility(path, matched[1], False, reason, fault.fix if fault else INSTALL_FIX)


def nsys_checks() -> tuple[Check, ...]:
    """Trace `true` with nsys, and say what came of it."""
    return (judge_nsys(probe_nsys()),)


def judge_nsys(nsys: NsysAbility) -> Check:
    """What the probe's answers mean."""
    path = None if nsys.path is None else str(nsys.path)
    if path is None:
        return Check("nsys", "missing", f"{nsys.reason or 'not installed'}: {NO_TRACE}", nsys.fix)
    if not nsys.works:
        return Check("nsys", "refused", nsys.reason or "it leaves no report", nsys.fix, path, nsys.version)
    return Check("nsys", "ok", "traces and writes reports", path=path, version=nsys.version)
