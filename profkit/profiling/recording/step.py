"""Runs one Step of a plan into a run's folder: fifos, directive, log, deadline, conversions. Parses nothing."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from profkit.core import process
from profkit.core.errors import MachineError, UsageError
from profkit.core.status import read_status
from profkit.core.types import Directive, Step
from profkit.profiling.recording.tell import told_argv

DIRECTIVE = "PROFKIT_DIRECTIVE"


@dataclass(frozen=True)
class Recorded:
    """How a step went. `status` is the workload's own wait status where a wrapper kept it, else the child's.

    `limit` is the time in seconds that the workload had, None where it had as much as it needed.
    """

    step: Step
    outcome: process.ProcessOutcome
    status: int
    log: Path
    limit: float | None = None

    @property
    def workload_ok(self) -> bool:
        """True when the workload itself ended with 0 within its time."""
        return self.status == 0 and not self.outcome.timed_out

    @property
    def ran_out(self) -> bool:
        """True when its time limit ended the workload: profkit did, or the tool that was given the limit."""
        by_tool = self.step.finish > 0 and self.status == -signal.SIGKILL
        return self.outcome.timed_out or (
            by_tool and self.limit is not None and self.outcome.seconds >= self.limit
        )

    def ending(self) -> str:
        """How the tool or the workload ended, in words."""
        if self.ran_out and not self.outcome.timed_out:
            return f"ran past its time limit and was ended after {self.limit:.1f} s"
        return self.outcome.ending()

    def text(self) -> str:
        """What the step printed, its last 64 KiB: error texts are looked for here."""
        return self.outcome.output_tail


def record_step(
    step: Step,
    folder: Path,
    *,
    cwd: str | None = None,
    timeout: float | None = None,
    tick: Callable[[float], None] | None = None,
    note: Callable[[str], None] | None = None,
    cancel: threading.Event | None = None,
) -> Recorded:
    """Run `step`; its log goes to `folder/logs`. Conversions in `step.after` run only after a step that ended in time.

    A tool with a time limit of its own has `step.finish` on top of `timeout` for its report; after a Ctrl-C it has that
    too, and `note` is told that it is waited for. Raises UsageError when the command cannot be started, MachineError
    when the folder cannot be written.
    """
    _make_ready(step, folder)
    log = folder / "logs" / f"{step.name}.log"
    env = environment(step)
    deadline = timeout + step.finish if timeout is not None else None
    begin = time.monotonic()
    try:
        outcome = process.run(
            told_argv(step, env),
            env=env,
            cwd=cwd,
            log=log,
            timeout=deadline,
            tick=tick,
            cancel=cancel,
            finish=step.finish,
            waits=(lambda: note(_waiting(step))) if note is not None else None,
        )
    finally:
        _clear(step)
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
    status = _status(step, outcome)  # last: a conversion may be what brings it
    return Recorded(step, outcome, status, log, timeout)


def _waiting(step: Step) -> str:
    return f"{step.tool or step.name} saves what it recorded; a second Ctrl-C ends the wait and loses it"


def environment(step: Step) -> dict[str, str]:
    """The variables a step sets on top of the caller's environment."""
    env = dict(step.env)
    if step.directive is not None:
        env[DIRECTIVE] = directive_json(step.directive)
    return env


def directive_json(directive: Directive) -> str:
    """The directive as the workload's process reads it."""
    return json.dumps(asdict(directive))


def require_space(folder: Path, needed: int = 64 * 1024 * 1024) -> None:
    """Raise MachineError when the run's file system has less than `needed` bytes: before, not in the middle."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise MachineError(
            f"only {free / 1e6:.0f} MB are free where the run would be written ({folder})",
            "choose another place: --output DIR",
        )


def _status(step: Step, outcome: process.ProcessOutcome) -> int:
    """The workload's own status: profilers hide it (perf returns 0 when its child was killed)."""
    told = read_status(step.workload_status) if step.workload_status is not None else None
    if told is not None:
        return told
    return 0 if outcome.returncode in step.fine else outcome.returncode


def _make_ready(step: Step, folder: Path) -> None:
    """The folders, which an earlier step of the workload may have removed, the files of options, and the pipes."""
    try:
        for name in ("logs", "artifacts"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for path, text in step.files.items():
            Path(path).write_text(text, encoding="utf-8")
        for path in step.fifos:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            os.mkfifo(path, 0o600)
    except OSError as error:
        _clear(step)
        raise MachineError(
            f"the run's folder cannot be written: {error.strerror} ({folder})", "--output FOLDER"
        ) from error


def _clear(step: Step) -> None:
    """Remove the pipes, and the halves of records that a process left when it was killed while it wrote."""
    record = Path(step.directive.record) if step.directive is not None else None
    halves = record.parent.glob(f"{glob.escape(record.name)}.*.json.tmp") if record is not None else ()
    for path in (*step.fifos, *halves):
        with contextlib.suppress(OSError):
            os.unlink(path)
