"""Rounds of two sides, each side a fresh process, in the order ABBA: what disturbs the machine disturbs both alike.

Round k runs A then B if k is even, B then A if odd (Bulej et al., "Duet benchmarking", arXiv 2001.05811, in the form
for a device that only one can have at a time). Each side is profiled in a process of its own and its median taken, so
that a round is one pair of values whatever happened inside.

Trials of the same code against itself, as the history keeps them: what this machine calls a change where none is.

They are entries as runs are, under names of their own (`gated_mlp/calibration`), so that one file holds all that a
night depends on, and export, prune and several writers work for them too. Their value is the ratio that was measured.

The same night, once more: tonight's checkout and the last good commit in turn, until it is clear or time is over.

And the same checkout against itself, which tells how often this machine sees a change where there is none.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from profkit.core.run_folder import clean_name
from profkit.core.statistics import median
from profkit.core.types import Calibration, Direction, Entry, RunDocument, Scope, SeriesKey, Value
from profkit.regression.detection.confirm import Confirmation, confirm
from profkit.regression.detection.rules import NightRule
from profkit.regression.history import History, HistoryFilter
from profkit.regression.nightly import profile_process
from profkit.regression.nightly.checkout import NoCheckout, checked_out
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.nightly.profile_process import ProfileResult
from profkit.regression.nightly.session import NightSession

# Seconds of sampling in one process of a round: a round is cheap and there are many. A spec that asks for less gets it.
ROUND_TIMING = 2.0
FAILED_MOST = (
    2  # rounds that may fail before it is given up: a workload that crashes now and then is no baseline
)

MetricScope = tuple[str, Scope]


@dataclass(frozen=True)
class RoundSide:
    """One of the two: what it is called, where it runs, and its command there."""

    name: str
    cwd: Path
    command: tuple[str, ...]


@dataclass
class Rounds:
    """The rounds of one workload as they are made. `pairs` holds (A, B) of each round for what is wanted.

    `passes` None: the workload's own; `deadline` is a time of `time.monotonic()` after which none is begun.
    """

    spec: WorkloadSpec
    arms: tuple[RoundSide, RoundSide]
    wanted: Sequence[MetricScope]
    folder: Path
    deadline: float
    passes: tuple[str, ...] | None = ("timing",)
    tick: Callable[[float], None] | None = None
    pairs: dict[MetricScope, list[tuple[float, float]]] = field(default_factory=dict)
    made: int = 0
    failed: int = 0
    longest: float = 0.0
    why: str | None = None  # why there are no more
    fix: str | None = None

    def more(self, count: int) -> bool:
        """Make rounds until there are `count`; False where no more can be had, and `why` says so."""
        while self.made < count:
            if self.why is not None or not self._one():
                return False
        return True

    def _one(self) -> bool:
        left = self.deadline - time.monotonic()
        if left <= 0 or left < self.longest:
            self.why = "the time for re-runs was spent"
            return False
        start = time.monotonic()
        order = (0, 1) if self.made % 2 == 0 else (1, 0)
        values: dict[int, dict[MetricScope, float]] = {}
        for side in order:
            ran = self._run(self.arms[side], max(1.0, self.deadline - time.monotonic()))
            if not ran.ok or ran.document is None:
                return self._failure(self.arms[side], ran)
            values[side] = {
                want: v for want in self.wanted if (v := value_of(ran.document, *want)) is not None
            }
            if not values[side]:
                self.why = f"{self.arms[side].name} does not measure {self.wanted[0][0]} in a re-run"
                return False
        for want in self.wanted:
            if want in values[0] and want in values[1]:
                self.pairs.setdefault(want, []).append((values[0][want], values[1][want]))
        self.made += 1
        self.longest = max(self.longest, time.monotonic() - start)
        return True

    def _run(self, arm: RoundSide, budget: float) -> ProfileResult:
        into = self.folder / f"{self.made:03d}-{clean_name(arm.name)}"
        timing = ROUND_TIMING if self.spec.timing is None else min(self.spec.timing, ROUND_TIMING)
        spec = replace(
            self.spec,
            depth="gate",
            timing=timing,
            cwd=arm.cwd,
            command=arm.command,
            passes=self.passes if self.passes is not None else self.spec.passes,
            budget=min(budget, self.spec.budget),
            targets=None,
        )
        ran = profile_process.profile_once(spec, into, self.tick)
        if ran.ok:  # its values are kept, and twenty rounds of folders are none that anybody reads
            shutil.rmtree(into, ignore_errors=True)
            with contextlib.suppress(OSError):  # a round that failed is still in it
                self.folder.rmdir()
        return ran

    def _failure(self, arm: RoundSide, ran: ProfileResult) -> bool:
        """A round that came to nothing; True where another may be tried."""
        self.failed += 1
        told = ran.reason.splitlines()[0] if ran.reason else ran.ending
        if ran.ending == "out-of-time" and time.monotonic() >= self.deadline:
            self.why = "the time for re-runs was spent"
        elif self.failed > FAILED_MOST or self.made == 0:
            self.why, self.fix = f"{arm.name} could not be run again: {told}", ran.fix
        return self.why is None


def value_of(document: RunDocument, metric: str, scope: Scope) -> float | None:
    """The value of one metric in one scope, in its own unit; None where it was not measured or is doubted."""
    told = [*document.readings, *(r for s in document.summaries for r in s.readings)]
    for reading in told:
        if reading.metric == metric and reading.value is not None and reading.doubt is None:
            same = reading.scope.kind == scope.kind and reading.scope.name == scope.name
            if same and (scope.id is None or reading.scope.id == scope.id):
                return reading.value
    return None


def passes_for(spec: WorkloadSpec, wanted: Sequence[MetricScope]) -> tuple[str, ...] | None:
    """The passes that a round needs: the timing pass alone where only times are asked for, else the workload's own."""
    return ("timing",) if all(name.startswith("time.") for name, _ in wanted) else spec.passes


