"""Makes one trial: runs the program once with a change, and if that is faster, in pairs with and without it.

Only the pairs decide, by the rule that also decides between two versions of a program.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profkit.core.errors import ProfkitError, WorkloadError
from profkit.core.files.regular import read_bounded
from profkit.core.inference import Interval
from profkit.core.pairs import FIRST_ROUNDS, change_between, confirm, rounds_of_looks
from profkit.core.statistics import median
from profkit.core.types import RUN, Change, Fact, Scope, TrialState, TriedChange
from profkit.profiling.plain_run import OneRun, PlainProcess, RunOptions, variation
from profkit.profiling.time_limits import plain_time_limit
from profkit.profiling.trials.hypotheses import Experiment
from profkit.profiling.trials.output import compare_outputs
from profkit.runtime.passes.command import start_up_environment

PROMISING = 0.95  # of the fastest normal run: pairs are made only below this
HARMFUL = 1.1  # times the slowest normal run
# Each run with a change that is this part of each run without it, or less, shows a gain without an interval. Where four
# pairs do not fit, one does if the runs' waits for a processor are known and taken off, else two: so a change without
# effect is a gain in less than 0.01 % of trials, or 0.05 %; and in 0.05 % by four pairs whose interval shows nothing,
# since some runs took several times as long as others (docs/decisions.md, tests/performance/trial_noise.py).
HALVED, APART = 0.5, 0.8
PAIRS_OF_HALVED = {True: 1, False: 2}  # are the waits known?
FLOOR = 0.02  # the relative change of a time that counts
MAX_PAIRS = 20
EXCESS = 0.5  # of a pair: by so much the last one may end late
# Normal runs, and seconds, after which a trial that nobody requested is ended: the change is no improvement.
IMPATIENT = (2.0, 5.0)
_MAX_PRINTED = 8 << 20  # bytes of standard output that are compared


@dataclass(frozen=True)
class TimeFloor:
    """The smallest change of a time that counts."""

    metric: str = "time.median"

    def floor(self, centre: float) -> float:
        """Return the smallest change that counts, in seconds."""
        return FLOOR * centre


@dataclass
class TrialSetting:
    """What all trials of a run share: the program, its normal times by scope, and how a process is run."""

    command: tuple[str, ...]
    cwd: Path
    folder: Path  # for records and outputs; it is deleted afterwards
    logs: Path
    scope: Scope
    plain: tuple[float, ...]  # seconds of `scope` in each plain process
    longest: float  # wall seconds of the slowest plain process
    options: RunOptions = field(default_factory=RunOptions)
    tick: Callable[[float], None] | None = None
    seed: int | None = None
    hidden: Sequence[str] = ()  # secrets that no log shows
    given: Path | None = None  # what the program reads at its standard input


class TrialRun:
    """An experiment that is being carried out."""

    def __init__(
        self,
        bench: TrialSetting,
        experiment: Experiment,
        deadline: float,
        latest: float,
        timeout: float | None,
        *,
        patient: bool = True,
    ) -> None:
        """Create a trial that ends by `deadline`, or by `latest` if four pairs can decide until then.

        Both are moments of `time.monotonic`. A trial that is not `patient` begins no pairs that would end later.
        """
        self._bench, self._experiment, self._deadline = bench, experiment, deadline
        self._latest, self._patient = max(deadline, latest), patient
        runs, seconds = IMPATIENT
        self._limit = plain_time_limit(
            bench.longest, timeout, None if patient else runs * bench.longest + seconds
        )
        self._draw = random.Random(bench.seed)
        self._begin = time.monotonic()
        self._printed: dict[bool, list[str]] = {False: [], True: []}  # with the change?
        self._memory: dict[bool, list[int]] = {False: [], True: []}
        self._pairs: list[tuple[float, float]] = []  # (with, without), seconds
        self._waits_known = True  # of each run so far, and taken off

    def run(self) -> TriedChange:
        """Carry out the trial. A program that fails with the change is a result; KeyboardInterrupt passes through."""
        bench = self._bench
        try:
            began = time.monotonic()
            first = self._measure(changed=True, seed=0)
            first_wall = time.monotonic() - began
            if (missing := self._missing()) is not None:
                return self._trial("without-hold", reason=missing)
            if first > PROMISING * min(bench.plain):
                slow = first > HARMFUL * max(bench.plain)
                # A slower change is shown with the median normal run, a change without effect with the fastest.
                before = median(bench.plain) if slow else min(bench.plain)
                return self._trial("slower" if slow else "same", before=before, after=first)
            change = self._make_pairs(bench.longest + first_wall, first)
        except WorkloadError as fault:
            return self._trial("failed", reason=Fact.message(fault.message.splitlines()[0]))
        except ProfkitError as fault:
            return self._trial("failed", reason=Fact.message(fault.message))
        except OSError as error:  # a full disk ends the trial, not the run
            return self._trial("failed", reason=Fact.message(error.strerror or str(error)))
        trial = self._trial("undecided", after=first)
        if change is None:
            if self._pairs and not self._is_promising():
                with_it, without = (min(times) for times in zip(*self._pairs, strict=True))
                before = min(without, *self._bench.plain)  # the time that the change had to beat
                return replace(trial, state="same", before=before, after=with_it)
            return trial
        state: TrialState = "undecided"
        if change.word != "ambiguous":
            state = "same" if change.word == "same" else "faster" if change.course == "better" else "slower"
        output = compare_outputs(self._printed[False], self._printed[True])
        return replace(
            trial,
            state="other-output" if output == "different" and state == "faster" else state,
            before=change.baseline.value,
            after=change.candidate.value,
            ratio=change.ratio,
            low=change.low,
            high=change.high,
            pairs=len(self._pairs),
            output=output,
            memory=self._memory_ratio(),
        )

    def _trial(self, state: TrialState, **more: object) -> TriedChange:
        experiment, bench = self._experiment, self._bench
        trial = TriedChange(
            experiment.name,
            state,
            experiment.because,
            experiment.settings,
            experiment.where,
            bench.scope,
            median(bench.plain),
            seconds=time.monotonic() - self._begin,
        )
        return replace(trial, **more)  # type: ignore[arg-type]

    def _make_pairs(self, each: float, first: float) -> Change | None:
        """Make pairs, which take `each` seconds, until they decide or the next one would not fit.

        None if the four pairs that a decision needs do not fit: then no pair is made, unless the `first` run with the
        change took half the time. Also None if the first pairs show that the single run was misleading, because the
        normal run that it was compared with was slow.
        """
        change, most = None, 0
        # A change that was faster once gets the four pairs that can decide, where these fit.
        end = time.monotonic() + FIRST_ROUNDS * each
        if end > self._latest + (EXCESS * each if self._patient else 0.0):
            return self._confirm_half(each, first)
        deadline = max(self._deadline, end)
        while len(self._pairs) < MAX_PAIRS:
            # Once begun, all four are made, even if the machine has become slower.
            until = max(deadline, self._latest) if len(self._pairs) < FIRST_ROUNDS else deadline
            if time.monotonic() + each > until + EXCESS * each:
                break
            self._make_pair()
            if len(self._pairs) < FIRST_ROUNDS:
                if not self._is_promising():
                    return None
                continue
            if most == 0:
                room = max(0, int((deadline - time.monotonic()) / each))
                most = max(FIRST_ROUNDS, min(MAX_PAIRS, len(self._pairs) + room))
            change = confirm(self._pairs, TimeFloor(), "s", most, self._bench.scope)
            if change is None or change.word == "ambiguous":
                if self._is_apart(first, APART):
                    return self._change_of_all(first)
            elif len(self._pairs) in rounds_of_looks(most):
                break
        return change

    def _make_pair(self) -> None:
        order, seed = [True, False], self._draw.randrange(1, 2**32)
        self._draw.shuffle(order)
        seconds = {changed: self._measure(changed=changed, seed=seed) for changed in order}
        self._pairs.append((seconds[True], seconds[False]))

    def _confirm_half(self, each: float, first: float) -> Change | None:
        """Return the change if each run took half the time with it, by the fewest pairs that show it; else None.

        No pair is made where these do not fit, or the `first` run did not take half the time.
        """
        if time.monotonic() + PAIRS_OF_HALVED[self._waits_known] * each > self._latest:
            return None
        while len(self._pairs) < PAIRS_OF_HALVED[self._waits_known]:
            if not self._is_apart(first, HALVED):
                return None
            self._make_pair()
        # So few texts without the change do not show which parts of it are other in each run.
        output = compare_outputs(self._printed[False], self._printed[True])
        return self._change_of_all(first) if self._is_apart(first, HALVED) and output != "different" else None

    def _is_apart(self, first: float, most: float) -> bool:
        """Return whether each run with the change took at most so much (0..1) of each run without it, so far."""
        plain, changed = self._all_times(first)
        return max(changed) <= most * min(plain)

    def _change_of_all(self, first: float) -> Change:
        """Return the change from all runs without it to all with it, as different; it has no interval."""
        sides = self._all_times(first)
        seconds = median(sides[1]) - median(sides[0])
        floor = TimeFloor()
        shift, least = Interval(seconds, seconds, seconds), floor.floor(median(sides[0]))
        change = change_between(
            sides, shift, "different", least, floor.metric, "lower", "s", self._bench.scope
        )
        return replace(change, low=None, high=None)

    def _all_times(self, first: float) -> tuple[list[float], list[float]]:
        """Return the seconds of all runs without the change, and of all with it."""
        plain = [*self._bench.plain, *(without for _, without in self._pairs)]
        return plain, [first, *(with_it for with_it, _ in self._pairs)]

    def _is_promising(self) -> bool:
        """Return whether the fastest run with the change is faster than the fastest without, so far."""
        plain = min((*self._bench.plain, *(without for _, without in self._pairs)))
        return min(with_it for with_it, _ in self._pairs) <= PROMISING * plain

    def _measure(self, *, changed: bool, seed: int) -> float:
        """Run one process and return its seconds."""
        bench = self._bench
        folder = bench.folder / ("changed" if changed else "plain")
        env = {**variation(self._draw, seed), **self._environment(changed=changed)}
        options = replace(bench.options, timeout=self._limit)
        printed = bench.folder / "printed"
        begin = time.monotonic() - self._begin
        tick = bench.tick
        run = PlainProcess(
            f"the trial of {self._experiment.name}" if changed else "the plain run",
            bench.command,
            bench.cwd,
            env,
            folder,
            options,
            log=bench.logs / f"try-{self._experiment.name}.log" if changed else None,
            printed=printed,
            hidden=bench.hidden,
            given=bench.given,
        ).time((lambda seconds: tick(begin + seconds)) if tick is not None else None)
        self._printed[changed].append(_read(printed))
        if run.rss:
            self._memory[changed].append(run.rss)
        self._waits_known &= run.waited is not None
        return _seconds(run, bench.scope)

    def _environment(self, *, changed: bool) -> dict[str, str]:
        """Return the variables of a process.

        Without the change, a Python program loads the same modules, so that both start alike.
        """
        experiment, env = self._experiment, {}
        if experiment.intervention:
            held = self._bench.folder / ("held" if changed else "plain-held")
            held.mkdir(parents=True, exist_ok=True)
            interventions = {
                name: dict(options) for name, options in experiment.intervention.items() if changed
            }
            start, _ = start_up_environment(self._bench.command, "interventions", Path("-"))
            env = {**(start or {}), "PROFKIT_INTERVENTIONS": json.dumps({"out": str(held), **interventions})}
        return {**env, **(experiment.environment if changed else {})}

    def _missing(self) -> Fact | None:
        """Return why the change did not apply, by the program's own report; None where it did.

        A memoised function that gave different results for equal arguments is a reason of its own.
        """
        wanted = self._experiment.intervention
        if not wanted:
            return None
        reports = [_read_json(path) for path in sorted((self._bench.folder / "held").glob("*.json"))[:64]]
        if not any(name in report for report in reports for name in wanted):
            return Fact("trial-not-reached")
        memories = [
            memory_report for report in reports if isinstance(memory_report := report.get("memoise"), dict)
        ]
        if any(memory.get("different") for memory in memories):
            return Fact("trial-impure")
        return None

    def _memory_ratio(self) -> float | None:
        plain, changed = self._memory[False], self._memory[True]
        return median(changed) / median(plain) if plain and changed and median(plain) else None


def _seconds(run: OneRun, scope: Scope) -> float:
    """Return the seconds that are compared; for a whole process, without its waits for a processor."""
    if scope not in run.times:
        raise WorkloadError("the region that is timed was not entered")
    return run.times[scope] - ((run.waited or 0.0) if scope == RUN else 0.0)


def _read(path: Path) -> str:
    try:
        return read_bounded(path, _MAX_PRINTED).decode("utf-8", "replace")
    except (OSError, ProfkitError):
        return ""


def _read_json(path: Path) -> Mapping[str, object]:
    try:
        data = json.loads(read_bounded(path, 1 << 16))
    except (OSError, ValueError, ProfkitError):
        return {}
    return data if isinstance(data, dict) else {}
