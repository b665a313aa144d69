"""Builds nsys' command lines, the only place with its flags, and explains its error texts. Runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profkit.core.errors import Fault
from profkit.profilers.faults import KnownFault, first_known, load_faults

SUFFIX = ".nsys-rep"


# Against a normal run of a torch workload of 4 s on an H200: capturing a region added 3.5 s, most of it at the start
# and while the report is written (nsys 2025.3). With `osrt` and the default sampling it was 98 s and 2.1 GB.
def nsys_argv(
    command: Sequence[str], report: Path | str, *, marked: bool, nsys: str = "nsys", ranges: bool = True
) -> tuple[str, ...]:
    """Return the command that traces `command` into `report` (`.nsys-rep`; an older file is replaced).

    `marked`: the workload calls cudaProfilerStart (as `profkit.region` does), and what happens before it is not
    recorded; else the whole process. The end of a range is not the end of the recording: nsys' own default ends
    the workload there (exit code 143), and `stop` leaves out every later entry of a region; the reader knows by
    the ranges and by the calls of cudaProfilerStop what lies between two of them. `command` is best wrapped by
    `status_wrapper`, since nsys may hide how it ended. CUDA graphs are traced node by node: as wholes, which is
    nsys' default, a replay shows none of its kernels. No sampling of the CPU and no system calls: they say
    nothing of the device, and cost 98 s instead of 3.5 s. `ranges`: with NVTX ranges, whose names its importer
    may not find (nsys 2025.3, JAX 0.11).
    """
    argv = [
        nsys,
        "profile",
        "--trace=cuda,nvtx" if ranges else "--trace=cuda",
        "--sample=none",
        "--cpuctxsw=none",
        "--cuda-graph-trace=node",
        "--force-overwrite=true",
    ]
    if marked:
        argv += ["--capture-range=cudaProfilerApi", "--capture-range-end=none"]
    return (*argv, f"--output={_escape_output(report)}", *command)


def export_argv(report: Path | str, sqlite: Path | str, *, nsys: str = "nsys") -> tuple[str, ...]:
    """Return the command that turns a `.nsys-rep` into the SQLite file that `sqlite.read_sqlite` reads.

    Empty tables are left out, which is the default; `--lazy=false` is unknown to old versions.
    """
    return (nsys, "export", "--type=sqlite", "--force-overwrite=true", f"--output={sqlite}", str(report))


def _escape_output(report: Path | str) -> str:
    """Return the output's name as nsys expects it.

    nsys replaces %p, %h, %q{...} in the name, and adds the suffix itself.
    """
    return str(report).removesuffix(SUFFIX).replace("%", "%%")


NOT_IMPORTED = "not-imported"  # the code of a recording that nsys' importer could not put together
GRAPH_FIX = "record with nsys profile --cuda-graph-trace=node"


def known_faults() -> tuple[KnownFault, ...]:
    """Load the table of nsys' error texts."""
    return load_faults(Path(__file__).with_name("faults.yaml"), graph=GRAPH_FIX)


def explain(text: str, returncode: int) -> Fault | None:
    """Return the fault that nsys printed as `text` before it ended with `returncode`; None for an unknown one.

    nsys often ends with 0 where it made no report, so the text is read whatever the exit code.
    """
    return first_known(known_faults(), text, returncode)
