"""Where nsys is, and whether it works here: by a report of a tiny program, not by looking for a file."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault, MachineError
from profkit.core.files.whole import TemporaryFolder
from profkit.core.status import status_wrapper
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Directive, Step, Switch
from profkit.profilers.profiler import RecordRequest
from profkit.profilers.programs import (
    KnownFault,
    ToolAbility,
    ask_tool,
    ask_version,
    collect_file,
    find_tool,
    first_known,
    load_faults,
    missing_fault,
)

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
_TABLE = Path(__file__).with_name("checks.yaml")


@lru_cache(maxsize=2)
def probe_nsys(*, trial: bool = True) -> ToolAbility:
    """Trace `true` once and see whether a report comes of it; the answer is kept for this process.

    That its version is told says little: the nsys inside Nsight Compute starts, records, and then lacks the importer
    that makes the report. Without `trial` it is taken at its word: for whoever can do without it, and would rather
    find out by the real trace than spend a second before each.
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


def nsys_checks() -> Iterator[Check]:
    """Trace `true` with nsys, and say what came of it."""
    return judge_nsys(probe_nsys())


def judge_nsys(nsys: ToolAbility) -> Iterator[Check]:
    """What the probe's answers mean."""
    return judge_rows(_TABLE, "nsys", nsys)


def reader_checks() -> Iterator[Check]:
    """One line where there is an nsys on a machine without a device: it makes its reports readable."""
    return judge_rows(_TABLE, "reader", {"path": find_nsys()})


SECONDS = 1.0  # of region, where the workload uses profkit.benchmark


def recording_step(request: RecordRequest) -> Step:
    """The step after which `collect_report` makes the report. Raises MachineError where nsys cannot do it here."""
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
    """Copy what nsys left to the report. Raises MachineError with nsys' own reason where there is nothing."""
    left = _scratch_report(request)
    half = "Failed to import the .qdstrm" if left.with_suffix(".qdstrm").is_file() else ""
    return collect_file(request, left, "nsys", explain, half)


def _scratch_report(request: RecordRequest) -> Path:
    return request.scratch / f"trace{SUFFIX}"


def conversion_argv(report: Path, output: Path) -> tuple[str, ...]:
    """The command that turns `report` into SQLite for `sqlite.read_sqlite`, to be run where nsys is."""
    return export_argv(report, output, nsys=str(find_nsys() or "nsys"))


SUFFIX = ".nsys-rep"
# Against a plain run of a torch workload on an H200: capturing a region added 3.5 s, most of it at the start and
# while the report is written (nsys 2025.3). With `osrt` and the default sampling it was 98 s and 2.1 GB.
COST = 2.0
COST_NOTE = "tracing a torch workload of 4 s added 3.5 s on an H200 (nsys 2025.3)"


def nsys_argv(
    command: Sequence[str], report: Path | str, *, marked: bool, nsys: str = "nsys"
) -> tuple[str, ...]:
    """The command that traces `command` into `report` (`.nsys-rep`; an older one there is replaced).

    `marked`: the workload calls cudaProfilerStart (as `profkit.region` does), and what happens before it is not
    recorded; else the whole process. The end of a range is not the end of the recording: nsys' own default ends the
    workload there (exit code 143), and `stop` leaves out every later entry of a region; the reader knows by the ranges
    and by the calls of cudaProfilerStop what lies between two of them. `command` is best wrapped by `status_wrapper`,
    since nsys may hide how it ended. CUDA graphs are traced node by node: as wholes, which is nsys' default, a replay
    shows none of its kernels. No sampling of the CPU and no system calls: they say nothing of the device, and cost
    98 s instead of 3.5 s.
    """
    argv = [
        nsys,
        "profile",
        "--trace=cuda,nvtx",
        "--sample=none",
        "--cpuctxsw=none",
        "--cuda-graph-trace=node",
        "--force-overwrite=true",
    ]
    if marked:
        argv += ["--capture-range=cudaProfilerApi", "--capture-range-end=none"]
    return (*argv, f"--output={_escape_output(report)}", *command)


def export_argv(report: Path | str, sqlite: Path | str, *, nsys: str = "nsys") -> tuple[str, ...]:
    """The command that turns a `.nsys-rep` into the SQLite file that `sqlite.read_sqlite` takes.

    Tables that hold nothing are left out, which is the default; `--lazy=false` is unknown to old versions.
    """
    return (nsys, "export", "--type=sqlite", "--force-overwrite=true", f"--output={sqlite}", str(report))


def _escape_output(report: Path | str) -> str:
    """The output's name as nsys takes it: it replaces %p, %h, %q{...} in it, and adds the suffix itself."""
    return str(report).removesuffix(SUFFIX).replace("%", "%%")


NOT_IMPORTED = "not-imported"  # the code of a recording that nsys' importer could not put together
GRAPH_FIX = "record with nsys profile --cuda-graph-trace=node"


def known_faults() -> tuple[KnownFault, ...]:
    """What nsys' error texts mean."""
    return load_faults(Path(__file__).with_name("faults.yaml"), graph=GRAPH_FIX)


def explain(text: str, returncode: int) -> Fault | None:
    """The fault that nsys printed as `text` before it ended with `returncode`; None where it is not known.

    nsys often ends with 0 where it made no report, so the text is looked at whatever it ended with.
    """
    return first_known(known_faults(), text, returncode)
