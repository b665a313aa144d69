"""The profile of an attempt's slowest test, in a process of its own: `python -m profkit.generation.profile_attempt`.

Another device may be profiled at the same time by another one, and what each sees of the devices is its environment.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event

from profkit.core.errors import Interrupted, ProfkitError
from profkit.core.process import run
from profkit.core.progress import Silent
from profkit.core.run_folder import read_run
from profkit.core.types import EvaluationDocument, RunDocument, TestResult
from profkit.kernels.evaluation.journal import read_document, read_request
from profkit.kernels.evaluation.results.outputs import write_results
from profkit.profiling.profile_tests import profile_tests

SLOWEST = (("slowest", 1),)
MOST_SECONDS = 1800.0


def profile_attempt(
    folder: Path, depth: str, env: Mapping[str, str], cancel: Event
) -> tuple[TestResult, RunDocument] | None:
    """The slowest test of the evaluation in `folder` with its run; None where there is no whole one.

    Raises Interrupted where `cancel` was set.
    """
    command = (sys.executable, "-m", "profkit.generation.profile_attempt", str(folder), depth)
    run(command, env=env, log=folder / "logs" / "profile.log", timeout=MOST_SECONDS, cancel=cancel)
    return read_profile(read_document(folder), folder)


def read_profile(document: EvaluationDocument, folder: Path) -> tuple[TestResult, RunDocument] | None:
    """The test that has a profile, and its run; None where there is none that can be read."""
    for result in document.results:
        if result.profile is not None:
            try:
                profiled = read_run(folder / result.profile)
            except ProfkitError:
                continue
            return result, profiled
    return None


def main(argv: Sequence[str]) -> int:
    """Profile the slowest test of the evaluation in the folder `argv[0]`, as deep as `argv[1]`; the exit code."""
    folder = Path(argv[0])
    try:
        profile_tests(read_request(folder), read_document(folder), SLOWEST, argv[1], Silent(), write_results)
    except Interrupted:
        return 130
    except ProfkitError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
