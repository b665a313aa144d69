"""A copy of a report or of a run's folder to show around: text only, without host, user, command line and secrets."""

from __future__ import annotations

import getpass
import json
import platform
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from profkit.core.codec import json_text
from profkit.core.errors import MachineError, ProfkitError, UsageError
from profkit.core.files.regular import read_bounded_text
from profkit.core.files.safe_folder import arriving, bring, chown_to_sudo_user, remember
from profkit.core.run_folder import FILE_NAME, SIZE_LIMIT, read_run, run_from_json, run_to_json
from profkit.core.types import RunDocument
from profkit.kernels.evaluation.document import FILE as EVALUATION
from profkit.kernels.evaluation.document import (
    read_evaluation,
)
from profkit.kernels.sweep.request import FILE as JOURNAL
from profkit.kernels.sweep.request import LOG, read_sweep
from profkit.profilers.redact import (
    FOLDER,
    HOST,
    OUTPUT,
    PATH,
    PROCESS,
    USER,
    FileLeftOut,
    Redactor,
    RemovedText,
)
from profkit.profilers.registry import folder_format
from profkit.profilers.scrub import is_text, learn_report, scrub_report, scrub_text
from profkit.profiling.summarize import refuse_generation
from profkit.reporting import markdown
from profkit.reporting.report_files import write_evaluation_reports, write_page, write_sweep_reports
from profkit.reporting.views import run as run_view

# What profkit itself leaves beside the tools' reports: its own records, and the two forms of a flame graph.
_OWN_FILES = re.compile(
    r"artifacts/(?:[\w.-]+\.(?:status|switch|speedscope\.json|collapsed\.txt)|[\w.-]*region\.[\w.]+\.json|"
    r"timing-\d+\.\d+\.json|cprofile\.json|tracemalloc\.json|[\w.-]+/left-out\.json)"
)
_REPORTS = ("report.md", "report.html")  # they are made again, of the scrubbed document
_TRACEBACK = "traceback"  # of an evaluation's document and journal: what a program printed


@dataclass(frozen=True)
class ScrubResult:
    """Where the copy is, what was taken out of it, and which files it lacks."""

    source: Path
    output: Path
    removed: tuple[RemovedText, ...]
    left_out: tuple[FileLeftOut, ...] = ()


def scrub(path: Path, output: Path | None = None) -> ScrubResult:
    """Copy a report in text, or a run's folder, to `output` without what is private; `path` itself is not touched.

    Without `output` the copy lies beside it: `out.scrubbed.csv`, `RUN-scrubbed`. Raises UsageError where that is
    there already or the report is binary, UnreadableReport for what is no report, MachineError where it cannot be
    written.
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
        raise UsageError(f"{output} is there already", "--output ANOTHER")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output} cannot be written: there is no folder {output.absolute().parent}")
    if is_run and whole in (output.absolute(), *output.absolute().parents):
        raise UsageError(f"{output} is inside the run that it would be a copy of", "--output ANOTHER")
    result = _scrub_run(path, output) if is_run else ScrubResult(path, output, scrub_report(path, output))
    chown_to_sudo_user(output)
    return result


def _scrub_run(folder: Path, output: Path) -> ScrubResult:
    redactor = Redactor()
    redactor.learn_name(
        platform.node(), HOST
    )  # it was made here, most often, and errors may name this machine
    redactor.learn_name(_user(), USER)
    try:
        with arriving(output.parent) as private:
            copy = private / output.name
            left_out = _copy_run(folder, copy, redactor)
            bring(copy, output)
        remember(output)
        if (folder / JOURNAL).is_file():  # its reports name the folder
            write_sweep_reports(output, read_sweep(output))
        elif (folder / EVALUATION).is_file():
            write_evaluation_reports(output, read_evaluation(output / EVALUATION), Path(output.name))
    except FileExistsError as error:
        raise UsageError(f"{output} is there already", "--output ANOTHER") from error
    except OSError as error:
        raise MachineError(f"cannot write {output}: {error.strerror or error}", "--output PATH") from error
    return ScrubResult(folder, output, redactor.removed(), tuple(left_out))


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user without a name
        return None


def _copy_run(folder: Path, output: Path, redactor: Redactor) -> list[FileLeftOut]:
    """Copy one run's folder, and those of its profiles."""
    run = read_run(folder)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    for path in files:  # first: what is private in one file is private in each
        if path.name not in _REPORTS and is_text(path):
            try:
                learn_report(path, redactor)
            except (ProfkitError, OSError, EOFError):
                continue  # what cannot be read is left out below
    document = scrub_document(run, redactor)
    output.mkdir()
    left_out: list[FileLeftOut] = []
    wholes = {
        profile.parent for profile in folder.glob(f"*/*/{FILE_NAME}")
    }  # of a sweep: the runs of single cases
    for profile in sorted(wholes):
        name = profile.relative_to(folder).as_posix()
        (output / name).parent.mkdir(exist_ok=True)
        inner = _copy_run(profile, output / name, redactor)
        left_out += [replace(left, name=f"{name}/{left.name}") for left in inner]
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if wholes.intersection((path, *path.parents)) or name in (FILE_NAME, *_REPORTS):
            continue
        if path.is_dir():
            form = folder_format(path)
            if form is not None and form.as_text is not None:
                wholes.add(path)
                left_out.append(_binary(name, form.as_text.format(name=path.name, stem=path.stem)))
        elif (
            path.is_file()
            and (left := _copy_file(path, name, output, redactor, public_names(run))) is not None
        ):
            left_out.append(left)
    _write_document(document, output, {left.name for left in left_out})
    if not ((folder / JOURNAL).is_file() or (folder / EVALUATION).is_file()):
        for place in ("artifacts", "logs"):
            (output / place).mkdir(exist_ok=True)
        scrubbed = run_from_json(document)
        (output / "report.md").write_text(markdown.render(run_view.view(scrubbed)), encoding="utf-8")
        write_page(output, scrubbed)
    return left_out


