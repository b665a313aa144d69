"""Records with Instruments for `profkit record`, and exports recordings as XML that can be read anywhere.

Runs xctrace, on the Mac that has it. As a program (DOCUMENT FOLDER) it is a conversion like any other, which
a step of a plan runs after its recording.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault, MachineError, ProfkitError, UnreadableReport, UsageError, writing
from profkit.core.files.regular import read_bounded
from profkit.core.tables import judge_rows
from profkit.core.types import Check, Directive, Step, Switch
from profkit.profilers.profiler import RecordRequest
from profkit.profilers.programs import ToolAbility, ask_tool, ask_version, last_line, missing_fault
from profkit.profilers.xctrace.command import (
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
    table_argv,
    toc_argv,
)
from profkit.profilers.xctrace.report import NOTE_FILES, copy_notes, wanted_schemas
from profkit.profilers.xctrace.toc import TIME_LIMIT, TraceRun, exit_status, read_toc


def conversion_argv(document: Path, output: Path) -> tuple[str, ...]:
    """Return the command that writes the tables of `document` into the folder `output`."""
    return export_argv(document, output, wanted_schemas())


SECONDS = 0.5  # of region, where the workload uses profkit.benchmark
_DOCUMENT, _EXPORTS = f"recorded{SUFFIX}", "recorded.xctrace"


def recording_step(request: RecordRequest) -> Step:
    """Return the step that records for `collect_report`. Raises MachineError where xctrace cannot do it here."""
    xctrace, scratch = probe_xctrace(), request.scratch
    counters = request.what == "counters"
    template = TIME_PROFILER if request.what == "cpu" else METAL
    if not xctrace.works:
        raise MachineError(xctrace.reason or "xctrace does not work here", xctrace.fix)
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
    """Raise UsageError for a folder that is neither a document nor exports: it is somebody else's."""
    if report.is_symlink() or not report.is_dir():
        return
    if not (report.suffix == SUFFIX or (report / TOC).is_file() or not any(report.iterdir())):
        raise UsageError(
            f"{report} is a folder, but not a recording of xctrace: it is not replaced", "choose another name"
        )


def collect_report(request: RecordRequest) -> tuple[str, ...]:
    """Move what xctrace recorded to the report. Raises MachineError with xctrace's own reason if there is none.

    Where the tables cannot be exported, the document is kept next to the report.
    """
    scratch, report = request.scratch, request.report
    document, exports = scratch / _DOCUMENT, scratch / _EXPORTS
    if report.suffix == SUFFIX and is_finished(document):
        _move(document, report)
        return ()
    if report.suffix != SUFFIX and _has_contents(exports):
        copy_notes(scratch, exports)
        _move(exports, report)
        log = scratch / "logs" / "record.after0.log"
        log_text = read_bounded(log).decode(errors="replace") if log.is_file() else ""
        return tuple(line for line in log_text.splitlines() if LEFT_OUT in line)
    logs = (scratch / "logs" / name for name in ("record.after0.log", "record.log"))
    text = "\n".join(read_bounded(log).decode(errors="replace") for log in logs if log.is_file())
    fault, beside = explain_fault(text, 0), ""
    kept_document = report.with_name(f"{report.name}{SUFFIX}")
    if report.suffix != SUFFIX and is_finished(document) and not kept_document.exists():
        _move(document, kept_document)
        beside = f"; what was recorded is in {kept_document}"
    if fault is not None:
        raise MachineError(f"xctrace: {fault.reason}{beside}", fault.fix)
    if beside or document.exists():
        fix = "record again for a shorter time"
        raise MachineError(f"xctrace left nothing that can be read{beside}", fix)
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


TOC = "toc.xml"
LEFT_OUT = "left out"  # in the line of a table that was not exported
MAX_BYTES = 2 << 30  # of one table: GPU counters have 3 to 6 GB for 15 s of recording
TABLE_SECONDS = 900.0  # what one table may take; to open a large document alone takes half a minute
_LOOK = 0.1  # seconds between two looks at a table that grows
# `python -m` would look for modules in the workload's folder first, where a `signal.py` may lie.
_START = (
    "import sys; sys.path[0] = sys.argv.pop(1); "
    "from profkit.profilers.xctrace.export import main; sys.exit(main())"
)
_ROOT = str(Path(__file__).resolve().parents[3])
_SAFE = re.compile(r"[A-Za-z0-9._-]+")


def export_names() -> tuple[str, ...]:
    """Return the names that files of a folder of exports may have, # for a number: tables and notes."""
    return (TOC, *(f"{schema}.xml" for schema in wanted_schemas()), NOTE_FILES.replace("*", "#"))


def report_names(report: str) -> tuple[str, ...]:
    """Return what `profkit record` may leave as this report: a document, which is one thing, or its exports."""
    return (
        (f"{report}/",) if report.endswith(SUFFIX) else tuple(f"{report}/{name}" for name in export_names())
    )


