"""Finds nsys, and tries whether it works here by a report of a tiny program."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault, MachineError
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.process import status_wrapper
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Directive, Step, Switch
from profkit.profilers.faults import collect_file
from profkit.profilers.nsys.command import SUFFIX, explain, export_argv, nsys_argv
from profkit.profilers.profiler import RecordRequest
from profkit.profilers.programs import ToolAbility, ask_tool, ask_version, find_tool, missing_fault

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
    """Return the nsys to call: `PROFKIT_NSYS` if set, else from PATH, this environment, or NVIDIA's newest."""
    return find_tool("nsys", "PROFKIT_NSYS", patterns=_PLACES, root=root)


_SECONDS = 60.0  # a report of `true` takes a second or two; a busy machine may take many times that
_VERSION = re.compile(r"version (\d+(?:\.\d+)+)")
_TABLE = Path(__file__).with_name("checks.yaml")


@lru_cache(maxsize=2)
def probe_nsys(*, trial: bool = True) -> ToolAbility:
    """Trace `true` once and see whether a report comes of it; the answer is kept for this process.

    That it prints its version says little: the nsys inside Nsight Compute starts, records, and then lacks the
    importer that makes the report. Without `trial` only the version is read: for callers that can do without
    nsys, and would rather find out by the real trace than spend a second before each.
    """
    absent = missing_fault(
        "nsys", "PROFKIT_NSYS", INSTALL_FIX, "nsys records nothing on macOS: it has no CUDA"
    )
    nsys = ask_version(find_nsys() or absent, _VERSION, explain, INSTALL_FIX)
    if not nsys.works or not trial:
        return nsys
    with TemporaryFolder("probe") as folder:
        report = Path(folder) / f"probe{SUFFIX}"
        true = shutil.which("true") or "/bin/true"
        returncode, text = ask_tool(nsys_argv((true,), report, marked=False, nsys=str(nsys.path)), _SECONDS)
        if report.is_file() and report.stat().st_size:
            return nsys
    tail = " ".join(text.split())[-200:] or "it said nothing"
    otherwise = Fault(f"nsys ended with {returncode} and left no report: {tail}", INSTALL_FIX)
    fault = explain(text, returncode) or otherwise
    return replace(nsys, works=False, reason=fault.reason, fix=fault.fix)


def judge_nsys(nsys: ToolAbility | None = None) -> Iterator[Check]:
    """Return checks of what the probe found."""
    return judge_rows(_TABLE, "nsys", nsys or probe_nsys())


SECONDS = 1.0  # of region, where the workload uses profkit.benchmark


def recording_step(request: RecordRequest) -> Step:
    """Return the step that records for `collect_report`. Raises MachineError where nsys cannot do it here."""
    nsys = probe_nsys()
    if not nsys.works:
        raise MachineError(nsys.reason or "nsys does not work here", nsys.fix)
    status = str(request.scratch / "status")
    return Step(
        "record",
        nsys_argv(
            status_wrapper(request.command, status),
            _scratch_report(request),
            marked=request.marked,
            nsys=str(nsys.path),
        ),
        directive=Directive(
            "trace",
            str(request.scratch / "region"),
            switch=Switch("cuda") if request.marked else None,
            seconds=SECONDS,
        ),
        tool="nsys",
        workload_status=status,
    )


def collect_report(request: RecordRequest) -> tuple[str, ...]:
    """Copy what nsys recorded to the report. Raises MachineError with nsys' own reason where there is nothing."""
    trace = _scratch_report(request)
    half = "Failed to import the .qdstrm" if trace.with_suffix(".qdstrm").is_file() else ""
    return collect_file(request, trace, "nsys", explain, half)


def _scratch_report(request: RecordRequest) -> Path:
    return request.scratch / f"trace{SUFFIX}"


def conversion_argv(report: Path, output: Path) -> tuple[str, ...]:
    """Return the command that turns `report` into SQLite for `sqlite.read_sqlite`, to be run where nsys is."""
    return export_argv(report, output, nsys=str(find_nsys() or "nsys"))
