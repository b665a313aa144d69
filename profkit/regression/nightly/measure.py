"""Each workload profiled in turn, its run stored at once, and what became of it written down before the next begins."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.core.progress import Progress
from profkit.core.run_folder import clean_name, release_space, reserve_space
from profkit.core.types import Entry, RunDocument
from profkit.regression.compare.causes.machine_state import thermal_throttling
from profkit.regression.history import History, entry_of
from profkit.regression.nightly.config import NightConfig, WorkloadSpec
from profkit.regression.nightly.one_run import Ran, profile_once
from profkit.regression.nightly.state import Done, State, write_state

# What a device at its power limit is built to do: large products of matrices run there every night. In the words of
# hardware/nvml.py, for samples and moments alike; every other reason there is heat or a fault.
_POWER = "power limit"
CASES_HEATED = 0.05  # of a sweep: of fewer cases than these the means over all shapes tell nothing else


@dataclass
class Sitting:
    """A night under way: where it stands, and what it works with. `began` is of `time.monotonic()`."""

    config: NightConfig
    folder: Path
    state: State
    history: History
    progress: Progress
    began: float
    notes: list[str]

    @property
    def seconds(self) -> float:
        """Of this sitting and those before it."""
        return self.state.seconds + time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Seconds that the night's budget still has."""
        return float("inf") if self.config.budget is None else self.config.budget - self.seconds

    def deadline(self, budget: float) -> float:
        """When something that may take `budget` seconds must end, as a time of `time.monotonic()`."""
        return time.monotonic() + min(budget, self.left)

    def save(self, state: State) -> None:
        """Keep the state; a disk that is full costs the memory of this step and not the night."""
        self.state = state
        try:
            write_state(self.folder, replace(state, seconds=self.seconds))
        except ProfkitError as fault:
            release_space(self.folder)
            with contextlib.suppress(ProfkitError):
                write_state(self.folder, replace(state, seconds=self.seconds))
            self.note(fault.message)

    def note(self, text: str) -> None:
        """Say something once, on the screen and in the report."""
        if text not in self.notes:
            self.notes.append(text)
            self.progress.note(text)


def measure(sitting: Sitting, specs: Sequence[WorkloadSpec]) -> None:
    """Profile what is not done yet. KeyboardInterrupt passes through: what was finished is stored."""
    reserve_space(sitting.folder)
    for number, spec in enumerate(specs, 1):
        if spec.name in sitting.state.done:
            continue
        sitting.progress.begin(spec.name, f"{number} of {len(specs)}")
        done = _one(sitting, spec)
        sitting.progress.end(
            done.reason.splitlines()[0] if done.ending != "done" else f"{done.seconds:.1f} s"
        )
        sitting.save(sitting.state.with_done(spec.name, done))


def _one(sitting: Sitting, spec: WorkloadSpec) -> Done:
    budget = min(spec.budget, sitting.left)
    if budget <= 0:
        spent = sitting.config.budget or 0.0
        return Done(
            "out-of-time", f"the night's budget of {spent:.0f} s was spent before it began", "budget: ..."
        )
    into = sitting.folder / "runs" / folder_name(spec.name, [each.name for each in sitting.config.workloads])
    try:
        ran = profile_once(spec, into, budget=budget, tick=sitting.progress.tick)
    except ProfkitError as fault:  # the disk is full: the next may need less
        return Done("machine", fault.message, fault.fix)
    done = Done(
        ran.ending,
        ran.reason,
        ran.fix,
        run=_relative(ran.folder, sitting.folder),
        log=_relative(into / "profkit.log", sitting.folder),
        seconds=ran.seconds,
    )
    return _stored(sitting, done, ran)


def folder_name(name: str, names: Sequence[str]) -> str:
    """What the folder of `name` is called, one of `names`: its own, also where others are alike when cleaned."""
    taken: set[str] = set()
    for each in names:
        clean = clean_name(each)
        number = 1
        while (found := clean if number == 1 else f"{clean}-{number}") in taken:
            number += 1
        if each == name:
            return found
        taken.add(found)
    return clean_name(name)


def _stored(sitting: Sitting, done: Done, ran: Ran) -> Done:
    """The run in the history, also one that is not whole: it is kept, shown, and decides nothing."""
    if ran.document is None or ran.document.state == "running":
        return done
    path = str(ran.folder) if ran.folder is not None else None
    try:
        entry = judged(entry_of(ran.document, path=path, night=sitting.state.id), ran.document)
        sitting.history.add(entry)
    except ProfkitError as fault:
        if done.ending != "done":
            return done
        return replace(
            done, ending="machine", reason=f"measured, but not stored: {fault.message}", fix=fault.fix
        )
    return replace(done, entry=entry.id)


def judged(entry: Entry, document: RunDocument) -> Entry:
    """The entry, not valid where the hardware slowed itself down: its times say nothing of the code."""
    reason = throttled(document)
    return entry if reason is None or not entry.valid else replace(entry, valid=False, reason=reason)


def throttled(document: RunDocument) -> str | None:
    """Why the samples cannot be believed: too hot, or thrown away for the most part; None where they can."""
    cases = [timing for timing in document.timings if timing.group is not None]
    heated = [r for t in cases for p in t.processes for r in sorted(set(p.throttle_reasons) - {_POWER})[:1]]
    if len(heated) > CASES_HEATED * len(cases):
        return f"throttled in {len(heated)} of {len(cases)} cases ({heated[0]})"
    for timing in document.timings:
        for process in timing.processes if timing.group is None else ():
            why = ", ".join(process.throttle_reasons)
            if process.throttled == 0 and set(process.throttle_reasons) - {_POWER}:
                return f"throttled all the time ({why})"
            if process.throttled > len(process.seconds):
                return (
                    f"throttled: {process.throttled} samples thrown away, {len(process.seconds)} left ({why})"
                )
    hot = [r for m in document.moments for d in m.devices for r in d.throttle if r != _POWER]
    hot += [reason for moment in document.moments for reason in moment.slowed]
    if (metal := thermal_throttling(document)) is not None:
        hot.append(metal)
    if hot:
        return f"throttled: {hot[0]}"
    counts = [m.throttled for m in document.moments if m.throttled is not None]
    if counts and counts[-1] > counts[0]:
        return f"throttled: the processor slowed itself down for heat, {counts[-1] - counts[0]} times"
    return None


def _relative(path: Path | None, folder: Path) -> str | None:
    if path is None or not path.exists():
        return None
    return str(path.relative_to(folder))
