"""Profile each workload in turn and store its run at once.

The state of the night is written after every step.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from profkit.core.codec import check_schema, from_plain_data, json_text, read_document, to_plain_data
from profkit.core.errors import MachineError, ProfkitError, Progress, UnreadableReport, writing
from profkit.core.files.safe_folder import make_parents, write_whole
from profkit.core.run_folder import clean_name
from profkit.core.types import Fact, Json, NightPairs, RunDocument
from profkit.regression import profile_process
from profkit.regression.history import History, entry_of
from profkit.regression.nightly.config import NightConfig, WorkloadSpec
from profkit.regression.paired.checkout import Version, locked, repository_of
from profkit.regression.profile_process import Ending, ProfileResult
from profkit.reporting.facts import fact_text

STATE_SCHEMA = "profkit.night-state/2"
STATE_FILE = "state.json"
# Folders of a night whose runs are no runs of the night: pairs, and counts of the base.
PAIRS_FOLDER, EXACT_FOLDER = "pairs", "counts"


@dataclass(frozen=True)
class WorkloadState:
    """The result of profiling one workload; `entry` is its id in the history, paths are relative to the night."""

    ending: Ending
    reason: Fact | None = None
    fix: str | None = None
    entry: str | None = None
    run: str | None = None
    log: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class NightState:
    """Everything that a night has done so far."""

    id: str
    started: str
    commit: str | None = None
    seconds: float = 0.0  # of the sessions before this one
    done: Mapping[str, WorkloadState] = field(default_factory=dict)
    paired: Mapping[str, NightPairs] = field(default_factory=dict)


def read_state(folder: Path) -> NightState | None:
    """Read the state of the night in `folder`; None if none was begun. Raises UnreadableReport for a broken file."""
    if not (folder / STATE_FILE).exists():
        return None
    try:
        return read_document(
            folder / STATE_FILE,
            lambda data: from_plain_data(
                NightState, check_schema(data, STATE_SCHEMA, "the state of a night")
            ),
        )
    except UnreadableReport as error:
        raise UnreadableReport(error.message, "another --night ID") from error


def write_state(folder: Path, state: NightState) -> None:
    """Write the state whole or not at all. Raises MachineError if the system refuses."""
    body = {"schema": STATE_SCHEMA, **cast("dict[str, Json]", to_plain_data(state))}
    write_text(folder / STATE_FILE, json_text(body))


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all. Raises MachineError if the system refuses."""
    with writing(path, f"df -h {shlex.quote(str(path.parent))}; ls -ld {shlex.quote(str(path.parent))}"):
        make_parents(path.parent)
        write_whole(path, (text,))


@contextlib.contextmanager
def nightly_lock(output: Path) -> Iterator[None]:
    """Hold the machine's nightly lock in `output`: two nights at once would disturb each other.

    Raises MachineError if another one holds it.
    """
    with contextlib.ExitStack() as stack:
        with writing(output, "output: FOLDER"):
            free = stack.enter_context(locked(output))
        if not free:
            raise MachineError(
                f"another nightly is running with {output}: two at once would disturb each other",
                "wait until it ends",
            )
        yield


# What a device at its power limit is built to do: large products of matrices run there every night. In the words of
# hardware/nvml.py, every other reason there is heat or a fault.
_POWER = "power limit"


@dataclass
class NightSession:
    """A night under way: its state, and what it works with. `began` is of `time.monotonic()`."""

    config: NightConfig
    folder: Path
    state: NightState
    history: History
    progress: Progress
    began: float
    notes: list[Fact]
    # By the folder of a workload and the commit: what kept it from being checked out and set up tonight.
    no_checkout: dict[tuple[Path, str], NightPairs] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Return the seconds of this session and those before it."""
        return self.state.seconds + time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Return the seconds that are left of the night's budget; infinite without one."""
        return float("inf") if self.config.budget is None else self.config.budget - self.seconds

    def save(self, state: NightState) -> None:
        """Save the state; if the disk is full, this step is not recorded on it, and the night continues."""
        self.state = state
        try:
            write_state(self.folder, replace(state, seconds=self.seconds))
        except ProfkitError as fault:
            if (note := Fact.message(fault.message)) not in self.notes:
                self.notes.append(note)
                self.progress.note(fault.message)


def measure_workloads(session: NightSession) -> None:
    """Profile the workloads that are not done yet. A KeyboardInterrupt passes through: finished ones are stored."""
    specs = session.config.workloads
    for number, spec in enumerate(specs, 1):
        if spec.name in session.state.done:
            continue
        session.progress.begin(spec.name, f"{number} of {len(specs)}")
        done = _measure_workload(session, spec)
        result = " ".join(fact_text(done.reason).split()) or done.ending
        session.progress.end(result if done.ending != "done" else f"{done.seconds:.1f} s")
        session.save(replace(session.state, done={**session.state.done, spec.name: done}))


def _variables(spec: WorkloadSpec) -> Mapping[str, str]:
    """Return its variables as the pairs set them: Python finds the modules of the repository."""
    root = repository_of(spec.cwd) if spec.on is None else None
    return Version(spec.name, spec.command, spec.cwd, spec.env, root).environment()


def _measure_workload(session: NightSession, spec: WorkloadSpec) -> WorkloadState:
    budget = min(spec.budget, session.left)
    if budget <= 0:
        return WorkloadState("budget-spent", Fact("workload budget-spent"), "budget: ...")
    into = session.folder / "runs" / clean_name(spec.name)
    try:
        ran = profile_process.profile_once(
            replace(spec, budget=budget, env=_variables(spec)), into, session.progress.tick
        )
    except ProfkitError as fault:  # the disk is full: the next may need less
        return WorkloadState("machine", Fact.message(fault.message), fault.fix)
    run, log = (_relative_path(path, session.folder) for path in (ran.folder, into / "profkit.log"))
    done = WorkloadState(ran.ending, ran.reason, ran.fix, run=run, log=log, seconds=ran.seconds)
    return _store_run(session, done, ran)


def _store_run(session: NightSession, done: WorkloadState, ran: ProfileResult) -> WorkloadState:
    """Store the run in the history, even an incomplete one: it is kept and shown, and decides nothing."""
    if ran.document is None or ran.document.state == "running":
        return done
    path = str(ran.folder) if ran.folder is not None else None
    try:
        entry = entry_of(ran.document, path=path, night=session.state.id)
        if entry.valid and (slowed := throttling_reason(ran.document)) is not None:
            entry = replace(entry, valid=False, reason=slowed)  # its times say nothing of the code
        session.history.add(entry)
    except ProfkitError as fault:
        if done.ending != "done":
            return done
        reason = Fact.of("workload not-stored", message=fault.message)
        return replace(done, ending="not-stored", reason=reason, fix=fault.fix)
    return replace(done, entry=entry.id)


def throttling_reason(document: RunDocument) -> Fact | None:
    """Return why the samples cannot be believed: too hot, or most were discarded; None if they can."""
    for process in (process for timing in document.timings for process in timing.processes):
        names, left = ", ".join(process.throttle_reasons), len(process.seconds)
        if process.throttled > left:
            return Fact.of("too-throttled", thrown=process.throttled, left=left, names=names)
        if not process.throttled and set(process.throttle_reasons) - {_POWER}:
            return Fact.of("always-throttled", names=names)
    return None


def _relative_path(path: Path | None, folder: Path) -> str | None:
    if path is None or not path.exists():
        return None
    return str(path.relative_to(folder))
