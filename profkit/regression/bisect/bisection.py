"""A bisection on its way: both ends against each other, then commits between them until one is likely enough."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from typing import Literal

from profkit.core.errors import Interrupted, ProfkitError, UsageError, WorkloadError
from profkit.core.progress import Progress
from profkit.core.types import (
    BisectDocument,
    BisectPart,
    BisectSearch,
    BisectState,
    BisectStep,
    Change,
    Fact,
    SkippedCommit,
)
from profkit.regression.bisect.measure import (
    Measured,
    NotTimed,
    Pairs,
    TooFewPairs,
    change_of,
    observed,
    run_in_full,
    run_until_enough,
)
from profkit.regression.bisect.row import changed_in, row_inside
from profkit.regression.bisect.search import (
    Found,
    Move,
    Observation,
    Rules,
    Stretch,
    is_enough,
    next_move,
    stretches,
)
from profkit.regression.bisect.state import held, write_state
from profkit.regression.paired.checkout import CheckoutSpec, NoCheckout
from profkit.regression.paired.first_runs import warm_up
from profkit.regression.paired.git import subject_of
from profkit.regression.paired.interleave import PairedOptions
from profkit.regression.paired.one_run import RunOptions, loaded_files
from profkit.regression.paired.version import Version, version_of

SHORT = 10  # digits of a commit
_SUBJECT = 200  # characters of a message's first line that are kept
StepKind = Literal["ends", "search", "confirm"]


@dataclass
class Bisection:
    """One call: the document as it grows, and what it is made with."""

    document: BisectDocument
    root: Path
    cwd: Path
    folder: Path
    progress: Progress
    good: Version | None = None  # of the present search, ready to run

    def run(self) -> BisectDocument:
        """Each search to its end: that of the row, then that inside of a merge which was found."""
        with held(self.folder):
            write_state(self.folder, self.document)
            try:
                while True:
                    if self._search().state == "running":
                        self._search_to_the_end()
                    if not self._go_into_merge():
                        return self.document
            except (KeyboardInterrupt, Interrupted):
                steps = sum(len(search.steps) for search in self.document.searches)
                line = resume_line(self.document, self.folder)
                raise Interrupted(
                    f"interrupted; the steps so far ({steps}) are in {self.folder}", line
                ) from None

    # ------------------------------------------------------------ one search

    def _search_to_the_end(self) -> None:
        with contextlib.ExitStack() as stack:
            self.good = None
            if not self._search().steps:
                self._test_ends(stack)
            while self._search().state == "running":
                search = self._search()
                move = next_move(len(search.commits), self._skipped(), self._seen(), self._rules())
                if isinstance(move, Move):
                    self._test(move, stack)
                else:
                    self._finish(move)

    def _test_ends(self, stack: contextlib.ExitStack) -> None:
        """GOOD against BAD in full: where they are not different there is nothing to search."""
        search = self._search()
        began, number = time.monotonic(), 0
        self.progress.begin(
            "both ends", f"{self._name(search.commits[-1])} against {self._name(search.good)}"
        )
        try:
            first = self._good_version(stack)
            with self._version(search.commits[-1], number) as second:
                notes = warm_up(first, second, self._options(number), self._logs(number), self.progress)
                found = run_in_full(first, second, self._options(number), self._logs(number), self.progress)
        except (NoCheckout, NotTimed, WorkloadError, UsageError) as fault:
            self.progress.end("failed")
            if search.inside is None:
                raise _as_usage(fault) from None
            self.document = replace(
                self.document, notes=(*self.document.notes, Fact.of("text", text=_reason_of(fault)[0]))
            )
            self._change(state="open")  # the merge itself is an answer
            write_state(self.folder, self.document)
            return
        chosen = max(found, key=lambda one: _rank(one.change))
        others = [one.change for one in found if one is not chosen and one.change.word == "different"]
        notes += [
            Fact.of("also-different", name=change.scope.name or "", by=(change.ratio or 1.0) - 1)
            for change in others
        ]
        word = chosen.change.word
        state: BisectState = "running" if word == "different" else word
        self.document = replace(self.document, notes=(*self.document.notes, *notes))
        self._change(scope=chosen.change.scope, state=state)
        self._add_step(Move(0, len(search.commits)), "ends", chosen, time.monotonic() - began)
        self.progress.end(f"{len(chosen.pairs)} pairs, {word}: {_percent(chosen.change)}")

    def _test(self, move: Move, stack: contextlib.ExitStack) -> None:
        """One step of the search, or the direct test of its answer; a commit that does not run is skipped."""
        number = len(self._search().steps) + len(self._search().skipped)
        began, later = time.monotonic(), self._commit(move.later)
        against = self._name(later) + (" after its parent" if move.direct else "")
        self.progress.begin(
            f"{'confirm' if move.direct else 'step'} {number}", f"{against}; {self._likeliest()}"
        )
        good = self._good_version(stack) if move.earlier == 0 else None
        broken = later
        try:
            with contextlib.ExitStack() as versions:
                first = good
                if first is None:
                    broken = self._commit(move.earlier)
                    first = versions.enter_context(self._version(broken, number))
                    broken = later
                second = versions.enter_context(self._version(later, number))
                found = self._run_pair(move, first, second, number)
        except TooFewPairs:  # what is asked for cannot be had with any commit
            raise
        except (NoCheckout, NotTimed, WorkloadError, UsageError) as fault:
            self._skip(broken, fault, good, number)
            return
        self._add_step(move, "confirm" if move.direct else "search", found, time.monotonic() - began)
        self.progress.end(
            f"{against}: {len(found.pairs)} pairs, {_percent(found.change)}; {self._likeliest()}"
        )

    def _run_pair(self, move: Move, first: Version, second: Version, number: int) -> Measured:
        options, logs, scope = self._options(number), self._logs(number), self._search().scope
        warm_up(first, second, options, logs, self.progress)
        if move.direct:
            full = run_in_full(first, second, options, logs, self.progress)
            found = next((one for one in full if one.change.scope == scope), None)
            if found is None:
                raise NotTimed
            return found
        seen, reference = self._seen(), self._search().steps[0].pairs

        def enough(pairs: Pairs) -> bool:
            tests = [*seen, observed(pairs, reference, move.earlier, move.later)]
            return is_enough(move, len(self._search().commits), self._skipped(), tests, self._rules())

        return run_until_enough(first, second, options, scope, enough, logs, self.progress)

    def _skip(self, commit: str, fault: Exception, good: Version | None, number: int) -> None:
        """Take note of a commit that cannot be tested. Raises the fault where it is the good end, which ran before."""
        if good is not None and isinstance(fault, WorkloadError):
            loaded_files(good, self._options(number).run, self._logs(number) / "again", self.progress.tick)
        if commit in (self._search().good, self._search().commits[-1]):
            raise _as_usage(fault)
        reason, fix = _reason_of(fault)
        skipped = SkippedCommit(commit, reason, fix)
        self._change(skipped=(*self._search().skipped, skipped))
        self._name(commit)
        write_state(self.folder, self.document)
        self.progress.end(f"{commit[:SHORT]} is skipped: {reason}")

    def _finish(self, found: tuple[Found, ...]) -> None:
        parts = [self._part(one) for one in found]
        single = [part for part in parts if part.kind == "one"]
        floor = self._rules().floor
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
        commits = tuple(self._search().commits[found.low : found.high])
        if found.rest:
            return BisectPart("rest", before, commits, found.probability, exp(found.size))
        tests = [s for s in self._search().steps if (s.earlier, s.later) == (before, commits[-1])]
        pairs = tuple(pair for step in tests for pair in step.pairs)
        for commit in commits:
            self._name(commit)
        files = changed_in(self.root, before, commits[-1])
        part = BisectPart("one", before, commits, found.probability, exp(found.size), files=files)
        change = change_of(pairs, self.document.options.floor, self._search().scope) if pairs else None
        if change is None or change.ratio is None:
            return part
        return replace(part, ratio=change.ratio, low=change.low, high=change.high, word=change.word)

    def _go_into_merge(self) -> bool:
        """Begin a search of the commits that a merge brought in, where it is the answer."""
        search = self._search()
        if search.state != "found" or search.inside is not None:
            return False
        part = next(part for part in search.parts if part.kind == "one")
        if len(part.commits) != 1:
            return False
        row = row_inside(self.root, part.commits[0], part.baseline)
        if row is None:
            return False
        inside = BisectSearch(row.good, row.commits, inside=part.commits[0])
        self.document = replace(self.document, searches=(*self.document.searches, inside))
        write_state(self.folder, self.document)
        return True

    # ------------------------------------------------------------ the present state

    def _search(self) -> BisectSearch:
        return self.document.searches[-1]

    def _change(self, **fields: object) -> None:
        changed = replace(self._search(), **fields)  # type: ignore[arg-type]
        self.document = replace(self.document, searches=(*self.document.searches[:-1], changed))

    def _place(self, commit: str) -> int:
        search = self._search()
        return 0 if commit == search.good else search.commits.index(commit) + 1

    def _commit(self, place: int) -> str:
        search = self._search()
        return search.good if place == 0 else search.commits[place - 1]

    def _rules(self) -> Rules:
        return Rules(self.document.options.certainty, log(1 + self.document.options.floor))

    def _seen(self) -> list[Observation]:
        steps = self._search().steps
        return [
            observed(step.pairs, steps[0].pairs, self._place(step.earlier), self._place(step.later))
            for step in steps
        ]

    def _stretches(self) -> tuple[Stretch, ...]:
        return stretches(len(self._search().commits), self._skipped(), self._seen(), self._rules())

    def _skipped(self) -> frozenset[int]:
        return frozenset(self._place(one.commit) for one in self._search().skipped)

    def _add_step(self, move: Move, kind: StepKind, found: Measured, seconds: float) -> None:
        change = found.change
        step = BisectStep(
            kind,
            self._commit(move.earlier),
            self._commit(move.later),
            found.pairs,
            change.word,
            change.ratio or 1.0,
            change.low or 0.0,
            change.high or 0.0,
            seconds,
        )
        self._change(steps=(*self._search().steps, step))
        whole = self._stretches()
        if kind != "ends" and len(whole) == 1:
            step = replace(step, probability=whole[0].up_to(move.later))
        weights = [weight for stretch in whole for weight in stretch.weights]
        likely = {c: w for c, w in zip(self._search().commits, weights, strict=True) if w >= 0.001}
        self._change(steps=(*self._search().steps[:-1], step), probabilities=likely)
        write_state(self.folder, self.document)

    def _likeliest(self) -> str:
        """The three likeliest commits with their probabilities."""
        known = sorted(self._search().probabilities.items(), key=lambda item: -item[1])[:3]
        shown = [
            f"{c[:SHORT]} {100 * p:.0f} %" if p < 0.99 else f"{c[:SHORT]} over 99 %"
            for c, p in known
            if p >= 0.005
        ]
        return f"likeliest {', '.join(shown)}" if shown else "no commit is likely by itself"

    def _name(self, commit: str) -> str:
        if commit not in self.document.subjects:
            subject = subject_of(self.root, commit)[:_SUBJECT]
            self.document = replace(self.document, subjects={**self.document.subjects, commit: subject})
        return f"{commit[:SHORT]} {self.document.subjects[commit]!r}"

    # ------------------------------------------------------------ versions

    def _good_version(self, stack: contextlib.ExitStack) -> Version:
        if self.good is None:
            self.good = stack.enter_context(self._version(self._search().good, 0))
        return self.good

    @contextlib.contextmanager
    def _version(self, commit: str, number: int) -> Iterator[Version]:
        setup = self.document.setup
        spec = CheckoutSpec(setup=("sh", "-c", setup) if setup is not None else ())
        log_folder = self._logs(number) / commit[:SHORT]
        command = self.document.command
        with version_of(commit, command, self.cwd, spec, log_folder, self.progress.tick) as version:
            yield version

    def _logs(self, number: int) -> Path:
        """Where a step's logs and the last records of its runs lie, by a path that holds in any checkout."""
        return self.folder.absolute() / "steps" / f"{len(self.document.searches)}-{number:03}"

    def _options(self, number: int) -> PairedOptions:
        options = self.document.options
        seed = None if options.seed is None else options.seed + 1000 * number
        run = RunOptions(sampling=options.sampling, timeout=options.timeout)
        return PairedOptions(options.budget, options.floor, seed=seed, run=run)


