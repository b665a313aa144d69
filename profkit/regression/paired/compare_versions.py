"""Compare two versions of a program: prepare them, run them alternately until decided, and find out why."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from math import log
from pathlib import Path

from profkit.core.errors import MachineError, Progress, UsageError
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.pairs import FIRST_ROUNDS
from profkit.core.standard_input import given_input
from profkit.core.types import Change, Comparison, Fact, Pairing, Side
from profkit.regression.compare import CompareOptions, compare
from profkit.regression.compare.outcome import Decided, outcome_of, worst_first
from profkit.regression.paired.blame import blamed_lines
from profkit.regression.paired.checkout import CheckoutSpec, NoCheckout, Version, version_of
from profkit.regression.paired.interleave import MAX_PAIRS, PairedOptions, PairedResult, PairedRuns
from profkit.regression.paired.one_run import warm_up
from profkit.regression.paired.why import (
    Reason,
    Search,
    exact_functions,
    fitting_causes,
    without_interpreter,
)
from profkit.regression.profile_process import ProfileRequest
from profkit.reporting.facts import fact_text
from profkit.runtime.passes.shown_command import shown_command

# What a shell gives a meaning; without any of these a command is started as it is.
_OF_A_SHELL = re.compile(r"[|&;<>()$`*?~{}\n]")
MAX_BUDGET = 1800.0  # seconds that are still worth a try
LAST_LINES = 20  # of a failed setup that are shown


@dataclass(frozen=True)
class VersionsRequest:
    """What is compared: `command` at two commits (None for `head`: the files as they are), or two commands."""

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
    metric_named: bool = False  # the time was asked for by name: then a tenth of it is an improvement, too
    take_input: bool = False  # standard input is the user's, and each run gets it


@dataclass(frozen=True)
class VersionsResult:
    """The comparison.

    `interrupted`: a Ctrl-C ended the runs or the search for the reason, so it has only part of them.
    """

    comparison: Comparison
    interrupted: bool = False


def compare_versions(request: VersionsRequest, progress: Progress) -> VersionsResult:
    """Run both versions alternately and return what is different, and why.

    Raises UsageError if a version is not available or runs the other's code, WorkloadError if one fails.
    """
    with (
        TemporaryFolder("versions") as name,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(name).resolve()
        progress.begin("prepare", "both versions")
        try:
            first, second = stack.enter_context(_both(request, folder, progress))
        except NoCheckout as fault:
            progress.fail("failed")
            _say_log(fault)
            raise
        progress.end(f"{first.name}; {second.name}")
        if request.take_input:
            given = stack.enter_context(given_input("profkit compare ...", second.command, progress))
            if given.note is not None:
                progress.note(fact_text(given.note))
            first, second = (replace(version, given=given.file) for version in (first, second))
        return _compare_ready(request, first, second, folder, progress)


def _say_log(fault: NoCheckout) -> None:
    """Add the end of the log to the message, since the log goes with the temporary folder."""
    if fault.log is not None:
        with contextlib.suppress(OSError, ValueError):
            lines = read_bounded(fault.log).decode().splitlines()[-LAST_LINES:]
            if len(lines) > 1:
                fault.message = "\n".join([fault.message, "the last lines of what it said:", *lines])


def _compare_ready(
    request: VersionsRequest, first: Version, second: Version, folder: Path, progress: Progress
) -> VersionsResult:
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    progress.begin("first runs", "not counted: they fill caches")
    began = time.monotonic()
    equal = warm_up(first, second, request.pairs.run, folder, progress, request.checkout.setup)
    slowest = time.monotonic() - began
    notes: list[Fact] = []
    progress.end("done")
    sides = _side_of(first, started), _side_of(second, started)
    trial = first.commit is not None and first.commit == second.commit and not second.dirty
    if equal is not None and not trial:
        return VersionsResult(Comparison(*sides, "same", Fact.of("nothing-differs", files=equal)))
    progress.begin("pairs", f"in random order, at most {request.pairs.budget:.0f} s")
    result = PairedRuns(first, second, request.pairs, folder, progress, slowest).run()
    changes = tuple(
        replace(change, fix=what_would_decide(change, result.pairing))
        if change.word == "ambiguous" and change.unit == "s"
        else change
        for change in result.changes
    )
    progress.end(_summary(result))
    reason = Reason()
    interrupted = result.interrupted
    different = next((change for change in changes if change.word == "different"), None)
    if request.causes and not result.interrupted and different is not None:
        # the answer is not kept waiting for its reason
        progress.note(fact_text(outcome_of(changes).why))
        search = _search(request, (first, second), different, folder, progress)
        try:
            reason = search.run()
        except KeyboardInterrupt:  # what was decided is not lost with the reason for it
            progress.fail("interrupted")
            reason, interrupted = search.found, True
            notes = [Fact("search-interrupted")]
    comparison = _comparison_of(sides, changes, result, reason, tuple(notes), request.metric_named)
    if comparison.outcome == "regressed":
        comparison = replace(comparison, blamed=blamed_lines(reason, first, second))
    return VersionsResult(comparison, interrupted)


@contextlib.contextmanager
def _both(request: VersionsRequest, folder: Path, progress: Progress) -> Iterator[tuple[Version, Version]]:
    if request.commands is not None:
        yield _of_command(request.commands[0], request.cwd), _of_command(request.commands[1], request.cwd)
        return
    with contextlib.ExitStack() as stack:
        what = request.command, request.cwd, request.checkout
        first, second = (
            stack.enter_context(version_of(name, *what, folder / side, progress.tick, request.env))
            for name, side in ((request.base, "base"), (request.head, "head"))
        )
        if request.head is None and first.commit == second.commit and not second.dirty:
            quoted = shlex.quote(str(request.base))
            raise NoCheckout(
                f"{first.name} and {second.name} are the same commit, and no file was changed since",
                f"--base HEAD~1; or, as a trial of this machine, --base {quoted} --head {quoted}",
            )
        yield first, second


def _of_command(text: str, cwd: Path) -> Version:
    """Make a version of a command line as it would be typed: with a shell if it needs one."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{text!r} is not a command: {error}") from None
    if not words:
        raise UsageError("an empty command", "--a 'python a.py' --b 'python b.py'")
    if _OF_A_SHELL.search(text):
        words = ("sh", "-c", text)
    shown = shown_command(words)
    return Version(shown.words[2] if words[2:] == (text,) else shown.line, words, cwd)


