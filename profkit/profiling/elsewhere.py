"""`--on`: the same work at another place, and its results back here as the same files.

Places are tried in their order. One that cannot be reached is passed over; where the connection is lost, the work is
done once more at the next place, and only once: what makes two machines go away is more likely the work.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from profkit.core.codec import from_plain_data
from profkit.core.errors import Interrupted, MachineError, ProfkitError, UsageError, WorkloadError
from profkit.core.progress import Progress
from profkit.core.run_folder import (
    FILE_NAME,
    chown_to_sudo_user,
    clean_name,
    create_run_folder,
    read_run,
    write_run,
)
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.core.types import Check, Json, Plan, RunDocument, Workload
from profkit.execution.places.connection import Connection, PlaceLost, PlaceUnreachable
from profkit.execution.places.files import Sending, Tree, workload_tree
from profkit.execution.places.place import Place
from profkit.execution.places.received import ReceivedFiles
from profkit.profiling.evaluate_targets import judge_document, targets_for
from profkit.profiling.profile import (
    ProfileOptions,
    check_options,
    make_plan,
    profile_workload,
    short_path,
    write_reports,
)
from profkit.profiling.record import RecordOptions, check_target, find_recorder, record_report
from profkit.profiling.revision import read_revision
from profkit.profiling.workload import default_name

_T = TypeVar("_T")
_STAYS = ("output", "targets")  # options that name files of this machine
_CALLS = {"begin": (str, str), "tick": (float,), "move": (str,), "end": (str,), "note": (str,)}
_ROOM = 1000  # characters of a line of progress


@dataclass(frozen=True)
class Errand:
    """One piece of work for a place. `function` of `at_place` gets `data`; `work` is laid out there before."""

    function: str
    data: Json
    work: Tree | None
    name: str
    sending: Sending


def profile_elsewhere(
    options: ProfileOptions, places: Sequence[Place], sending: Sending, progress: Progress
) -> tuple[RunDocument, Path]:
    """As `profile_workload`, at the first of the places that can. Raises also PlaceUnreachable and PlaceLost."""
    check_options(options)
    errand = _errand_of("profile", options, sending)
    options.output.mkdir(parents=True, exist_ok=True)

    def bring(place: Place) -> tuple[RunDocument, Path]:
        begun = datetime.now()
        with _arriving(options.output) as arrived:
            try:
                _do(errand, place, progress, arrived)
            except (PlaceLost, PlaceUnreachable):
                raise
            except ProfkitError as fault:
                if (arrived / FILE_NAME).is_file():
                    fault.run = _keep(arrived, options, place, begun, progress)[1]
                    fault.message += f"\n(run: {fault.run})"
                raise
            return _keep(arrived, options, place, begun, progress)

    with raise_on_signals():
        return _try_places(places, bring, lambda: profile_workload(options, progress), progress)


def plan_elsewhere(
    options: ProfileOptions, places: Sequence[Place], sending: Sending, progress: Progress
) -> Plan:
    """As `make_plan`, for the machine of the first place that answers."""
    check_options(options)
    errand = _errand_of("plan", options, sending)

    def ask(place: Place) -> Plan:
        return from_plain_data(Plan, _do(errand, place, progress, None))

    return _try_places(places, ask, lambda: make_plan(options), progress)


def record_elsewhere(
    options: RecordOptions, places: Sequence[Place], sending: Sending, progress: Progress
) -> Path:
    """As `record_report`."""
    check_target(options.report, options.force, find_recorder(options.tool))
    errand = _errand_of("record", options, sending)

    def bring(place: Place) -> Path:
        with _arriving(options.report.absolute().parent) as arrived:
            found = arrived / clean_name(options.report.name)
            try:
                _do(errand, place, progress, arrived)
            except (WorkloadError, Interrupted):  # what the tool had finished all the same
                if found.exists():
                    _replace(found, options.report)
                raise
            if not found.exists():
                raise MachineError(f"{place.title} left no report")
            _replace(found, options.report)
            return options.report

    with raise_on_signals():
        return _try_places(places, bring, lambda: record_report(options, progress), progress)


def diagnose_elsewhere(
    backend: str, places: Sequence[Place], sending: Sending, progress: Progress
) -> tuple[Check, ...]:
    """As `diagnose`, at the only place. Raises UsageError where there are several."""
    if len(places) != 1:
        raise UsageError("doctor looks at one place at a time", f"--on {places[0].title}")
    errand = Errand("doctor", backend, None, "doctor", sending)
    checks = _do(errand, places[0], progress, None)
    if not isinstance(checks, list):
        raise PlaceLost(f"{places[0].title} said no result")
    return tuple(from_plain_data(Check, check, f"[{at}]") for at, check in enumerate(checks))


def _errand_of(function: str, options: ProfileOptions | RecordOptions, sending: Sending) -> Errand:
    """The work that options of this machine stand for; its files are read now. Raises UsageError."""
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
    return Errand(function, plain, work, name, sending)


def _try_places(
    places: Sequence[Place], ask: Callable[[Place], _T], locally: Callable[[], _T], progress: Progress
) -> _T:
    """What the first place gives that can."""
    lost = False
    for place, others in zip(places, range(len(places) - 1, -1, -1), strict=True):
        try:
            return locally() if place.is_local else ask(place)
        except (PlaceUnreachable, PlaceLost) as fault:
            if not others or (lost and isinstance(fault, PlaceLost)):
                raise
            lost = lost or isinstance(fault, PlaceLost)
            progress.end("lost" if isinstance(fault, PlaceLost) else "not reached")
            progress.note(f"{fault.message}; the next place is tried")
    raise UsageError("--on names no place", "--on ssh:HOST")


def _do(errand: Errand, place: Place, progress: Progress, arrived: Path | None) -> Json:
    """Carry out the errand; files that come back go into `arrived`. The result."""
    with tempfile.NamedTemporaryFile(prefix="profkit-", suffix=".log") as log:
        connection = Connection(place, Path(log.name), errand.sending.python)
        files = ReceivedFiles(arrived) if arrived is not None else None
        try:
            _connect(connection, errand, progress)
            connection.start(
                f"profkit.profiling.at_place:{errand.function}",
                errand.data,
                work=errand.work,
                name=errand.name,
                env=errand.sending.env,
            )
            for event in connection.events():
                if event["event"] == "progress":
                    _show(event, progress)
                elif event["event"] in ("file", "data") and files is not None:
                    files.take(event)
                elif event["event"] == "result":
                    if files is not None:
                        files.finish()
                    return event.get("value")
                else:
                    raise PlaceLost(f"{place.title} said {event['event']!r}, which was not asked")
            raise PlaceLost(f"{place.title} said no result")
        finally:
            if files is not None:
                files.close()
            connection.close()


def _connect(connection: Connection, errand: Errand, progress: Progress) -> None:
    progress.begin("connect", connection.place.title)
    connection.open()
    version = ".".join(map(str, connection.hello["version"]))
    progress.end(f"{connection.place.title}: Python {version}")
    connection.stage(errand.work, progress)


def _show(event: Mapping[str, Any], progress: Progress) -> None:
    """Progress there is progress here; anything else that calls itself so is passed over."""
    kinds, words = _CALLS.get(event.get("call", "")), event.get("words")
    if kinds is None or not isinstance(words, list) or len(words) != len(kinds):
        return
    if all(
        isinstance(word, (int, float) if kind is float else kind)
        for word, kind in zip(words, kinds, strict=True)
    ):
        getattr(progress, event["call"])(*(word[:_ROOM] if isinstance(word, str) else word for word in words))


class _arriving:  # noqa: N801 - a block
    """A folder beside the results for what arrives, gone afterwards: a result is moved, not copied."""

    def __init__(self, beside: Path) -> None:
        self._beside = beside

    def __enter__(self) -> Path:
        self._folder = Path(tempfile.mkdtemp(prefix=".arriving-", dir=self._beside))
        return self._folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _keep(
    arrived: Path, options: ProfileOptions, place: Place, begun: datetime, progress: Progress
) -> tuple[RunDocument, Path]:
    """Make a run of what arrived: with this side's commit, judged by this side's targets, with its reports."""
    document = read_run(arrived)
    here = Workload(options.command, document.name, str(Path.cwd()))
    with defer_interrupts():
        document = replace(document, revision=read_revision(here), place=place.title)
        folder = create_run_folder(options.output, document.name, document.backend, begun)
        for path in arrived.iterdir():
            _replace(path, folder / path.name)
        write_run(folder, document)
        if options.targets is not None:
            document = judge_document(document, targets_for(document.backend, options.targets, document.name))
        folder = Path(short_path(folder.resolve()))
        if (why := write_reports(document, folder)) is not None:
            progress.note(why)
        chown_to_sudo_user(folder)
    return document, folder


def _replace(source: Path, target: Path) -> None:
    """Move a file or a folder to where there may be one."""
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    source.replace(target)
