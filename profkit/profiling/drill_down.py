"""A closer look at chosen rows of a table, of a sweep or an evaluation: each through `profkit profile`, and linked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from profkit.analysis.evaluation.scores import farthest_tests, least_speedups, slowest_tests
from profkit.analysis.evaluation.witnesses import bottleneck_of, insight_of
from profkit.analysis.ranking import farthest_from_roofline, slowest_cases
from profkit.core.errors import Interrupted, ProfkitError, Progress, UsageError
from profkit.core.types import CaseResult, EvaluationDocument, RunDocument, SweepDocument, TestResult
from profkit.evaluation.one_test import test_command
from profkit.kernels.evaluation.request import EvaluationRequest
from profkit.kernels.evaluation.run import WriteResults, update_result
from profkit.kernels.sweep.request import SweepRequest
from profkit.kernels.sweep.run import update_case
from profkit.profiling.profile import ProfileOptions, profile_workload
from profkit.sweep.one_case import case_command

FOLDER = "profiles"  # in the table's folder, in which the runs are
Choices: TypeAlias = tuple[tuple[str, int], ...]  # which rows, and how many of them
CASES: Mapping[str, Callable[[SweepDocument, int], tuple[CaseResult, ...]]] = {
    "slowest": slowest_cases,
    "farthest": farthest_from_roofline,
}
TESTS: Mapping[str, Callable[[EvaluationDocument, int], tuple[TestResult, ...]]] = {
    "slowest": slowest_tests,
    "farthest": farthest_tests,
    "slower": least_speedups,
}


def parse_choices(text: str, rows: Literal["cases", "tests"]) -> Choices:
    """`slowest:2,farthest` as (("slowest", 2), ("farthest", 1)). Raises UsageError for what is none."""
    names = CASES if rows == "cases" else TESTS
    examples = " or ".join(f"--profile {name}:2" for name in names)
    choices = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, colon, count = word.partition(":")
        if name not in names or (colon and not (count.isdecimal() and int(count))):
            raise UsageError(f"--profile {text} chooses no {rows}", examples)
        choices.append((name, int(count) if colon else 1))
    if not choices:
        raise UsageError(f"--profile chooses no {rows}", examples)
    return tuple(choices)


def chosen_cases(document: SweepDocument, choices: Choices) -> tuple[CaseResult, ...]:
    """The cases that are meant, each once: the slowest, or those with most time above their roofline."""
    rows = [result for name, count in choices for result in CASES[name](document, count)]
    return tuple({(row.point, row.implementation): row for row in rows}.values())


def chosen_tests(document: EvaluationDocument, choices: Choices) -> tuple[TestResult, ...]:
    """The tests that are meant, each once."""
    rows = [result for name, count in choices for result in TESTS[name](document, count)]
    return tuple({row.test.id: row for row in rows}.values())


def profile_cases(
    request: SweepRequest, document: SweepDocument, choices: Choices, depth: str, progress: Progress
) -> SweepDocument:
    """The sweep with links to a run of each case that was chosen; one that has its run already keeps it.

    A case whose profile fails costs no other one. Raises Interrupted after a Ctrl-C: what is profiled stays linked.
    """
    for result in chosen_cases(document, choices):
        if _has_run(request.folder, result.profile):
            continue
        point = result.point
        options = ProfileOptions(
            command=case_command(result, request.device, request.files, sys.executable),
            backend=request.device,
            depth=depth,
            output=request.folder / FOLDER,
            name=f"{point.operation}-{result.implementation}-{point.shape}-{point.dtype}-{point.direction}",
        )
        label = f"{result.implementation}, {point.name}"
        link, _ = _profile_row(options, label, request.folder, "sweep", choices, progress)
        if link is not None:
            document = update_case(request, replace(result, profile=link), progress)
    return document


def profile_tests(
    request: EvaluationRequest,
    document: EvaluationDocument,
    choices: Choices,
    depth: str,
    progress: Progress,
    write: WriteResults,
    passes: tuple[str, ...] | None = None,
) -> EvaluationDocument:
    """The evaluation with a run of each test that was chosen, and what it says; one that has its run already keeps it.

    `write` writes the files anew after each. `passes`: those alone, of what the depth would do. A test whose profile
    fails costs no other one. Raises Interrupted after a Ctrl-C: what is profiled stays linked.
    """
    rows = chosen_tests(document, choices)
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
        link, run = _profile_row(options, label, request.folder, "evaluate", choices, progress)
        if link is not None:
            found = replace(result, profile=link)
            if run is not None:
                found = replace(found, bottleneck=bottleneck_of(run), insight=insight_of(run))
            document = update_result(request.folder, found, progress, write)
    return document


def _has_run(folder: Path, link: str | None) -> bool:
    return link is not None and (folder / link).is_dir()


def _profile_row(
    options: ProfileOptions, label: str, folder: Path, verb: str, choices: Choices, progress: Progress
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
                f"profkit {verb} --resume {folder} --profile "
                f"{','.join(f'{name}:{count}' for name, count in choices)} --profile-depth {options.depth}",
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
