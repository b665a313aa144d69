"""The same night, once more: tonight's checkout and the last good commit in turn, until it is clear or time is over.

Each side of a round is profiled in a process of its own, in the order ABBA (Bulej et al., "Duet benchmarking", arXiv
2001.05811): what disturbs the machine disturbs both alike. A round is one pair of medians.

Calibration is the same checkout against itself by the same rounds: how often this machine sees a change where there is
none. A history stores it as runs under names of their own (`gated_mlp/calibration`), whose value is the ratio.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profkit.core.files.safe_folder import opened
from profkit.core.run_folder import clean_name
from profkit.core.statistics import median
from profkit.core.types import Calibration, Direction, Entry, RunDocument, Scope, SeriesKey, Value
from profkit.regression import profile_process
from profkit.regression.detection.rules import NightRule
from profkit.regression.history import History, HistoryFilter
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.nightly.session import NightSession
from profkit.regression.paired.checkout import NoCheckout, checked_out
from profkit.regression.paired.decide import Confirmation, confirm
from profkit.regression.profile_process import ProfileResult

# Seconds of sampling in one process of a round: a round is cheap and there are many. A spec may ask for less.
ROUND_TIMING = 2.0
FAILED_MOST = 2  # rounds that may fail: a workload that crashes now and then is no baseline
RERUN_FOLDERS = ("reruns", "calibration")  # of a night: what is in them are rounds and no runs of the night
CALIBRATION = "calibration"
_RUN_FACT = "of"  # of a calibration's entry: the id of the run whose checkout it was

MetricScope = tuple[str, Scope]


@dataclass(frozen=True)
class RoundSide:
    """One of the two: what it is called, where it runs, and its command there."""

    name: str
    cwd: Path
    command: tuple[str, ...]


@dataclass(frozen=True)
class CandidateRegression:
    """One metric that is outside of its control limits, and what decides it."""

    wanted: MetricScope
    rule: NightRule
    better: Direction
    unit: str


@dataclass(frozen=True)
class RerunResult:
    """The result of each candidate; `why` there was no re-run, or it came to an early end, and the fix."""

    words: Mapping[MetricScope, Confirmation]
    why: str | None = None
    fix: str | None = None


def rerun(
    session: NightSession,
    spec: WorkloadSpec,
    tonight: Entry,
    good: Entry | None,
    candidates: Sequence[CandidateRegression],
) -> RerunResult:
    """Candidate and last good in turn; never raises for what prevents it."""
    limits = session.config.confirm
    deadline = session.deadline(limits.budget)
    folder = session.folder / RERUN_FOLDERS[0] / clean_name(spec.name)
    try:
        commit = _commit_to_run(good, tonight)
        if deadline <= time.monotonic():
            raise NoCheckout("the night's budget is used up", "budget: SECONDS")
        with checked_out(spec.cwd, commit, limits, folder, session.progress.tick) as checkout:
            sides = (
                RoundSide("tonight's checkout", spec.cwd, spec.command),
                RoundSide(
                    "the last good commit",
                    checkout.path_inside(spec.cwd),
                    checkout.command_inside(spec.command, spec.cwd),
                ),
            )
            result = _run_rounds(session, spec, sides, candidates, folder, deadline, limits.rounds)
    except NoCheckout as fault:
        return RerunResult({}, fault.reason, fault.fix)
    for (metric, scope), confirmation in result.words.items():
        key = SeriesKey(tonight.workload, tonight.backend, metric, scope)
        session.history.confirm(tonight.id, key, confirmation.word)
    return result


def _commit_to_run(good: Entry | None, tonight: Entry) -> str:
    """The last good commit; raises NoCheckout where it says nothing beside tonight's run."""
    if good is None:
        raise NoCheckout("there is no earlier good night to compare with")
    if good.commit is None:
        raise NoCheckout(
            "the commit of the last good night is not known", "run the workload in a git repository"
        )
    if good.dirty:
        raise NoCheckout(
            f"the last good night ran {good.commit[:12]} with changes that were not committed",
            "commit before the nightly runs",
        )
    if good.commit == tonight.commit and not tonight.dirty:
        raise NoCheckout(
            f"it is the same commit as in the last good night ({good.commit[:12]}): the machine or an installed "
            "package changed, not the code of this repository"
        )
    return good.commit


