"""`--on`: profile, plan, record and doctor at another place, with results here as the same files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path

from profkit.core.codec import from_plain_data
from profkit.core.errors import (
    Interrupted,
    MachineError,
    ProfkitError,
    UnreadableReport,
    UsageError,
    WorkloadError,
)
from profkit.core.files.safe_folder import arriving, chown_to_sudo_user, replace_into, without_links
from profkit.core.progress import Progress
from profkit.core.run_folder import (
    FILE_NAME,
    clean_name,
    create_run_folder,
    read_run,
    short_path,
    write_run,
)
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.core.types import Check, Plan, RunDocument, Workload
from profkit.execution.places.connection import PlaceLost, PlaceUnreachable
from profkit.execution.places.files import RUN_PARTS, Sending, refused_with, workload_tree
from profkit.execution.places.kinds import ExecutionPlace
from profkit.profiling.elsewhere.errand import Errand, do_errand, try_places
from profkit.profiling.evaluate_targets import judge_document, targets_for
from profkit.profiling.profile import (
    ProfileOptions,
    check_options,
    make_plan,
    profile_workload,
    write_reports,
)
from profkit.profiling.record import RecordOptions, check_target, find_recorder, record_report
from profkit.profiling.revision import read_revision
from profkit.profiling.workload import CALLER, check_input, default_name

_STAYS = ("output", "targets")  # options that name files of this machine


def profile_elsewhere(
    options: ProfileOptions, places: Sequence[ExecutionPlace], sending: Sending, progress: Progress
) -> tuple[RunDocument, Path]:
    """As `profile_workload`, at the first of the places that can. Raises also PlaceUnreachable and PlaceLost."""
    check_options(options)
    errand = _errand_of("profile", options, sending)

    def bring(place: ExecutionPlace) -> tuple[RunDocument, Path]:
        begun = datetime.now()
        with arriving(options.output) as arrived:
            try:
                do_errand(errand, place, progress, arrived)
            except (PlaceLost, PlaceUnreachable, UnreadableReport):  # nothing of what is refused is used
                raise
            except ProfkitError as fault:
                if (arrived / FILE_NAME).is_file():
                    fault.run = _keep(arrived, options, place, begun, progress)[1]
                raise
            return _keep(arrived, options, place, begun, progress)

    with raise_on_signals():
        return try_places(places, bring, lambda: profile_workload(options, progress), progress)


def plan_elsewhere(
    options: ProfileOptions, places: Sequence[ExecutionPlace], sending: Sending, progress: Progress
) -> Plan:
    """As `make_plan`, for the machine of the first place that answers."""
    check_options(options)
    errand = _errand_of("plan", options, sending)

    def ask(place: ExecutionPlace) -> Plan:
        answer = do_errand(errand, place, progress, None)
        with refused_with(place.title):
            return from_plain_data(Plan, answer, "the plan")

    return try_places(places, ask, lambda: make_plan(options), progress)


def record_elsewhere(
    options: RecordOptions, places: Sequence[ExecutionPlace], sending: Sending, progress: Progress
) -> Path:
    """As `record_report`."""
    check_target(options.report, options.force, find_recorder(options.tool))
    errand = _errand_of("record", options, sending)

    def bring(place: ExecutionPlace) -> Path:
        with arriving(options.report.absolute().parent) as arrived:
            found = arrived / clean_name(options.report.name)
            try:
                do_errand(errand, place, progress, arrived)
            except (WorkloadError, Interrupted):  # what the tool had finished all the same
                if found.exists():
                    replace_into(found, options.report)
                raise
            if not found.exists():
                raise MachineError(f"{place.title} left no report")
            replace_into(found, options.report)
            return options.report

    with raise_on_signals():
        return try_places(places, bring, lambda: record_report(options, progress), progress)


def diagnose_elsewhere(
    backend: str, places: Sequence[ExecutionPlace], sending: Sending, progress: Progress
) -> tuple[Check, ...]:
    """As `diagnose`, at the only place. Raises UsageError where there are several."""
    if len(places) != 1:
        raise UsageError("doctor looks at one place at a time", f"--on {places[0].title}")
    errand = Errand("doctor", backend, None, "doctor", sending)
    checks = do_errand(errand, places[0], progress, None)
    with refused_with(places[0].title):
        return from_plain_data(tuple[Check, ...], checks, "the list of checks")


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
    paths = sending.paths
    if options.stdin == CALLER:
        raise UsageError("--stdin - is of this machine: another place is sent a file", "--stdin FILE")
    if options.stdin is not None:
        check_input(options.command, options.stdin)
        data["stdin"] = os.path.relpath(options.stdin)
        paths = (*paths, Path(options.stdin))
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}
    work = workload_tree(options.command, paths)
    name = clean_name(getattr(options, "name", None) or default_name(options.command, options.stdin))
    parts = (data["report"],) if isinstance(options, RecordOptions) else RUN_PARTS
    return Errand(function, plain, work, name, sending, parts)


def _read_arrived(arrived: Path, place: ExecutionPlace) -> RunDocument:
    try:
        return read_run(arrived)
    except UnreadableReport as error:  # by its name in the result: it lies in a folder that is gone by then
        said = error.message.replace(f"{arrived}/", "").replace(str(arrived), "it")
        raise UnreadableReport(f"what {place.title} sent back is no run: {said}") from error


def _keep(
    arrived: Path, options: ProfileOptions, place: ExecutionPlace, begun: datetime, progress: Progress
) -> tuple[RunDocument, Path]:
    """Make a run of what arrived: with this side's commit, judged by this side's targets, with its reports."""
    document = _read_arrived(arrived, place)
    here = Workload(options.command, document.name, str(Path.cwd()))
    with defer_interrupts():
        document = replace(document, revision=read_revision(here), place=place.title)
        folder = create_run_folder(options.output, document.name, document.backend, begun)
        for path in list(arrived.iterdir()):
            replace_into(path, folder / path.name)
        write_run(folder, document)
        if options.targets is not None:
            document = judge_document(document, targets_for(document.backend, options.targets, document.name))
        folder = Path(short_path(without_links(folder)))
        if (why := write_reports(document, folder)) is not None:
            progress.note(why)
        chown_to_sudo_user(folder)
    return document, folder
