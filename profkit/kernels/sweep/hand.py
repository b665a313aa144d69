"""The parent's side of one worker: start it, ask it, notice that it died or hangs, and how."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from profkit.core import codec
from profkit.core.process import describe_status
from profkit.core.types import GridPoint
from profkit.kernels.sweep.leash import kills_for_memory

if TYPE_CHECKING:
    import psutil

TAIL = 4096
LOG_LIMIT = 4 << 20  # bytes
EVENTS = ("about", "loaded", "begin", "result", "done", "fatal", "broken")
LONGEST = 16 << 20  # bytes of an answer: a case with all of its samples is 10 kB
END_SECONDS = 10.0  # for the kernel to take away a process that was killed: one that a driver holds may stay
TRACED_SECONDS = 300.0  # for a tracer to write down what it has, when the process that it traces ends
LOOK_SECONDS = 0.05
# The worker finds this profkit, behind whatever its own Python has: also where nothing is installed.
_ROOT = str(Path(__file__).resolve().parents[3])
_BOOT = (
    "import sys; sys.path[:] = [path for path in sys.path if path] + [sys.argv[1]]; "
    "from profkit.kernels.sweep.{} import start; start(sys.argv[2:])"
)


class Died(Exception):
    """The worker is gone; the sentence says how. `memory`: the kernel ended it where memory ran out."""

    def __init__(self, how: str, *, memory: bool = False) -> None:
        super().__init__(how)
        self.memory = memory


class TookTooLong(Exception):
    """The worker did not answer in time, and was ended."""


class Hand:
    """One worker process. `python` is the interpreter that has torch; `log` takes what it prints.

    `kind` is the module that the process runs: `worker` or `helper`.
    """

    def __init__(
        self,
        python: str,
        device: str,
        files: Sequence[str],
        env: Mapping[str, str],
        log: Path,
        kind: str = "worker",
    ) -> None:
        self._argv = [python, "-c", _BOOT.format(kind), _ROOT, str(os.getpid()), device, *files]
        self._env, self._log = dict(env), log
        self._child: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._kills: int | None = None
        self._said = 0  # bytes of the log from workers before
        self._closed = self._loaded = False

    def load(self, timeout: float) -> None:
        """Start it, and let it load what compiles, without touching the device. Raises Died, TookTooLong.

        The thread that starts a worker must live as long as the worker does: its end is what the worker looks for.
        """
        self._spawn()
        self._send({"ask": "load"})
        self._read(monotonic() + timeout)
        self._loaded = True

    def start(self, about: Mapping[str, object], timeout: float) -> dict[str, Any]:
        """Start it where it is not, and say what it is on. Raises Died with what it printed, and TookTooLong."""
        if not (self._loaded and self.running):
            self._spawn()
        self._loaded = False
        self._send({"ask": "about", **about})
        return self._read(monotonic() + timeout)

    def _spawn(self) -> None:
        self.end()
        self._rest = b""
        self._kills = kills_for_memory()
        self._said = self._log.stat().st_size if self._log.is_file() else 0
        try:
            with self._log.open("ab") as log:
                self._child = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={**os.environ, **self._env},
                    start_new_session=True,
                )
        except OSError as error:
            raise Died(f"{self._argv[0]} cannot be started: {error.strerror}") from error
        if self._closed:  # meanwhile somebody ended the sweep
            self.end()
            raise Died("the sweep was ended")

    @property
    def running(self) -> bool:
        """Whether there is a worker to ask."""
        return self._child is not None and self._child.poll() is None

    def ask(
        self, point: GridPoint, implementations: Sequence[str], timeout: float
    ) -> Iterator[dict[str, Any]]:
        """What it says of the point, message by message; each may take `timeout` seconds. Raises Died, TookTooLong."""
        self._cut_log()
        self._send({"ask": "point", "point": codec.plain(point), "implementations": list(implementations)})
        while (message := self._read(monotonic() + timeout))["event"] != "done":
            yield message

    def _cut_log(self) -> None:
        """Code of users that prints in each call would fill the disk."""
        with contextlib.suppress(OSError):
            if self._log.stat().st_size > LOG_LIMIT:
                os.truncate(self._log, 0)
                self._said = 0

    def finish(self) -> None:
        """No more work: as `close`, but a worker that is traced ends by itself.

        nsys writes down what it has of a process when that ends: of one that is killed it has no kernel.
        """
        child = self._child
        if child is not None and child.stdin is not None and traced({**os.environ, **self._env}):
            with contextlib.suppress(OSError):
                child.stdin.close()
            deadline = monotonic() + TRACED_SECONDS
            while not self._closed and _runs(child) and monotonic() < deadline:
                sleep(LOOK_SECONDS)
        self.close()

    def close(self) -> None:
        """No worker any more, and none after it."""
        self._closed = True
        self.end()

    def end(self) -> None:
        """No worker any more, nor anything that it started."""
        child, self._child = self._child, None
        if child is None:
            return
        elsewhere = _below(child.pid)
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        for process in elsewhere:
            _kill(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(END_SECONDS)
        for pipe in (child.stdin, child.stdout):  # only now: who waits for a pipe that is closed is not woken
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _send(self, message: dict[str, Any]) -> None:
        child = self._child
        if child is None or child.stdin is None:
            raise Died("the sweep was ended")
        try:
            child.stdin.write((json.dumps(message) + "\n").encode())
            child.stdin.flush()
        except OSError:
            raise self._died(child) from None

    def _read(self, deadline: float) -> dict[str, Any]:
        child = self._child
        if child is None or child.stdout is None:
            raise Died("the sweep was ended")
        with selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                # The second look is for who slept meanwhile himself: a Ctrl-Z, a laptop that was closed.
                if not ready.select(max(0.0, deadline - monotonic())) and not ready.select(0):
                    self.end()
                    raise TookTooLong
                more = os.read(child.stdout.fileno(), 1 << 16)
                if not more:
                    raise self._died(child)
                self._rest += more
                if len(self._rest) > LONGEST:
                    raise self._confused()
        line, self._rest = self._rest.split(b"\n", 1)
        message = _message(line)
        if message is None:
            raise self._confused()
        if message["event"] in ("fatal", "broken"):
            self.end()
            raise Died(str(message.get("reason")))
        return message

    def _confused(self) -> Died:
        """Code of users wrote to where the answers go: nothing is known of this worker any more."""
        self.end()
        return Died("its process wrote what is no answer")

    def _died(self, child: subprocess.Popen[bytes]) -> Died:
        try:
            status = child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        self.end()
        kills = kills_for_memory()
        if status == -signal.SIGKILL and None not in (kills, self._kills) and kills != self._kills:
            return Died("the kernel ended its process where memory ran out", memory=True)
        said = self._last_words()
        return Died(f"its process {describe_status(status)}" + (f": {said}" if said else ""))

    def _last_words(self) -> str:
        with contextlib.suppress(OSError), self._log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(self._said, log.tell() - TAIL))
            lines = log.read().decode(errors="replace").strip().splitlines()
            return lines[-1][:300] if lines else ""
        return ""


def traced(env: Mapping[str, str]) -> bool:
    """Whether processes with this environment are under a tracer that loads itself into them: nsys, ncu, a preload."""
    return bool(env.get("LD_PRELOAD")) or any(
        name.endswith("_INJECTION64_PATH") or name.startswith("NSYS_") or name == "PROFKIT_DIRECTIVE"
        for name in env
    )


def _runs(child: subprocess.Popen[bytes]) -> bool:
    """Whether it has not ended; one that has stays a zombie where that can be, so that its group is still its own."""
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return False
    return child.poll() is None


def _below(pid: int) -> list[psutil.Process]:
    """What the process has started, in sessions of their own too."""
    import psutil

    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def _kill(process: psutil.Process) -> None:
    import psutil

    with contextlib.suppress(psutil.Error):
        process.kill()


def _message(line: bytes) -> dict[str, Any] | None:
    """What a worker says; None for what none of ours would."""
    with contextlib.suppress(ValueError, RecursionError):
        message = json.loads(line)
        if isinstance(message, dict) and message.get("event") in EVENTS:
            return message
    return None
