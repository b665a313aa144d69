"""The other side, once profkit is there: work is done, and what it says goes back, an object a line.

A thread reads the requests that come meanwhile: `cancel` is a Ctrl-C. Where the requests end, the connection is gone,
and everything here ends too. Another thread says every second that this side lives.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO

from profkit.core.errors import ProfkitError
from profkit.core.files.regular import open_regular
from profkit.core.process import adopt_orphans
from profkit.core.types import Json
from profkit.execution.places.boot import file_hash
from profkit.execution.places.received import PIECE, is_wanted

BEAT_SECONDS = 1.0
GRACE_SECONDS = 20.0  # for the work to end by itself when the connection is gone
INTERNAL = 70


class Home:
    """What the work here may say. It is a Progress, and sends files."""

    def __init__(self, answers: IO[bytes]) -> None:
        self._answers, self._lock, self._ticked = answers, threading.Lock(), 0.0

    def send(self, event: str, **fields: Json) -> None:
        """One message. Where nobody reads any more, nothing happens: the reader of requests notices that."""
        line = json.dumps({"event": event, **fields}).encode() + b"\n"
        try:
            with self._lock:
                self._answers.write(line)
                self._answers.flush()
        except (OSError, ValueError):
            pass

    def send_folder(self, folder: Path, parts: Collection[str]) -> None:
        """The regular files of a result below a folder, by their names in it; links and hidden files stay here."""
        for at, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                path = Path(at, name)
                inside = path.relative_to(folder)
                if path.is_file() and not path.is_symlink() and is_wanted(inside.parts, parts):
                    self.send_file(path, inside.as_posix())

    def send_file(self, path: Path, name: str) -> None:
        """One file."""
        self.send("file", name=name, size=path.stat().st_size, sha=file_hash(path))
        with open_regular(path) as file:
            while piece := file.read(PIECE):
                self.send("data", data=base64.b64encode(zlib.compress(piece, 3)).decode())

    def begin(self, title: str, detail: str = "") -> None:
        """As a Progress does."""
        self.send("progress", call="begin", words=[title, detail])

    def tick(self, seconds: float) -> None:
        """Twice a second at most."""
        if time.monotonic() - self._ticked > BEAT_SECONDS / 2:
            self._ticked = time.monotonic()
            self.send("progress", call="tick", words=[seconds])

    def move(self, detail: str) -> None:
        """As a Progress does."""
        self.send("progress", call="move", words=[detail])

    def end(self, result: str) -> None:
        """As a Progress does."""
        self.send("progress", call="end", words=[result])

    def note(self, text: str) -> None:
        """As a Progress does."""
        self.send("progress", call="note", words=[text])


def serve(requests: IO[bytes], answers: IO[bytes], work: Callable[[Home], Json]) -> None:
    """Do the work, and send its result, or the fault that it raised."""
    adopt_orphans()
    home = Home(answers)
    over = threading.Event()
    threading.Thread(target=_listen, args=(requests, over), name="requests", daemon=True).start()
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


def _listen(requests: IO[bytes], over: threading.Event) -> None:
    for line in requests:
        if b'"cancel"' in line:
            os.kill(os.getpid(), signal.SIGINT)
    if over.is_set():
        return
    os.kill(os.getpid(), signal.SIGINT)
    if not over.wait(GRACE_SECONDS):
        end_children()
        os._exit(1)


def end_children() -> None:
    """Nothing that was started here goes on."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        try:
            process.kill()
        except psutil.Error:
            continue
