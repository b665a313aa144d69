"""Copies a report or a run's folder for sharing: text only, without host, user, command line and secrets."""

from __future__ import annotations

import getpass
import gzip
import platform
import shlex
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from profkit.backends.artifacts import run_files
from profkit.core.codec import json_text, to_plain_data
from profkit.core.errors import ProfkitError, UnreadableReport, UsageError
from profkit.core.files.safe_folder import chown_to_sudo_user
from profkit.core.run_folder import FILE_NAME, read_run, run_from_json, run_to_json
from profkit.core.types import Fact, RunDocument
from profkit.profilers.redact import (
    FOLDER,
    HOST,
    OUTPUT,
    PATH,
    USER,
    FileLeftOut,
    Redactor,
    RemovedText,
)
from profkit.profilers.registry import folder_format, recognise_format
from profkit.profilers.scrub import copied_to, is_text, learn_report, scrub_report, scrub_text
from profkit.profiling.summarize import refuse_generation
from profkit.reporting import markdown
from profkit.reporting.report_files import write_page
from profkit.reporting.views import run as run_view
from profkit.runtime.passes.shown_command import mask_secrets

_REPORTS = ("report.md", "report.html")  # they are made again from the scrubbed document


@dataclass(frozen=True)
class ScrubResult:
    """Where the copy is, what was taken out of it, and which files it lacks."""

    source: Path
    output: Path
    removed: tuple[RemovedText, ...]
    left_out: tuple[FileLeftOut, ...] = ()


def scrub(path: Path, output: Path | None = None) -> ScrubResult:
    """Copy a report in text, or a run's folder, to `output` without what is private; `path` is not touched.

    Without `output` the copy is next to it: `out.scrubbed.csv`, `RUN-scrubbed`. Raises UsageError where that
    exists already, or the report is binary or a table of kernels, UnreadableReport for what is no report,
    MachineError where it cannot be written.
    """
    if path.name == FILE_NAME and path.is_file():
        path = path.absolute().parent
    is_run = (path / FILE_NAME).is_file()
    refuse_generation(path)
    whole = path.absolute()
    if output is None:
        beside = f"{path.stem}.scrubbed{path.suffix}"
        output = whole.with_name(f"{whole.name}-scrubbed") if is_run else path.with_name(beside)
    if output.exists() or output.is_symlink():
        raise UsageError(f"{output} exists already", "--output ANOTHER")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output} cannot be written: there is no folder {output.absolute().parent}")
    if is_run and whole in (output.absolute(), *output.absolute().parents):
        raise UsageError(f"{output} is inside the run that it would copy", "--output ANOTHER")
    result = _scrub_run(path, output) if is_run else ScrubResult(path, output, scrub_report(path, output))
    chown_to_sudo_user(output)
    return result


def _scrub_run(folder: Path, output: Path) -> ScrubResult:
    run = read_run(folder)
    if run.workload.command[:2] in (("profkit", "sweep"), ("profkit", "evaluate")):
        raise UsageError(
            f"{folder} is a table of kernels: only runs and reports can be scrubbed",
            f"profkit scrub {shlex.quote(str(folder / 'profiles'))}/RUN, or copy its numbers: "
            f"profkit report {shlex.quote(str(folder))} --format markdown",
        )
    redactor = own_redactor()  # most reports were made here, and errors may name this machine
    with copied_to(output) as copy:
        left_out = _copy_run(folder, run, copy, redactor)
    return ScrubResult(folder, output, redactor.removed(), tuple(left_out))


def own_redactor() -> Redactor:
    """Return a redactor that knows the names of this machine and its user."""
    redactor = Redactor()
    redactor.learn_name(platform.node(), HOST)
    redactor.learn_name(_user(), USER)
    return redactor


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user without a name
        return None


