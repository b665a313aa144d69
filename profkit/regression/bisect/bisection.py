"""Run a bisection: test both ends against each other, then commits between them until one is likely enough."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from math import ceil, exp, log, log2
from pathlib import Path
from typing import Literal

from profkit.core.errors import (
    Interrupted,
    ProfkitError,
    Progress,
    UsageError,
    WorkloadError,
    writing,
)
from profkit.core.files.safe_folder import ensure_folder, write_whole
from profkit.core.formatting import plural
from profkit.core.pairs import confirm
from profkit.core.run_folder import create_run_folder
from profkit.core.standard_input import StandardInput, given_input
from profkit.core.types import (
    BisectDocument,
    BisectOptions,
    BisectPart,
    BisectSearch,
    BisectState,
    BisectStep,
    Change,
    Fact,
    Scope,
)
from profkit.profiling.plain_run import RunOptions
from profkit.profiling.time_limits import plain_time_limit
from profkit.regression.bisect.search import (
    MIN_PAIRS,
    Found,
    Move,
    Observation,
    Pairs,
    next_move,
    observed,
    stretches,
)
from profkit.regression.detection.rules import NightRule
from profkit.regression.paired.checkout import (
    CheckoutSpec,
    Version,
    git_line,
    named_commit,
    no_repository,
    repository_of,
    subject_of,
    version_of,
)
from profkit.regression.paired.interleave import MIN_SECONDS, TIME, PairedOptions, PairedResult, PairedRuns
from profkit.regression.paired.one_run import loaded_files, warm_up
from profkit.reporting import json
from profkit.reporting.facts import fact_text
from profkit.reporting.views.comparison.words import size_text

OTHER_REGIONS = Fact("other-regions")
SHORT = 10  # digits of a commit
_SUBJECT = 200  # characters of a message's first line that are kept
StepKind = Literal["ends", "search", "confirm"]


def bisect(
    good: str,
    bad: str,
    command: tuple[str, ...],
    options: BisectOptions,
    progress: Progress,
    setup: str | None = None,
    *,
    take_input: bool = False,
) -> tuple[BisectDocument, Path]:
    """Search for the commit after `good`, up to `bad`, that changed the time of `command` in the current folder.

    `take_input`: standard input is the user's, and each run gets it. Returns the document, and the folder in
    which it is saved after each step. Raises UsageError, WorkloadError where an end does not run, and Interrupted
    after a Ctrl-C.
    """
    cwd = Path.cwd().resolve()
    root = repository_of(cwd)
    if root is None:
        raise no_repository(cwd)
    first = named_commit(root, good)
    commits = commits_between(root, first, named_commit(root, bad))
    now, place, search = datetime.now(timezone.utc), str(cwd.relative_to(root)), BisectSearch(first, commits)
    started = now.isoformat(timespec="seconds")
    document = BisectDocument(started, command, setup, place, good, bad, options, search)
    folder = create_run_folder(Path("reports"), "bisect", commits[-1][:SHORT], now)
    tests = log2(len(commits)) + 2  # the ends, one for each halving, and one that confirms
    progress.note(
        f"{plural(len(commits), 'commit')}: about {ceil(tests)} tests of {options.budget:.0f} s at most"
    )
    with contextlib.ExitStack() as stack:
        given = StandardInput()
        if take_input:
            given = stack.enter_context(given_input(f"profkit bisect {good} {bad}", command, progress))
        if given.note is not None:
            progress.note(fact_text(given.note))
        return Bisection(document, root, cwd, folder, progress, given.file).run(), folder


def exit_code(document: BisectDocument) -> int:
    """Return 0 if a commit was found, alone or with others, and 5 if none was."""
    return 0 if any(part.kind == "one" for part in document.search.parts) else 5


@dataclass
class Bisection:
    """One call of bisect: the document as it grows, and what is needed to extend it."""

    document: BisectDocument
    root: Path
    cwd: Path
    folder: Path
    progress: Progress
    given: Path | None = None  # what each run reads at its standard input
    good: Version | None = None  # the good end, ready to run
    slowest: float | None = None  # seconds of the slowest run so far

    def run(self) -> BisectDocument:
        """Run the search to its end and return the document."""
        write_state(self.folder, self.document)
        with contextlib.ExitStack() as stack:
            try:
                self._test_ends(stack)
                while self.search.state == "running":
                    move = next_move(len(self.search.commits), self._skipped(), self._seen(), self._floor())
                    if isinstance(move, Move):
                        self._test(move, stack)
                    else:
                        self._finish(move)
            except (KeyboardInterrupt, Interrupted):
                message = f"interrupted; the steps so far ({len(self.search.steps)}) are in {self.folder}"
                raise Interrupted(message, "run the same command again: what was built is kept") from None
        return self.document

    def _test_ends(self, stack: contextlib.ExitStack) -> None:
        """Test GOOD against BAD in full: unless they differ there is nothing to search."""
        began, bad = time.monotonic(), self.search.commits[-1]
        self.progress.begin("both ends", f"{self._name(bad)} against {self._name(self.search.good)}")
        try:
            first = self._good_version(stack)
            with self._version(bad, 0) as second:
                warm_up(first, second, self._options().run, self._logs(0), self.progress)
                changes = self._run_in_full(first, second, 0)
        except ProfkitError:
            self.progress.fail("failed")
            raise
        chosen = max(changes, key=_rank)
        word = chosen.word
        state: BisectState = "running" if word == "different" else word
        self._change(scope=chosen.scope, state=state)
        self._add_step(Move(0, len(self.search.commits)), "ends", chosen, time.monotonic() - began)
        self.progress.end(f"{len(_pairs_of(chosen))} pairs, {word}: {size_text(chosen)}")

    def _test(self, move: Move, stack: contextlib.ExitStack) -> None:
        """Run one step of the search, or the direct test of its answer; skip a commit that does not run."""
        number = len(self.search.steps) + len(self.search.skipped)
        began, broken = time.monotonic(), self._commit(move.later)
        against = self._name(broken) + (" after its parent" if move.direct else "")
        self.progress.begin(f"{'confirm' if move.direct else 'step'} {number}", against)
        good = self._good_version(stack) if move.earlier == 0 else None
        try:
            with contextlib.ExitStack() as versions:
                first = good
                if first is None:
                    broken = self._commit(move.earlier)
                    first = versions.enter_context(self._version(broken, number))
                    broken = self._commit(move.later)
                second = versions.enter_context(self._version(broken, number))
                change = self._run_pair(move, first, second, number)
        except TooFewPairs:  # what is asked for is not available with any commit
            raise
        except (UsageError, WorkloadError) as fault:
            self._skip(broken, fault, good, number)
            return
        self._add_step(move, "confirm" if move.direct else "search", change, time.monotonic() - began)
        self.progress.end(
            f"{against}: {len(_pairs_of(change))} pairs, {size_text(change)}; {self._likeliest()}"
        )

    def _run_pair(self, move: Move, first: Version, second: Version, number: int) -> Change:
        warm_up(first, second, self._options().run, self._logs(number), self.progress)
        scope = self.search.scope
        if move.direct:
            changes = [change for change in self._run_in_full(first, second, number) if change.scope == scope]
            if not changes:
                raise OtherRegions
            return changes[0]
        reference = self.search.steps[0].pairs

        def enough(runs: PairedRuns) -> bool:
            pairs = _pairs_in(runs, scope)
            return not pairs or observed(pairs, reference, move.earlier, move.later).error <= move.error

        runs, _ = self._run(first, second, number, enough)
        pairs = _pairs_in(runs, scope)
        if len(pairs) < MIN_PAIRS:
            raise OtherRegions
        return change_of(pairs, self.document.options.floor, scope)

    def _run_in_full(self, first: Version, second: Version, number: int) -> tuple[Change, ...]:
        """Run the paired test of `compare --base` until each time that both versions have is decided.

        Raises OtherRegions if they have none in common.
        """
        _, result = self._run(first, second, number)
        times = tuple(change for change in result.changes if change.unit == "s")
        if not times:
            raise OtherRegions
        return times

    def _run(
        self, first: Version, second: Version, number: int, enough: Callable[[PairedRuns], bool] | None = None
    ) -> tuple[PairedRuns, PairedResult]:
        """Run pairs until all times are decided, or `enough` says so.

        Raises TooFewPairs where four do not fit the budget.
        """
        options = self._options()
        runs = PairedRuns(first, second, options, self._logs(number), self.progress)
        result = runs.run(enough)
        self.slowest = max(filter(None, (self.slowest, runs.slowest)), default=None)
        if result.interrupted:
            raise KeyboardInterrupt
        if (made := result.pairing).pairs < MIN_PAIRS:
            raise TooFewPairs(
                f"{made.pairs} pairs of runs fit into {options.budget:.0f} s; {MIN_PAIRS} are needed",
                f"--budget {3 * MIN_PAIRS * made.seconds / max(1, made.pairs):.0f}",
            )
        return runs, result

    def _skip(self, commit: str, fault: ProfkitError, good: Version | None, number: int) -> None:
        """Record a commit that cannot be tested. Raises the fault if it is one of the ends.

        After a failure of the workload the good end is run again first, since it may be the machine that fails.
        """
        if good is not None and isinstance(fault, WorkloadError):
            loaded_files(good, self._options().run, self._logs(number) / "again", self.progress.tick)
        if commit in (self.search.good, self.search.commits[-1]):
            raise fault
        lines = [line.strip() for line in fault.message.splitlines()] or [""]
        reason = Fact.message(" ".join(dict.fromkeys([lines[0], lines[-1]])))
        reason = OTHER_REGIONS if isinstance(fault, OtherRegions) else reason
        self._change(skipped={**self.search.skipped, commit: reason})
        self._name(commit)
        write_state(self.folder, self.document)
        self.progress.end(f"{commit[:SHORT]} is skipped: {fact_text(reason)}")

    def _finish(self, found: tuple[Found, ...]) -> None:
        parts = [self._part(stretch) for stretch in found]
        single = [part for part in parts if part.kind == "one"]
        floor = self._floor()
        large = [part for part in parts if part.kind == "rest" and abs(log(part.ratio)) > floor]
        state: BisectState = "several"
        if len(single) == 1 and not large:
            state = "found"
        elif not single and len(found) == 1:
            state = "open"
        self._change(state=state, parts=tuple(parts))
        write_state(self.folder, self.document)

    def _part(self, found: Found) -> BisectPart:
        before = self._commit(found.low)
        commits = tuple(self.search.commits[found.low : found.high])
        if found.rest:
            return BisectPart("rest", before, commits, found.probability, exp(found.size))
        tests = [s for s in self.search.steps if (s.earlier, s.later) == (before, commits[-1])]
        pairs = tuple(pair for step in tests for pair in step.pairs)
        for commit in commits:
            self._name(commit)
        part = BisectPart("one", before, commits, found.probability, exp(found.size))
        change = change_of(pairs, self.document.options.floor, self.search.scope) if pairs else None
        if change is None or change.ratio is None:
            return part
        return replace(part, ratio=change.ratio, low=change.low, high=change.high, word=change.word)

    # ------------------------------------------------------------ the present state

    @property
    def search(self) -> BisectSearch:
        """Return the search in its present state."""
        return self.document.search

    def _change(self, **fields: object) -> None:
        changed = replace(self.search, **fields)  # type: ignore[arg-type]
        self.document = replace(self.document, search=changed)

    def _place(self, commit: str) -> int:
        return 0 if commit == self.search.good else self.search.commits.index(commit) + 1

    def _commit(self, place: int) -> str:
        return self.search.good if place == 0 else self.search.commits[place - 1]

    def _floor(self) -> float:
        return log(1 + self.document.options.floor)

    def _seen(self) -> list[Observation]:
        steps = self.search.steps
        return [
            observed(step.pairs, steps[0].pairs, self._place(step.earlier), self._place(step.later))
            for step in steps
        ]

    def _skipped(self) -> frozenset[int]:
        return frozenset(map(self._place, self.search.skipped))

    def _add_step(self, move: Move, kind: StepKind, change: Change, seconds: float) -> None:
        step = BisectStep(
            kind,
            self._commit(move.earlier),
            self._commit(move.later),
            _pairs_of(change),
            change.word,
            change.ratio or 1.0,
            change.low or 0.0,
            change.high or 0.0,
            seconds,
        )
        self._change(steps=(*self.search.steps, step))
        parts = stretches(len(self.search.commits), self._skipped(), self._seen(), self._floor())
        weights = [weight for part in parts for weight in part.weights]
        likely = {c: w for c, w in zip(self.search.commits, weights, strict=True) if w >= 0.001}
        self._change(probabilities=likely)
        write_state(self.folder, self.document)

    def _likeliest(self) -> str:
        """Describe the likeliest commit with its probability."""
        probabilities = self.search.probabilities
        commit = max(probabilities, key=lambda commit: probabilities[commit], default="")
        return (
            f"likeliest {commit[:SHORT]} {100 * probabilities[commit]:.0f} %" if commit else "none is likely"
        )

    def _name(self, commit: str) -> str:
        if commit not in self.document.subjects:
            subject = subject_of(self.root, commit)[:_SUBJECT]
            self.document = replace(self.document, subjects={**self.document.subjects, commit: subject})
        return f"{commit[:SHORT]} {self.document.subjects[commit]!r}"

    # ------------------------------------------------------------ versions

    def _good_version(self, stack: contextlib.ExitStack) -> Version:
        if self.good is None:
            self.good = stack.enter_context(self._version(self.search.good, 0))
        return self.good

    @contextlib.contextmanager
    def _version(self, commit: str, number: int) -> Iterator[Version]:
        setup, command = self.document.setup, self.document.command
        spec = CheckoutSpec(setup=("sh", "-c", setup) if setup is not None else ())
        log_folder = self._logs(number) / commit[:SHORT]
        with version_of(commit, command, self.cwd, spec, log_folder, self.progress.tick) as version:
            yield replace(version, given=self.given)

    def _logs(self, number: int) -> Path:
        """Return the folder for a step's logs and records, as a path that is valid in any checkout."""
        return self.folder.absolute() / "logs" / f"{number:03}"

    def _options(self) -> PairedOptions:
        options = self.document.options
        # A commit whose program never ends is one that cannot be tested: the search goes on without it.
        limit = plain_time_limit(self.slowest, options.timeout, None)
        run = RunOptions(sampling=options.sampling, timeout=limit)
        return PairedOptions(options.budget, options.floor, run=run)


