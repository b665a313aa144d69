"""A document of Instruments (`.trace`) as XML that can be read anywhere: its table of contents and tables.

Runs xctrace, on the Mac that has it. As a program (`python -m profkit.profilers.xctrace.export DOCUMENT FOLDER`) it is
a conversion like any other: what a step of a plan runs after its recording.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import Fault, MachineError, ProfkitError, UnreadableReport
from profkit.profilers.programs import last_line
from profkit.profilers.xctrace.command import explain_fault, table_argv, toc_argv
from profkit.profilers.xctrace.find import locate_xctrace
from profkit.profilers.xctrace.report import UNEXPORTED, UnexportedTable, write_unexported
from profkit.profilers.xctrace.toc import TraceRun, exit_status, reached_time_limit, read_toc

_OF_GPU = ("gpu-counter", "metal-gpu-counter")
_NONE = "(null)"


def is_pointless(run: TraceRun, schema: str) -> bool:
    """Whether the GPU's counters of a recording that was made without a set of them would be exported.

    Such a recording has none or, on an M3 and later, one that stays 0 in hundreds of thousands of rows. A template of
    somebody's own may count without naming its set, so the number of the profile has to be 0, too.
    """
    if not schema.startswith(_OF_GPU) or run.setting("Counter Set") != _NONE:
        return False
    profiles = {profile for table in run.tables if (profile := table.get("counter-profile")) is not None}
    return profiles == {"0"}


TOC = "toc.xml"
MOST_BYTES = 2 << 30  # of one table: GPU counters have 3 to 6 GB for 15 s of recording
TABLE_SECONDS = 900.0  # what one table may take; to open a large document alone takes half a minute
_SHORTER = "a shorter recording, or a benchmark with fewer iterations"
_LOOK = 0.1  # seconds between two looks at a table that grows
# `python -m` would look for modules in the workload's folder first, where a `signal.py` may lie.
_START = (
    "import sys; sys.path[0] = sys.argv.pop(1); "
    "from profkit.profilers.xctrace.export import main; sys.exit(main())"
)
_ROOT = str(Path(__file__).resolve().parents[3])
_SAFE = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class ExportResult:
    """What came of a document: its last run, the tables of it that were written, and those that were not."""

    run: TraceRun
    schemas: tuple[str, ...]
    left_out: tuple[UnexportedTable, ...] = ()


def export_document(
    document: Path,
    folder: Path,
    schemas: Sequence[str],
    *,
    xctrace: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> ExportResult:
    """Write `toc.xml` and a file for each of `schemas` that the document has into `folder`, which is made.

    A table that grows beyond MOST_BYTES, or takes longer than TABLE_SECONDS, is left out with the reason; so is one
    that xctrace cannot export. `tell` gets a line for each table. Raises MachineError where xctrace is not here or
    cannot open the document, UnreadableReport for what is no document.
    """
    if not document.is_dir():
        raise UnreadableReport(f"{document} is no document of Instruments: it is not a folder")
    location = Path(xctrace) if xctrace else locate_xctrace()
    if isinstance(location, Fault):
        raise MachineError(location.reason, location.fix)
    program = str(location)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / UNEXPORTED).unlink(missing_ok=True)
    except OSError as error:
        raise MachineError(f"{folder} cannot be made: {error.strerror}", "choose another folder") from error
    if (fault := _run_export(toc_argv(document, folder / TOC, xctrace=program), folder / TOC)) is not None:
        raise MachineError(f"xctrace cannot open {document}: {fault.reason}", fault.fix)
    runs = read_toc(folder / TOC)
    if not runs:
        raise UnreadableReport(f"{document} holds no recording: its table of contents is empty")
    run = runs[-1]
    there = [schema for schema in schemas if run.has(schema) and _SAFE.fullmatch(schema)]
    listed = [schema for schema in there if not is_pointless(run, schema)]
    done: list[str] = []
    left_out: list[UnexportedTable] = []
    for number, schema in enumerate(listed, 1):
        target = folder / f"{schema}.xml"
        fault = _run_export(table_argv(document, schema, target, run=run.number, xctrace=program), target)
        if fault is None:
            done.append(schema)
            tell(f"{number} of {len(listed)}  {schema}: {target.stat().st_size / 1e6:.1f} MB")
        else:
            target.unlink(missing_ok=True)
            left_out.append(UnexportedTable(schema, fault.reason, fault.fix))
            tell(f"{number} of {len(listed)}  {schema}: left out, {fault.reason}")
    write_unexported(folder, left_out)
    return ExportResult(run, tuple(done), tuple(left_out))


def _run_export(argv: Sequence[str], output: Path) -> Fault | None:
    """Run one export; why it left nothing to read, or None. Never leaves a process behind."""
    output.unlink(missing_ok=True)  # xctrace writes over no file
    try:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace"
        )
    except OSError as error:
        return Fault(f"{argv[0]} cannot be started: {error.strerror}")
    end = time.monotonic() + TABLE_SECONDS
    try:
        while True:
            try:
                text, _ = child.communicate(timeout=_LOOK)
                break
            except subprocess.TimeoutExpired:
                if output.exists() and output.stat().st_size > MOST_BYTES:
                    return Fault(f"it is larger than {MOST_BYTES / 1e9:.1f} GB as XML", _SHORTER)
                if time.monotonic() > end:
                    return Fault(f"xctrace had not exported it after {TABLE_SECONDS:.0f} s", _SHORTER)
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    if child.returncode != 0:
        return explain_fault(text, child.returncode) or Fault(
            f"xctrace ended with {child.returncode}: {last_line(text)}"
        )
    if not output.is_file() or output.stat().st_size == 0:
        return explain_fault(text, 0) or Fault(f"xctrace wrote nothing: {last_line(text)}")
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Export a document; with --status write how the workload in it ended, as `profkit.core.status` reads it."""
    parser = argparse.ArgumentParser(prog="profkit.profilers.xctrace.export")
    parser.add_argument("document", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--schemas", default="", help="names of tables, with commas between them")
    parser.add_argument("--xctrace")
    parser.add_argument("--status", type=Path)
    parser.add_argument(
        "--may-be-cut", action="store_true", help="the time limit is the plan's own, and no failure"
    )
    options = parser.parse_args(arguments)
    schemas = [name for name in options.schemas.split(",") if name]
    try:
        exported = export_document(
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
        _write_status(exported.run, options.status, may_be_cut=options.may_be_cut)
    return 0


def _write_status(run: TraceRun, path: Path, *, may_be_cut: bool) -> None:
    """How the workload ended; nothing where that is not known, or where the plan itself ended it."""
    status = exit_status(run)
    if status is None or (reached_time_limit(run) and may_be_cut):
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
    """The command that exports a document, as a step of a plan.

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
