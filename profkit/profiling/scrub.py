"""A copy of a report or of a run's folder to show around: without host, user, command line and secrets."""

from __future__ import annotations

import getpass
import json
import platform
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from profkit.analysis.ranking.ranking import FILE as RESULTS
from profkit.core.codec import json_text
from profkit.core.errors import MachineError, ProfkitError, UsageError
from profkit.core.files.regular import open_regular_text, read_bounded_text
from profkit.core.files.safe_folder import bring, chown_to_sudo_user, private_place, remember
from profkit.core.run_folder import (
    FILE_NAME,
    SIZE_LIMIT,
    read_run,
    run_from_json,
    run_to_json,
)
from profkit.core.types import RunDocument
from profkit.kernels.evaluation.journal import FILE as TESTS
from profkit.kernels.evaluation.results.document import FILE as EVALUATION
from profkit.kernels.evaluation.results.document import (
    evaluation_from_json,
    evaluation_json,
    evaluation_text,
    read_evaluation,
)
from profkit.kernels.evaluation.results.field_files import FILES as FIELD_FILES
from profkit.kernels.evaluation.results.field_files import field_files
from profkit.kernels.sweep.journal import FILE as JOURNAL
from profkit.kernels.sweep.journal import read_sweep
from profkit.kernels.sweep.workers import LOG
from profkit.profilers.files import lines_of
from profkit.profilers.redact import (
    COMMAND,
    FOLDER,
    HOST,
    OUTPUT,
    PATH,
    PROCESS,
    TOKEN,
    USER,
    FileLeftOut,
    Redactor,
    RemainingText,
    RemovedText,
)
from profkit.profilers.registry import folder_format
from profkit.profilers.scrub import is_text, learn_report, scrub_report, scrub_text
from profkit.profiling.summarize import refuse_generation
from profkit.reporting import markdown
from profkit.reporting.report_files import write_evaluation_reports, write_page, write_sweep_reports
from profkit.reporting.views import run as run_view
from profkit.runtime.passes.secrets import mask_command

# What profkit itself leaves beside the tools' reports: its own records, and the two forms of a flame graph.
_OWN_FILES = re.compile(
    r"artifacts/(?:[\w.-]+\.(?:status|switch|speedscope\.json|collapsed\.txt)|[\w.-]*region\.[\w.]+\.json|"
    r"timing-\d+\.\d+\.json|cprofile\.json|tracemalloc\.json|[\w.-]+/left-out\.json)"
)
_OWN_TEXTS = ("names of functions and of source files",)
# Of run.json, and of what is made of it
_RUN_TEXTS = (
    "names of the run, its regions, functions, kernels and ranges",
    "sentences of profkit that quote such names",
)
_KERNEL_TEXTS = ("names of operations and implementations", "reasons of failures, as programs said them")
_REPORTS = ("report.md", "report.html")  # they are made again, of the scrubbed document
_PROFILES = "profiles"  # of a sweep: runs of single cases, each a folder like any run's


@dataclass(frozen=True)
class ScrubResult:
    """Where the copy is, what was taken out of it, which files it lacks, and what kinds of text it still has."""

    source: Path
    output: Path
    removed: tuple[RemovedText, ...]
    left_out: tuple[FileLeftOut, ...] = ()
    remaining: tuple[
        RemainingText, ...
    ] = ()  # kinds of text that stay: a secret without a known form is in these