def _rank(change: Change) -> tuple[bool, bool, float]:
    """Of several times: one that is different, for the worse before the better, the largest; then one that is open."""
    size = abs(log(change.ratio)) if change.ratio else 0.0
    if change.word == "different":
        return True, change.course == "worse", size
    return False, change.word == "ambiguous", size


def resume_line(document: BisectDocument, folder: Path) -> str:
    """What is typed to go on."""
    words = ["profkit", "bisect", document.good, document.bad, "--resume", str(folder)]
    words += ["--setup", document.setup] if document.setup is not None else []
    return shlex.join([*words, "--", *document.command])


def _reason_of(fault: Exception) -> tuple[str, str | None]:
    """Why a commit cannot be tested, on one line, and what would fix that."""
    if isinstance(fault, NoCheckout):
        log = shlex.join(["cat", str(fault.log)]) if fault.log is not None else None
        return fault.reason, fault.fix or log
    if isinstance(fault, ProfkitError):
        lines = [line.strip() for line in fault.message.splitlines()] or [""]
        return " ".join(dict.fromkeys([lines[0], lines[-1]])), fault.fix
    return "it marks other regions than the commit it is compared with", None


def _as_usage(fault: Exception) -> ProfkitError:
    """The fault of an end, without which nothing can be searched."""
    return fault if isinstance(fault, ProfkitError) else UsageError(*_reason_of(fault))


def _percent(change: Change) -> str:
    """The change with its interval: `+5.0 % [+4.1, +5.9]`."""
    if change.ratio is None or change.low is None or change.high is None:
        return "no ratio"
    sizes = [100 * (value - 1) for value in (change.ratio, change.low, change.high)]
    return f"{sizes[0]:+.1f} % [{sizes[1]:+.1f}, {sizes[2]:+.1f}]"
