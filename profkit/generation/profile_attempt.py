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
from profkit.core.types import RunDocument, TestResult
from profkit.kernels.evaluation.outputs import write_results
from profkit.kernels.evaluation.request import read_document, read_request
from profkit.profiling.drill_down import profile_tests

SLOWEST = (("slowest", 1),)
# What speaks of a kernel on a GPU: 26 s on an H100, and 60 s with what speaks of the host, of which nothing is used.
KERNEL_PASSES = ("trace", "counters", "explain")
MOST_SECONDS = 1800.0


class NoProfile(Exception):
    """There is no profile, and why."""


def profile_attempt(
    folder: Path, depth: str, env: Mapping[str, str], cancel: Event
) -> tuple[TestResult, RunDocument]:
    """The slowest test of the evaluation in `folder` with its run.

    Raises NoProfile where there is no whole one, and Interrupted where `cancel` was set.
    """
    command = (sys.executable, "-m", "profkit.generation.profile_attempt", str(folder), depth)
    log = folder / "profile.log"
    outcome = run(command, env=env, log=log, timeout=MOST_SECONDS, cancel=cancel)
    for result in read_document(folder).results:
        if result.profile is not None:
            try:
                return result, read_run(folder / result.profile)
            except ProfkitError as error:
                raise NoProfile(error.message) from error
    lines = [line for line in outcome.output_tail.splitlines() if line.strip()]
    raise NoProfile(f"{lines[-1].strip()[:200] if lines else outcome.ending()} ({log})")


class _Log(Silent):
    """Progress that only says what is worth a line: why there is no profile."""

    def note(self, text: str) -> None:
        """Into the log."""
        print(text, flush=True)


def main(argv: Sequence[str]) -> int:
    """Profile the slowest test of the evaluation in the folder `argv[0]`, as deep as `argv[1]`; the exit code."""
    folder = Path(argv[0])
    try:
        request, document = read_request(folder), read_document(folder)
        on_gpu = request.settings.device.startswith("cuda")
        passes = KERNEL_PASSES if on_gpu and argv[1] == "standard" else None
        profile_tests(request, document, SLOWEST, argv[1], _Log(), write_results, passes=passes)
    except Interrupted:
        return 130
    except ProfkitError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