def scrub(path: Path, output: Path | None = None) -> ScrubResult:
    """Copy a report, or a run's folder, to `output` without what is private; `path` itself is not touched.

    Without `output` the copy lies beside it: `out.scrubbed.ncu-rep`, `RUN-scrubbed`. Raises UsageError where that is
    there already, UnreadableReport for what is no report, MachineError where it cannot be written.
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
    if is_run:
        result = _scrub_run(path, output)
    else:
        redactor = Redactor()
        removed = scrub_report(path, output, redactor)
        result = ScrubResult(path, output, removed, remaining=redactor.remaining())
    chown_to_sudo_user(output)
    return result


# ---------------------------------------------------------------- a run's folder


def _scrub_run(folder: Path, output: Path) -> ScrubResult:
    redactor = Redactor()
    redactor.learn_name(
        platform.node(), HOST
    )  # it was made here, most often, and errors may name this machine
    redactor.learn_name(_user(), USER)
    try:
        with private_place(output) as copy:
            left_out = _copy_run(folder, copy, redactor)
            bring(copy, output)
        remember(output)
        if _is_sweep_folder(folder):  # its reports name the folder
            write_sweep_reports(output, read_sweep(output))
    except FileExistsError as error:
        raise UsageError(f"{output} is there already", "--output ANOTHER") from error
    except OSError as error:
        raise MachineError(f"cannot write {output}: {error.strerror or error}", "--output PATH") from error
    return ScrubResult(folder, output, redactor.removed(), tuple(left_out), redactor.remaining())


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user without a name
        return None


def _copy_run(folder: Path, output: Path, redactor: Redactor) -> list[FileLeftOut]:
    """Copy one run's folder, and of a sweep those of its profiles."""
    run = read_run(folder)
    for path in sorted(folder.rglob("*")):  # first: what is private in one file is private in each
        if path.is_file() and not path.is_symlink() and path.name not in _REPORTS:
            learn_report(path, redactor)
    document = scrub_document(run, redactor)
    is_sweep = _is_sweep_folder(folder)
    is_evaluation = (folder / EVALUATION).is_file()
    output.mkdir()
    for name in () if is_sweep else ("artifacts", "logs"):
        (output / name).mkdir()
    redactor.note_remaining(FILE_NAME, (*_RUN_TEXTS, *(_KERNEL_TEXTS if is_sweep or is_evaluation else ())))
    left_out: list[FileLeftOut] = []
    done: set[Path] = set()  # folders that are copied as wholes, or left out
    for profile in sorted((folder / _PROFILES).glob(f"*/{FILE_NAME}")) if is_sweep else ():
        name = profile.parent.relative_to(folder).as_posix()
        (output / _PROFILES).mkdir(exist_ok=True)
        inner = _copy_run(profile.parent, output / name, redactor)
        left_out += [replace(left, name=f"{name}/{left.name}") for left in inner]
        done.add(profile.parent)
    for path in sorted(path for path in folder.rglob("*") if path.is_dir() or path.is_file()):
        name = path.relative_to(folder).as_posix()
        if done.intersection((path, *path.parents)) or name in (FILE_NAME, *_REPORTS):
            continue
        if path.is_dir():
            form = folder_format(path)
            if form is not None and form.scrub is None:
                done.add(path)
                left_out.append(
                    FileLeftOut(name, f"nothing can be taken out of a {form.title}", form.scrub_fix)
                )
            continue
        if is_sweep and name in (JOURNAL, RESULTS) and not path.is_symlink():
            reason = _scrub_sweep_file(path, output / name, redactor, public_names(run))
        elif is_evaluation and name in (EVALUATION, TESTS, *FIELD_FILES):
            continue  # the document is scrubbed, and the others are made of it
        elif name.startswith("logs/") or (is_sweep and name == LOG):
            redactor.note(OUTPUT)
            reason = FileLeftOut(name, "what a program prints may be anything")
        else:
            reason = _scrub_file(path, name, output, redactor)
        left_out += [reason] if reason is not None else []
    _write_document(document, output, {left.name for left in left_out})
    if is_evaluation:
        _scrub_evaluation(folder, output, redactor, public_names(run))
    elif not is_sweep:
        scrubbed = run_from_json(document)
        (output / "report.md").write_text(markdown.render(run_view.view(scrubbed)), encoding="utf-8")
        write_page(output, scrubbed)
    return left_out


def _scrub_file(file: Path, name: str, output: Path, redactor: Redactor) -> FileLeftOut | None:
    if file.is_symlink() or file.name.startswith("."):
        return FileLeftOut(name, "it is no part of the run")
    if file.stat().st_size == 0:
        return FileLeftOut(name, "it is empty")
    target = output / name
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if _OWN_FILES.fullmatch(name) and is_text(file):
            scrub_text(file, target, redactor)
            redactor.note_remaining(name, _OWN_TEXTS)
        else:
            scrub_report(file, target, redactor, name)
    except ProfkitError as fault:
        return FileLeftOut(name, fault.message.replace(str(file), "it").partition(" (it knows")[0], fault.fix)
    return None


def _write_document(document: dict[str, Any], output: Path, left_out: set[str]) -> None:
    for one_pass in document.get("passes") or ():
        one_pass["artifacts"] = [name for name in one_pass.get("artifacts") or () if name not in left_out]
        one_pass["log"] = None
    note = "scrubbed: without host, user, command line and logs"
    document["notes"] = [*(document.get("notes") or ()), note]
    (output / FILE_NAME).write_text(json_text(document), encoding="utf-8")


# ---------------------------------------------------------------- a sweep's journal and records


def _is_sweep_folder(folder: Path) -> bool:
    return (folder / JOURNAL).is_file()


def _scrub_sweep_file(
    source: Path, target: Path, redactor: Redactor, names: frozenset[str]
) -> FileLeftOut | None:
    """Copy the journal, or the records; a line of the journal that was cut off is not copied."""

    def redact(value: Any) -> Any:
        return redact_data(value, [], [], redactor, names)

    if source.name == RESULTS:
        try:
            records = redact(json.loads(read_bounded_text(source, SIZE_LIMIT)))
        except ValueError:
            fix = f"profkit sweep --resume {source.parent} writes it again"
            return FileLeftOut(source.name, "it is broken", fix)
        target.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
        return None
    with (
        open_regular_text(source, encoding="utf-8", errors="replace") as lines,
        target.open("w", encoding="utf-8") as copy,
    ):
        for line in lines_of(lines, source):
            try:
                body = json.loads(line)
            except ValueError:  # cut off: nobody reads what follows
                break
            copy.write(json.dumps(redact(body)) + "\n")
    return None