def _rank(change: Change) -> tuple[bool, bool, float]:
    """Rank times for the choice of one: different before open, worse before better, large before small."""
    size = abs(log(change.ratio)) if change.ratio else 0.0
    if change.word == "different":
        return True, change.course == "worse", size
    return False, change.word == "ambiguous", size


# ---------------------------------------------------------------- one test


class TooFewPairs(UsageError):
    """The budget has no room for the pairs that a test needs."""


class OtherRegions(UsageError):
    """Two commits have no region in common."""

    def __init__(self) -> None:
        super().__init__(fact_text(OTHER_REGIONS))


def _pairs_in(runs: PairedRuns, scope: Scope) -> Pairs:
    return tuple((old, new) for new, old in runs.values(scope))


def _pairs_of(change: Change) -> Pairs:
    both = zip(change.baseline.groups, change.candidate.groups, strict=True)
    return tuple((old[0], new[0]) for old, new in both)


def change_of(pairs: Pairs, floor: float, scope: Scope) -> Change:
    """Decide what the pairs show, as the paired test does after its last pair. Needs at least four."""
    rounds = [(new, old) for old, new in pairs]
    metric = NightRule(TIME, relative=floor, absolute=MIN_SECONDS)
    change = confirm(rounds, metric, "s", len(rounds), scope)
    assert change is not None
    return change