CALIBRATION = "calibration"
_OF = "of"  # the fact that names the run whose checkout it was


def utc_now() -> str:
    """This moment, ISO 8601 in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def store_trial(history: History, of: Entry, words: Mapping[MetricScope, Confirmation]) -> None:
    """Keep the words on one checkout against itself; told again they change nothing."""
    values = []
    for (metric, scope), word in words.items():
        change = word.change
        if change is not None and change.ratio is not None:
            samples = tuple(
                tuple(v for group in side.groups for v in group)
                for side in (change.candidate, change.baseline)
            )
            key = SeriesKey(f"{of.workload}/{CALIBRATION}", of.backend, metric, scope)
            values.append(
                Value(key, "ratio", "none", change.ratio, "measured", change.low, change.high, samples)
            )
    history.add(
        Entry(
            id=f"{CALIBRATION}-{of.id}",
            started=of.started,
            workload=f"{of.workload}/{CALIBRATION}",
            backend=of.backend,
            state="complete",
            source=f"profkit-{CALIBRATION}",
            machine=of.machine,
            features=of.features,
            commit=of.commit,
            dirty=of.dirty,
            night=of.night,
            facts={_OF: of.id, **{_fact(*want): word.word for want, word in words.items()}},
            values=tuple(values),
        )
    )


def last_trial(history: History, workload: str) -> str:
    """When a workload was last run against itself; empty where it never was."""
    return max((e.started for e in history.entries(HistoryFilter(f"{workload}/{CALIBRATION}"))), default="")


def calibration_of(history: History, workloads: Iterable[str], expected: float) -> Calibration | None:
    """All trials so far; `expected`: the share of them that chance alone gets wrong. None where there are none."""
    rounds = looked = alarms = 0
    ratios: list[float] = []
    when: str | None = None
    for name in workloads:
        for entry in history.entries(HistoryFilter(f"{name}/{CALIBRATION}")):
            words = [word for fact, word in entry.facts.items() if fact != _OF]
            looked += len(words)
            alarms += words.count("different")
            when = max(when or "", entry.started)
        for series in history.series(HistoryFilter(f"{name}/{CALIBRATION}")) if when else ():
            ratios += [abs(point.value - 1) for point in series.points]
            rounds += sum(len(point.groups[0]) for point in series.points if point.groups)
    if not looked:
        return None
    return Calibration(
        rounds=rounds,
        looked_at=looked,
        alarms=alarms,
        expected=looked * expected,
        noise=median(ratios) if ratios else None,
        worst=max(ratios, default=None),
        when=when,
    )


def _fact(metric: str, scope: Scope) -> str:
    return f"{metric} {scope.kind} {scope.name or ''}".rstrip()


RERUN_FOLDERS = ("reruns", "calibration")  # of a night: what is in them are rounds and no runs of the night
CANDIDATE_SIDE, LAST_GOOD_SIDE = "tonight's checkout", "the last good commit"


@dataclass(frozen=True)
class CandidateRegression:
    """One metric that left its band: what decides it, and the last good night's commit."""

    wanted: MetricScope
    rule: NightRule
    better: Direction
    unit: str


@dataclass(frozen=True)
class RerunResult:
    """What a re-run said of each suspect; `why` it could not be had, or came to an early end, and the fix."""

    words: Mapping[MetricScope, Confirmation]
    why: str | None = None
    fix: str | None = None