# ---------------------------------------------------------------- an evaluation's document


def _scrub_evaluation(folder: Path, output: Path, redactor: Redactor, names: frozenset[str]) -> None:
    """Its document without its command, tracebacks and private words, and what is made of it."""
    document = read_evaluation(folder / EVALUATION)
    results = tuple(replace(result, traceback="") for result in document.results)
    body = evaluation_json(replace(document, command=(), kernels="", results=results))
    redacted = evaluation_from_json(redact_data(body, [], [], redactor, names))
    (output / EVALUATION).write_text(evaluation_text(redacted), encoding="utf-8")
    for name, text in field_files(redacted).items():
        (output / name).write_text(text, encoding="utf-8")
    write_evaluation_reports(output, redacted, Path(output.name))


# ---------------------------------------------------------------- run.json


def scrub_document(run: RunDocument, redactor: Redactor) -> dict[str, Any]:
    """run.json without what is private. Names of kernels, regions and metrics stay."""
    command = run.workload.command
    if command[:2] in (
        ("profkit", "sweep"),
        ("profkit", "evaluate"),
    ):  # made of what was asked: nobody typed it
        command = ()
    names = public_names(run)
    for secret in mask_command(command)[1]:
        redactor.learn(secret, TOKEN, strong=True)
    for word in command:
        value = word.partition("=")[2] if word.startswith("-") else word
        if not any(value in name for name in names):
            redactor.learn(value, COMMAND)
    redactor.learn(run.workload.folder, FOLDER)
    redactor.learn(str(PurePath(run.workload.python).parent) if run.workload.python else None, PATH)
    shown_command = _shown_command(command)
    redactor.note(COMMAND, int(shown_command != list(command)), " ".join(shown_command))
    aliases = {
        process.name: f"process-{process.pid}" if process.pid is not None else "another process"
        for process in (run.metal.processes if run.metal is not None else ())
        if not process.target
    }
    for name in aliases:
        redactor.learn(name, PROCESS)
        redactor.note(PROCESS, 1, aliases[name])
    renamed = _rename_processes(run_to_json(run), aliases)
    document: dict[str, Any] = redact_data(renamed, list(command), shown_command, redactor, names)
    if command:
        document["workload"]["command"] = shown_command
    document["process"] = None
    if run.workload.stdin is not None:
        document["workload"]["stdin"] = PurePath(run.workload.stdin).name
    if document.get("place"):
        document["place"] = document["place"].partition(":")[0]  # the rest is a host's name, mostly
    if document.get("revision"):
        document["revision"]["branch"] = None  # people name branches after themselves
    return document


def _rename_processes(value: Any, aliases: dict[str, str]) -> Any:
    """A document in which other programs that used the GPU go by their numbers."""
    if isinstance(value, str):
        if value in aliases:
            return aliases[value]
        name, _, rest = value.rpartition(" (")
        return f"{aliases[name]} ({rest}" if name in aliases else value
    if isinstance(value, dict):
        return {key: _rename_processes(part, aliases) for key, part in value.items()}
    if isinstance(value, list):
        return [_rename_processes(part, aliases) for part in value]
    return value


def _shown_command(command: tuple[str, ...]) -> list[str]:
    """`python train.py`: the program and the script, without folders and arguments."""
    if not command:
        return []
    script = next((word for word in command[1:] if re.fullmatch(r"[\w./ -]+\.(?:py|sh)", word)), None)
    return [PurePath(command[0]).name, *([PurePath(script).name] if script is not None else [])]


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


def redact_data(
    value: Any, command: list[str], shown_command: list[str], redactor: Redactor, names: frozenset[str]
) -> Any:
    """Plain data without what is private; `names` stay, and `command` becomes what is `shown` of it."""

    def redact(part: Any) -> Any:
        return redact_data(part, command, shown_command, redactor, names)

    if isinstance(value, str):
        return value if value in names else redactor.text(value)
    if isinstance(value, dict):
        return {redactor.text(key): redact(part) for key, part in value.items()}
    if isinstance(value, list):
        return [redact(word) for word in _replace_command(value, command, shown_command)]
    return value


def _replace_command(words: list[Any], command: list[str], shown_command: list[str]) -> list[Any]:
    """A list with the workload's command, where it stands in it, replaced by what is shown of it."""
    if command:
        for at in range(len(words) - len(command) + 1):
            if words[at : at + len(command)] == command:
                return [*words[:at], *shown_command, *words[at + len(command) :]]
    return words