# ---------------------------------------------------------------- rounds


@dataclass
class Rounds:
    """The rounds of one workload as they are made. `pairs` holds (A, B) of each round for what is wanted.

    `deadline` is a time of `time.monotonic()` after which none is begun.
    """

    session: NightSession
    spec: WorkloadSpec
    sides: tuple[RoundSide, RoundSide]
    wanted: Sequence[MetricScope]
    folder: Path
    deadline: float
    pairs: dict[MetricScope, list[tuple[float, float]]] = field(default_factory=dict)
    count: int = 0
    failed: int = 0
    longest: float = 0.0
    why: str | None = None  # why there are no more
    fix: str | None = None

    def make(self, count: int) -> bool:
        """Make rounds until there are `count`; False where no more can be had, and `why` says so."""
        while self.count < count:
            if self.why is not None or not self._make_round():
                return False
        return True

    def _make_round(self) -> bool:
        start = time.monotonic()
        left = self.deadline - start
        if left <= 0 or left < self.longest:
            self.why = "the time for re-runs is used up"
            return False
        values: dict[int, dict[MetricScope, float]] = {}
        for side in (0, 1) if self.count % 2 == 0 else (1, 0):
            result = self._profile(self.sides[side])
            if not result.ok or result.document is None:
                return self._record_failure(self.sides[side], result)
            measured = {wanted: value_of(result.document, *wanted) for wanted in self.wanted}
            values[side] = {wanted: value for wanted, value in measured.items() if value is not None}
            if not values[side]:
                self.why = f"{self.sides[side].name} does not measure {self.wanted[0][0]} in a re-run"
                return False
        for wanted in self.wanted:
            if wanted in values[0] and wanted in values[1]:
                self.pairs.setdefault(wanted, []).append((values[0][wanted], values[1][wanted]))
        self.count += 1
        self.longest = max(self.longest, time.monotonic() - start)
        return True

    def _profile(self, side: RoundSide) -> ProfileResult:
        """By the timing pass alone where only times are wanted."""
        into = self.folder / f"{self.count:03d}-{clean_name(side.name)}"
        times = all(name.startswith("time.") for name, _ in self.wanted)
        spec = replace(
            self.spec,
            depth="gate",
            timing=min(self.spec.timing or ROUND_TIMING, ROUND_TIMING),
            cwd=side.cwd,
            command=side.command,
            passes=("timing",) if times else self.spec.passes,
            budget=min(max(1.0, self.deadline - time.monotonic()), self.spec.budget),
            targets=None,
        )
        result = profile_process.profile_once(spec, into, self.session.progress.tick)
        if result.ok:  # its values are stored, and nobody reads twenty folders of rounds
            with contextlib.suppress(OSError):  # a round that failed is still in it
                with opened(self.folder) as folder:
                    shutil.rmtree(folder / into.name, ignore_errors=True)
                self.folder.rmdir()
        return result

    def _record_failure(self, side: RoundSide, result: ProfileResult) -> bool:
        """A failed round; True where another may be tried."""
        self.failed += 1
        if result.ending == "out-of-time" and time.monotonic() >= self.deadline:
            self.why = "the time for re-runs is used up"
        elif self.failed > FAILED_MOST or self.count == 0:
            reason = result.reason.splitlines()[0] if result.reason else result.ending
            self.why, self.fix = f"{side.name} could not be run again: {reason}", result.fix
        return self.why is None


def value_of(document: RunDocument, metric: str, scope: Scope) -> float | None:
    """The value of one metric in one scope, in its own unit; None where it was not measured or is contradicted."""
    for reading in [*document.readings, *(r for s in document.summaries for r in s.readings)]:
        if reading.metric == metric and reading.value is not None and reading.doubt is None:
            same = reading.scope.kind == scope.kind and reading.scope.name == scope.name
            if same and (scope.id is None or reading.scope.id == scope.id):
                return reading.value
    return None


