"""The parent's side of one worker process: start it, send it a job, and read what it says of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from profkit.core.types import Json
from profkit.execution.child import ChildProcess, WorkerEnded
from profkit.execution.job import Job, JobStatus

# The worker finds this profkit, behind whatever its own Python has: also where nothing is installed.
_ROOT = str(Path(__file__).resolve().parents[2])
_BOOT = (
    "import sys; sys.path[:] = [path for path in sys.path if path] + [sys.argv[1]]; "
    "import profkit.core.library_first; from profkit.execution.worker import start; start(sys.argv[2:])"
)


@dataclass(frozen=True)
class WorkerCommand:
    """How a worker process is started.

    `factory` makes its handler (`package.module:function`; see `execution.worker`), from `arguments`. `python` is the
    interpreter, `env` is set on top of this process's environment, and `log` takes what the worker prints. With
    `ends_itself` a worker that has no more work is not killed but may end: a tracer writes its report then.
    """

    factory: str
    arguments: tuple[Json, ...] = ()
    python: str = sys.executable
    env: Mapping[str, str] = field(default_factory=dict)
    log: Path = Path(os.devnull)
    ends_itself: bool = False


class Worker(Protocol):
    """What a pool asks of a worker, wherever its process runs: see WorkerClient."""

    @property
    def running(self) -> bool:
        """Whether there is a process to ask."""

    def open(self, settings: Mapping[str, object], timeout: float) -> Json:
        """Raises WorkerEnded, and MachineError where there is no worker any more and none can be started."""

    def run(self, job: Job, timeout: float) -> dict[str, Any]:
        """Its `result` or `error`. Raises as `open` does."""

    def finish(self) -> None:
        """No more work."""

    def kill(self) -> None:
        """No process any more."""

    def close(self) -> None:
        """No worker any more, and none after it."""


class WorkerClient:
    """One worker process, started when it is needed, and again after it ended.

    The thread that starts it must live as long as the worker does: on Linux the worker ends with that thread.
    """

    def __init__(self, command: WorkerCommand) -> None:
        self.command = command
        argv = [command.python, "-c", _BOOT, _ROOT, str(os.getpid()), command.factory]
        self._child = ChildProcess([*argv, json.dumps(command.arguments)], command.env, command.log)

    @property
    def running(self) -> bool:
        """Whether there is a process to ask."""
        return self._child.running

    def open(self, settings: Mapping[str, object], timeout: float) -> Json:
        """Start it, and open its handler; what that says. Raises WorkerEnded."""
        self._child.start()
        self._child.send_message({"ask": "open", "settings": dict(settings)})
        about: Json = self._read(timeout, "opened").get("about")
        return about

    def run(self, job: Job, timeout: float) -> dict[str, Any]:
        """What it says of the job: its `result`, or the `error` that it raised. Raises WorkerEnded."""
        self._child.cut_log()
        self._child.send_message({"ask": "run", "data": job.data})
        return self._read(timeout, "result", "error")

    def finish(self) -> None:
        """No more work: as `close`, but a worker that may end by itself gets the time for it."""
        if self.command.ends_itself:
            self._child.finish()
        else:
            self._child.close()

    def close(self) -> None:
        """No worker any more, and none after it."""
        self._child.close()

    def kill(self) -> None:
        """No worker any more, nor anything that it started."""
        self._child.kill()

    def _read(self, timeout: float, *expected: str) -> dict[str, Any]:
        """The next message. The process tree is killed where it does not come in `timeout` seconds."""
        message = self._child.read_message(timeout)
        if isinstance(message, bytes) or message.get("event") not in (*expected, "fatal", "device"):
            # somebody's code wrote there
            self.kill()
            raise WorkerEnded(JobStatus.crash, "its process wrote what is no answer")
        if message["event"] in ("fatal", "device"):
            self.kill()
            device = message["event"] == "device"
            raise WorkerEnded(
                JobStatus.device_error if device else JobStatus.crash, str(message.get("reason"))
            )
        return message
