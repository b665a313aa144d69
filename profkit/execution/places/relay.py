"""The other side of a slot: it supervises a worker process there, and hands on what is asked and what is said.

So a crash, a hang and a refusal of memory are told apart there, where they can be, and not taken for a lost connection.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from pathlib import Path
from typing import IO, Any

from profkit.core.errors import MachineError
from profkit.core.process import adopt_orphans
from profkit.core.progress import Progress, Silent
from profkit.execution.child import WorkerEnded
from profkit.execution.client import WorkerClient, WorkerCommand
from profkit.execution.job import Batch, Job, JobStatus
from profkit.execution.places.there import GRACE_SECONDS, Home, end_children
from profkit.hardware.gpu import read_gpu_uuids
from profkit.hardware.gpu_locks import lock_gpus

SLOT_BEAT_SECONDS = 10.0  # a thousand slots that say each second that they live keep who listens busy
OUT = "{out}"  # in an argument: the run's folder for what is left


def relay(requests: IO[bytes], answers: IO[bytes], run: Path, data: Any) -> None:
    """Be one slot until the requests end. `data`: the worker's factory, its arguments and environment, and `locks`."""
    adopt_orphans()
    home, over = Home(answers), threading.Event()
    out = run / "out"
    (out / "logs").mkdir()
    words = (word.replace(OUT, str(out)) if isinstance(word, str) else word for word in data["arguments"])
    (out / "tmp").mkdir()  # what a worker leaves that is killed goes with the run's folder
    env = _environment(run, {"TMPDIR": str(out / "tmp"), **data["env"]})
    client = WorkerClient(WorkerCommand(data["factory"], tuple(words), env=env, log=out / "log"))
    gpus = contextlib.ExitStack()
    asked: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()

    def listen() -> None:
        for line in requests:
            asked.put(json.loads(line))
        client.close()
        asked.put(None)
        if not over.wait(GRACE_SECONDS):
            os._exit(1)

    def beat() -> None:
        while not over.wait(SLOT_BEAT_SECONDS):
            home.send("beat")

    for work in (listen, beat):
        threading.Thread(target=work, name=work.__name__, daemon=True).start()
    while (request := asked.get()) is not None:
        try:
            if request["ask"] == "open" and data.get("locks"):
                _lock_gpu(gpus, _Waiting(home, client), {**os.environ, **env})
            _answer(client, home, request)
        except MachineError as fault:
            home.send("fault", exit=fault.exit_code, message=fault.message, fix=fault.fix)
            break
        except WorkerEnded as ended:
            client.kill()
            home.send("ended", status=ended.status.value, reason=str(ended))
    over.set()
    end_children()
    gpus.close()


class _Waiting(Silent):
    """The other side hears whom a slot waits for; the wait is over where nobody asks any more."""

    def __init__(self, home: Home, client: WorkerClient) -> None:
        self._home, self._client = home, client

    def begin(self, title: str, detail: str = "") -> None:
        """As a Progress does."""
        self._home.note(f"{title}: {detail}")

    def tick(self, seconds: float) -> None:
        """Raises WorkerEnded."""
        del seconds
        if self._client.closed:
            raise WorkerEnded(JobStatus.cancelled, "the slot was closed")

    def end(self, result: str) -> None:
        """As a Progress does."""
        self._home.note(result)

    def note(self, text: str) -> None:
        """As a Progress does."""
        self._home.note(text)


def _lock_gpu(held: contextlib.ExitStack, progress: Progress, environ: dict[str, str]) -> None:
    """The device that a worker with this environment will use, until the slot ends."""
    held.enter_context(lock_gpus(read_gpu_uuids(environ)[:1], progress))


def _answer(client: WorkerClient, home: Home, request: dict[str, Any]) -> None:
    if request["ask"] == "open":
        home.send("opened", about=client.open(request["settings"], request["timeout"]))
        return
    batch = Batch(tuple(Job(key, data) for key, data in request["jobs"]), request["shared"])
    for message in client.run(batch, request["timeout"]):
        home.send("said", message=message)
    home.send("done")


def _environment(run: Path, wanted: dict[str, str]) -> dict[str, str]:
    """With what was sent: profkit, and the libraries that this Python lacks."""
    trees = run.parent.parent / "trees"
    here = [path for path in sys.path if Path(path).parent == trees]
    present = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**wanted, "PYTHONPATH": os.pathsep.join(dict.fromkeys([*present, *here]))}
