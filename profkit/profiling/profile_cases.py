"""The story of a closer look: chosen cases of a sweep, each through `profkit profile`, and linked in its results."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from profkit.analysis.ranking.ranking import farthest_from_roofline, slowest_cases
from profkit.backends import backend_named
from profkit.core.errors import Interrupted, ProfkitError, UsageError
from profkit.core.progress import Progress
from profkit.core.types import CaseResult, SweepDocument
from profkit.kernels.sweep.request import SweepRequest
from profkit.kernels.sweep.run import update_case
from profkit.profiling.profile import ProfileOptions, profile_workload
from profkit.sweep.one_case import case_command

FOLDER = "profiles"
_CHOICES: Mapping[str, Callable[[SweepDocument, int], tuple[CaseResult, ...]]] = {
    "slowest": slowest_cases,
    "farthest": farthest_from_roofline,
}


def parse_case_choice(text: str) -> tuple[tuple[str, int], ...]:
    """`slowest:2,farthest` as (("slowest", 2), ("farthest", 1)). Raises UsageError for what is none."""
    choices = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, colon, count = word.partition(":")
        if name not in _CHOICES or (colon and not (count.isdecimal() and int(count))):
            raise UsageError(
                f"--profile {text} chooses no cases", "--profile slowest:2 or --profile farthest:2"
            )
        choices.append((name, int(count) if colon else 1))
    if not choices:
        raise UsageError("--profile chooses no cases", "--profile slowest:2 or --profile farthest:2")
    return tuple(choices)


def chosen_cases(document: SweepDocument, choices: tuple[tuple[str, int], ...]) -> tuple[CaseResult, ...]:
    """The cases that are meant, each once: the slowest, or those with most time above their roofline."""
    results = [result for name, count in choices for result in _CHOICES[name](document, count)]
    return tuple({(result.point, result.implementation): result for result in results}.values())


def profile_cases(
    request: SweepRequest,
    document: SweepDocument,
    choices: tuple[tuple[str, int], ...],
    depth: str,
    progress: Progress,
) -> SweepDocument:
    """The sweep with links to a run of each case that was chosen; one that has its run already keeps it.

    A case whose profile fails costs no other one. Raises Interrupted after a Ctrl-C: what is profiled stays linked.
    """
    for result in chosen_cases(document, choices):
        if result.profile is not None and (request.folder / result.profile).is_dir():
            continue
        progress.note(f"profile of {result.implementation}, {result.point.name}")
        try:
            run, folder = profile_workload(_profile_options(request, result, depth), progress)
            if run.state == "interrupted":
                raise Interrupted(
                    f"interrupted; the sweep is kept, and the profiles that were finished are linked\n(run: {folder})",
                    f"profkit sweep --resume {request.folder} --profile {_format_choices(choices)} "
                    f"--profile-depth {depth}",
                )
        except ProfkitError as fault:
            if fault.exit_code == 130:
                raise
            progress.note(f"no profile of {result.implementation}, {result.point.name}: {fault.message}")
            if fault.run is None:
                continue
            folder = fault.run
        link = os.path.relpath(folder, request.folder)
        document = update_case(request, replace(result, profile=Path(link).as_posix()), progress)
    return document


def _format_choices(choices: tuple[tuple[str, int], ...]) -> str:
    return ",".join(f"{name}:{count}" for name, count in choices)


def _profile_options(request: SweepRequest, result: CaseResult, depth: str) -> ProfileOptions:
    point = result.point
    return ProfileOptions(
        command=case_command(result, request.device, request.files, request.python),
        backend=request.device,
        depth=depth,
        output=request.folder / FOLDER,
        name=f"{point.operation}-{result.implementation}-{point.shape}-{point.dtype}-{point.direction}",
        cold=backend_named(request.device).has_device and request.timing.cold,
    )
