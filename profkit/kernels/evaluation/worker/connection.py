"""The judge's end of the pipes to a worker process: start it, ask it, stop it, refuse what is no answer.

Requests and answers are lines of JSON, and of a timed batch a number with addresses. No tensor and no pickle comes
out of the process: its kernel can write whatever it likes to the pipe, so each answer is taken as data and checked,
and results are read out of the memory of the stopped process (`docs/decisions.md` says why not through
torch.multiprocessing).

Between two requests the process is stopped (SIGSTOP), so that it computes nothing while nobody measures: neither
before the clock runs, nor after it has stopped.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from struct import unpack
from typing import Any, NoReturn

from profkit.core.files.safe_folder import TemporaryFolder, user_cache
from profkit.execution.child import ChildProcess, JobStatus, WorkerEnded
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.kernels.evaluation.worker.arguments import KernelError
from profkit.kernels.evaluation.worker.cuda_memory import BusyDevice
from profkit.kernels.evaluation.worker.isolation import ProcessPause
from profkit.kernels.evaluation.worker.memory import JudgeMemory

# By these the memory of kernels may come to lie where no other process can read it.
ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
START_SECONDS = 120.0
_ROOT = str(Path(__file__).resolve().parents[4])
_BOOT = (
    "import sys; sys.path[:] = [path for path in sys.path if path] + [sys.argv[1]]; "
    "import profkit.core.library_first; "
    "from profkit.kernels.evaluation.worker.server import main; main(sys.argv[2:])"
)


class WorkerConnection:
    """Pipes to a process that serves the kernels of one source (see `server`), and the pause between requests.

    The process runs them on `threads` threads of torch (0: torch's default). Arguments are written to `memory`, which
    is closed with the process. `kept` are folders below which a candidate must not write; without any, the process
    runs PyTorch's own kernels.

    Every method may raise WorkerEnded: the process crashed, was out of memory, or took longer than `timeout`
    seconds.
    """

    def __init__(
        self,
        source: SourceRequest,
        memory: JudgeMemory,
        *,
        threads: int,
        timeout: float,
        log: Path,
        kept: Sequence[Path] = (),
    ) -> None:
        self.memory, self.timeout = memory, timeout
        caches = user_cache("kernels")
        own = filter(None, (_ROOT, sys.prefix, sys.base_prefix, caches and caches.parent))
        folders = [str(folder) for folder in (*kept, *own)] if kept else []
        arguments = json.dumps([asdict(source), memory.describe(), threads, folders])
        argv = [sys.executable, "-c", _BOOT, _ROOT, str(os.getpid()), arguments]
        self._scratch = TemporaryFolder("kernels") if kept else None
        # The environments of both processes are alike, since their sizes move the stack, and so change times.
        env = {
            "PYTHONHASHSEED": "0",
            "TMPDIR": self._scratch.name if self._scratch else tempfile.gettempdir(),
            **{name: "" for name in ALLOCATORS if name in os.environ},
        }
        self._child = ChildProcess(argv, env, log, inherited=memory.inherited, starts_others=bool(kept))
        self._number = 0  # of the last request
        self.pause = ProcessPause(self._child)

    @property
    def running(self) -> bool:
        """Return whether there is a process that takes requests."""
        return self._child.running

    @property
    def pid(self) -> int:
        """Return the process id. Raises WorkerEnded where there is no process."""
        return self._child.pid

    @property
    def has_unread(self) -> bool:
        """Return whether the process has written more than was read."""
        return self._child.has_unread

    def start(self) -> None:
        """Start the process, and stop it once it has mapped the shared memory."""
        self.memory.recover()
        self._child.start()
        self.memory.meet(self._child.pid, int(self._read_message(START_SECONDS)["arena"]))
        self.stop()

    def request(
        self, request: dict[str, Any], while_running: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> dict[str, Any]:
        """Wake the process for a request and return its answer; it is stopped again then.

        Raises KernelError where the answer is an error. `while_running` gets the answer before the process is
        stopped.
        """
        self._child.cut_log()
        self.refuse_early_answer()
        self.settle(self.memory.settle)
        self.pause.wake()
        self._number += 1
        self._child.send_message({**request, "number": self._number})
        message = self._read_message(self.timeout)
        # An answer to another request was written by a kernel, before the request came.
        if message.get("number") != self._number:
            self.refuse()
        while_running(message)
        self.stop()
        self.settle(self.memory.finish)
        if "error" in message:
            raise self.make_error(message)
        return message

    def send(self, line: bytes) -> None:
        """Wake the process with a line that begins a batch."""
        self.pause.wake()
        self._child.send(line)

    def read_addresses(self, outputs: int) -> tuple[int, Sequence[int]]:
        """Read how many outputs a batch has (-1 where it has failed), and their addresses if the number is right."""
        (count,) = unpack("<q", self._child.read_bytes(8, self.timeout))
        addresses = array("Q")
        if count == outputs:
            addresses.frombytes(self._child.read_bytes(8 * count, self.timeout))
        return count, addresses

    def read_failure(self) -> KernelError:
        """Wake the process after a batch that has failed, and return what the kernel raised."""
        self.pause.wake()
        message = self._read_message(self.timeout)
        self.stop()
        return self.make_error(message)

    def settle(self, wait_for_device: Callable[[], None]) -> None:
        """Wait for the device; end the process where its work on the device does not end."""
        try:
            wait_for_device()
        except BusyDevice as busy:
            self.end(JobStatus.crash, str(busy))

    def make_error(self, message: dict[str, Any]) -> KernelError:
        """Return the error in an answer. Raises WorkerEnded where the device accepts no more work from the process."""
        error = KernelError(
            str(message.get("error")),
            str(message.get("message", "")),
            str(message.get("traceback", "")),
            memory=bool(message.get("memory")),
            needs_gpu=bool(message.get("needs_gpu")),
        )
        if message.get("lost"):
            self.end(JobStatus.crash, str(error))
        return error

    def refuse(self) -> NoReturn:
        """End the process, since it wrote something that profkit's code never answers: a kernel wrote it."""
        self.end(JobStatus.crash, "its process wrote what is not an answer")

    def refuse_early_answer(self) -> None:
        """End the process if an answer precedes its request: what it computed for it was not measured."""
        if self._child.has_unread:
            self.refuse()

    def stop(self) -> None:
        """Stop the process and whatever it has started."""
        if not self.pause.stop():
            self.end(JobStatus.crash, "it starts processes faster than they can be stopped")

    def end(self, status: JobStatus, reason: str) -> NoReturn:
        """Kill the process. Raises WorkerEnded with that reason."""
        self.kill()
        raise WorkerEnded(status, reason)

    def kill(self) -> None:
        """Kill the process, and clean up what was shared with it."""
        self._child.kill()
        self.memory.lose()
        self.pause.forget()

    def close(self) -> None:
        """End the process for good."""
        self._child.close()
        self.memory.close()
        if self._scratch:
            self._scratch.cleanup()

    def _read_message(self, timeout: float) -> dict[str, Any]:
        """Read a line of the process, which must be a JSON object."""
        message = self._child.read_message(timeout)
        return message if isinstance(message, dict) else self.refuse()
