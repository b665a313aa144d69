"""A closer look at chosen rows of a table, of a sweep or an evaluation: each through `profkit profile`, and linked."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from profkit.analysis.evaluation.scores import slowest_tests
from profkit.analysis.evaluation.witnesses import bottleneck_of, insight_of
from profkit.analysis.ranking import slowest_cases
from profkit.backends import backend_named
from profkit.core.errors import Interrupted, ProfkitError, Progress
from profkit.core.types import EvaluationDocument, RunDocument, SweepDocument
from profkit.evaluation.one_test import test_command
from profkit.kernels.evaluation.request import EvaluationRequest
from profkit.kernels.evaluation.run import WriteResults, update_result
from profkit.kernels.sweep.request import SweepRequest
from profkit.kernels.sweep.run import update_case
from profkit.profiling.profile import ProfileOptions, profile_workload
from profkit.sweep.one_case import case_command

FOLDER = "profiles"  # in the table's folder, in which the runs are


def profile_cases(
    request: SweepRequest, document: SweepDocument, count: int, depth: str, progress: Progress
) -> SweepDocument:
    """The sweep with links to a run of each of the `count` slowest cases; one that has its run already keeps it.

    A case whose profile fails costs no other one. Raises Interrupted after a Ctrl-C: what is profiled stays linked.
    """
    for result in slowest_cases(document, count):
        if _has_run(request.folder, result.profile):
            continue
        point = result.point
        options = ProfileOptions(
            command=case_command(result, request.device, request.files, sys.executable),
            backend=request.device,
            depth=depth,
            output=request.folder / FOLDER,
            name=f"{point.operation}-{result.implementation}-{point.shape}-{point.dtype}-{point.direction}",
            cold=backend_named(request.device).has_device and request.timing.cold,
        )
        label = f"{result.implementation}, {point.name}"
        link, _ = _profile_row(options, label, request.folder, "sweep", count, progress)
        if link is not None:
            document = update_case(request, replace(result, profile=link), progress)
    return document


def profile_tests(
    request: EvaluationRequest,
    document: EvaluationDocument,
    count: int,
    depth: str,
    progress: Progress,
    write: WriteResults,
    passes: tuple[str, ...] | None = None,
) -> EvaluationDocument:
    """The evaluation with a run of each of the `count` slowest tests, and what it says; one that has its run keeps it.

    `write` writes the files anew after each. `passes`: those alone, of what the depth would do. A test whose profile
    fails costs no other one. Raises Interrupted after a Ctrl-C: what is profiled stays linked.
    """
    rows = slowest_tests(document, count)
    if not rows:
        progress.note("no test was profiled: none of those that were asked for was timed and is correct")
    for result in rows:
        if _has_run(request.folder, result.profile):
            continue
        options = ProfileOptions(
            command=test_command(request.folder, result.test),
            backend=request.settings.device.partition(":")[0],  # cuda:0 is torch's name of a device
            depth=depth,
            output=request.folder / FOLDER,
            name=f"{result.test.operation}-{result.test.id}",
            passes=passes,
        )
        label = f"{result.test.operation}, {result.test.arguments}"
        link, run = _profile_row(options, label, request.folder, "evaluate", count, progress)
        if link is not None:
            found = replace(result, profile=link)
            if run is not None:
                found = replace(found, bottleneck=bottleneck_of(run), insight=insight_of(run))
            document = update_result(request.folder, found, progress, write)
    return document


def _has_run(folder: Path, link: str | None) -> bool:
    return link is not None and (folder / link).is_dir()


def _profile_row(
    options: ProfileOptions, label: str, folder: Path, verb: str, count: int, progress: Progress
) -> tuple[str | None, RunDocument | None]:
    """Profile the program of one row of the table that `verb` made in `folder`: its run as the folder knows it.

    A profile that fails costs this row alone: there is no document, or no run either. Raises Interrupted after a
    Ctrl-C: what is half is not linked.
    """
    progress.note(f"profile of {label}")
    document: RunDocument | None = None
    try:
        document, run = profile_workload(options, progress)
        if document.state == "interrupted":
            fault = Interrupted(
                "interrupted; the table is kept, and the profiles that were finished are linked",
                f"profkit {verb} --resume {folder} --profile {count} --profile-depth {options.depth}",
            )
            fault.run = run
            raise fault
    except ProfkitError as fault:
        if fault.exit_code == 130:
            raise
        progress.note(f"no profile of {label}: {fault.message}")
        if fault.run is None:
            return None, None
        run = fault.run
    return Path(os.path.relpath(run, folder)).as_posix(), document