def _binary(name: str, fix: str | None) -> FileLeftOut:
    return FileLeftOut(name, "only text is scrubbed", fix)


def _copy_file(
    file: Path, name: str, output: Path, redactor: Redactor, public: frozenset[str]
) -> FileLeftOut | None:
    """Copy one file without what is private; the reason where it stays behind."""
    if file.is_symlink() or file.name.startswith("."):
        return FileLeftOut(name, "it is no part of the run")
    if name.startswith("logs/") or name == LOG:
        redactor.note(OUTPUT)
        return FileLeftOut(name, "what a program prints may be anything")
    if file.stat().st_size == 0:
        return FileLeftOut(name, "it is empty")
    target = output / name
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if "/" not in name and file.suffix in (".json", ".jsonl"):
            _scrub_json(file, target, redactor, public)
        elif _OWN_FILES.fullmatch(name) and is_text(file):
            scrub_text(file, target, redactor)
        else:
            scrub_report(file, target, redactor)
    except ProfkitError as fault:
        return FileLeftOut(name, fault.message.replace(str(file), "it").partition(" (it knows")[0], fault.fix)
    except ValueError:
        return FileLeftOut(name, "it is broken")
    return None


def _scrub_json(source: Path, target: Path, redactor: Redactor, public: frozenset[str]) -> None:
    """Copy JSON, or a journal with JSON in each line; a line that was cut off is not copied. Raises ValueError."""
    text = read_bounded_text(source, SIZE_LIMIT, errors="replace")
    if source.suffix == ".json":
        body = redactor.data(_without_tracebacks(json.loads(text)), public)
        target.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
        return
    with target.open("x", encoding="utf-8") as copy:
        for line in text.splitlines():
            try:
                body = json.loads(line)
            except ValueError:  # cut off: nobody reads what follows
                return
            copy.write(json.dumps(redactor.data(_without_tracebacks(body), public)) + "\n")


def _without_tracebacks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "" if key == _TRACEBACK else _without_tracebacks(part) for key, part in value.items()}
    return [_without_tracebacks(part) for part in value] if isinstance(value, list) else value


def _write_document(document: dict[str, Any], output: Path, left_out: set[str]) -> None:
    for one_pass in document.get("passes") or ():
        one_pass["artifacts"] = [name for name in one_pass.get("artifacts") or () if name not in left_out]
        one_pass["log"] = None
    note = "scrubbed: without host, user, command line and logs"
    document["notes"] = [*(document.get("notes") or ()), note]
    (output / FILE_NAME).write_text(json_text(document), encoding="utf-8")


def scrub_document(run: RunDocument, redactor: Redactor) -> dict[str, Any]:
    """run.json without what is private. Names of kernels, regions and metrics stay."""
    command = run.workload.command
    if command[:2] in (
        ("profkit", "sweep"),
        ("profkit", "evaluate"),
    ):  # made of what was asked: nobody typed it
        command = ()
    names = public_names(run)
    redactor.learn_command(command, names)
    redactor.learn(run.workload.folder, FOLDER)
    redactor.learn(str(PurePath(run.workload.python).parent) if run.workload.python else None, PATH)
    for process in run.metal.processes if run.metal is not None else ():
        if not process.target:
            redactor.learn(process.name, PROCESS)
    document: dict[str, Any] = redactor.data(run_to_json(run), names)
    document["process"] = None
    if run.workload.stdin is not None:
        document["workload"]["stdin"] = PurePath(run.workload.stdin).name
    if document.get("place"):
        document["place"] = document["place"].partition(":")[0]  # the rest is a host's name, mostly
    if document.get("revision"):
        document["revision"]["branch"] = None  # people name branches after themselves
    return document


def public_names(run: RunDocument) -> frozenset[str]:
    """What a reader looks for by name: it stays."""
    trace = run.trace.kernels if run.trace is not None else ()
    ranges = run.trace.ranges if run.trace is not None else ()
    scopes = (
        item.scope for items in (run.counters, run.readings, run.verdicts, run.kernels) for item in items
    )
    return frozenset(
        name
        for name in (
            run.name,
            run.workload.name,
            *(scope.name for scope in scopes),
            *(timing.name for timing in run.timings),
            *(time.kernel.name for time in trace),
            *(marked.name for marked in ranges),
        )
        if name
    )
