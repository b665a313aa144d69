"""The parent's side of one worker process: start it, send it a batch, notice that it ended or hangs, and how."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from profkit.core.process import describe_status
from profkit.core.types import Json
from profkit.execution.job import Batch, JobStatus
from profkit.execution.limits import kills_for_memory

if TYPE_CHECKING:
    from profkit.core.process_tree import ProcessTree

LAST_BYTES = 4096  # of the log, in which the last words of a worker are looked for
LOG_LIMIT = 4 << 20  # bytes
EVENTS = ("loaded", "opened", "begin", "result", "error", "done", "fatal", "device")
LONGEST_ANSWER = 16 << 20  # bytes
END_SECONDS = 10.0  # for the kernel to take away a process that was killed: one that a driver holds may stay
PATIENCE_SECONDS = 300.0  # for a worker that may end by itself
LOOK_SECONDS = 0.05
CLOSED_SECONDS = 1.0  # between two looks whether the worker was closed
# The worker finds this profkit, behind whatever its own Python has: also where nothing is installed.
_ROOT = str(Path(__file__).resolve().parents[2])
_BOOT = (
    "import sys; sys.path[:] = [path for path in sys.path if path] + [sys.argv[1]]; "
    "from profkit.execution.worker import start; start(sys.argv[2:])"
)


class WorkerEnded(Exception):
    """The worker is gone. `status`: crash, timeout, out_of_memory or device_error; the text is the reason."""

    def __init__(self, status: JobStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


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


class WorkerClient:
    """One worker process, started when it is needed, and again after it ended.

    The thread that starts it must live as long as the worker does: on Linux the worker ends with that thread.
    """

    def __init__(self, command: WorkerCommand) -> None:
        self.command = command
        self._argv = [command.python, "-c", _BOOT, _ROOT, str(os.getpid()), command.factory]
        self._argv.append(json.dumps(command.arguments))
        self._child: subprocess.Popen[bytes] | None = None
        self._tree: ProcessTree | None = None
        self._unread = b""
        self._kills: int | None = None
        self._log_start = 0  # bytes of the log from workers before
        self._closed = self._loaded = False

    @property
    def running(self) -> bool:
        """Whether there is a process to ask."""
        return self._child is not None and self._child.poll() is None

    def load(self, timeout: float) -> None:
        """Start it, and let it load what takes long, without touching the device. Raises WorkerEnded."""
        self._spawn()
        self._send({"ask": "load"})
        self._read(timeout)
        self._loaded = True

    def open(self, settings: Mapping[str, object], timeout: float) -> Json:
        """Start it where it is not loaded already, and open its handler; what that says. Raises WorkerEnded."""
        if not (self._loaded and self.running):
            self._spawn()
        self._loaded = False
        self._send({"ask": "open", "settings": dict(settings)})
        about: Json = self._read(timeout).get("about")
        return about

    def run(self, batch: Batch, timeout: float) -> Iterator[dict[str, Any]]:
        """What it says of the batch, message by message; each may take `timeout` seconds. Raises WorkerEnded."""
        self._cut_log()
        jobs = [[job.key, job.data] for job in batch.jobs]
        self._send({"ask": "run", "shared": batch.shared, "jobs": jobs})
        while (message := self._read(timeout))["event"] != "done":
            yield message

    def finish(self) -> None:
        """No more work: as `close`, but a worker that may end by itself gets the time for it."""
        child = self._child
        if child is not None and child.stdin is not None and self.command.ends_itself:
            with contextlib.suppress(OSError):
                child.stdin.close()
            deadline = monotonic() + PATIENCE_SECONDS
            while not self._closed and _is_alive(child) and monotonic() < deadline:
                sleep(LOOK_SECONDS)
        self.close()

    def close(self) -> None:
        """No worker any more, and none after it."""
        self._closed = True
        self.kill()

    def kill(self) -> None:
        """No worker any more, nor anything that it started."""
        child, self._child = self._child, None
        if child is None or self._tree is None:
            return
        self._tree.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(END_SECONDS)
        self._tree.forget()
        for pipe in (child.stdin, child.stdout):  # only now: who waits for a pipe that is closed is not woken
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _spawn(self) -> None:
        from profkit.core.process_tree import ProcessTree  # here: psutil costs 20 ms

        self.kill()
        self._unread = b""
        self._kills = kills_for_memory()
        log = self.command.log
        self._log_start = log.stat().st_size if log.is_file() else 0
        try:
            with log.open("ab") as errors, ProcessTree.starting():
                child = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**os.environ, **self.command.env},
                    start_new_session=True,
                )
                self._tree, self._child = ProcessTree(child.pid), child
        except OSError as error:
            reason = f"{self._argv[0]} cannot be started: {error.strerror}"
            raise WorkerEnded(JobStatus.crash, reason) from error
        if self._closed:  # meanwhile another thread closed it
            self.kill()
            raise _closed()

    def _cut_log(self) -> None:
        """Code that prints in each call would fill the disk."""
        with contextlib.suppress(OSError):
            if self.command.log.stat().st_size > LOG_LIMIT:
                os.truncate(self.command.log, 0)
                self._log_start = 0

    def _send(self, message: dict[str, Any]) -> None:
        line, child = (json.dumps(message) + "\n").encode(), self._child
        if child is None or child.stdin is None:
            raise _closed()
        try:
            child.stdin.write(line)
            child.stdin.flush()
        except ValueError:  # meanwhile another thread closed the pipe
            raise _closed() from None
        except OSError:
            raise self._end_reason(child) from None

    def _read(self, timeout: float) -> dict[str, Any]:
        """The next message. The process tree is killed where it does not come in `timeout` seconds."""
        child = self._child
        if child is None:
            raise _closed()
        try:
            self._read_line(child, timeout)
        except (OSError, ValueError):
            if self._child is child:
                raise
            raise _closed() from None  # meanwhile another thread closed the pipe
        line, _, self._unread = self._unread.partition(b"\n")
        message = _parse(line)
        if message is None:  # somebody's code wrote to where the answers go
            self.kill()
            raise WorkerEnded(JobStatus.crash, "its process wrote what is no answer")
        if message["event"] in ("fatal", "device"):
            self.kill()
            device = message["event"] == "device"
            raise WorkerEnded(
                JobStatus.device_error if device else JobStatus.crash, str(message.get("reason"))
            )
        return message

    def _read_line(self, child: subprocess.Popen[bytes], timeout: float) -> None:
        """Read until a line is there, or more bytes than any message has."""
        assert child.stdout is not None
        deadline = monotonic() + timeout
        with selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread and len(self._unread) <= LONGEST_ANSWER:
                left = deadline - monotonic()
                if not ready.select(max(0.0, min(left, CLOSED_SECONDS))):
                    if self._child is not child:  # another thread closed the pipe: that wakes nobody
                        raise _closed()
                    # The second look is for who slept meanwhile himself: a Ctrl-Z, a laptop that was closed.
                    if left > CLOSED_SECONDS or ready.select(0):
                        continue
                    self.kill()
                    raise WorkerEnded(JobStatus.timeout, f"it took longer than {timeout:g} s, and was ended")
                more = os.read(child.stdout.fileno(), 1 << 16)
                if not more:
                    raise self._end_reason(child)
                self._unread += more

    def _end_reason(self, child: subprocess.Popen[bytes]) -> WorkerEnded:
        """Why the process ended: its exit status, what it printed last, and whether the kernel ran out of memory."""
        try:
            status = child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        self.kill()
        kills = kills_for_memory()
        if status == -signal.SIGKILL and None not in (kills, self._kills) and kills != self._kills:
            return WorkerEnded(JobStatus.out_of_memory, "the kernel ended its process where memory ran out")
        words = self._last_words()
        return WorkerEnded(
            JobStatus.crash, f"its process {describe_status(status)}" + (f": {words}" if words else "")
        )

    def _last_words(self) -> str:
        with contextlib.suppress(OSError), self.command.log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start, log.tell() - LAST_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
            return lines[-1][:300] if lines else ""
        return ""


def _closed() -> WorkerEnded:
    return WorkerEnded(JobStatus.cancelled, "the worker was closed")


def _is_alive(child: subprocess.Popen[bytes]) -> bool:
    """Whether it has not ended; one that has stays a zombie where that can be, so that its group is still its own."""
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return False
    return child.poll() is None


def _parse(line: bytes) -> dict[str, Any] | None:
    """What a worker says; None for what none of ours would."""
    with contextlib.suppress(ValueError, RecursionError):
        message = json.loads(line)
        if isinstance(message, dict) and message.get("event") in EVENTS:
            return message
    return None
