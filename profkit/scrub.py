"""The story of a copy to show around: a report or a run goes in, the same without host, user and secrets comes out."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from profkit.errors import MachineError, ProfkitError, UnreadableReport, UsageError
from profkit.model import RunDocument
from profkit.reports.html.write import write_page
from profkit.reports.markdown import render as render_markdown
from profkit.run import FILE_NAME, from_json, hand_over, read_run, to_json
from profkit.tools.redact import COMMAND, FOLDER, OUTPUT, PATH, PROCESS, Redactor, Removed
from profkit.tools.scrubbing import is_text, scrub_report, scrub_text

# What profkit itself leaves beside the tools' reports: its own records, and the two forms of a flame graph.
_OURS = re.compile(
    r"artifacts/(?:[\w.-]+\.(?:status|switch|speedscope\.json|collapsed\.txt)|[\w.-]*region\.[\w.]+\.json|"
    r"timing-\d+\.\d+\.json|cprofile\.json|tracemalloc\.json|\w+\.xctrace/left-out\.json)"
)
# A document of Instruments is a folder of many files.
_DOCUMENT = ".trace"
_OF_DOCUMENT = (
    "nothing can be taken out of a document of Instruments, and it holds the process's whole environment"
)
_EXPORTED_FIX = "what was exported of it is there: the folder of the same name that ends in .xctrace"
_MADE_ANEW = ("report.md", "report.html")  # of the scrubbed document
_EXPORTED = {".nsys-rep": "its SQLite export can be: nsys export --type sqlite --lazy=false {0}"}


@dataclass(frozen=True)
class LeftOut:
    """A file that the copy does not have, why, and what would bring its content along."""

    name: str
    reason: str
    fix: str | None = None


@dataclass(frozen=True)
class Scrubbed:
    """Where the copy is, what was taken out of it, and which files it lacks."""

    source: Path
    output: Path
    removed: tuple[Removed, ...]
    left_out: tuple[LeftOut, ...] = ()


def scrub(path: Path, output: Path | None = None) -> Scrubbed:
    """Copy a report, or a run's folder, to `output` without what is private; `path` itself is not touched.

    Without `output` the copy lies beside it: `out.scrubbed.ncu-rep`, `RUN-scrubbed`. Raises UsageError where that is
    there already, UnreadableReport for what is no report, MachineError where it cannot be written.
    """
    if path.name == FILE_NAME and path.is_file():
        path = path.absolute().parent
    run = (path / FILE_NAME).is_file()
    whole = path.absolute()
    beside = f"{whole.name}-scrubbed" if run else f"{path.stem}.scrubbed{path.suffix}"
    target = output if output is not None else whole.with_name(beside) if run else path.with_name(beside)
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} is there already", "--output ANOTHER")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target} cannot be written: there is no folder {target.absolute().parent}")
    if run:
        if whole in (target.absolute(), *target.absolute().parents):
            raise UsageError(f"{target} is inside the run that it would be a copy of", "--output ANOTHER")
        done = _scrub_run(path, target)
        hand_over(target)
        return done
    try:
        done = Scrubbed(path, target, scrub_report(path, target))
        hand_over(target)
        return done
    except UsageError as fault:
        if path.suffix in _EXPORTED and not isinstance(fault, UnreadableReport):
            raise UsageError(fault.message, _EXPORTED[path.suffix].format(path.name)) from fault
        raise


# ---------------------------------------------------------------- a run's folder


def _scrub_run(folder: Path, output: Path) -> Scrubbed:
    redactor = Redactor()
    left_out: list[LeftOut] = []
    document = _scrub_document(
        read_run(folder), redactor
    )  # first: what is private there is so in the artifacts
    try:
        output.mkdir()
        for name in ("artifacts", "logs"):
            (output / name).mkdir()
        documents = sorted(path for path in folder.rglob(f"*{_DOCUMENT}") if path.is_dir())
        left_out += [
            LeftOut(path.relative_to(folder).as_posix(), _OF_DOCUMENT, _EXPORTED_FIX) for path in documents
        ]
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = file.relative_to(folder).as_posix()
            if any(document in file.parents for document in documents):
                continue
            if name not in (FILE_NAME, *_MADE_ANEW):
                left = _scrub_file(file, name, output, redactor)
                left_out += [left] if left is not None else []
        _write(document, output, {left.name for left in left_out})
    except OSError as error:
        shutil.rmtree(output, ignore_errors=True)
        raise MachineError(f"cannot write {output}: {error.strerror or error}", "--output PATH") from error
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        raise
    return Scrubbed(folder, output, redactor.removed(), tuple(left_out))


def _scrub_file(file: Path, name: str, output: Path, redactor: Redactor) -> LeftOut | None:
    if name.startswith("logs/"):
        redactor.note(OUTPUT)
        return LeftOut(name, "what a program prints may be anything")
    if file.is_symlink() or file.name.startswith("."):
        return LeftOut(name, "it is no part of the run")
    if file.stat().st_size == 0:
        return LeftOut(name, "it is empty")
    target = output / name
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if _OURS.fullmatch(name) and is_text(file):
            scrub_text(file, target, redactor)
        else:
            scrub_report(file, target, redactor)
    except ProfkitError as fault:
        fix = _EXPORTED.get(file.suffix, "").format(file.name) or fault.fix
        return LeftOut(name, fault.message.replace(str(file), "it").partition(" (it knows")[0], fix)
    return None


def _write(document: dict[str, Any], output: Path, left_out: set[str]) -> None:
    for done in document.get("passes") or ():
        done["artifacts"] = [name for name in done.get("artifacts") or () if name not in left_out]
        done["log"] = None
    document["notes"] = [
        *(document.get("notes") or ()),
        "scrubbed: without host, user, command line and logs",
    ]
    (output / FILE_NAME).write_text(
        json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n", encoding="utf-8"
    )
    made = from_json(document)
    (output / "report.md").write_text(render_markdown(made), encoding="utf-8")
    write_page(output, made)


def _scrub_document(run: RunDocument, redactor: Redactor) -> dict[str, Any]:
    """run.json without what is private. Names of kernels, regions and metrics stay."""
    command = run.workload.command
    names = _names(run)
    for word in command:
        value = word.partition("=")[2] if word.startswith("-") else word
        if not any(value in name for name in names):
            redactor.learn(value, COMMAND)
    redactor.learn(run.workload.folder, FOLDER)
    redactor.learn(str(PurePath(run.workload.python).parent) if run.workload.python else None, PATH)
    shown = _shown(command)
    redactor.note(COMMAND, int(shown != list(command)), " ".join(shown))
    others = {
        one.name: f"process-{one.pid}" if one.pid is not None else "another process"
        for one in (run.metal.processes if run.metal is not None else ())
        if not one.target
    }
    for name in others:
        redactor.learn(name, PROCESS)
        redactor.note(PROCESS, 1, others[name])
    told = _renamed(to_json(run), others)
    document: dict[str, Any] = _without(told, list(command), shown, redactor, names)
    document["workload"]["command"] = shown
    if document.get("revision"):
        document["revision"]["branch"] = None  # people name branches after themselves
    return document


def _renamed(value: Any, others: dict[str, str]) -> Any:
    """A document in which other programs that used the GPU go by their numbers."""
    if isinstance(value, str):
        found = others.get(value)
        if found is None:
            named, _, rest = value.rpartition(" (")
            found = f"{others[named]} ({rest}" if named in others else value
        return found
    if isinstance(value, dict):
        return {key: _renamed(part, others) for key, part in value.items()}
    if isinstance(value, list):
        return [_renamed(part, others) for part in value]
    return value


def _shown(command: tuple[str, ...]) -> list[str]:
    """`python train.py`: the program and the script, without folders and arguments."""
    if not command:
        return []
    script = next((word for word in command[1:] if re.fullmatch(r"[\w./ -]+\.(?:py|sh)", word)), None)
    return [PurePath(command[0]).name, *([PurePath(script).name] if script is not None else [])]


def _names(run: RunDocument) -> frozenset[str]:
    """What a reader looks for by name: it stays."""
    trace = run.trace.kernels if run.trace is not None else ()
    ranges = run.trace.ranges if run.trace is not None else ()
    scopes = (
        thing.scope for group in (run.counters, run.readings, run.verdicts, run.kernels) for thing in group
    )
    return frozenset(
        name
        for name in (
            run.name,
            run.workload.name,
            *(scope.name for scope in scopes),
            *(timing.name for timing in run.timings),
            *(time.kernel.name for time in trace),
            *(found.name for found in ranges),
        )
        if name
    )


def _without(
    value: Any, command: list[str], shown: list[str], redactor: Redactor, names: frozenset[str]
) -> Any:
    def inside(part: Any) -> Any:
        return _without(part, command, shown, redactor, names)

    if isinstance(value, str):
        return value if value in names else redactor.text(value)
    if isinstance(value, dict):
        return {redactor.text(key): inside(part) for key, part in value.items()}
    if isinstance(value, list):
        return [inside(word) for word in _instead(value, command, shown)]
    return value


def _instead(words: list[Any], command: list[str], shown: list[str]) -> list[Any]:
    """A list with the workload's command, where it stands in it, replaced by what is shown of it."""
    if command:
        for at in range(len(words) - len(command) + 1):
            if words[at : at + len(command)] == command:
                return [*words[:at], *shown, *words[at + len(command) :]]
    return words
