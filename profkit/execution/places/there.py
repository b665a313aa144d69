"""The other side of a place, once profkit is there: it does the work and sends messages back, one a line.

`serve` does one piece of work. A thread reads the requests that come meanwhile: `cancel` is a Ctrl-C, and so
is their end: the connection is gone, and everything here ends too. Another thread sends a heartbeat every
second. `relay` is a slot: it supervises a worker process, and passes requests and answers on. So a crash, a
hang and a refusal of memory are told apart there, where they can be, and not taken for a lost connection.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from profkit.core.errors import ProfkitError, Progress
from profkit.core.files.names import FileNames
from profkit.core.process import adopt_orphans
from profkit.core.types import Json
from profkit.execution.child import WorkerClient, WorkerEnded
from profkit.execution.places.files import left_out_line, send_folder

BEAT_SECONDS = 1.0
GRACE_SECONDS = 20.0  # for the work to end by itself when the connection is gone
INTERNAL = 70
OUT = "{out}"  # in an argument of a worker: the run's folder for what is left


class Home(Progress):
    """The way back to the caller: a Progress that also sends files."""

    def __init__(self, answers: IO[bytes]) -> None:
        self._answers, self._lock, self._ticked = answers, threading.Lock(), 0.0

    def send(self, event: str, **fields: Json) -> None:
        """Send one message. If nobody reads any more, nothing happens: the reader of requests notices that."""
        line = json.dumps({"event": event, **fields}).encode() + b"\n"
        try:
            with self._lock:
                self._answers.write(line)
                self._answers.flush()
        except (OSError, ValueError):
            pass

    def send_folder(self, folder: Path, names: FileNames) -> None:
        """Send the files of a result that are wanted; a note names the others."""

        def send(name: str, data: bytes) -> None:
            self.send("data", name=name, data=base64.b64encode(data).decode())

        if left := send_folder(folder, names, send):
            shown = [ascii(name) for name in left]
            self.note(left_out_line(shown, "only what a pass leaves comes from there"))

    def fail(self, result: str) -> None:
        """Report a failure as such: the mark for it is made where it is shown."""
        self.tell("fail", result)

    def tell(self, call: str, *words: str | float) -> None:
        """Send a call of Progress; at most two ticks a second."""
        if call == "tick":
            if time.monotonic() - self._ticked <= BEAT_SECONDS / 2:
                return
            self._ticked = time.monotonic()
        self.send("progress", call=call, words=[*words])


def serve(
    requests: IO[bytes],
    answers: IO[bytes],
    work: Callable[[Home], Json],
    take: Callable[[dict[str, Any]], object] = bool,
) -> None:
    """Do the work, and send its result, or the fault that it raised. `take` gets each request but a `cancel`."""
    adopt_orphans()
    home, over = Home(answers), threading.Event()
    threading.Thread(target=_listen, args=(requests, over, take), name="requests", daemon=True).start()
    threading.Thread(target=_beat, args=(home, over), name="beat", daemon=True).start()
    try:
        home.send("result", value=work(home))
    except ProfkitError as fault:
        home.send("fault", exit=fault.exit_code, message=fault.message, fix=fault.fix)
    except KeyboardInterrupt:
        home.send("fault", exit=130, message="interrupted", fix=None)
    except Exception as error:
        traceback.print_exc()
        home.send("fault", exit=INTERNAL, message=f"{type(error).__name__}: {error}"[:2000], fix=None)
    finally:
        over.set()
        end_children()


def _beat(home: Home, over: threading.Event) -> None:
    while not over.wait(BEAT_SECONDS):
        home.send("beat")


def _listen(requests: IO[bytes], over: threading.Event, take: Callable[[dict[str, Any]], object]) -> None:
    for line in requests:
        request = json.loads(line)
        if request["ask"] == "cancel":
            os.kill(os.getpid(), signal.SIGINT)
        else:
            take(request)
    if over.is_set():
        return
    os.kill(os.getpid(), signal.SIGINT)
    if not over.wait(GRACE_SECONDS):
        end_children()
        os._exit(1)


def end_children() -> None:
    """Kill every process that was started here."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()


def relay(requests: IO[bytes], answers: IO[bytes], run: Path, data: Any) -> None:
    """Be one slot until the requests end.

    `data`: the worker's factory, its arguments and environment, and `locks`.
    """
    out, pending = run / "out", queue.SimpleQueue[dict[str, Any]]()
    for name in ("logs", "tmp"):  # what a worker leaves that is killed goes with the run's folder
        (out / name).mkdir()
    words = [word.replace(OUT, str(out)) if isinstance(word, str) else word for word in data["arguments"]]
    env = {"TMPDIR": str(out / "tmp"), **data["env"]}
    client = WorkerClient(data["factory"], words, env=env, log=out / "log")

    def work(home: Home) -> Json:
        """Answer requests; ends by the Ctrl-C into which the end of the requests is turned."""
        from profkit.hardware.gpu_locks import lock_gpus
        from profkit.hardware.nvidia import read_gpu_uuids

        with contextlib.ExitStack() as until_end:
            until_end.callback(client.close)
            while True:
                request = pending.get()
                if request["ask"] == "open" and data.get("locks"):
                    uuids = read_gpu_uuids({**os.environ, **env})[:1]
                    until_end.enter_context(lock_gpus(uuids, home))
                _answer(client, home, request)

    serve(requests, answers, work, pending.put)


def _answer(client: WorkerClient, home: Home, request: dict[str, Any]) -> None:
    try:
        if request["ask"] == "open":
            home.send("opened", about=client.open(request["settings"], request["timeout"]))
        else:
            home.send(**client.run(request["data"], request["timeout"]))
    except WorkerEnded as ended:
        client.kill()
        home.send("ended", status=ended.status.value, reason=str(ended))