# ---------------------------------------------------------------- the result


def what_would_decide(change: Change, ran: Pairing) -> Fact:
    """Return the budget that would probably decide an open time, or the floor at which these runs say "same".

    An interval narrows by the root of the number of pairs; a quarter is added, since the present estimate may be
    off.
    """
    if change.ratio is None or change.low is None or change.high is None or change.low <= 0:
        return Fact.of("budget", seconds=4 * ran.budget)
    width, wanted = log(change.high / change.low) / 2, abs(abs(log(change.ratio)) - log(1 + change.floor))
    times = 1.25 * (width / wanted) ** 2 if wanted > 0 else math.inf
    wider = math.ceil(1000 * max(change.high - 1, 1 - change.low)) / 1000
    if times * ran.pairs > MAX_PAIRS or times * ran.seconds > MAX_BUDGET:
        return Fact.of("floor", floor=wider)
    seconds = max(math.ceil(times * ran.seconds), math.ceil(1.5 * ran.budget))
    return Fact.of("budget-or-floor", seconds=seconds, floor=wider)


def _summary(result: PairedResult) -> str:
    words = [f"{c.scope.name or 'time'} {c.word}" for c in result.changes if c.unit == "s"]
    return f"{', '.join(words) or 'not enough pairs'} after {result.pairing.pairs} pairs"


def _search(
    request: VersionsRequest,
    versions: tuple[Version, Version],
    change: Change,
    folder: Path,
    progress: Progress,
) -> Search:
    def profiled(version: Version) -> ProfileRequest:
        return ProfileRequest(
            "version",
            version.command,
            backend=request.backend,
            depth="standard",
            env=version.environment(),
            cwd=version.cwd,
            timeout=request.pairs.run.timeout,
            given=version.given,
        )

    return Search(versions, change, profiled, folder, progress, request.pairs.budget)


def _too_few(result: PairedResult) -> Decided:
    """Return why nothing can be said, and the budget that the first look at the pairs takes, with half to spare."""
    ran = result.pairing
    needed = 1.5 * FIRST_ROUNDS * ran.seconds / max(1, ran.pairs)
    why = Fact.of("few-pairs", seconds=ran.seconds, pairs=ran.pairs, least=FIRST_ROUNDS)
    budget = max(math.ceil(needed), math.ceil(2 * ran.budget))
    return Decided("ambiguous", why, Fact.of("budget", seconds=budget))


def _side_of(version: Version, started: str) -> Side:
    return Side(version.name, "", "", started, version.commit, version.dirty if version.commit else None)


def _comparison_of(
    sides: tuple[Side, Side],
    changes: tuple[Change, ...],
    result: PairedResult,
    found: Reason,
    notes: tuple[Fact, ...],
    metric_named: bool,
) -> Comparison:
    why: Comparison | None = None
    if len(found.documents) == 2:
        first, second = map(without_interpreter, found.documents)
        with contextlib.suppress(MachineError):
            why = compare(first, second, CompareOptions(force=True))
            timed = {change.metric for change in changes}
            # Both ran at the same time and under profilers: what is in seconds says nothing of the versions.
            counted = (c for c in why.changes if c.metric not in timed and c.unit != "s")
            changes = (*changes, *counted)
            sides = replace(sides[0], backend=first.backend), replace(sides[1], backend=second.backend)
    timed_any = any(change.unit == "s" for change in changes)
    decided = (
        outcome_of(changes, why.kernels if why else (), metric_named=metric_named)
        if timed_any
        else _too_few(result)
    )
    outcome = decided.word
    return Comparison(
        *sides,
        outcome,
        decided.why,
        changes=worst_first(changes),
        kernels=why.kernels if why else (),
        functions=exact_functions(found.documents, why.functions, outcome) if why else (),
        causes=(*found.causes, *fitting_causes(why.causes, why.changes, outcome)) if why else (),
        looked_at=len(changes),
        notes=(*notes, *result.notes, *found.notes),
        fix=decided.fix,
        pairing=result.pairing,
    )