def export_document(
    document: Path,
    folder: Path,
    schemas: Sequence[str],
    *,
    xctrace: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> TraceRun:
    """Write `toc.xml` and a file for each of `schemas` into `folder`, and return the document's last run.

    A table that grows beyond MAX_BYTES, or takes longer than TABLE_SECONDS, is left out; so is one that xctrace
    cannot export. `tell` gets a line for each table, with the reason. Raises MachineError where xctrace is not
    here or cannot open the document, UnreadableReport for what is no document.
    """
    if not document.is_dir():
        raise UnreadableReport(f"{document} is not a document of Instruments: it is not a folder")
    location = Path(xctrace) if xctrace else locate_xctrace()
    if isinstance(location, Fault):
        raise MachineError(location.reason, location.fix)
    program = str(location)
    with writing(folder, "choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
    if (fault := _run_export(toc_argv(document, folder / TOC, xctrace=program), folder / TOC)) is not None:
        raise MachineError(f"xctrace cannot open {document}: {fault.reason}", fault.fix)
    runs = read_toc(folder / TOC)
    if not runs:
        raise UnreadableReport(f"{document} holds no recording: its table of contents is empty")
    run = runs[-1]
    for schema in schemas:
        if not run.has(schema) or not _SAFE.fullmatch(schema):
            continue
        target = folder / f"{schema}.xml"
        fault = _run_export(table_argv(document, schema, target, run=run.number, xctrace=program), target)
        if fault is None:
            tell(f"{schema}: {target.stat().st_size / 1e6:.1f} MB")
        else:
            target.unlink(missing_ok=True)
            tell(f"{schema}: {LEFT_OUT}, {fault.reason}")
    return run


def _run_export(argv: Sequence[str], output: Path) -> Fault | None:
    """Run one export, and return why it left nothing to read, or None. Never leaves a process behind."""
    output.unlink(missing_ok=True)  # xctrace writes over no file
    try:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace"
        )
    except OSError as error:
        return Fault(f"{argv[0]} cannot be started: {error.strerror}")
    end = time.monotonic() + TABLE_SECONDS
    text: str | None = None
    try:
        while text is None:
            try:
                text, _ = child.communicate(timeout=_LOOK)
            except subprocess.TimeoutExpired:
                if output.exists() and output.stat().st_size > MAX_BYTES:
                    return Fault(
                        f"it is larger than {MAX_BYTES / 1e9:.1f} GB as XML: record for a shorter time"
                    )
                if time.monotonic() > end:
                    return Fault(f"xctrace had not exported it after {TABLE_SECONDS:.0f} s")
    finally:
        if child.poll() is None:
            child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=_LOOK)
    if child.returncode == 0 and output.is_file() and output.stat().st_size:
        return None
    reason = f"xctrace ended with {child.returncode} and left nothing to read: {last_line(text)}"
    return explain_fault(text, child.returncode) or Fault(reason)


def main(arguments: Sequence[str] | None = None) -> int:
    """Export a document; with --status write how the workload in it ended, as `profkit.core.process` reads it."""
    parser = argparse.ArgumentParser(prog="profkit.profilers.xctrace.export")
    parser.add_argument("document", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--schemas", default="", help="names of tables, with commas between them")
    parser.add_argument("--xctrace")
    parser.add_argument("--status", type=Path)
    parser.add_argument("--may-be-cut", action="store_true", help="its time limit is no failure")
    options = parser.parse_args(arguments)
    schemas = [name for name in options.schemas.split(",") if name]
    try:
        run = export_document(
            options.document,
            options.folder,
            schemas,
            xctrace=options.xctrace,
            tell=lambda line: print(line, flush=True),
        )
    except ProfkitError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.fix:
            print(f"  fix: {error.fix}", file=sys.stderr)
        return error.exit_code
    if options.status is not None:
        _write_status(run, options.status, may_be_cut=options.may_be_cut)
    return 0


def _write_status(run: TraceRun, path: Path, *, may_be_cut: bool) -> None:
    """Write how the workload ended; nothing where that is not known, or where the plan itself ended it."""
    status = exit_status(run)
    ended = run.summary.get("end-reason", "").strip().lower()
    if status is None or (may_be_cut and ended == TIME_LIMIT):
        return
    part = path.with_name(f"{path.name}.part")
    part.write_text(f"{status}\n", encoding="ascii")
    os.replace(part, path)


def export_argv(
    document: Path | str,
    folder: Path | str,
    schemas: Sequence[str],
    *,
    status: Path | str | None = None,
    may_be_cut: bool = False,
    xctrace: str | None = None,
) -> tuple[str, ...]:
    """Return the command that exports a document, as a step of a plan.

    `status` is the file for how the workload ended; with `may_be_cut` a time limit that ended it is no failure.
    """
    argv = [sys.executable, "-c", _START, _ROOT, str(document), str(folder)]
    if schemas:
        argv.append(f"--schemas={','.join(schemas)}")
    if xctrace is not None:
        argv += ["--xctrace", xctrace]
    if status is not None:
        argv += ["--status", str(status)]
    if may_be_cut:
        argv.append("--may-be-cut")
    return tuple(argv)


if __name__ == "__main__":
    sys.exit(main())


VARIABLE = "PROFKIT_XCTRACE"
INSTALL_FIX = (
    "install Xcode, open it once, then: sudo xcode-select -s /Applications/Xcode.app/Contents/Developer"
)
_ELSEWHERE = "record on a Mac, bring the folder of exported tables, then: profkit summarize FOLDER"
_SECONDS = 60.0  # the first call of xcrun after an update of Xcode fills its caches


def locate_xctrace() -> Path | Fault:
    """Return the xctrace that PROFKIT_XCTRACE names if set, else `xcrun --find`'s; or why there is none.

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


def probe_xctrace() -> ToolAbility:
    """Ask xctrace for its version, which is that of Instruments with its build, "16.0 (17F42)".

    Nothing is recorded: a recording takes from some seconds to a minute. What only a recording shows (developer
    mode, an instrument that this Xcode lacks) is reported by the pass that meets it.
    """
    return _ask_version(locate_xctrace())


@lru_cache(maxsize=8)
def _ask_version(location: Path | Fault) -> ToolAbility:
    return ask_version(
        location, _VERSION, explain_fault, INSTALL_FIX, argument="version", seconds=_SECONDS_PROBE
    )


def judge_xctrace(xctrace: ToolAbility | None = None) -> Iterator[Check]:
    """Return checks of what a recording by Instruments needs on this Mac."""
    return judge_rows(Path(__file__).with_name("checks.yaml"), "xctrace", xctrace or probe_xctrace())
