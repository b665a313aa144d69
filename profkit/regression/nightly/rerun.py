"""The same night, once more: tonight's checkout and the last good commit in turn, until it is clear or time is over.

And the same checkout against itself, which tells how often this machine sees a change where there is none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.run_folder import clean_name
from profkit.core.types import Direction, Entry, SeriesKey
from profkit.regression.detection.confirm import Confirmation, confirm
from profkit.regression.detection.rules import NightRule
from profkit.regression.nightly.checkout import Unavailable, checked_out
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.nightly.measure import Sitting
from profkit.regression.nightly.remarks import remember_trial
from profkit.regression.nightly.rounds import Arm, Rounds, Wanted, passes_for

FOLDERS = ("reruns", "calibration")  # of a night: what is in them are rounds and no runs of the night
CANDIDATE, LAST_GOOD = "tonight's checkout", "the last good commit"


@dataclass(frozen=True)
class Suspect:
    """One metric that left its band: what decides it, and the last good night's commit."""

    wanted: Wanted
    rule: NightRule
    better: Direction
    unit: str


@dataclass(frozen=True)
class Answer:
    """What a re-run said of each suspect; `why` it could not be had, or came to an early end, and the fix."""

    words: Mapping[Wanted, Confirmation]
    why: str | None = None
    fix: str | None = None


def impossible(good: Entry | None, tonight: Entry) -> Unavailable | None:
    """Why tonight's run cannot be confirmed by a re-run beside the last good one, before anything is checked out."""
    if good is None:
        return Unavailable("no good night is known to run beside")
    if good.commit is None:
        return Unavailable(
            "the last good night does not say its commit", "run the workload in a git repository"
        )
    if good.dirty:
        return Unavailable(
            f"the last good night ran {good.commit[:12]} with changes that were not committed",
            "commit before the nightly runs",
        )
    if good.commit == tonight.commit and not tonight.dirty:
        return Unavailable(
            f"it is the same commit as in the last good night ({good.commit[:12]}): not the code of this "
            "repository changed, but what it runs on or with"
        )
    return None


def rerun(
    sitting: Sitting, spec: WorkloadSpec, tonight: Entry, good: Entry | None, suspects: Sequence[Suspect]
) -> Answer:
    """Candidate and last good in turn; never raises for what is in the way of it."""
    limits = sitting.config.confirm
    hindered = impossible(good, tonight)
    if hindered is not None or good is None or good.commit is None:
        return Answer({}, hindered.reason if hindered else None, hindered.fix if hindered else None)
    deadline = sitting.deadline(limits.budget)
    if deadline <= time.monotonic():
        return Answer({}, "the night's budget was spent", "budget: SECONDS")
    folder = sitting.folder / FOLDERS[0] / clean_name(spec.name)
    try:
        with checked_out(spec.cwd, good.commit, limits, folder, sitting.progress.tick) as there:
            arms = (
                Arm(CANDIDATE, spec.cwd, spec.command),
                Arm(LAST_GOOD, there.moved(spec.cwd), there.words(spec.command, spec.cwd)),
            )
            answer = _rounds(sitting, spec, arms, suspects, folder, deadline, limits.rounds)
    except Unavailable as reason:
        return Answer({}, reason.reason, reason.fix)
    for (metric, scope), word in answer.words.items():
        key = SeriesKey(tonight.workload, tonight.backend, metric, scope)
        sitting.history.confirm(tonight.id, key, word.word)
    return answer


def calibrate(sitting: Sitting, spec: WorkloadSpec, tonight: Entry, metrics: Sequence[Suspect]) -> Answer:
    """The same checkout against itself, by the same rounds and the same rule as a re-run."""
    limits = sitting.config.calibrate
    deadline = sitting.deadline(limits.budget)
    folder = sitting.folder / FOLDERS[1] / clean_name(spec.name)
    arms = (Arm("first", spec.cwd, spec.command), Arm("second", spec.cwd, spec.command))
    answer = _rounds(sitting, spec, arms, metrics, folder, deadline, limits.rounds)
    finished = {want: word for want, word in answer.words.items() if word.change is not None}
    if finished:  # one that had no time for four rounds was no trial
        remember_trial(sitting.history, tonight, finished)
    return answer


def _rounds(
    sitting: Sitting,
    spec: WorkloadSpec,
    arms: tuple[Arm, Arm],
    suspects: Sequence[Suspect],
    folder: Path,
    deadline: float,
    most: int,
) -> Answer:
    """Rounds until every suspect is decided, none are left, or they cannot be made."""
    wanted = [one.wanted for one in suspects]
    passes = passes_for(spec, wanted)
    rounds = Rounds(spec, arms, wanted, folder, deadline, passes, sitting.progress.tick)
    words: dict[Wanted, Confirmation] = {}
    open_ = list(suspects)
    while open_:
        spent = False
        for one in list(open_):
            word = _ask(rounds, one, most, spent=False)
            words[one.wanted] = word
            if word.word != "more":
                open_.remove(one)
        if open_:
            target = max(words[one.wanted].wanted for one in open_)
            # a metric that some rounds did not measure must not ask for ever
            spent = rounds.made >= most or not rounds.more(max(target, rounds.made + 1))
        if spent:
            for one in open_:
                words[one.wanted] = _ask(rounds, one, most, spent=True)
            break
    return Answer(
        {want: word for want, word in words.items() if rounds.pairs.get(want)}, rounds.why, rounds.fix
    )


def _ask(rounds: Rounds, one: Suspect, most: int, *, spent: bool) -> Confirmation:
    pairs = rounds.pairs.get(one.wanted, [])
    return confirm(pairs, one.rule, one.better, one.unit, most, spent)
