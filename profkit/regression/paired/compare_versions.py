"""Two versions of a program in one step: made ready, run in turn until it is decided, and then asked why."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from profkit.core.errors import MachineError, UsageError
from profkit.core.files.regular import read_bounded_text
from profkit.core.progress import Progress
from profkit.core.types import Change, Comparison, ComparisonOutcome, RunDocument, Side
from profkit.regression.compare import CompareOptions, compare
from profkit.regression.compare.outcome import outcome_of, worst_first
from profkit.regression.paired.blame import blamed_lines
from profkit.regression.paired.checkout import CheckoutSpec, NoCheckout
from profkit.regression.paired.decide import FIRST_ROUNDS
from profkit.regression.paired.first_runs import warm_up
from profkit.regression.paired.interleave import PairedOptions, PairedResult, PairedRuns
from profkit.regression.paired.version import Version, version_of
from profkit.regression.profile_process import ProfileRequest, profile_once

# What a shell gives a meaning; without any of these a command is started as it is.
_OF_A_SHELL = re.compile(r"[|&;<>()$`*?~{}\n]")
LAST_LINES = 20  # of a failed setup that are shown
CAUSE_SECONDS = 300.0  # for the passes of one version that say why
CAUSE_PASSES = ("stacks", "cprofile", "counters", "trace")


@dataclass(frozen=True)
class VersionsRequest:
    """What is compared: `command` at the commits `base` and `head` (None: the files as they are), or two commands."""

    command: tuple[str, ...] = ()
    base: str | None = None
    head: str | None = None
    commands: tuple[str, str] | None = None
    cwd: Path = field(default_factory=Path.cwd)
    env: Mapping[str, str] = field(default_factory=dict)  # for the command of a commit
    checkout: CheckoutSpec = field(default_factory=CheckoutSpec)
    pairs: PairedOptions = field(default_factory=PairedOptions)
    causes: bool = True
    backend: str = "auto"


@dataclass(frozen=True)
class VersionsResult:
    """The comparison; `interrupted`: a Ctrl-C ended the runs or the search for the reason: it is of what there was."""

    comparison: Comparison
    interrupted: bool = False


def compare_versions(request: VersionsRequest, progress: Progress) -> VersionsResult:
    """Run both in turn and say what is different, and why.

    Raises UsageError where a version cannot be had or runs the other's code, WorkloadError where one fails.
    """
    with (
        tempfile.TemporaryDirectory(prefix="profkit-versions-", ignore_cleanup_errors=True) as name,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(name)
        try:
            progress.begin("prepare", "both versions")
            first, second = stack.enter_context(_both(request, folder, progress))
            progress.end(f"{first.name}; {second.name}")
        except NoCheckout as fault:
            progress.end("failed")
            raise _with_log(fault) from None
        return _compare_ready(request, first, second, folder, progress)


def _with_log(fault: NoCheckout) -> UsageError:
    """The fault as it is shown: its log is gone with the temporary folder, so the log's end is said at once."""
    if fault.log is None:
        return UsageError(fault.reason, fault.fix)
    said = ""
    with contextlib.suppress(OSError, ValueError):
        said = "\n".join(read_bounded_text(fault.log).splitlines()[-LAST_LINES:])
    return UsageError(
        f"{fault.reason}\nthe last lines of what it said:\n{said}" if "\n" in said else fault.reason
    )


def _compare_ready(
    request: VersionsRequest, first: Version, second: Version, folder: Path, progress: Progress
) -> VersionsResult:
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    progress.begin("first runs", "not counted: they fill caches")
    notes = warm_up(first, second, request.pairs, folder, progress)
    progress.end("done")
    progress.begin("pairs", f"in random order, at most {request.pairs.budget:.0f} s")
    result = PairedRuns(first, second, request.pairs, folder, progress).run()
    changes = tuple(_with_fix(change, request) for change in result.changes)
    progress.end(_summary(result))
    documents: Sequence[RunDocument] = ()
    interrupted = result.interrupted
    if request.causes and not result.interrupted and any(_needs_cause(change) for change in changes):
        progress.note(
            outcome_of(changes, (), {}, asked=False)[1]
        )  # the answer is not kept waiting for its reason
        try:
            documents = _profile_both(request, (first, second), folder, progress)
        except KeyboardInterrupt:  # what was decided is not lost with the reason for it
            progress.end("interrupted")
            interrupted = True
            notes = [*notes, "Interrupted before the reason was found; the times above are complete."]
    sides = _side_of(first, started), _side_of(second, started)
    comparison = _comparison_of(sides, changes, result, documents, tuple(notes))
    if comparison.outcome == "regressed":
        comparison = replace(comparison, blamed=blamed_lines(documents, first, second))
    return VersionsResult(comparison, interrupted)


