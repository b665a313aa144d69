"""Run a child process that answers through a pipe: start it, read within a time limit, end its whole tree.

Requests and answers are lines of JSON: of a worker, of a kernel's process, of a place. Another thread may
close it at any time. The reason why it ended is reported.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from profkit.core.files.regular import open_regular
from profkit.core.process import describe_status, end_of
from profkit.core.types import Json
from profkit.core.watcher import start_watcher
from profkit.execution.worker import kills_for_memory

if TYPE_CHECKING:
    from profkit.core.process_tree import ProcessTree

LAST_BYTES = 4096  # of the log, in which the last words of a process are looked for
LOG_LIMIT = 4 << 20  # bytes
LONGEST_ANSWER = 16 << 20  # bytes
END_SECONDS = 10.0  # for the kernel to take away a process that was killed: one that a driver holds may stay
TERMINATION_SECONDS = 5.0  # for what ends when it is asked, before it is killed
LOOK_SECONDS = 1.0  # between two looks whether it was closed
WAIT_SECONDS = 0.05
STALL_SECONDS = 600.0  # one that starts reads once it has imported torch from a busy disk
# One that needs no file of its own: it is made for each answer.
_Selector = getattr(selectors, "PollSelector", selectors.DefaultSelector)


class JobStatus(str, Enum):
    """How a job ended. Only `ok` has a value; every other status has a reason."""

    ok = "ok"  # the worker function returned a value
    error = "error"  # the worker function raised an exception; its worker goes on
    crash = "crash"  # the process ended: a signal, an exit, or an answer that is not part of the protocol
    timeout = "timeout"  # no answer in time; the process tree was killed
    out_of_memory = "out_of_memory"  # memory was refused to the job, or the kernel killed the process
    lost = "lost"  # no worker could be started for it, or none is left
    cancelled = "cancelled"  # the pool was closed before it ended


class WorkerEnded(Exception):
    """The worker is gone. `status`: crash, timeout or out_of_memory; cancelled if it was closed.

    `last_line`: what it printed last; the text is the reason with that line.
    """

    def __init__(self, status: JobStatus, reason: str, last_line: str = "") -> None:
        super().__init__(f"{reason}: {last_line}" if last_line else reason)
        self.status, self.reason, self.last_line = status, reason, last_line


class ChildProcess:
    """A process that reads requests from its standard input and answers on its standard output.

    It is started by `start`, again and again. The thread that starts it must live as long as it does: on Linux it
    ends with that thread. `log` takes its standard error; `env` is set on top of this process's environment,
    without the variables in `without`. `starts_others` False: it starts no processes, so no orphan is its own.
    While it is waited for, its log is truncated each second if it is too long, and `look` is called. `asks`: it
    gets SIGTERM and some seconds to end before it is killed. `reason_mark`: a text in the line that says why it
    ended.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        log: Path,
        *,
        inherited: Sequence[int] = (),
        starts_others: bool = True,
        without: Collection[str] = (),
        asks: bool = False,
        reason_mark: str = "",
    ) -> None:
        self._argv, self._env, self._log, self._inherited = list(argv), dict(env), log, tuple(inherited)
        self._starts_others, self._without = starts_others, frozenset(without)
        self._asks, self._reason_mark = asks, reason_mark
        self._child: subprocess.Popen[bytes] | None = None
        self._tree: ProcessTree | None = None
        self._unread = b""
        self._kills: int | None = None
        self._log_start = 0  # bytes of the log from processes before
        self.look: Callable[[], object] = bool
        self.closed = False

    @property
    def running(self) -> bool:
        """Return whether there is a process to ask."""
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        """Return its id, which is that of its process group, too. Raises WorkerEnded if there is no process."""
        if self._child is None:
            raise _closed()
        return self._child.pid

    def start(self) -> None:
        """Start it, and kill a former one. Raises WorkerEnded if it cannot be started."""
        from profkit.core.process_tree import ProcessTree, starting  # here: psutil costs 20 ms

        self.kill()
        start_watcher()
        self._unread = b""
        self._kills = kills_for_memory()
        self._log_start = self._log.stat().st_size if self._log.is_file() else 0
        inherited = {name: value for name, value in os.environ.items() if name not in self._without}
        try:
            with self._log.open("ab") as errors, starting:
                child = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**inherited, **self._env},
                    start_new_session=True,
                    pass_fds=self._inherited,
                )
                tree = ProcessTree(child.pid, starts_others=self._starts_others)
                self._tree, self._child = tree, child
        except OSError as error:
            reason = f"{self._argv[0]} cannot be started: {error.strerror}"
            raise WorkerEnded(JobStatus.crash, reason) from error
        if self.closed:  # meanwhile another thread closed it
            self.kill()
            raise _closed()

    def send(self, data: bytes) -> None:
        """Write to its standard input; kill it if it reads nothing for ten minutes. Raises WorkerEnded."""
        child, left = self._child, memoryview(data)
        if child is None or child.stdin is None:
            raise _closed()
        try:
            with _Selector() as ready:
                ready.register(child.stdin, selectors.EVENT_WRITE)
                while left:
                    if not ready.select(STALL_SECONDS):
                        self.kill()
                        reason = f"it read nothing for {STALL_SECONDS:g} s, and was ended"
                        raise WorkerEnded(JobStatus.timeout, reason)
                    left = left[os.write(child.stdin.fileno(), left[: select.PIPE_BUF]) :]
        except (ValueError, OSError):
            if self._child is not child:  # meanwhile another thread closed the pipe
                raise _closed() from None
            raise self._end_reason(child) from None

    def read_line(self, timeout: float) -> bytes:
        """Read the next line of its answers; kill it if none comes within `timeout` seconds. Raises WorkerEnded."""
        self._read_until(timeout, lambda unread: b"\n" in unread or len(unread) > LONGEST_ANSWER)
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def send_message(self, message: Mapping[str, Any]) -> None:
        """Write a message as a line of JSON. Raises WorkerEnded."""
        self.send(json.dumps(message).encode() + b"\n")

    def read_message(self, timeout: float) -> dict[str, Any] | bytes:
        """Read the next line as a JSON object; return the line itself if it is none. Otherwise as `read_line`."""
        line = self.read_line(timeout)
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(message := json.loads(line), dict):
                return message
        return line

    def read_bytes(self, count: int, timeout: float) -> bytes:
        """Read the next `count` bytes of its answers; otherwise as `read_line`."""
        self._read_until(timeout, lambda unread: len(unread) >= count)
        data, self._unread = self._unread[:count], self._unread[count:]
        return data

    @property
    def has_unread(self) -> bool:
        """Return whether it has written more than was read."""
        child = self._child
        if self._unread or child is None or child.stdout is None:
            return bool(self._unread)
        with contextlib.suppress(OSError, ValueError), selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            if ready.select(0):
                self._unread = os.read(child.stdout.fileno(), 1 << 16)
        return bool(self._unread)

    def members_elsewhere(self) -> list[int]:
        """Return the processes it has started that a signal to its process group does not reach (Linux)."""
        return self._tree.members_elsewhere() if self._tree is not None else []

    def finish(self, patience: float) -> None:
        """Send no more work and give it `patience` seconds to end by itself; then close it."""
        child = self._child
        if child is not None and child.stdin is not None:
            with contextlib.suppress(OSError):
                child.stdin.close()
            _wait_until_ended(child, patience, lambda: self.closed)
        self.close()

    def close(self) -> None:
        """End the process, and start none again."""
        self.closed = True
        self.kill()

    def kill(self) -> None:
        """Kill the process, and everything that it started."""
        child, self._child = self._child, None
        if child is None or self._tree is None:
            return
        if self._asks and child.returncode is None:
            os.kill(
                child.pid, signal.SIGTERM
            )  # `terminate` would reap one that has ended, and free its number
            _wait_until_ended(child, TERMINATION_SECONDS)
        self._tree.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(END_SECONDS)
        self._tree.forget()
        for pipe in (child.stdin, child.stdout):  # only now: who waits for a pipe that is closed is not woken
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def cut_log(self) -> None:
        """Empty the log once it is too long: code that prints in each call would fill the disk."""
        with contextlib.suppress(OSError):
            if self._log.stat().st_size > LOG_LIMIT:
                os.truncate(self._log, 0)
                self._log_start = 0

    def _read_until(self, timeout: float, is_enough: Callable[[bytes], bool]) -> None:
        child = self._child
        if child is None or child.stdout is None:
            raise _closed()
        deadline = monotonic() + timeout
        try:
            with _Selector() as ready:
                ready.register(child.stdout, selectors.EVENT_READ)
                while not is_enough(self._unread):
                    left = deadline - monotonic()
                    if not ready.select(max(0.0, min(left, LOOK_SECONDS))):
                        self.cut_log()
                        self.look()
                        if self._child is not child:  # another thread closed the pipe: that wakes nobody
                            raise _closed()
                        # The second look is for who slept meanwhile himself: a Ctrl-Z, a laptop that was closed.
                        if left > LOOK_SECONDS or ready.select(0):
                            continue
                        self.kill()
                        reason = f"it took longer than {timeout:g} s, and was ended"
                        raise WorkerEnded(JobStatus.timeout, reason)
                    more = os.read(child.stdout.fileno(), 1 << 16)
                    if not more:
                        raise self._end_reason(child)
                    self._unread += more
        except (OSError, ValueError):
            if self._child is child:
                raise
            raise _closed() from None  # meanwhile another thread closed the pipe

    def _end_reason(self, child: subprocess.Popen[bytes]) -> WorkerEnded:
        """Build the error that says why the process ended: exit status, last output, and whether memory ran out."""
        try:
            status = child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        self.kill()
        kills = kills_for_memory()
        if status == -signal.SIGKILL and None not in (kills, self._kills) and kills != self._kills:
            return WorkerEnded(JobStatus.out_of_memory, "the kernel ended its process where memory ran out")
        return WorkerEnded(JobStatus.crash, f"its process {describe_status(status)}", self.last_words())

    def last_words(self) -> str:
        """Return the last line that it has printed for people, or an empty text."""
        with contextlib.suppress(OSError), open_regular(self._log) as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start, log.tell() - LAST_BYTES))
            lines = log.read().decode(errors="replace").strip().splitlines()
            reasons = [line for line in lines if self._reason_mark in line]
            return (reasons or lines)[-1][:300] if lines else ""
        return ""


