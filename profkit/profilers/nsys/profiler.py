"""nsys (Nsight Systems): a trace of the GPU's kernels, copies and API calls."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from profkit.core.errors import Fault, MachineError
from profkit.core.status import status_wrapper
from profkit.core.types import Check, Directive, Step, Switch
from profkit.profilers.faults import collect_file
from profkit.profilers.nsys.command import SUFFIX, explain, export_argv, nsys_argv
from profkit.profilers.profiler import Conversion, Format, Recorder, RecordRequest, lazy_function

SECONDS = 1.0  # of region, where the workload uses profkit.benchmark


def recording_step(request: RecordRequest) -> Step:
    """The step after which `collect_report` makes the report. Raises MachineError where nsys cannot do it here."""
    from profkit.profilers.nsys.probe import probe_nsys

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
    from profkit.profilers.nsys.probe import find_nsys

    return export_argv(report, output, nsys=str(find_nsys() or "nsys"))


_AS_TEXT = "nsys stats --report cuda_gpu_kern_sum --format csv {name} > {stem}.csv"


class NsightSystems:
    """nsys, and the forms of its reports; the form with the most in it first."""

    name = "nsys"
    formats = (
        Format(
            "nsys-sqlite",
            name,
            "nsys SQLite",
            # no other tool whose reports are read writes SQLite; whose it is, its tables tell
            lambda head: head.startswith(b"SQLite format 3\x00"),
            lazy_function("profkit.profilers.nsys.sqlite.read_sqlite"),
            as_text=_AS_TEXT,
        ),
        Format(
            "nsys-rep",
            name,
            ".nsys-rep",
            lambda head: head.startswith(b"NVIDIA Tegra Profiler Report"),
            lazy_function("profkit.profilers.nsys.sqlite.read_sqlite"),
            as_text=_AS_TEXT,
            conversion=Conversion(
                conversion_argv,
                "converted.sqlite",
                "nsys export --type=sqlite --output={stem}.sqlite {name}",
            ),
        ),
        Format(
            "nsys-stats-csv",
            name,
            "nsys stats",
            lazy_function("profkit.profilers.nsys.stats.looks_like_stats"),
            lazy_function("profkit.profilers.nsys.stats.read_stats"),
        ),
    )
    recorder = Recorder(recording_step, collect_report, uses_gpu=True)

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What nsys' error means."""
        return explain(text, returncode)

    def checks(self) -> Iterable[Check]:
        """Whether it traces here and writes a report."""
        from profkit.profilers.nsys.probe import nsys_checks

        return nsys_checks()
