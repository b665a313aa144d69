"""Implements `--on`: profile, plan, record and doctor at another place, with the same files as results here.

A place that cannot be reached is skipped. If the connection is lost, the work is repeated at the next place, but only
once: if two machines disappear, the work itself is more likely the cause. `record` has the code that runs there.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from profkit.backends import backend_names
from profkit.backends.artifacts import run_files
from profkit.core.codec import from_plain_data, is_finite_number
from profkit.core.errors import (
    Interrupted,
    MachineError,
    ProfkitError,
    Progress,
    UnreadableReport,
    UsageError,
    WorkloadError,
)
from profkit.core.files.names import ARCHIVE, FileNames
from profkit.core.files.safe_folder import (
    TemporaryFolder,
    arriving,
    chown_to_sudo_user,
    replace_into,
)
from profkit.core.run_folder import FILE_NAME, clean_name, create_run_folder, read_run, short_path, write_run
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.core.types import Check, Json, RunDocument, Workload
from profkit.execution.places.connection import Connection, PlaceLost, PlaceUnreachable
from profkit.execution.places.files import (
    ReceivedFiles,
    Sending,
    Tree,
    left_out_line,
    refused_with,
    workload_tree,
)
from profkit.execution.places.kinds import ExecutionPlace
from profkit.profiling.profile import ProfileOptions, check_options, profile_workload, write_reports
from profkit.profiling.record import RecordOptions, check_target, find_recorder, record_report, report_files
from profkit.profiling.summarize import judge_document, targets_for
from profkit.profiling.workload import default_name, read_revision

_STAYS = ("output", "targets")  # options that name files of this machine


def profile_elsewhere(
    options: ProfileOptions, places: Sequence[ExecutionPlace], sending: Sending, progress: Progress
) -> tuple[RunDocument, Path]:
    """Run `profile_workload` at the first place that can.

    Raises PlaceUnreachable and PlaceLost as well.
    """
    check_options(options)
    errand = _errand_of("profile", options, sending)

    def bring(place: ExecutionPlace) -> tuple[RunDocument, Path]:
        begun = datetime.now()
        with arriving(options.output) as arrived:
            try:
                _, cancelled = do_errand(errand, place, progress, arrived)
            except (PlaceLost, PlaceUnreachable, UnreadableReport):  # a refused result is not used
                raise
            except ProfkitError as fault:
                if (arrived / FILE_NAME).is_file():
                    fault.run = _keep(arrived, options, place, begun, progress)[1]
                raise
            document, folder = _keep(arrived, options, place, begun, progress)
            if document.state == "interrupted" and not cancelled:
                ended = MachineError(
                    f"the run was ended at {place.title}, not here; what was finished is kept"
                )
                ended.run = folder
                raise ended
            return document, folder

    with raise_on_signals():
        return try_places(places, bring, lambda: profile_workload(options, progress), progress)


def record_elsewhere(
    options: RecordOptions, places: Sequence[ExecutionPlace], sending: Sending, progress: Progress
) -> Path:
    """Run `record_report` at the first place that can."""
    errand = _errand_of("record", options, sending)
    sent, target = clean_name(options.report.name), options.report
    if errand.names.is_document(
        sent
    ):  # only its tool knows what belongs into such a folder, so it comes as one archive
        sent, target = sent + ARCHIVE, target.with_name(target.name + ARCHIVE)
    check_target(target, options.force, find_recorder(options.tool))

    def bring(place: ExecutionPlace) -> Path:
        with arriving(options.report.absolute().parent) as arrived:
            report = arrived / sent
            try:
                do_errand(errand, place, progress, arrived)
            except (WorkloadError, Interrupted):  # keep what the tool had finished until then
                if report.exists():
                    replace_into(report, target)
                raise
            if not report.exists():
                raise MachineError(f"{place.title} left no report")
            replace_into(report, target)
            if target != options.report:
                progress.note(f"{target.name} holds the document: tar -xf {shlex.quote(str(target))}")
            return target

    with raise_on_signals():
        return try_places(places, bring, lambda: record_report(options, progress), progress)


def diagnose_elsewhere(
    backend: str, places: Sequence[ExecutionPlace], sending: Sending, progress: Progress
) -> tuple[Check, ...]:
    """Run `diagnose` at the only place. Raises UsageError where there are several."""
    if len(places) != 1:
        raise UsageError("doctor checks one place at a time", f"--on {shlex.quote(places[0].title)}")
    errand = Errand("doctor", backend, None, "doctor", sending)
    checks, _ = do_errand(errand, places[0], progress, None)
    with refused_with(places[0].title):
        return from_plain_data(tuple[Check, ...], checks, "the list of checks")


def _errand_of(function: str, options: ProfileOptions | RecordOptions, sending: Sending) -> Errand:
    """Return the errand for the options given on this machine; the files that they name are read now.

    Raises UsageError.
    """
    if not options.command:
        raise UsageError(
            "no workload: put its command after `--`",
            f"profkit {function} --on PLACE -- python your_script.py",
        )
    data = {field.name: getattr(options, field.name) for field in fields(options) if field.name not in _STAYS}
    if isinstance(options, RecordOptions):
        data["report"] = clean_name(options.report.name)
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}
    work = workload_tree(options.command, sending.paths)
    name = clean_name(getattr(options, "name", None) or default_name(options.command))
    names = (
        run_files()
        if isinstance(options, ProfileOptions)
        else report_files(options.tool, str(data["report"]))
    )
    return Errand(function, plain, work, name, sending, names)


def _keep(
    arrived: Path, options: ProfileOptions, place: ExecutionPlace, begun: datetime, progress: Progress
) -> tuple[RunDocument, Path]:
    """Make a run of the files that arrived: with the commit, the targets and the reports of this machine.

    Raises UnreadableReport if they are not a run.
    """
    try:
        document = read_run(arrived)
    except UnreadableReport as error:  # by its name in the result: it lies in a folder that is gone by then
        message = error.message.replace(f"{arrived}/", "").replace(str(arrived), "it")
        raise UnreadableReport(f"what {place.title} sent back is not a run: {message}") from error
    if document.backend not in backend_names():
        raise UnreadableReport(
            f"what {place.title} sent back is not a run: there is no backend {document.backend[:40]!r}"
        )
    document = _with_archives(document, arrived)
    local = Workload(options.command, document.name, str(Path.cwd()))
    with defer_interrupts():
        document = replace(document, revision=read_revision(local), place=place.title)
        folder = create_run_folder(options.output, document.name, document.backend, begun)
        for path in list(arrived.iterdir()):
            replace_into(path, folder / path.name)
        write_run(folder, document)
        if options.targets is not None:
            document = judge_document(document, targets_for(document.backend, options.targets, document.name))
        folder = Path(short_path(folder.absolute()))
        if (why := write_reports(document, folder)) is not None:
            progress.note(why)
        chown_to_sudo_user(folder)
    return document, folder


def _with_archives(document: RunDocument, arrived: Path) -> RunDocument:
    """Rename each artifact in the document that is a folder here and came as an archive."""

    def called(name: str) -> str:
        return name + ARCHIVE if (arrived / (name + ARCHIVE)).is_file() else name

    passes = (replace(entry, artifacts=tuple(map(called, entry.artifacts))) for entry in document.passes)
    return replace(document, passes=tuple(passes))


# ------------------------------------------------------------ one piece of work at a place

_T = TypeVar("_T")
NOTHING = FileNames(())
_CALLS = {
    "begin": (str, str),
    "tick": (float,),
    "move": (str,),
    "end": (str,),
    "fail": (str,),
    "note": (str,),
}
_LIKE_OURS = re.compile(r"\s*(?:error|fix)\b", re.IGNORECASE)  # how lines of profkit's own errors begin
_ROOM = 1000  # characters of a line of progress; the rest is cut off


@dataclass(frozen=True)
class Errand:
    """One piece of work for a place. `function` of `record` gets `data`; `work` is laid out there first."""

    function: str
    data: Json
    work: Tree | None
    name: str
    sending: Sending
    names: FileNames = NOTHING  # of the files that may come back


def try_places(
    places: Sequence[ExecutionPlace],
    ask: Callable[[ExecutionPlace], _T],
    locally: Callable[[], _T],
    progress: Progress,
) -> _T:
    """Return the result of the first place that can do the work. Raises the error of the last place if none can."""
    lost = False
    for place, remaining in zip(places, range(len(places) - 1, -1, -1), strict=True):
        try:
            return locally() if place.is_local else ask(place)
        except (PlaceUnreachable, PlaceLost) as fault:
            if not remaining or (lost and isinstance(fault, PlaceLost)):
                raise
            lost = lost or isinstance(fault, PlaceLost)
            progress.fail("lost" if isinstance(fault, PlaceLost) else "not reached")
            progress.note(f"{fault.message}; the next place is tried")
    raise UsageError("--on names no place", "--on ssh:HOST")


def do_errand(
    errand: Errand, place: ExecutionPlace, progress: Progress, arrived: Path | None
) -> tuple[Json, bool]:
    """Carry out the errand, and return the result and whether a Ctrl-C here cut it short.

    Files that come back go into `arrived`, also those of a fault.
    """
    with TemporaryFolder("place") as folder, contextlib.ExitStack() as ends:
        connection = Connection(place, Path(folder, "log"), errand.sending.python)
        ends.callback(connection.close)
        files = None
        if arrived is not None:
            files = ReceivedFiles(arrived, errand.names, place.title)
            ends.callback(files.close)
        progress.begin("connect", place.title)
        connection.open(progress)
        version = ".".join(map(str, connection.hello.version))
        progress.end(f"{place.title}: Python {version}")
        connection.start(
            f"profkit.profiling.record:{errand.function}",
            errand.data,
            work=errand.work,
            name=errand.name,
            env=errand.sending.env,
            progress=progress,
        )
        try:
            value = _listen(connection, files, progress)
        finally:
            if files is not None and files.refused:
                progress.note(
                    left_out_line(files.refused, f"no pass writes files of such names, as {place.title} sent")
                )
        if files is not None:
            files.close()  # raises if the end of a file cannot be written: the result is then incomplete
        return value, connection.cancelled


def _listen(connection: Connection, files: ReceivedFiles | None, progress: Progress) -> Json:
    """Show progress and take files until the result comes, and return that.

    Raises PlaceLost for anything else, or where there is no result.
    """
    title = connection.place.title
    for event in connection.events():
        if event["event"] == "progress":
            _show(event, title, progress)
        elif event["event"] == "data" and files is not None:
            files.take(event)
        elif event["event"] == "result":
            value: Json = event.get("value")
            return value
        else:
            raise PlaceLost(f"{title} sent {event['event'][:40]!r}, which was not expected")
    raise PlaceLost(f"{title} sent no result")


def _show(event: Mapping[str, Any], title: str, progress: Progress) -> None:
    """Show the place's progress as progress here; ignore events of any other form."""
    call, words = event.get("call"), event.get("words")
    kinds = _CALLS.get(call) if isinstance(call, str) else None
    if kinds is None or not isinstance(words, list) or len(words) != len(kinds):
        return
    if kinds == (float,):
        if is_finite_number(words[0]):
            progress.tick(words[0])
    elif all(isinstance(word, str) for word in words):
        shown = (f"{title}: {word}" if _LIKE_OURS.match(word) else word for word in words)
        getattr(progress, str(call))(*(word[:_ROOM] for word in shown))