def rerun_obstacle(good: Entry | None, tonight: Entry) -> NoCheckout | None:
    """Why tonight's run cannot be confirmed by a re-run beside the last good one, before anything is checked out."""
    if good is None:
        return NoCheckout("no good night is known to run beside")
    if good.commit is None:
        return NoCheckout(
            "the last good night does not say its commit", "run the workload in a git repository"
        )
    if good.dirty:
        return NoCheckout(
            f"the last good night ran {good.commit[:12]} with changes that were not committed",
            "commit before the nightly runs",
        )
    if good.commit == tonight.commit and not tonight.dirty:
        return NoCheckout(
            f"it is the same commit as in the last good night ({good.commit[:12]}): not the code of this "
            "repository changed, but what it runs on or with"
        )
    return None


def rerun(
    session: NightSession,
    spec: WorkloadSpec,
    tonight: Entry,
    good: Entry | None,
    suspects: Sequence[CandidateRegression],
) -> RerunResult:
    """Candidate and last good in turn; never raises for what is in the way of it."""
    limits = session.config.confirm
    hindered = rerun_obstacle(good, tonight)
    if hindered is not None or good is None or good.commit is None:
        return RerunResult({}, hindered.reason if hindered else None, hindered.fix if hindered else None)
    deadline = session.deadline(limits.budget)
    if deadline <= time.monotonic():
        return RerunResult({}, "the night's budget was spent", "budget: SECONDS")
    folder = session.folder / RERUN_FOLDERS[0] / clean_name(spec.name)
    try:
        with checked_out(spec.cwd, good.commit, limits, folder, session.progress.tick) as there:
            arms = (
                RoundSide(CANDIDATE_SIDE, spec.cwd, spec.command),
                RoundSide(LAST_GOOD_SIDE, there.moved(spec.cwd), there.words(spec.command, spec.cwd)),
            )
            answer = _run_rounds(session, spec, arms, suspects, folder, deadline, limits.rounds)
    except NoCheckout as reason:
        return RerunResult({}, reason.reason, reason.fix)
    for (metric, scope), word in answer.words.items():
        key = SeriesKey(tonight.workload, tonight.backend, metric, scope)
        session.history.confirm(tonight.id, key, word.word)
    return answer


def calibrate(
    session: NightSession, spec: WorkloadSpec, tonight: Entry, metrics: Sequence[CandidateRegression]
) -> RerunResult:
    """The same checkout against itself, by the same rounds and the same rule as a re-run."""
    limits = session.config.calibrate
    deadline = session.deadline(limits.budget)
    folder = session.folder / RERUN_FOLDERS[1] / clean_name(spec.name)
    arms = (RoundSide("first", spec.cwd, spec.command), RoundSide("second", spec.cwd, spec.command))
    answer = _run_rounds(session, spec, arms, metrics, folder, deadline, limits.rounds)
    finished = {want: word for want, word in answer.words.items() if word.change is not None}
    if finished:  # one that had no time for four rounds was no trial
        store_trial(session.history, tonight, finished)
    return answer


def _run_rounds(
    session: NightSession,
    spec: WorkloadSpec,
    arms: tuple[RoundSide, RoundSide],
    suspects: Sequence[CandidateRegression],
    folder: Path,
    deadline: float,
    most: int,
) -> RerunResult:
    """Rounds until every suspect is decided, none are left, or they cannot be made."""
    wanted = [one.wanted for one in suspects]
    passes = passes_for(spec, wanted)
    rounds = Rounds(spec, arms, wanted, folder, deadline, passes, session.progress.tick)
    words: dict[MetricScope, Confirmation] = {}
    open_ = list(suspects)
    while open_:
        spent = False
        for one in list(open_):
            word = _evaluate_rounds(rounds, one, most, spent=False)
            words[one.wanted] = word
            if word.word != "more":
                open_.remove(one)
        if open_:
            target = max(words[one.wanted].wanted for one in open_)
            # a metric that some rounds did not measure must not ask for ever
            spent = rounds.made >= most or not rounds.more(max(target, rounds.made + 1))
        if spent:
            for one in open_:
                words[one.wanted] = _evaluate_rounds(rounds, one, most, spent=True)
            break
    return RerunResult(
        {want: word for want, word in words.items() if rounds.pairs.get(want)}, rounds.why, rounds.fix
    )


def _evaluate_rounds(rounds: Rounds, one: CandidateRegression, most: int, *, spent: bool) -> Confirmation:
    pairs = rounds.pairs.get(one.wanted, [])
    return confirm(pairs, one.rule, one.better, one.unit, most, spent)
