"""Runs one Step of a plan into a run's folder: pipes, directive, log, deadline, conversions. Parses nothing."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import re
import shlex
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from profkit.core import process
from profkit.core.errors import MORE_TIME, Fault, MachineError, UsageError
from profkit.core.files.safe_folder import ensure_folder, opened
from profkit.core.process import read_status
from profkit.core.signals import defer_interrupts
from profkit.core.types import Directive, Step
from profkit.runtime.passes.secrets import MIN_CHARACTERS_ANYWHERE, is_secret_variable

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_SESSION = re.compile(
    r"(?:_|SHLVL|PWD|OLDPWD|PS1|LINES|COLUMNS|BASH_FUNC_.*|XPC_.*|__CF.*|TERM_.*|SSH_.*)\Z"
)
_MAYBE_SECRET = re.compile(r"AUTH|SESSION", re.IGNORECASE)
_LONGEST = 32 * 1024  # characters of a value: the command line has room for a megabyte


def argv_with_environment(step: Step, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command line of a step with every variable that its tool has to pass on (`step.tells`).

    Those are `env`, which is set for the step, and what the workload would inherit. Left out are names that look
    like secrets, since other users of a machine can read command lines, and what belongs to the terminal's own
    session.
    """
    if step.tells is None:
        return step.argv
    wanted = {name: value for name, value in os.environ.items() if _may_be_passed_on(name, value)} | dict(env)
    pairs = [part for name in sorted(wanted) for part in (step.tells, f"{name}={wanted[name]}")]
    return (*step.argv[:2], *pairs, *step.argv[2:])  # after the program and its subcommand


def _may_be_passed_on(name: str, value: str) -> bool:
    if _NAME.fullmatch(name) is None or _OF_SESSION.match(name) or _MAYBE_SECRET.search(name):
        return False
    return len(value) <= _LONGEST and not is_secret_variable(name, value)


DIRECTIVE = "PROFKIT_DIRECTIVE"
Result = TypeVar("Result")


@dataclass(frozen=True)
class StepOutcome:
    """The result of a step. `status` is the workload's own wait status where a wrapper kept it, else the child's.

    `limit` is the time in seconds that the workload had, None where it had as much as it needed.
    """

    step: Step
    outcome: process.ProcessOutcome
    status: int
    log: Path
    limit: float | None = None
    full_disk: Path | None = None  # the folder that was full when its tool had failed

    @property
    def workload_ok(self) -> bool:
        """Return whether the workload itself ended with 0, or as it may, within its time."""
        return self.status == 0 and not self.outcome.timed_out

    @property
    def ran_out(self) -> bool:
        """Return whether its time limit ended the workload: profkit did, or the tool that had the limit."""
        by_tool = self.step.own_limit and self.status == -signal.SIGKILL
        return self.outcome.timed_out or (
            by_tool and self.limit is not None and self.outcome.seconds >= self.limit
        )

    def ending(self) -> str:
        """Return in words how the tool or the workload ended."""
        if self.ran_out and not self.outcome.timed_out:
            return f"ran past its time limit and was ended after {self.limit:.1f} s"
        return self.outcome.ending()

    def disk_fault(self) -> Fault | None:
        """Return the fault of a full disk, where the tool failed and not the workload.

        Some tools do not report it themselves.
        """
        file = self.step.workload_status
        if self.full_disk is None or (file is not None and read_status(file) not in (None, 0)):
            return None
        reason = f"the disk is full, so {self.step.tool} could not write its file"
        return Fault(reason, f"df -h {shlex.quote(str(self.full_disk))}")

    @property
    def tool_died(self) -> bool:
        """Return whether a signal ended the tool, so that it is not known how the workload ended."""
        return self.step.signals_as_codes and self.outcome.returncode < 0

    def workload_ending(self) -> str:
        """Return in words how the workload ended.

        Both readings if its tool writes a signal and an exit code in the same way.
        """
        words = process.describe_status(self.status)
        if self.step.signals_as_codes and self.status in signal.valid_signals():
            return f"{words}, or {process.describe_status(-self.status)}"
        return words

    def text(self) -> str:
        """Return the last 64 KiB that the step printed: error texts are searched in it."""
        return self.outcome.output_tail


@dataclass(frozen=True)
class RunSettings:
    """Settings of every step of a run; `folder` is the run's, `timeout` the wall seconds of one step.

    `more` is the option that gives a step more time.
    """

    folder: Path
    cwd: str | None = None
    timeout: float | None = None
    tick: Callable[[float], None] | None = None
    note: Callable[[str], None] | None = None
    hidden: tuple[str, ...] = ()  # secrets among the workload's arguments, which no log shows
    more: str = MORE_TIME
    longest: float | None = None  # wall seconds of a step whose time limit is extended on a busy machine
    given: Path | None = None  # what the workload reads at its standard input