def _copy_run(folder: Path, run: RunDocument, output: Path, redactor: Redactor) -> list[FileLeftOut]:
    for path in sorted(folder.rglob("*")):  # first, because what is private in one file is private in all
        if path.is_file() and not path.is_symlink() and path.name not in _REPORTS and is_text(path):
            try:
                learn_report(path, redactor)
            except (ProfkitError, OSError, EOFError):
                continue  # what cannot be read is left out below
    document = scrub_document(run, redactor)
    for place in ("artifacts", "logs"):
        (output / place).mkdir(parents=True)
    left_out: list[FileLeftOut] = []
    wholes: set[Path] = set()  # folders that are one binary report each
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if wholes.intersection(path.parents) or name in (FILE_NAME, *_REPORTS):
            continue
        if path.is_dir():
            form = folder_format(path)
            if form is not None and form.as_text is not None:
                wholes.add(path)
                fix = form.as_text.format(name=path.name, stem=path.stem)
                left_out.append(FileLeftOut(name, "only text can be scrubbed", fix))
        elif path.is_file() and (left := _copy_file(path, name, output, redactor)) is not None:
            left_out.append(left)
    _write_document(document, output, {left.name for left in left_out})
    scrubbed = run_from_json(document)
    (output / "report.md").write_text(markdown.render(run_view.view(scrubbed)), encoding="utf-8")
    write_page(output, scrubbed)
    return left_out


def _copy_file(file: Path, name: str, output: Path, redactor: Redactor) -> FileLeftOut | None:
    """Copy one file without what is private; return the reason where it is left out."""
    if file.is_symlink() or file.name.startswith("."):
        return FileLeftOut(name, "it is not part of the run")
    if name.startswith("logs/"):
        redactor.note(OUTPUT)
        return FileLeftOut(name, "what a program prints may be anything")
    if file.stat().st_size == 0:
        return FileLeftOut(name, "it is empty")
    target = output / name
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if run_files().wants(name) and not _is_report(file) and is_text(file):
            scrub_text(file, target, redactor)  # a record of profkit's own
        else:
            scrub_report(file, target, redactor)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        target.unlink()
        return FileLeftOut(name, "it is damaged")
    except ProfkitError as fault:
        return FileLeftOut(name, fault.message.replace(str(file), "it").partition(" (it reads")[0], fault.fix)
    return None


def _is_report(file: Path) -> bool:
    """Return whether a tool wrote a file: a report may begin as text does, and go on in other bytes."""
    try:
        return recognise_format(file) is not None
    except UnreadableReport:
        return False


def _write_document(document: dict[str, Any], output: Path, left_out: set[str]) -> None:
    for one_pass in document.get("passes") or ():
        one_pass["artifacts"] = [name for name in one_pass.get("artifacts") or () if name not in left_out]
        one_pass["log"] = None
    document["notes"] = [*(document.get("notes") or ()), to_plain_data(Fact("scrubbed"))]
    (output / FILE_NAME).write_text(json_text(document), encoding="utf-8")


def scrub_document(run: RunDocument, redactor: Redactor) -> dict[str, Any]:
    """Return run.json without what is private. Names of kernels, regions and metrics stay."""
    names = public_names(run)
    redactor.learn_command(run.workload.command, names)
    redactor.learn(run.workload.folder, FOLDER)
    redactor.learn(str(PurePath(run.workload.python).parent) if run.workload.python else None, PATH)
    for warning in run.warnings:  # what a program prints may be anything; a finding quotes it in two parts
        for text in (warning.text, *warning.text.split(". ", 1)):
            redactor.learn(text.rstrip("."), OUTPUT)
    document: dict[str, Any] = redactor.data(run_to_json(run), names)
    document["process"] = None
    document["warnings"] = []
    if document.get("place"):
        document["place"] = document["place"].partition(":")[0]  # the rest is usually the name of a host
    return document


def public_names(run: RunDocument) -> frozenset[str]:
    """Return the names that a reader looks for; they stay, unless they have the form of a secret."""
    names = [run.name, run.workload.name, *(timing.name for timing in run.timings)]
    if run.trace is not None:
        names += [time.kernel.name for time in run.trace.kernels]
        names += [marked.name for marked in run.trace.ranges]
        if run.trace.timeline is not None:
            names += [name for label in run.trace.timeline.labels for name in (label.name, label.what)]
    for items in (run.counters, run.readings, run.verdicts, run.kernels):
        names += [item.scope.name or "" for item in items]
    return frozenset(name for name in names if name and mask_secrets(name) == name)