def _run_rounds(
    session: NightSession,
    spec: WorkloadSpec,
    sides: tuple[RoundSide, RoundSide],
    candidates: Sequence[CandidateRegression],
    folder: Path,
    deadline: float,
    most: int,
) -> RerunResult:
    """Rounds until every candidate is decided, none are left, or they cannot be made."""
    rounds = Rounds(session, spec, sides, [c.wanted for c in candidates], folder, deadline)
    words: dict[MetricScope, Confirmation] = {}
    undecided, spent = list(candidates), False
    while undecided:
        for c in undecided:
            words[c.wanted] = confirm(rounds.pairs.get(c.wanted, []), c.rule, c.better, c.unit, most, spent)
        if spent:
            break
        undecided = [c for c in undecided if words[c.wanted].word == "more"]
        if undecided:
            # At least one more: a metric that some rounds did not measure must not ask for ever.
            target = max(rounds.count + 1, *(words[c.wanted].wanted for c in undecided))
            spent = rounds.count >= most or not rounds.make(target)
    measured = {wanted: word for wanted, word in words.items() if rounds.pairs.get(wanted)}
    return RerunResult(measured, rounds.why, rounds.fix)


# ---------------------------------------------------------------- calibration


def calibrate(
    session: NightSession, spec: WorkloadSpec, tonight: Entry, metrics: Sequence[CandidateRegression]
) -> RerunResult:
    """The same checkout against itself, by the same rounds and the same rule as a re-run."""
    limits = session.config.calibrate
    folder = session.folder / RERUN_FOLDERS[1] / clean_name(spec.name)
    sides = (RoundSide("first", spec.cwd, spec.command), RoundSide("second", spec.cwd, spec.command))
    deadline = session.deadline(limits.budget)
    result = _run_rounds(session, spec, sides, metrics, folder, deadline, limits.rounds)
    finished = {wanted: word for wanted, word in result.words.items() if word.change is not None}
    if finished:  # without time for four rounds it was no trial
        _store_trial(session.history, tonight, finished)
    return result


def _store_trial(history: History, run: Entry, words: Mapping[MetricScope, Confirmation]) -> None:
    """Store the results of one checkout against itself; stored again they change nothing."""
    name = f"{run.workload}/{CALIBRATION}"
    facts, values = {_RUN_FACT: run.id}, []
    for (metric, scope), confirmation in words.items():
        facts[f"{metric} {scope.kind} {scope.name or ''}".rstrip()] = confirmation.word
        change = confirmation.change
        if change is not None and change.ratio is not None:
            sides = change.candidate, change.baseline
            samples = tuple(tuple(v for group in side.groups for v in group) for side in sides)
            key = SeriesKey(name, run.backend, metric, scope)
            values.append(
                Value(key, "ratio", "none", change.ratio, "measured", change.low, change.high, samples)
            )
    history.add(
        replace(
            run,
            id=f"{CALIBRATION}-{run.id}",
            workload=name,
            state="complete",
            source=f"profkit-{CALIBRATION}",
            path=None,
            facts=facts,
            values=tuple(values),
            outcome=None,
            valid=True,
            reason=None,
        )
    )


def last_trial(history: History, workload: str) -> str:
    """When a workload was last run against itself; empty where it never was."""
    return max((e.started for e in history.entries(HistoryFilter(f"{workload}/{CALIBRATION}"))), default="")


def calibration_of(history: History, workloads: Iterable[str], expected: float) -> Calibration | None:
    """All trials so far; `expected`: the share of them that chance alone gets wrong. None where there are none."""
    words: list[str] = []
    ratios: list[float] = []
    rounds = 0
    last: str | None = None
    for name in workloads:
        chosen = HistoryFilter(f"{name}/{CALIBRATION}")
        for entry in history.entries(chosen):
            words += [word for fact, word in entry.facts.items() if fact != _RUN_FACT]
            last = max(last or "", entry.started)
        for series in history.series(chosen) if last else ():
            ratios += [abs(point.value - 1) for point in series.points]
            rounds += sum(len(point.groups[0]) for point in series.points if point.groups)
    if not words:
        return None
    return Calibration(
        rounds=rounds,
        looked_at=len(words),
        alarms=words.count("different"),
        expected=len(words) * expected,
        noise=median(ratios) if ratios else None,
        worst=max(ratios, default=None),
        when=last,
    )