def run_step(step: Step, settings: RunSettings, cancel: threading.Event | None = None) -> StepOutcome:
    """Run `step`; its log goes to the folder's `logs`. Conversions in `step.after` run only if it ended in time.

    A tool with a time limit of its own has `step.finish` on top of the timeout for its report; after a Ctrl-C it
    has that too, and `note` gets a line that says so. Raises UsageError when the command cannot be started,
    MachineError when the folder cannot be written.
    """
    folder, timeout, tick, note = settings.folder, settings.timeout, settings.tick, settings.note
    _prepare_folder(step, folder)
    log = folder / "logs" / f"{step.name}.log"
    env = dict(step.env)  # in addition to the caller's
    if step.directive is not None:
        env[DIRECTIVE] = directive_json(step.directive)
    wait = f"{step.tool or step.name} is saving its recording; a second Ctrl-C stops that and loses the recording"
    deadline = timeout + step.finish if timeout is not None and step.own_limit else timeout
    begin = time.monotonic()
    try:
        outcome = process.run(
            argv_with_environment(step, env),
            env=env,
            cwd=settings.cwd,
            log=log,
            timeout=deadline,
            tick=tick,
            cancel=cancel,
            finish=step.finish,
            end_signal=step.end_signal,
            waits=(lambda: note(wait)) if note is not None else None,
            hidden=[secret for secret in settings.hidden if len(secret) >= MIN_CHARACTERS_ANYWHERE],
            given=settings.given,
            longest=settings.longest if step.extended else None,
        )
    finally:
        _remove_pipes(step)
    for number, argv in enumerate(step.after):
        if outcome.timed_out:
            break
        with contextlib.suppress(UsageError):
            process.run(
                argv,
                log=folder / "logs" / f"{step.name}.after{number}.log",
                timeout=step.after_limit,
                tick=(lambda _: tick(time.monotonic() - begin)) if tick is not None else None,
                cancel=cancel,
            )
    # The workload's own status: perf returns 0 when its child was killed. Last: a conversion may be what brings it.
    status = read_status(step.workload_status) if step.workload_status is not None else None
    if status is None:
        status = 0 if outcome.returncode in step.fine else outcome.returncode
    failed = step.tool is not None and outcome.returncode not in (0, *step.fine) and not outcome.timed_out
    return StepOutcome(step, outcome, status, log, timeout, folder if failed and is_full(folder) else None)


_PROBE_BYTES = 1 << 16  # are written to try a disk


def is_full(folder: Path) -> bool:
    """Return whether a folder's disk, or this user's quota on it, is full: by a trial."""
    try:
        with opened(folder) as inside, tempfile.TemporaryFile(dir=inside) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return False


def directive_json(directive: Directive) -> str:
    """Return the directive as the workload's process reads it."""
    return json.dumps(asdict(directive))


def _prepare_folder(step: Step, folder: Path) -> None:
    """Create the folders, the files of options, and the pipes.

    An earlier step of the workload may have removed the folders. Raises MachineError.
    """
    try:
        ensure_folder(folder)
        with opened(folder) as inside:
            for name in ("logs", "artifacts"):
                (inside / name).mkdir(exist_ok=True)
        for path, text in step.files.items():
            Path(path).write_text(text, encoding="utf-8")
        for path in step.fifos:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            os.mkfifo(path, 0o600)
    except OSError as error:
        _remove_pipes(step)
        raise MachineError(
            f"the run's folder cannot be written: {error.strerror} ({folder})",
            "--output FOLDER",
        ) from error


def _remove_pipes(step: Step) -> None:
    """Remove the pipes, and the incomplete records of processes that were killed while they wrote."""
    record = Path(step.directive.record) if step.directive is not None else None
    halves = record.parent.glob(f"{glob.escape(record.name)}.*.json.tmp") if record is not None else ()
    for path in (*step.fifos, *halves):
        with contextlib.suppress(OSError):
            os.unlink(path)


def entered_region(steps: Iterable[Step]) -> bool:
    """Return whether any process of these steps entered a region: each that does leaves a record."""
    records = [Path(step.directive.record) for step in steps if step.directive is not None]
    return any(any(record.parent.glob(f"{record.name}.*.json")) for record in records)


def remove_outputs(steps: Iterable[Step], folder: Path) -> None:
    """Remove what the steps left in `folder/artifacts`, before they are run again."""
    for step in steps:
        for path in (folder / "artifacts").glob(f"{step.name}.*"):
            path.unlink(missing_ok=True)


def at_once(
    tasks: Sequence[Callable[[threading.Event], Result]],
    workers: int,
    tick: Callable[[float], None],
) -> list[Result]:
    """Return the results of `tasks`, with `workers` of them at a time.

    A Ctrl-C sets the event that each task has, and is raised when they have ended.
    """
    cancel, began = threading.Event(), time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(task, cancel) for task in tasks]
        try:
            while wait(futures, 0.25).not_done:
                tick(time.monotonic() - began)
        except BaseException:
            cancel.set()
            with defer_interrupts():  # another one must not leave the threads with their processes behind
                wait(futures)
            raise
    return [future.result() for future in futures]
