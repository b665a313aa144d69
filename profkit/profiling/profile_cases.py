"""The story of a closer look: chosen cases of a sweep, each through `profkit profile`, and linked in its results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from profkit.analysis.ranking.ranking import farthest_from_roofline, slowest_cases
from profkit.backends import backend_named
from profkit.core.progress import Progress
from profkit.core.types import CaseResult, SweepDocument
from profkit.kernels.places import from_here
from profkit.kernels.sweep.request import SweepRequest
from profkit.kernels.sweep.run import update_case
from profkit.profiling.drill_down import (
    FOLDER,
    Choices,
    ProfiledElsewhere,
    has_run,
    parse_choices,
    profile_row,
)
from profkit.profiling.profile import ProfileOptions
from profkit.sweep.one_case import case_command

_CHOICES: Mapping[str, Callable[[SweepDocument, int], tuple[CaseResult, ...]]] = {
    "slowest": slowest_cases,
    "farthest": farthest_from_roofline,
}


def parse_case_choice(text: str) -> Choices:
    """`slowest:2,farthest` as (("slowest", 2), ("farthest", 1)). Raises UsageError for what is none."""
    return parse_choices(text, _CHOICES, "cases")


def chosen_cases(document: SweepDocument, choices: Choices) -> tuple[CaseResult, ...]:
    """The cases that are meant, each once: the slowest, or those with most time above their roofline."""
    results = [result for name, count in choices for result in _CHOICES[name](document, count)]
    return tuple({(result.point, result.implementation): result for result in results}.values())


def profile_cases(
    request: SweepRequest,
    document: SweepDocument,
    choices: Choices,
    depth: str,
    progress: Progress,
    elsewhere: ProfiledElsewhere | None = None,
) -> SweepDocument:
    """The sweep with links to a run of each case that was chosen; one that has its run already keeps it.

    `elsewhere`: a case is profiled where it was measured, or at another of these places.
    A case whose profile fails costs no other one. Raises Interrupted after a Ctrl-C: what is profiled stays linked.
    """
    for result in chosen_cases(document, choices):
        if has_run(request.folder, result.profile):
            continue
        label = f"{result.implementation}, {result.point.name}"
        where = elsewhere and elsewhere.first_at(result.place, [Path(file) for file in request.files])
        options = _profile_options(request, result, depth, there=where is not None)
        run = profile_row(options, label, request.folder, "sweep", choices, progress, where)
        if run is not None:
            document = update_case(request, replace(result, profile=run.link), progress)
    return document


def _profile_options(request: SweepRequest, result: CaseResult, depth: str, *, there: bool) -> ProfileOptions:
    point = result.point
    files = [from_here(file) for file in request.files] if there else request.files
    return ProfileOptions(
        command=case_command(result, request.device, files, "python" if there else sys.executable),
        backend=request.device,
        depth=depth,
        output=request.folder / FOLDER,
        name=f"{point.operation}-{result.implementation}-{point.shape}-{point.dtype}-{point.direction}",
        cold=backend_named(request.device).has_device and request.timing.cold,
    )