FILE_NAME = "bisect.json"


def commits_between(root: Path, good: str, bad: str) -> tuple[str, ...]:
    """List the commits after `good` up to `bad`, both hashes: the oldest first, each the child of the one before.

    At a merge it follows the first parent that leads to `good`. Raises UsageError if `good` is not an ancestor of
    `bad`, or both are the same.
    """
    if good == bad:
        raise UsageError(
            f"GOOD and BAD are the same commit, {good[:12]}", "profkit bisect HEAD~20 HEAD -- ..."
        )
    if git_line(root, "merge-base", "--is-ancestor", good, bad) is None:
        raise _unrelated(root, good, bad)
    listed = git_line(root, "rev-list", "--parents", "--ancestry-path", f"{good}..{bad}") or ""
    rows = [line.split() for line in listed.splitlines()]
    parents = {row[0]: row[1:] for row in rows if row}
    commits = [bad]
    while True:
        before = next((p for p in parents.get(commits[-1], ()) if p == good or p in parents), None)
        if before is None or before == good:
            break
        commits.append(before)
    return tuple(reversed(commits))


def _unrelated(root: Path, good: str, bad: str) -> UsageError:
    if git_line(root, "merge-base", "--is-ancestor", bad, good) is not None:
        return UsageError(
            f"BAD ({bad[:12]}) is older than GOOD ({good[:12]})",
            f"the older one first: profkit bisect {shlex.quote(bad[:12])} {shlex.quote(good[:12])} -- ...",
        )
    base = git_line(root, "merge-base", good, bad)
    hint = f"where both were one: profkit bisect {base[:12]} {bad[:12]} -- ..." if base else "git log --graph"
    return UsageError(f"{bad[:12]} does not come from {good[:12]}", hint)


# ---------------------------------------------------------------- the file


def write_state(folder: Path, document: BisectDocument) -> None:
    """Write the document whole or not at all. Raises MachineError if the system refuses."""
    quoted = shlex.quote(str(folder))
    with writing(folder / FILE_NAME, f"df -h {quoted}; ls -ld {quoted}"):
        ensure_folder(folder)
        write_whole(folder / FILE_NAME, (json.document(document),), sync=True)
