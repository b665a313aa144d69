"""The story of a copy to show around: a report or a run goes in, the same without host, user and secrets comes out."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profkit.core.errors import MachineError, ProfkitError, UsageError
from profkit.core.run_folder import FILE_NAME, from_json, hand_over, read_run
from profkit.profilers.redact import OUTPUT, Redactor, Removed
from profkit.profilers.scrub import is_text, scrub_report, scrub_text
from profkit.profiling.scrub import sweep as sweeps
from profkit.profiling.scrub.document import names_of, scrub_document
from profkit.reporting import markdown
from profkit.reporting.html.write import write_page
from profkit.reporting.views import run as run_view

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
    done = Scrubbed(path, target, scrub_report(path, target))
    hand_over(target)
    return done


# ---------------------------------------------------------------- a run's folder


def _scrub_run(folder: Path, output: Path) -> Scrubbed:
    redactor = Redactor()
    if sweeps.is_sweep_folder(folder):
        sweeps.learn_host(redactor)
    try:
        left_out = _copy_run(folder, output, redactor)
    except OSError as error:
        shutil.rmtree(output, ignore_errors=True)
        raise MachineError(f"cannot write {output}: {error.strerror or error}", "--output PATH") from error
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        raise
    return Scrubbed(folder, output, redactor.removed(), tuple(left_out))


def _copy_run(folder: Path, output: Path, redactor: Redactor) -> list[LeftOut]:
    """One run's folder, and of a sweep those of its profiles."""
    run = read_run(folder)
    document = scrub_document(run, redactor)  # first: what is private there is so in the artifacts
    swept = sweeps.is_sweep_folder(folder)
    output.mkdir()
    for name in () if swept else ("artifacts", "logs"):
        (output / name).mkdir()
    left_out: list[LeftOut] = []
    documents = sorted(path for path in folder.rglob(f"*{_DOCUMENT}") if path.is_dir())
    left_out += [
        LeftOut(path.relative_to(folder).as_posix(), _OF_DOCUMENT, _EXPORTED_FIX) for path in documents
    ]
    inner = sorted((folder / sweeps.PROFILES).glob(f"*/{FILE_NAME}")) if swept else []
    if inner:
        (output / sweeps.PROFILES).mkdir()
    for one in inner:
        name = one.parent.relative_to(folder).as_posix()
        for left in _copy_run(one.parent, output / name, redactor):
            left_out.append(replace(left, name=f"{name}/{left.name}"))
    passed_over = {*documents, *(one.parent for one in inner)}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = file.relative_to(folder).as_posix()
        if passed_over.intersection(file.parents) or name in (FILE_NAME, *_MADE_ANEW):
            continue
        if swept and name in sweeps.FILES and not file.is_symlink():
            try:
                sweeps.scrub_file(file, output / name, redactor, names_of(run))
            except ValueError:
                left_out.append(
                    LeftOut(name, "it is broken", f"profkit sweep --resume {folder} writes it again")
                )
            continue
        one_left = _scrub_file(file, "logs/" * (swept and name == sweeps.OWN_LOG) + name, output, redactor)
        left_out += [replace(one_left, name=name)] if one_left is not None else []
    _write(document, output, {left.name for left in left_out})
    if swept:
        sweeps.write_views(output)
    return left_out


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
        return LeftOut(name, fault.message.replace(str(file), "it").partition(" (it knows")[0], fault.fix)
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
    if (output / sweeps.FILES[0]).is_file():  # its views are those of a sweep
        return
    made = from_json(document)
    (output / "report.md").write_text(markdown.render(run_view.view(made)), encoding="utf-8")
    write_page(output, made)