def _closed() -> WorkerEnded:
    return WorkerEnded(JobStatus.cancelled, "the worker was closed")


def _wait_until_ended(
    child: subprocess.Popen[bytes], seconds: float, is_enough: Callable[[], bool] = lambda: False
) -> None:
    deadline = monotonic() + seconds
    with end_of(child) as ended:
        while not is_enough() and monotonic() < deadline and not ended(WAIT_SECONDS):
            pass


# The worker finds this profkit, behind whatever its own Python has: also where nothing is installed.
_ROOT = str(Path(__file__).resolve().parents[2])
_BOOT = (
    "import sys; sys.path[:] = [path for path in sys.path if path] + [sys.argv[1]]; "
    "import profkit.core.library_first; from profkit.execution.worker import start; start(sys.argv[2:])"
)


class WorkerClient(ChildProcess):
    """One worker process, started when it is opened, and again after it ended.

    `factory` makes its handler (`package.module:function`; see `execution.worker`) from `arguments`. `python` is
    the interpreter, `env` is set on top of this process's environment, and `log` takes what the worker prints.
    """

    def __init__(
        self,
        factory: str,
        arguments: Sequence[Json] = (),
        *,
        python: str = sys.executable,
        env: Mapping[str, str] = MappingProxyType({}),
        log: Path = Path(os.devnull),
    ) -> None:
        argv = [python, "-c", _BOOT, _ROOT, str(os.getpid()), factory, json.dumps(arguments)]
        super().__init__(argv, env, log)

    def open(self, settings: Mapping[str, object], timeout: float) -> Json:
        """Start the worker and open its handler; return what that says about itself. Raises WorkerEnded."""
        self.start()
        self.send_message({"ask": "open", "settings": dict(settings)})
        about: Json = self._answer(timeout, "opened").get("about")
        return about

    def run(self, data: Json, timeout: float) -> dict[str, Any]:
        """Run a job on its `data`; return its `result`, or the `error` that it raised. Raises WorkerEnded."""
        self.cut_log()
        self.send_message({"ask": "run", "data": data})
        return self._answer(timeout, "result", "error")

    def _answer(self, timeout: float, *expected: str) -> dict[str, Any]:
        """Read the next message; kill the process tree if it does not come within `timeout` seconds."""
        message = self.read_message(timeout)
        if isinstance(message, bytes) or message.get("event") not in (*expected, "fatal"):
            # somebody's code wrote there
            self.kill()
            raise WorkerEnded(JobStatus.crash, "its process wrote what is not an answer")
        if message["event"] == "fatal":
            self.kill()
            raise WorkerEnded(JobStatus.crash, str(message.get("reason")))
        return message
