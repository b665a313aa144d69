"""Profiles the slowest tests of an evaluation through `profkit profile`, and links the runs."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

from profkit.analysis.evaluation.scores import slowest_tests
from profkit.analysis.evaluation.witnesses import bottleneck_of, insight_of
from profkit.core.errors import Interrupted, ProfkitError, Progress
from profkit.core.types import EvaluationDocument, RunDocument
from profkit.evaluation.one_test import test_command
from profkit.kernels.evaluation.request import EvaluationRequest
from profkit.kernels.evaluation.run import WriteResults, update_result
from profkit.profiling.profile import ProfileOptions, profile_workload

FOLDER = "profiles"  # in the evaluation's folder, in which the runs are


def profile_tests(
    request: EvaluationRequest,
    document: EvaluationDocument,
    count: int,
    depth: str,
    progress: Progress,
    write: WriteResults,
    passes: tuple[str, ...] | None = None,
) -> EvaluationDocument:
    """Profile the `count` slowest tests, and return the evaluation with their runs and bottlenecks.

    A test that already has a run keeps it. `write` writes the files again after each test. `passes` limits the passes
    of the depth to these. A test whose profile fails does not stop the others. Raises Interrupted after a Ctrl-C;
    finished runs stay linked.
    """
    folder, rows = request.folder, slowest_tests(document, count)
    if not rows:
        progress.note("no test was profiled: no test is correct and timed")
    for result in rows:
        if result.profile is not None and (folder / result.profile).is_dir():
            continue
        options = ProfileOptions(
            command=test_command(folder, result.test),
            backend=request.settings.device.partition(":")[0],  # cuda:0 is torch's name of a device
            depth=depth,
            output=folder / FOLDER,
            name=f"{result.test.operation}-{result.test.id}",
            passes=passes,
        )
        progress.note(f"profile of {result.test.operation}, {result.test.arguments}")
        link, run = _profile(options, folder, count, progress)
        if link is not None:
            updated = replace(result, profile=link)
            if run is not None:
                updated = replace(updated, bottleneck=bottleneck_of(run), insight=insight_of(run))
            document = update_result(folder, updated, progress, write)
    return document


def _profile(
    options: ProfileOptions, folder: Path, count: int, progress: Progress
) -> tuple[str | None, RunDocument | None]:
    """Profile one test, and return its run, relative to `folder`, and its document.

    If the profile fails, both are None, or only the document. Raises Interrupted after a Ctrl-C: an incomplete run is
    not linked.
    """
    document: RunDocument | None = None
    try:
        document, run = profile_workload(options, progress)
        if document.state == "interrupted":
            fault = Interrupted(
                "interrupted; the evaluation is kept, and the profiles that were finished are linked",
                f"profkit evaluate --resume {shlex.quote(str(folder))} --profile {count} "
                f"--profile-depth {options.depth}",
            )
            fault.run = run
            raise fault
    except ProfkitError as fault:
        if fault.exit_code == 130:
            raise
        progress.note(f"no profile: {fault.message}")
        if fault.run is None:
            return None, None
        run = fault.run
    return Path(os.path.relpath(run, folder)).as_posix(), document
