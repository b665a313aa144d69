"""The story of a closer look at an evaluation: chosen tests, each through `profkit profile`, and linked in its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from profkit.analysis.evaluation.scores import farthest_tests, least_speedups, slowest_tests
from profkit.analysis.evaluation.witnesses import bottleneck_of, insight_of
from profkit.core.progress import Progress
from profkit.core.types import EvaluationDocument, TestResult
from profkit.evaluation.one_test import test_command
from profkit.kernels.evaluation.journal import FILE
from profkit.kernels.evaluation.request import EvaluationRequest
from profkit.kernels.evaluation.run import WriteResults, update_result
from profkit.profiling.drill_down import (
    FOLDER,
    Choices,
    ProfiledElsewhere,
    has_run,
    parse_choices,
    profile_row,
)
from profkit.profiling.profile import ProfileOptions

_CHOICES: Mapping[str, Callable[[EvaluationDocument, int], tuple[TestResult, ...]]] = {
    "slowest": slowest_tests,
    "farthest": farthest_tests,
    "slower": least_speedups,
}


def parse_test_choice(text: str) -> Choices:
    """`slowest:2,slower` as (("slowest", 2), ("slower", 1)). Raises UsageError for what is none."""
    return parse_choices(text, _CHOICES, "tests")


def chosen_tests(document: EvaluationDocument, choices: Choices) -> tuple[TestResult, ...]:
    """The tests that are meant, each once."""
    results = [result for name, count in choices for result in _CHOICES[name](document, count)]
    return tuple({result.test.id: result for result in results}.values())


def profile_tests(
    request: EvaluationRequest,
    document: EvaluationDocument,
    choices: Choices,
    depth: str,
    progress: Progress,
    write: WriteResults,
    elsewhere: ProfiledElsewhere | None = None,
    passes: tuple[str, ...] | None = None,
) -> EvaluationDocument:
    """The evaluation with a run of each test that was chosen, and what it says; one that has its run already keeps it.

    `write` writes the files anew after each. `passes`: those alone, of what the depth would do. A test whose profile
    fails costs no other one. Raises Interrupted after a Ctrl-C: what is profiled stays linked.
    """
    results = chosen_tests(document, choices)
    if not results:
        progress.note("no test was profiled: none of those that were asked for was timed and is correct")
    settings = request.settings
    files = [request.folder / FILE, *map(Path, (*settings.source.paths, settings.suite_path))]
    where = elsewhere and elsewhere.first_at(None, [file for file in files if file.name])
    for result in results:
        if has_run(request.folder, result.profile):
            continue
        label = f"{result.test.operation}, {result.test.arguments}"
        options = replace(_profile_options(request, result, depth, there=where is not None), passes=passes)
        run = profile_row(options, label, request.folder, "evaluation", choices, progress, where)
        if run is None:
            continue
        found = replace(result, profile=run.link)
        if run.document is not None:
            found = replace(found, bottleneck=bottleneck_of(run.document), insight=insight_of(run.document))
        document = update_result(request.folder, found, progress, write)
    return document


def _profile_options(
    request: EvaluationRequest, result: TestResult, depth: str, *, there: bool
) -> ProfileOptions:
    return ProfileOptions(
        command=test_command(request.folder, result.test, there=there),
        backend=request.settings.device.partition(":")[0],  # cuda:0 is torch's name of a device
        depth=depth,
        output=request.folder / FOLDER,
        name=f"{result.test.operation}-{result.test.id}",
    )
