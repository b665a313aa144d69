"""`profkit record --tool xctrace`: one recording of a workload, as a document of Instruments or as its tables."""

from __future__ import annotations

import shutil
from pathlib import Path

from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import Directive, Step, Switch
from profkit.profilers.profiler import RecordRequest
from profkit.profilers.xctrace.command import (
    COUNTERS_FIX,
    CUT,
    FINISH,
    FINISH_COUNTERS,
    GPU_COUNTERS,
    METAL,
    SUFFIX,
    TELL,
    TIME_PROFILER,
    absolute_command,
    explain_fault,
    is_finished,
    record_argv,
)
from profkit.profilers.xctrace.export import TOC, export_argv
from profkit.profilers.xctrace.find import probe_xctrace
from profkit.profilers.xctrace.report import copy_notes, read_unexported, wanted_schemas
from profkit.profilers.xctrace.toc import read_toc


def conversion_argv(document: Path, output: Path) -> tuple[str, ...]:
    """The command that leaves the tables of `document` in the folder `output`."""
    return export_argv(document, output, wanted_schemas())


SECONDS = 0.5  # of region, where the workload uses profkit.benchmark
_DOCUMENT, _EXPORTS = f"recorded{SUFFIX}", "recorded.xctrace"


def recording_step(request: RecordRequest) -> Step:
    """The step after which `collect` makes the report. Raises MachineError where xctrace cannot do it here."""
    xctrace, scratch = probe_xctrace(), request.scratch
    counters = request.what == "counters"
    template = TIME_PROFILER if request.what == "cpu" else METAL
    reason = xctrace.lacks(instrument=GPU_COUNTERS) if counters else xctrace.lacks(template=template)
    if reason is not None:
        fix = xctrace.fix or (COUNTERS_FIX if counters else "xcrun xctrace list templates")
        raise MachineError(reason, fix)
    document, status = scratch / _DOCUMENT, scratch / "status"
    schemas = () if request.report.suffix == SUFFIX else wanted_schemas()
    return Step(
        "record",
        record_argv(
            absolute_command(request.command, Path.cwd()),
            document,
            template=None if counters else template,
            instruments=(GPU_COUNTERS,) if counters else (),
            limit=request.timeout,
            xctrace=str(xctrace.path),
        ),
        directive=Directive(
            "trace", str(scratch / "region"), switch=Switch("signpost"), seconds=SECONDS, iterations=None
        ),
        tool="xctrace",
        workload_status=str(status),
        after=(export_argv(document, scratch / _EXPORTS, schemas, status=status, xctrace=str(xctrace.path)),),
        after_limit=1800.0,
        finish=FINISH_COUNTERS if counters else FINISH,
        own_limit=True,
        fine=(CUT,),
        tells=TELL,
    )


def check_target(report: Path) -> None:
    """Raise UsageError for a folder that is neither a document nor a folder of exports: somebody else's."""
    if report.is_symlink() or not report.is_dir():
        return
    if not (report.suffix == SUFFIX or (report / TOC).is_file() or not any(report.iterdir())):
        raise UsageError(
            f"{report} is a folder, and no recording of xctrace: it is not replaced", "choose another name"
        )


def collect_report(request: RecordRequest) -> tuple[str, ...]:
    """Move what xctrace left to the report. Raises MachineError with xctrace's own reason where there is nothing.

    Where the tables cannot be exported, the document is kept beside the report.
    """
    scratch, report = request.scratch, request.report
    document, exports = scratch / _DOCUMENT, scratch / _EXPORTS
    if report.suffix == SUFFIX and is_finished(document):
        _move(document, report)
        return ()
    if report.suffix != SUFFIX and _has_contents(exports):
        copy_notes(scratch, exports)
        missing = read_unexported(exports)
        _move(exports, report)
        return tuple(f"{schema} was not exported: {reason}" for schema, reason in missing.items())
    logs = (scratch / "logs" / name for name in ("record.after0.log", "record.log"))
    text = "\n".join(read_bounded_text(log, errors="replace") for log in logs if log.is_file())
    fault, beside = explain_fault(text, 0), ""
    kept = report.with_name(f"{report.name}{SUFFIX}")
    if report.suffix != SUFFIX and is_finished(document) and not kept.exists():
        _move(document, kept)
        beside = f"; what was recorded is in {kept}"
    if fault is not None:
        raise MachineError(f"xctrace: {fault.reason}{beside}", fault.fix)
    if beside or document.exists():
        again = "record again for a shorter time"
        raise MachineError(f"xctrace left nothing that can be read{beside}", again)
    return ()


def _has_contents(exports: Path) -> bool:
    try:
        return (exports / TOC).is_file() and bool(read_toc(exports / TOC))
    except UnreadableReport:
        return False


def _move(left: Path, report: Path) -> None:
    try:
        _remove(report)
        shutil.move(left, report)
    except OSError as error:
        _remove(report)  # half of a recording is none
        raise MachineError(f"cannot write {report}: {error}", "df -h   (or choose another place)") from error


def _remove(report: Path) -> None:
    if report.is_dir() and not report.is_symlink():
        shutil.rmtree(report)
    else:
        report.unlink(missing_ok=True)