@contextlib.contextmanager
def _both(request: VersionsRequest, folder: Path, progress: Progress) -> Iterator[tuple[Version, Version]]:
    if request.commands is not None:
        yield _of_command(request.commands[0], request.cwd), _of_command(request.commands[1], request.cwd)
        return
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(
                version_of(
                    name,
                    request.command,
                    request.cwd,
                    request.checkout,
                    folder / side,
                    progress.tick,
                    request.env,
                )
            )
            for name, side in ((request.base, "base"), (request.head, "head"))
        )
        if first.commit == second.commit and not second.dirty:
            raise NoCheckout(
                f"{first.name} and {second.name} are the same commit, and no file was changed since",
                "--base HEAD~1",
            )
        yield first, second


def _of_command(text: str, cwd: Path) -> Version:
    """A command line as it would be typed: with a shell where it needs one."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{text!r} is no command: {error}") from None
    if not words:
        raise UsageError("an empty command", "--a 'python a.py' --b 'python b.py'")
    return Version(text, ("sh", "-c", text) if _OF_A_SHELL.search(text) else words, cwd)


# ---------------------------------------------------------------- the result


def _needs_cause(change: Change) -> bool:
    return change.word == "different"


def _with_fix(change: Change, request: VersionsRequest) -> Change:
    if change.word != "ambiguous":
        return change
    return replace(change, fix=f"--budget {2 * request.pairs.budget:.0f}, or a larger --floor")


def _summary(result: PairedResult) -> str:
    words = [
        f"{change.scope.name or 'time'} {change.word}" for change in result.changes if change.unit == "s"
    ]
    text = ", ".join(words) or "not enough pairs"
    return f"{text} after {result.pairing.pairs} pairs" + (", interrupted" if result.interrupted else "")


def _profile_both(
    request: VersionsRequest, versions: tuple[Version, Version], folder: Path, progress: Progress
) -> list[RunDocument]:
    """One run of each under the instruments, beside each other: nothing is timed now. Empty where one failed."""
    progress.begin("why", "one run of each version under the profilers, a minute or more; Ctrl-C ends it")
    cancel = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        futures = [
            pool.submit(
                profile_once, _cause_request(request, version), folder / f"why-{number}", None, cancel
            )
            for number, version in enumerate(versions)
        ]
        begin = time.monotonic()
        try:
            while wait(futures, 0.25).not_done:
                progress.tick(time.monotonic() - begin)
        except BaseException:
            cancel.set()
            raise
    results = [future.result() for future in futures]
    failed = next((result.reason.splitlines()[0] for result in results if result.reason), None)
    progress.end(failed or f"{max(result.seconds for result in results):.1f} s")
    documents = [result.document for result in results if result.document is not None]
    return documents if len(documents) == len(versions) else []


def _cause_request(request: VersionsRequest, version: Version) -> ProfileRequest:
    return ProfileRequest(
        "version",
        version.command,
        backend=request.backend,
        depth="standard",
        passes=CAUSE_PASSES,
        env=version.environment(),
        cwd=version.cwd,
        timeout=request.pairs.run.timeout,
        budget=CAUSE_SECONDS,
    )


def _too_few(result: PairedResult) -> tuple[str, str]:
    """Why nothing can be said, and the budget that the first look at the pairs takes here, half of it to spare."""
    ran = result.pairing
    needed = 1.5 * FIRST_ROUNDS * ran.seconds / max(1, ran.pairs)
    reason = f"Too few pairs in {ran.seconds:.1f} s: {ran.pairs} of at least {FIRST_ROUNDS}."
    return reason, f"--budget {max(math.ceil(needed), math.ceil(2 * ran.budget))}"


def _side_of(version: Version, started: str) -> Side:
    return Side(version.name, "", "", started, version.commit, version.dirty if version.commit else None)


def _comparison_of(
    sides: tuple[Side, Side],
    changes: tuple[Change, ...],
    result: PairedResult,
    documents: Sequence[RunDocument],
    notes: tuple[str, ...],
) -> Comparison:
    why: Comparison | None = None
    if len(documents) == 2:
        with contextlib.suppress(MachineError):
            why = compare(documents[0], documents[1], CompareOptions(force=True))
            timed = {change.metric for change in changes}
            changes = (*changes, *(c for c in why.changes if c.metric not in timed))
            baseline, candidate = sides
            sides = (
                replace(baseline, backend=documents[0].backend),
                replace(candidate, backend=documents[1].backend),
            )
    outcome: ComparisonOutcome
    fix: str | None
    if not any(change.unit == "s" for change in changes):
        outcome, (reason, fix) = "ambiguous", _too_few(result)
    else:
        outcome, reason, fix = outcome_of(changes, why.kernels if why else (), {}, asked=False)
    return Comparison(
        *sides,
        outcome,
        reason,
        changes=worst_first(changes),
        kernels=why.kernels if why else (),
        functions=why.functions if why else (),
        causes=why.causes if why else (),
        looked_at=len(changes),
        notes=(*notes, *result.notes),
        fix=fix,
        insights=why.insights if why else (),
        pairing=result.pairing,
    )
